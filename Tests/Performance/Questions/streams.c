// Question 4: nghttp2 with malloc, and with an allocator over a slab of the loop's own. Two sessions in memory, GET and 200 with 200 bytes.
#include "counted.h"
#include <nghttp2/nghttp2.h>

enum { ROUNDS = 15, STREAMS = 20000, CLASSES = 8 };

// Free lists of 64, 128, … 8192 bytes; a header of 16 bytes knows the class.
struct slab {
    void *free[CLASSES];
    char *fresh, *end;
    uint64_t calls;
};

static int class_of(size_t size) {
    int class = 0;
    while (class < CLASSES && ((size_t)64 << class) < size + 16) class++;
    return class;
}
static void *slab_malloc(size_t size, void *user) {
    struct slab *slab = user;
    slab->calls++;
    int class = class_of(size);
    char *block;
    if (class == CLASSES) block = malloc(size + 16);
    else if (slab->free[class]) {
        block = slab->free[class];
        slab->free[class] = *(void **)(block + 16);
    } else {
        size_t length = (size_t)64 << class;
        if ((size_t)(slab->end - slab->fresh) < length) {
            slab->fresh = malloc(1 << 20);
            slab->end = slab->fresh + (1 << 20);
        }
        block = slab->fresh;
        slab->fresh += length;
    }
    *(int64_t *)block = class;
    return block + 16;
}
static void slab_free(void *pointer, void *user) {
    if (!pointer) return;
    struct slab *slab = user;
    char *block = (char *)pointer - 16;
    int64_t class = *(int64_t *)block;
    if (class == CLASSES) return free(block);
    *(void **)(block + 16) = slab->free[class];
    slab->free[class] = block;
}
static void *slab_calloc(size_t count, size_t size, void *user) { return memset(slab_malloc(count * size, user), 0, count * size); }
static void *slab_realloc(void *pointer, size_t size, void *user) {
    if (!pointer) return slab_malloc(size, user);
    int64_t class = *(int64_t *)((char *)pointer - 16);
    if (class < CLASSES && ((size_t)64 << class) >= size + 16) return pointer;
    void *larger = slab_malloc(size, user);
    memcpy(larger, pointer, class < CLASSES ? ((size_t)64 << class) - 16 : size);
    slab_free(pointer, user);
    return larger;
}

// The same counts over malloc.
static void *plain_malloc(size_t size, void *user) { return ++((struct slab *)user)->calls, malloc(size); }
static void plain_free(void *pointer, void *user) { (void)user, free(pointer); }
static void *plain_calloc(size_t count, size_t size, void *user) { return ++((struct slab *)user)->calls, calloc(count, size); }
static void *plain_realloc(void *pointer, size_t size, void *user) { return ++((struct slab *)user)->calls, realloc(pointer, size); }

#define FIELD(name, value) {(uint8_t *)name, (uint8_t *)value, sizeof name - 1, sizeof value - 1, NGHTTP2_NV_FLAG_NONE}

static ssize_t body(nghttp2_session *session, int32_t stream, uint8_t *buffer, size_t length, uint32_t *flags, nghttp2_data_source *source, void *user) {
    (void)session, (void)stream, (void)source, (void)user, (void)length;
    memset(buffer, 'y', 200);
    *flags = NGHTTP2_DATA_FLAG_EOF;
    return 200;
}
static int on_frame(nghttp2_session *session, const nghttp2_frame *frame, void *user) {
    if (!user || frame->hd.type != NGHTTP2_HEADERS || !(frame->hd.flags & NGHTTP2_FLAG_END_STREAM)) return 0;
    nghttp2_nv fields[] = {FIELD(":status", "200"), FIELD("content-type", "text/plain"), FIELD("content-length", "200"), FIELD("server", "origin"),
                           FIELD("date", "Sun, 22 Nov 2026 04:00:00 GMT")};
    nghttp2_data_provider provider = {.read_callback = body};
    return nghttp2_submit_response(session, frame->hd.stream_id, fields, sizeof fields / sizeof *fields, &provider);
}
static int done;
static int on_close(nghttp2_session *session, int32_t stream, uint32_t code, void *user) {
    (void)session, (void)stream;
    if (code) fail("stream");
    if (!user) done++;
    return 0;
}
static void pump(nghttp2_session *from, nghttp2_session *to) {
    const uint8_t *bytes;
    ssize_t count;
    while ((count = nghttp2_session_mem_send(from, &bytes)) > 0)
        if (nghttp2_session_mem_recv(to, bytes, count) != count) fail("mem_recv");
}

static void run(int own, int together, int counter, struct cost *best, double *calls) {
    struct slab slabs[2] = {0};
    nghttp2_session *client = NULL, *server = NULL;
    nghttp2_session_callbacks *callbacks;
    nghttp2_session_callbacks_new(&callbacks);
    nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, on_frame);
    nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, on_close);
    nghttp2_mem memory[2];
    for (int i = 0; i < 2; i++)
        memory[i] = own ? (nghttp2_mem){&slabs[i], slab_malloc, slab_free, slab_calloc, slab_realloc}
                        : (nghttp2_mem){&slabs[i], plain_malloc, plain_free, plain_calloc, plain_realloc};
    if (nghttp2_session_client_new3(&client, callbacks, NULL, NULL, &memory[0]) || nghttp2_session_server_new3(&server, callbacks, &slabs[1], NULL, &memory[1])) fail("session");
    nghttp2_submit_settings(client, 0, NULL, 0);
    nghttp2_submit_settings(server, 0, NULL, 0);
    pump(client, server);
    pump(server, client);
    pump(client, server);
    nghttp2_nv fields[] = {FIELD(":method", "GET"), FIELD(":scheme", "https"), FIELD(":authority", "localhost:19444"), FIELD(":path", "/small"),
                           FIELD("user-agent", "h2load nghttp2/1.52.0"),
                           {(uint8_t *)"authorization", (uint8_t *)"Bearer abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnop", 13, 75, NGHTTP2_NV_FLAG_NO_INDEX}};
    double ns = 0, was = 0;
    uint64_t first = 0;
    done = 0;
    for (int number = 0; number < STREAMS + 1000; number += together) {
        if (number == 1000 / together * together) {
            ns = thread_ns(), was = instructions(counter);
            first = slabs[0].calls + slabs[1].calls;
            done = 0;
        }
        for (int i = 0; i < together; i++)
            if (nghttp2_submit_request(client, NULL, fields, sizeof fields / sizeof *fields, NULL, NULL) < 0) fail("request");
        pump(client, server);
        pump(server, client);
    }
    least(best, (thread_ns() - ns) / done, (instructions(counter) - was) / done);
    *calls = (double)(slabs[0].calls + slabs[1].calls - first) / done;
    nghttp2_session_del(client);
    nghttp2_session_del(server);
    nghttp2_session_callbacks_del(callbacks);
}

int main(void) {
    int counter = open_instructions();
    printf("nghttp2 %s, both ends of a stream\n", nghttp2_version(0)->version_str);
    for (int together = 1; together <= 16; together *= 16) {
        struct cost best[2] = {0};
        double calls[2];
        for (int round = 0; round < ROUNDS; round++)
            for (int own = 0; own < 2; own++) run(own, together, counter, &best[own], &calls[own]);
        for (int own = 0; own < 2; own++)
            printf("%2d at a time, %-6s: %.0f ns, %.0f user instructions, %.1f allocations\n", together, own ? "slab" : "malloc", best[own].ns, best[own].instructions, calls[own]);
    }
}
