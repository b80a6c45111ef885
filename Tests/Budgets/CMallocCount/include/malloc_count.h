// Counts what the current thread allocates. Only where it can be true: not in debug builds, which allocate more than what is shipped, and
// not under sanitizers, which bring an allocator of their own.
#ifndef CARDEA_MALLOC_COUNT_H
#define CARDEA_MALLOC_COUNT_H

#include <stdint.h>

// 1 when this build counts.
int cardea_counts_mallocs(void);

// From here on the current thread is counted, beginning at zero.
void cardea_malloc_count_begin(void);

// Ends the counting.
uint64_t cardea_malloc_count_end(void);

// Writes the call stacks of the first few counted allocations to a descriptor.
void cardea_malloc_count_report(int descriptor);

#endif
