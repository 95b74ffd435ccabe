/* The oldest way: a thread that reads a connection waits for it. Either each
 * connection has a thread of its own, or, with -pool N, N threads take turns:
 * each accepts a connection and serves it until it ends or has had 100 answers,
 * the last of which says that it closes.
 *
 * It answers as bare.c does, and understands -addr 127.0.0.1:PORT as that does.
 * SIGTERM ends it at once. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define HEAD(connection) "HTTP/1.1 200 OK\r\n" connection "Content-Length: 13\r\nContent-Type: text/plain; charset=utf-8\r\n" \
    "Date: Mon, 01 Jan 2024 00:00:00 GMT\r\nServer: qps-ladder\r\n\r\nHello, World!"
static const char answer[] = HEAD(""), last[] = HEAD("Connection: close\r\n");

enum { answersPerTurn = 100, stack = 64 << 10 };

static int listener, pool;

static void stop(int signal) { (void)signal; _exit(0); }

static void require(int ok, const char *what) {
    if (!ok) { perror(what); exit(1); }
}

/* serve answers what comes until the client ends, or its turn does. */
static void serve(int fd) {
    char request[16384];
    for (int left = answersPerTurn; recv(fd, request, sizeof request, 0) > 0; ) {
        int ends = pool > 0 && --left == 0;
        if (send(fd, ends ? last : answer, (ends ? sizeof last : sizeof answer) - 1, MSG_NOSIGNAL) < 0 || ends) break;
    }
    close(fd);
}

static void *serveOne(void *fd) { serve((int)(long)fd); return NULL; }

static void *takeTurns(void *unused) {
    for (int fd; ; ) if ((fd = accept(listener, NULL, NULL)) >= 0) serve(fd);
    return unused;
}

int main(int argc, char **argv) {
    int port = 8080, one = 1;
    for (int i = 1; i + 1 < argc; i++) {
        if (!strcmp(argv[i], "-addr") && strrchr(argv[i + 1], ':')) port = atoi(strrchr(argv[i + 1], ':') + 1);
        if (!strcmp(argv[i], "-pool")) pool = atoi(argv[i + 1]);
    }
    signal(SIGTERM, stop);
    signal(SIGINT, stop);

    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;
    require((listener = socket(AF_INET, SOCK_STREAM, 0)) >= 0, "socket");
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    setsockopt(listener, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    require(!bind(listener, (struct sockaddr *)&address, length), "bind");
    require(!listen(listener, 16384), "listen");
    getsockname(listener, (struct sockaddr *)&address, &length);
    printf("ready stage=blocking-c pid=%d addr=127.0.0.1:%d workers=%d gomaxprocs=0\n", getpid(), ntohs(address.sin_port), pool ? pool : 1);
    fflush(stdout);

    pthread_t thread;
    pthread_attr_t small;
    pthread_attr_init(&small);
    pthread_attr_setdetachstate(&small, PTHREAD_CREATE_DETACHED);
    pthread_attr_setstacksize(&small, stack);
    for (int i = 1; i < pool; i++) require(!pthread_create(&thread, &small, takeTurns, NULL), "pthread_create");
    if (pool > 0) takeTurns(NULL);
    for (int fd; ; ) {
        if ((fd = accept(listener, NULL, NULL)) < 0) continue;
        if (pthread_create(&thread, &small, serveOne, (void *)(long)fd)) close(fd);
    }
}
