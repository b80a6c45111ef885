// Question 3: how bytes get from a socket to OpenSSL. One connection over the loopback, both ends here, the far end always by its socket.
// bios LEAF.PEM LEAF.KEY
#include "counted.h"
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <openssl/ssl.h>
#include <sys/socket.h>

enum { SOCKET, MEMORY, OWN, WAYS, ROUNDS = 15, MESSAGES = 400 };
static const char *names[WAYS] = {"socket BIO", "memory BIO", "BIO of our own"};

struct end {
    SSL *ssl;
    int socket, way;
    BIO *in, *out;
};

// A BIO of our own, with no buffer: it calls the socket as the gateway's wire calls the kernel seam.
static int own_read(BIO *bio, char *buffer, int length) {
    BIO_clear_retry_flags(bio);
    ssize_t got = recv(((struct end *)BIO_get_data(bio))->socket, buffer, length, 0);
    if (got < 0) BIO_set_retry_read(bio);
    return (int)got;
}
static int own_write(BIO *bio, const char *bytes, int length) {
    BIO_clear_retry_flags(bio);
    ssize_t sent = send(((struct end *)BIO_get_data(bio))->socket, bytes, length, MSG_NOSIGNAL);
    if (sent < 0) BIO_set_retry_write(bio);
    return (int)sent;
}
static long own_control(BIO *bio, int command, long number, void *pointer) {
    (void)bio, (void)number, (void)pointer;
    return command == BIO_CTRL_FLUSH;
}

static void attach(struct end *end, SSL_CTX *context, int socket, int way, int server) {
    static BIO_METHOD *method;
    if (!method) {
        method = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "own");
        BIO_meth_set_read(method, own_read);
        BIO_meth_set_write(method, own_write);
        BIO_meth_set_ctrl(method, own_control);
    }
    *end = (struct end){.ssl = SSL_new(context), .socket = socket, .way = way};
    if (way == SOCKET) SSL_set_fd(end->ssl, socket);
    if (way == MEMORY) SSL_set_bio(end->ssl, end->in = BIO_new(BIO_s_mem()), end->out = BIO_new(BIO_s_mem()));
    if (way == OWN) {
        BIO *bio = BIO_new(method);
        BIO_set_data(bio, end);
        BIO_set_init(bio, 1);
        SSL_set_bio(end->ssl, bio, bio);
    }
    if (server) SSL_set_accept_state(end->ssl);
    else SSL_set_connect_state(end->ssl);
}

static void flush(struct end *end) {
    if (end->way != MEMORY) return;
    char *bytes;
    long count = BIO_get_mem_data(end->out, &bytes);
    // The socket's buffer holds all that is ever under way here.
    if (count > 0 && send(end->socket, bytes, count, MSG_NOSIGNAL) != count) fail("send");
    (void)BIO_reset(end->out);
}

static void fill(struct end *end) {
    if (end->way != MEMORY) return;
    static char buffer[65536];
    ssize_t got = recv(end->socket, buffer, sizeof buffer, 0);
    if (got > 0) BIO_write(end->in, buffer, (int)got);
}

static void take(struct end *end, int size) {
    static char buffer[16384];
    for (int have = 0, tries = 0; have < size;) {
        fill(end);
        int got;
        while (have < size && (got = SSL_read(end->ssl, buffer, sizeof buffer)) > 0) have += got;
        if (++tries > 100000) fail("read");
    }
}

static void give(struct end *end, int size) {
    static char body[16384];
    if (SSL_write(end->ssl, body, size) != size) fail("write");
    flush(end);
}

static void connected(int sockets[2]) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;
    int listener = socket(AF_INET, SOCK_STREAM, 0), on = 1, size = 1 << 20;
    if (bind(listener, (struct sockaddr *)&address, length) || listen(listener, 1) || getsockname(listener, (struct sockaddr *)&address, &length)) fail("listen");
    sockets[0] = socket(AF_INET, SOCK_STREAM, 0);
    if (connect(sockets[0], (struct sockaddr *)&address, length)) fail("connect");
    sockets[1] = accept(listener, NULL, NULL);
    close(listener);
    for (int i = 0; i < 2; i++) {
        setsockopt(sockets[i], IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        setsockopt(sockets[i], SOL_SOCKET, SO_SNDBUF, &size, sizeof size);
        fcntl(sockets[i], F_SETFL, O_NONBLOCK);
    }
}

int main(int count, char **arguments) {
    if (count != 3) fail("usage: bios LEAF.PEM LEAF.KEY");
    SSL_CTX *server = SSL_CTX_new(TLS_server_method()), *client = SSL_CTX_new(TLS_client_method());
    if (SSL_CTX_use_certificate_chain_file(server, arguments[1]) != 1 || SSL_CTX_use_PrivateKey_file(server, arguments[2], SSL_FILETYPE_PEM) != 1) fail("certificate");
    SSL_CTX_set_mode(client, SSL_MODE_RELEASE_BUFFERS);
    int counter = open_instructions();
    struct end near[WAYS], far[WAYS];
    for (int way = 0; way < WAYS; way++) {
        int sockets[2];
        connected(sockets);
        attach(&near[way], client, sockets[0], way, 0);
        attach(&far[way], server, sockets[1], SOCKET, 1);
        for (int turn = 0, done = 0; !done; turn++) {
            fill(&near[way]);
            int left = SSL_do_handshake(near[way].ssl);
            flush(&near[way]);
            done = SSL_do_handshake(far[way].ssl) == 1 && left == 1;
            if (turn > 1000) fail("handshake");
        }
        if (way == 0) {
            int sockets_of_kernel[2];
            connected(sockets_of_kernel);
            int result = setsockopt(sockets_of_kernel[0], IPPROTO_TCP, TCP_ULP, "tls", 3);
            printf("kTLS: %s\n", result == 0 ? "the kernel has it" : "the kernel has no module tls");
        }
    }
    for (int size = 1024; size <= 16384; size *= 4) {
        struct cost sent[WAYS] = {0}, received[WAYS] = {0};
        for (int round = 0; round < ROUNDS; round++)
            for (int way = 0; way < WAYS; way++) {
                double give_ns = 0, take_ns = 0, give_count = 0, take_count = 0;
                for (int message = 0; message < MESSAGES; message++) {
                    double ns = thread_ns(), was = instructions(counter);
                    give(&near[way], size);
                    give_count += instructions(counter) - was;
                    give_ns += thread_ns() - ns;
                    take(&far[way], size);
                    give(&far[way], size);
                    ns = thread_ns(), was = instructions(counter);
                    take(&near[way], size);
                    take_count += instructions(counter) - was;
                    take_ns += thread_ns() - ns;
                }
                least(&sent[way], give_ns / MESSAGES, give_count / MESSAGES);
                least(&received[way], take_ns / MESSAGES, take_count / MESSAGES);
            }
        for (int way = 0; way < WAYS; way++)
            printf("%5d bytes, %-14s: sent in %.2f µs, %.0f user instructions; received in %.2f µs, %.0f\n", size, names[way], sent[way].ns / 1e3,
                   sent[way].instructions, received[way].ns / 1e3, received[way].instructions);
    }
}
