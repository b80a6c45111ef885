// Question 2: does an OpenSSL library context of its own help each loop? Handshakes in memory, TLS 1.3 and ECDSA, by 1 to 8 threads.
// contexts LEAF.PEM LEAF.KEY
#include "counted.h"
#include <openssl/ssl.h>
#include <pthread.h>

enum { HANDSHAKES = 150, ROUNDS = 7 };
static const char *leaf, *key;

struct job {
    OSSL_LIB_CTX *library;
    double ns;
};

static SSL_CTX *configured(OSSL_LIB_CTX *library, const SSL_METHOD *method, int server) {
    SSL_CTX *context = SSL_CTX_new_ex(library, NULL, method);
    if (!context) fail("SSL_CTX_new_ex");
    SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
    if (server && (SSL_CTX_use_certificate_chain_file(context, leaf) != 1 ||
                   SSL_CTX_use_PrivateKey_file(context, key, SSL_FILETYPE_PEM) != 1))
        fail("certificate");
    return context;
}

static void *work(void *argument) {
    struct job *job = argument;
    // As the loops have them: an SSL_CTX each, whatever the library context is.
    SSL_CTX *server_context = configured(job->library, TLS_server_method(), 1), *client_context = configured(job->library, TLS_client_method(), 0);
    double began = 0;
    for (int number = -10; number < HANDSHAKES; number++) {
        if (number == 0) began = thread_ns();
        SSL *server = SSL_new(server_context), *client = SSL_new(client_context);
        BIO *one, *other;
        if (!BIO_new_bio_pair(&one, 0, &other, 0)) fail("BIO_new_bio_pair");
        SSL_set_bio(server, one, one);
        SSL_set_bio(client, other, other);
        SSL_set_accept_state(server);
        SSL_set_connect_state(client);
        int done = 0;
        for (int turn = 0; turn < 20 && !done; turn++) {
            int left = SSL_do_handshake(client), right = SSL_do_handshake(server);
            done = left == 1 && right == 1;
        }
        if (!done) fail("handshake");
        SSL_free(server);
        SSL_free(client);
    }
    job->ns = (thread_ns() - began) / HANDSHAKES;
    SSL_CTX_free(server_context);
    SSL_CTX_free(client_context);
    return NULL;
}

static void run(int threads, int own, double *cpu, double *wall) {
    pthread_t started[8];
    struct job jobs[8];
    struct timespec before, after;
    for (int i = 0; i < threads; i++) jobs[i].library = own ? OSSL_LIB_CTX_new() : NULL;
    clock_gettime(CLOCK_MONOTONIC, &before);
    for (int i = 0; i < threads; i++)
        if (pthread_create(&started[i], NULL, work, &jobs[i])) fail("pthread_create");
    double sum = 0;
    for (int i = 0; i < threads; i++) {
        pthread_join(started[i], NULL);
        sum += jobs[i].ns;
    }
    clock_gettime(CLOCK_MONOTONIC, &after);
    for (int i = 0; i < threads; i++)
        if (own) OSSL_LIB_CTX_free(jobs[i].library);
    *cpu = sum / threads;
    *wall = ((after.tv_sec - before.tv_sec) * 1e9 + (after.tv_nsec - before.tv_nsec)) / (HANDSHAKES + 10) / threads;
}

int main(int count, char **arguments) {
    if (count != 3) fail("usage: contexts LEAF.PEM LEAF.KEY");
    leaf = arguments[1];
    key = arguments[2];
    printf("%s, both ends of a handshake, µs of a thread's time: one library context, one each; µs of the clock: the same\n", OpenSSL_version(OPENSSL_VERSION));
    for (int threads = 1; threads <= 8; threads *= 2) {
        double cpu[2] = {1e18, 1e18}, wall[2] = {1e18, 1e18};
        for (int round = 0; round < ROUNDS; round++)
            for (int own = 0; own < 2; own++) {
                double c, w;
                run(threads, own, &c, &w);
                if (c < cpu[own]) cpu[own] = c;
                if (w < wall[own]) wall[own] = w;
            }
        printf("%d threads: %.0f %.0f; %.0f %.0f\n", threads, cpu[0] / 1e3, cpu[1] / 1e3, wall[0] / 1e3, wall[1] / 1e3);
    }
}
