#include "malloc_count.h"

#if defined(__has_feature)
#if __has_feature(thread_sanitizer) || __has_feature(address_sanitizer)
#define SANITIZED 1
#endif
#endif

#if defined(DEBUG) || defined(SANITIZED) || !defined(__GLIBC__) && !defined(__linux__)

int cardea_counts_mallocs(void) { return 0; }
void cardea_malloc_count_begin(void) {}
uint64_t cardea_malloc_count_end(void) { return 0; }
void cardea_malloc_count_report(int descriptor) { (void)descriptor; }

#else

#include <errno.h>
#include <execinfo.h>
#include <stddef.h>
#include <unistd.h>

// The allocator under the names that the loader does not look for: these stand in the executable, so everybody's calls come here first.
void *__libc_malloc(size_t);
void *__libc_calloc(size_t, size_t);
void *__libc_realloc(void *, size_t);
void *__libc_memalign(size_t, size_t);

enum { stacks = 8, depth = 24 };

// One thread is counted at a time; the flag is the thread's own, so that no other thread is counted with it.
static __thread int counting;
static uint64_t count;
static void *frames[stacks][depth];
static int lengths[stacks];

static void note(void) {
    if (!counting) return;
    if (count < stacks) {
        // The walk itself may allocate.
        counting = 0;
        lengths[count] = backtrace(frames[count], depth);
        counting = 1;
    }
    count += 1;
}

void *malloc(size_t size) {
    note();
    return __libc_malloc(size);
}

void *calloc(size_t number, size_t size) {
    note();
    return __libc_calloc(number, size);
}

void *realloc(void *old, size_t size) {
    note();
    return __libc_realloc(old, size);
}

void *memalign(size_t alignment, size_t size) {
    note();
    return __libc_memalign(alignment, size);
}

void *aligned_alloc(size_t alignment, size_t size) {
    note();
    return __libc_memalign(alignment, size);
}

int posix_memalign(void **result, size_t alignment, size_t size) {
    note();
    if (alignment % sizeof(void *) != 0 || (alignment & (alignment - 1)) != 0 || alignment == 0) return EINVAL;
    void *memory = __libc_memalign(alignment, size);
    if (!memory) return ENOMEM;
    *result = memory;
    return 0;
}

int cardea_counts_mallocs(void) { return 1; }

void cardea_malloc_count_begin(void) {
    // The first walk loads the unwinder.
    void *first[1];
    backtrace(first, 1);
    count = 0;
    counting = 1;
}

uint64_t cardea_malloc_count_end(void) {
    counting = 0;
    return count;
}

void cardea_malloc_count_report(int descriptor) {
    for (uint64_t index = 0; index < count && index < stacks; index++) {
        backtrace_symbols_fd(frames[index], lengths[index], descriptor);
        (void)!write(descriptor, "\n", 1);
    }
}

#endif
