/* The ceiling: an epoll loop that answers without reading what it was asked.
 * Every request that fits one read gets the bytes that a stage would send for
 * GET /, with a Date that stands still. It has no timeouts, no limits, and
 * splits nothing: a fair server cannot be faster on the same system calls.
 *
 * It understands -addr 127.0.0.1:PORT (0: the kernel chooses) and prints the
 * ready line of the stages. Other flags are ignored. SIGTERM ends it at once. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

static const char answer[] = "HTTP/1.1 200 OK\r\nContent-Length: 13\r\nContent-Type: text/plain; charset=utf-8\r\n"
                             "Date: Mon, 01 Jan 2024 00:00:00 GMT\r\nServer: qps-ladder\r\n\r\nHello, World!";

static void stop(int signal) { (void)signal; _exit(0); }

static void require(int ok, const char *what) {
    if (!ok) { perror(what); exit(1); }
}

int main(int argc, char **argv) {
    int port = 8080, one = 1, n;
    for (int i = 1; i + 1 < argc; i++)
        if (!strcmp(argv[i], "-addr") && strrchr(argv[i + 1], ':')) port = atoi(strrchr(argv[i + 1], ':') + 1);
    signal(SIGTERM, stop);
    signal(SIGINT, stop);

    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0), loop = epoll_create1(0);
    require(listener >= 0 && loop >= 0, "socket");
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    setsockopt(listener, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    require(!bind(listener, (struct sockaddr *)&address, length), "bind");
    require(!listen(listener, 4096), "listen");
    getsockname(listener, (struct sockaddr *)&address, &length);
    struct epoll_event event = {.events = EPOLLIN, .data.fd = listener}, events[512];
    require(!epoll_ctl(loop, EPOLL_CTL_ADD, listener, &event), "epoll_ctl");
    printf("ready stage=bare-c pid=%d addr=127.0.0.1:%d workers=1 gomaxprocs=0\n", getpid(), ntohs(address.sin_port));
    fflush(stdout);

    static char request[65536];
    for (;;) {
        n = epoll_wait(loop, events, 512, -1);
        for (int i = 0; i < n; i++) {
            int fd = events[i].data.fd;
            if (fd == listener) {
                while ((fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK)) >= 0) {
                    event.data.fd = fd;
                    epoll_ctl(loop, EPOLL_CTL_ADD, fd, &event);
                }
            } else if (recv(fd, request, sizeof request, 0) <= 0 ||
                       send(fd, answer, sizeof answer - 1, MSG_NOSIGNAL) < 0) {
                close(fd);
            }
        }
    }
}
