#pragma once
#include <stddef.h>
#include <stdint.h>

// liburcu's lock-free hash table (cds_lfht, QSBR flavour) with tokens in it: the table that a C program would take.
typedef struct bench_table bench_table;

bench_table *bench_table_make(size_t capacity);
void bench_table_free(bench_table *table);
// Any thread that is registered. The old value is freed after its grace period.
void bench_table_put(bench_table *table, uint64_t key, const void *bytes, size_t length, uint64_t served_until);

void bench_reader_enter(void);
void bench_reader_leave(void);
void bench_reader_quiescent(void);
// Copies a value that is still served; its length, or -1.
long bench_table_copy(bench_table *table, uint64_t key, uint64_t now, void *target);
