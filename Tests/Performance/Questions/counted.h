// Processor time and user instructions of the calling thread.
#pragma once
#include <linux/perf_event.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static inline double thread_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return now.tv_sec * 1e9 + now.tv_nsec;
}

/// Of user code alone; -1 where the kernel or the machine does not count.
static inline int open_instructions(void) {
    struct perf_event_attr wanted = {
        .type = PERF_TYPE_HARDWARE, .size = sizeof wanted, .config = PERF_COUNT_HW_INSTRUCTIONS, .exclude_kernel = 1, .exclude_hv = 1};
    return (int)syscall(SYS_perf_event_open, &wanted, 0, -1, -1, 0);
}

static inline double instructions(int counter) {
    uint64_t count = 0;
    return counter >= 0 && read(counter, &count, sizeof count) == sizeof count ? (double)count : 0;
}

/// What a measured piece of work cost, each the least of its rounds: what disturbs only adds.
struct cost {
    double ns, instructions;
};

static inline void least(struct cost *best, double ns, double count) {
    if (best->ns == 0 || ns < best->ns) best->ns = ns;
    if (best->instructions == 0 || count < best->instructions) best->instructions = count;
}

static inline void fail(const char *what) {
    fprintf(stderr, "%s failed\n", what);
    exit(1);
}
