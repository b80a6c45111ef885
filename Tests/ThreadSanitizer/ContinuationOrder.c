// What the thread sanitizer cannot see of a continuation that is resumed before its task waits for it.
//
// The runtime tells the sanitizer that a resumption comes before the job that goes on with the task. Where another thread resumes a
// continuation while the task is still on its way to wait for it, there is no such job: the task reads an atomic in the runtime, which is
// not instrumented, and goes on at once. The sanitizer then calls what the other thread made, and the task reads, a race. The step to wait
// is called from instrumented code by name; here that name is ours. It has the task go on by way of `resumed`, which adds the edge
// from the resumption that has just been seen, and goes on to where the task wanted to. A build that is not optimised has the checked
// continuation of the library, which is not called by that name.
//
// An edge too many could hide a race, so there is none that the runtime does not make: whoever goes on has been resumed. Without the
// sanitizer this file is empty.

#if __has_feature(thread_sanitizer)
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdatomic.h>
#include <stdint.h>

extern void __tsan_acquire(void *address);
// The task that runs on this thread: the address at which the runtime notes a resumption.
extern __attribute__((swiftcall)) void *swift_task_getCurrent(void);

// The convention of Swift's asynchronous functions: the last call is a jump, and who goes on finds its context in a register of its own.
#define ASYNC __attribute__((swiftasynccall))
#define CONTEXT __attribute__((swift_async_context)) struct context *context
// The places are no business of the sanitizer: their order would be one between tasks that know nothing of each other.
#define UNSEEN __attribute__((disable_sanitizer_instrumentation))

struct context;
typedef ASYNC void (*GoOn)(CONTEXT);
typedef ASYNC void (*Await)(struct context *);
// The beginning of what the runtime calls a ContinuationAsyncContext.
struct context { struct context *parent; GoOn go_on; };

// Where the task of each context wanted to go on when it came to wait last. A context keeps its place: a job that goes on with a task
// goes where the runtime noted before, and not by way of `resumed`. A context for which there is no place waits without the edge.
#define PLACES (1 << 16)
static struct { _Atomic(struct context *) context; GoOn go_on; } places[PLACES];
static Await await;

__attribute__((constructor)) static void find(void) { await = (Await)dlsym(RTLD_NEXT, "swift_continuation_await"); }

// The place of a context, which is taken where there is none yet; PLACES where all are taken.
UNSEEN static unsigned place_of(struct context *context) {
    unsigned place = (unsigned)((((uintptr_t)context >> 4) * 0x9E3779B97F4A7C15u) >> 48) % PLACES;
    for (unsigned tried = 0; tried < PLACES; tried++, place = (place + 1) % PLACES) {
        struct context *found = 0;
        if (atomic_compare_exchange_strong(&places[place].context, &found, context) || found == context) return place;
    }
    return PLACES;
}

UNSEEN static ASYNC void resumed(CONTEXT) {
    GoOn go_on = places[place_of(context)].go_on;
    __tsan_acquire(swift_task_getCurrent());
    __attribute__((musttail)) return go_on(context);
}

ASYNC void cardea_await(struct context *) __asm__("swift_continuation_await");

UNSEEN ASYNC void cardea_await(struct context *context) {
    unsigned place = place_of(context);
    if (place < PLACES) {
        places[place].go_on = context->go_on;
        context->go_on = resumed;
    }
    __attribute__((musttail)) return await(context);
}
#endif
