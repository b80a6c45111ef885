#define _LGPL_SOURCE
#define URCU_INLINE_SMALL_FUNCTIONS
#include "urcu_table.h"

#include <stdlib.h>
#include <string.h>
#include <urcu/urcu-qsbr.h>
#include <urcu/rculfhash.h>

struct bench_table { struct cds_lfht *table; };

struct token {
    struct cds_lfht_node node;
    struct rcu_head head;
    uint64_t key, refresh_at, served_until;
    size_t length;
    char bytes[];
};

static unsigned long hash(uint64_t key) {
    key ^= key >> 33;
    key *= 0xff51afd7ed558ccdull;
    key ^= key >> 33;
    return (unsigned long)key;
}

static int match(struct cds_lfht_node *node, const void *key) {
    return caa_container_of(node, struct token, node)->key == *(const uint64_t *)key;
}

static void release(struct rcu_head *head) { free(caa_container_of(head, struct token, head)); }

bench_table *bench_table_make(size_t capacity) {
    bench_table *made = malloc(sizeof *made);
    made->table = cds_lfht_new_flavor(capacity, capacity, 0, CDS_LFHT_AUTO_RESIZE, &urcu_qsbr_flavor, NULL);
    return made;
}

void bench_table_free(bench_table *table) {
    struct cds_lfht_iter iterator;
    struct token *entry;
    urcu_qsbr_register_thread();
    urcu_qsbr_read_lock();
    cds_lfht_for_each_entry(table->table, &iterator, entry, node) {
        cds_lfht_del(table->table, &entry->node);
        urcu_qsbr_call_rcu(&entry->head, release);
    }
    urcu_qsbr_read_unlock();
    urcu_qsbr_barrier();
    urcu_qsbr_unregister_thread();
    cds_lfht_destroy(table->table, NULL);
    free(table);
}

void bench_table_put(bench_table *table, uint64_t key, const void *bytes, size_t length, uint64_t served_until) {
    struct token *fresh = malloc(sizeof *fresh + length);
    cds_lfht_node_init(&fresh->node);
    fresh->key = key;
    fresh->refresh_at = served_until;
    fresh->served_until = served_until;
    fresh->length = length;
    memcpy(fresh->bytes, bytes, length);
    urcu_qsbr_read_lock();
    struct cds_lfht_node *old = cds_lfht_add_replace(table->table, hash(key), match, &key, &fresh->node);
    urcu_qsbr_read_unlock();
    if (old) urcu_qsbr_call_rcu(&caa_container_of(old, struct token, node)->head, release);
    urcu_qsbr_quiescent_state();
}

void bench_reader_enter(void) { urcu_qsbr_register_thread(); }
void bench_reader_leave(void) { urcu_qsbr_unregister_thread(); }
void bench_reader_quiescent(void) { urcu_qsbr_quiescent_state(); }

long bench_table_copy(bench_table *table, uint64_t key, uint64_t now, void *target) {
    struct cds_lfht_iter iterator;
    long length = -1;
    urcu_qsbr_read_lock();
    cds_lfht_lookup(table->table, hash(key), match, &key, &iterator);
    struct cds_lfht_node *node = cds_lfht_iter_get_node(&iterator);
    if (node) {
        struct token *token = caa_container_of(node, struct token, node);
        if (now < token->served_until && now < token->refresh_at) {
            memcpy(target, token->bytes, token->length);
            length = (long)token->length;
        }
    }
    urcu_qsbr_read_unlock();
    return length;
}
