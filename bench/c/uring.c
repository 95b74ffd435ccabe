/* The twin of bare.c with io_uring: it asks the kernel for connections and for
 * what they send, once each, and gets what has been done. One call a turn sends
 * all answers and waits. It answers as bare.c does, with as little care.
 *
 * The calls are made as they are: io_uring_setup(2), io_uring_enter(2) and
 * io_uring_register(2) tell what the numbers mean. Linux 6.1 or later; where
 * io_uring is forbidden it says so in one line. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <linux/io_uring.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

static const char answer[] = "HTTP/1.1 200 OK\r\nContent-Length: 13\r\nContent-Type: text/plain; charset=utf-8\r\n"
                             "Date: Mon, 01 Jan 2024 00:00:00 GMT\r\nServer: qps-ladder\r\n\r\nHello, World!";

enum { requests = 1024, completions = 8192, buffers = 1024, bufferSize = 4096 };
enum what { accepted, received, sent };

static int ring;
static struct io_uring_params params;
static struct io_uring_sqe *entries;
static unsigned *sqHead, *sqTail, sqMask, tail, immediate;
static unsigned *cqHead, *cqTail, cqMask;
static struct io_uring_cqe *results;
static struct io_uring_buf_ring *table;
static char *memory;
static unsigned short given;

static void stop(int signal) { (void)signal; _exit(0); }

static void require(int ok, const char *what) {
    if (!ok) { perror(what); exit(1); }
}

static int enter(unsigned wanted, unsigned flags) {
    __atomic_store_n(sqTail, tail, __ATOMIC_RELEASE);
    return syscall(__NR_io_uring_enter, ring, tail - __atomic_load_n(sqHead, __ATOMIC_ACQUIRE), wanted, flags, NULL, 0);
}

/* note is the next free request; when there is none, those that there are go to the kernel first. */
static struct io_uring_sqe *note(int opcode, int fd, enum what what) {
    while (tail - __atomic_load_n(sqHead, __ATOMIC_ACQUIRE) == params.sq_entries) enter(0, 0);
    struct io_uring_sqe *e = &entries[tail++ & sqMask];
    memset(e, 0, sizeof *e);
    e->opcode = opcode;
    e->fd = fd;
    e->user_data = (unsigned long)what << 32 | (unsigned)fd;
    return e;
}

static void receive(int fd) {
    struct io_uring_sqe *e = note(IORING_OP_RECV, fd, received);
    e->ioprio = IORING_RECV_MULTISHOT;
    e->flags = IOSQE_BUFFER_SELECT;
}

static void give(int id) {
    struct io_uring_buf *b = &table->bufs[given++ & (buffers - 1)];
    b->addr = (unsigned long)(memory + id * bufferSize);
    b->len = bufferSize;
    b->bid = id;
    __atomic_store_n(&table->tail, given, __ATOMIC_RELEASE);
}

static void *map(int fd, size_t size, off_t at) {
    void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, fd < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED | MAP_POPULATE, fd, at);
    require(p != MAP_FAILED, "mmap");
    return p;
}

static void openRing(void) {
    params.flags = IORING_SETUP_CQSIZE | IORING_SETUP_SUBMIT_ALL | IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN;
    params.cq_entries = completions;
    require((ring = syscall(__NR_io_uring_setup, requests, &params)) >= 0, "io_uring_setup (Linux 6.1, and nothing that forbids it)");
    size_t sq = params.sq_off.array + params.sq_entries * sizeof(unsigned), cq = params.cq_off.cqes + params.cq_entries * sizeof(struct io_uring_cqe);
    char *rings = map(ring, sq > cq ? sq : cq, IORING_OFF_SQ_RING);
    entries = map(ring, params.sq_entries * sizeof *entries, IORING_OFF_SQES);
    sqHead = (unsigned *)(rings + params.sq_off.head);
    sqTail = (unsigned *)(rings + params.sq_off.tail);
    sqMask = *(unsigned *)(rings + params.sq_off.ring_mask);
    for (unsigned i = 0; i < params.sq_entries; i++) ((unsigned *)(rings + params.sq_off.array))[i] = i;
    cqHead = (unsigned *)(rings + params.cq_off.head);
    cqTail = (unsigned *)(rings + params.cq_off.tail);
    cqMask = *(unsigned *)(rings + params.cq_off.ring_mask);
    results = (struct io_uring_cqe *)(rings + params.cq_off.cqes);

    table = map(-1, buffers * sizeof(struct io_uring_buf), 0);
    memory = map(-1, buffers * bufferSize, 0);
    struct io_uring_buf_reg registration = {.ring_addr = (unsigned long)table, .ring_entries = buffers};
    require(!syscall(__NR_io_uring_register, ring, IORING_REGISTER_PBUF_RING, &registration, 1), "io_uring_register");
    for (int i = 0; i < buffers; i++) give(i);
}

int main(int argc, char **argv) {
    int port = 8080, one = 1;
    for (int i = 1; i + 1 < argc; i++)
        if (!strcmp(argv[i], "-addr") && strrchr(argv[i + 1], ':')) port = atoi(strrchr(argv[i + 1], ':') + 1);
    signal(SIGTERM, stop);
    signal(SIGINT, stop);

    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    require(listener >= 0, "socket");
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    setsockopt(listener, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    require(!bind(listener, (struct sockaddr *)&address, length), "bind");
    require(!listen(listener, 4096), "listen");
    getsockname(listener, (struct sockaddr *)&address, &length);
    openRing();
    note(IORING_OP_ACCEPT, listener, accepted)->ioprio = IORING_ACCEPT_MULTISHOT;
    printf("ready stage=uring-c pid=%d addr=127.0.0.1:%d workers=1 gomaxprocs=0\n", getpid(), ntohs(address.sin_port));
    fflush(stdout);

    for (unsigned head = *cqHead;;) {
        /* A send is complete as soon as it is submitted: wait for one completion more than there are sends. */
        enter(immediate + 1, IORING_ENTER_GETEVENTS);
        immediate = 0;
        for (; head != __atomic_load_n(cqTail, __ATOMIC_ACQUIRE); head++) {
            struct io_uring_cqe *c = &results[head & cqMask];
            int fd = (unsigned)c->user_data, more = c->flags & IORING_CQE_F_MORE;
            switch ((enum what)(c->user_data >> 32)) {
            case accepted:
                if (c->res >= 0) receive(c->res);
                if (!more) note(IORING_OP_ACCEPT, listener, accepted)->ioprio = IORING_ACCEPT_MULTISHOT;
                break;
            case received:
                if (c->flags & IORING_CQE_F_BUFFER) give(c->flags >> IORING_CQE_BUFFER_SHIFT);
                if (c->res > 0) {
                    struct io_uring_sqe *e = note(IORING_OP_SEND, fd, sent);
                    e->addr = (unsigned long)answer;
                    e->len = sizeof answer - 1;
                    e->msg_flags = MSG_NOSIGNAL | MSG_DONTWAIT;
                    immediate++;
                }
                if (!more && (c->res > 0 || c->res == -ENOBUFS)) receive(fd);
                else if (!more) close(fd);
                break;
            case sent:
                break; /* one that failed shows in what is received */
            }
        }
        __atomic_store_n(cqHead, head, __ATOMIC_RELEASE);
    }
}
