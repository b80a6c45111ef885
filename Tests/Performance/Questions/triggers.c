// Question 5: epoll by level and by edge. A relay of one thread between pairs of sockets, as the gateway's loop reads: a read that fills less than
// its block has emptied the socket. The other ends are played by the same thread, and only the relay's part is timed.
#include "counted.h"
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>

enum { LEVEL, EDGE, WAYS, ROUNDS = 15, TURNS = 300, MOST = 256 };
static const char *names[WAYS] = {"level", "edge"};

static void pair(int sockets[2]) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;
    int listener = socket(AF_INET, SOCK_STREAM, 0), on = 1;
    if (bind(listener, (struct sockaddr *)&address, length) || listen(listener, 1) || getsockname(listener, (struct sockaddr *)&address, &length)) fail("listen");
    sockets[0] = socket(AF_INET, SOCK_STREAM, 0);
    if (connect(sockets[0], (struct sockaddr *)&address, length)) fail("connect");
    sockets[1] = accept(listener, NULL, NULL);
    close(listener);
    for (int i = 0; i < 2; i++) {
        setsockopt(sockets[i], IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        fcntl(sockets[i], F_SETFL, O_NONBLOCK);
    }
}

struct relay {
    int poll, outside[MOST], inside[MOST], calls;
};

static void turn(struct relay *relay, int ready, int size, int counter, double *ns, double *count) {
    static char bytes[16384];
    for (int i = 0; i < ready; i++)
        if (write(relay->outside[i], bytes, size) != size) fail("write");
    struct epoll_event events[MOST];
    double began = thread_ns(), was = instructions(counter);
    // One wait that brings work and one that finds none, as each turn of a loop has.
    for (int wait = 0; wait < 2; wait++) {
        int found = epoll_wait(relay->poll, events, MOST, 0);
        relay->calls++;
        for (int i = 0; i < found; i++) {
            int at = events[i].data.u32;
            ssize_t got = read(relay->inside[at], bytes, sizeof bytes);
            if (got != size || write(relay->inside[at], bytes, got) != got) fail("relay");
            relay->calls += 2;
        }
    }
    *count += instructions(counter) - was;
    *ns += thread_ns() - began;
    for (int i = 0; i < ready; i++)
        if (read(relay->outside[i], bytes, sizeof bytes) != size) fail("read");
}

int main(void) {
    int counter = open_instructions(), ready[] = {1, 16, 64, 256};
    static struct relay relays[WAYS];
    for (int way = 0; way < WAYS; way++) {
        relays[way].poll = epoll_create1(0);
        for (int i = 0; i < MOST; i++) {
            int sockets[2];
            pair(sockets);
            relays[way].outside[i] = sockets[0];
            relays[way].inside[i] = sockets[1];
            struct epoll_event event = {.events = EPOLLIN | EPOLLRDHUP | (way == EDGE ? EPOLLET : 0), .data.u32 = i};
            if (epoll_ctl(relays[way].poll, EPOLL_CTL_ADD, sockets[1], &event)) fail("epoll_ctl");
        }
    }
    printf("One read and one write for each ready socket of 256, and the waits of a turn; ns a message\n");
    for (size_t at = 0; at < sizeof ready / sizeof *ready; at++) {
        struct cost best[WAYS] = {0};
        for (int round = 0; round < ROUNDS; round++)
            for (int way = 0; way < WAYS; way++) {
                double ns = 0, count = 0;
                int turns = TURNS / (ready[at] > 16 ? 4 : 1);
                relays[way].calls = 0;
                for (int number = 0; number < turns; number++) turn(&relays[way], ready[at], 300, counter, &ns, &count);
                least(&best[way], ns / turns / ready[at], count / turns / ready[at]);
            }
        printf("%3d ready:", ready[at]);
        for (int way = 0; way < WAYS; way++) printf(" %s %.0f ns", names[way], best[way].ns);
        printf("\n");
    }
}
