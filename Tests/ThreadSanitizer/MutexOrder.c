// What the thread sanitizer cannot see of a contended `Mutex`.
//
// On Linux a `Mutex` that somebody holds is taken and given back by the kernel (FUTEX_LOCK_PI, FUTEX_UNLOCK_PI), called from a
// library that is not instrumented. The sanitizer then knows of no order between two critical sections of the same lock and
// reports a race between them, now and then. The two slow paths are called from instrumented code by name; here that name is
// ours, adds the edge that the kernel makes, at the address that the fast paths' atomics use, and calls the library.
//
// An edge too many could hide a race, so there is none that the kernel does not make. Without the sanitizer this file is empty.

#if __has_feature(thread_sanitizer)
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>

extern void __tsan_acquire(void *address);
extern void __tsan_release(void *address);

#define LOCK "$s15Synchronization12_MutexHandleV9_lockSlowyys6UInt32VF"
#define TRY_LOCK "$s15Synchronization12_MutexHandleV12_tryLockSlowSbyF"
#define UNLOCK "$s15Synchronization12_MutexHandleV11_unlockSlowyyF"

// The convention of Swift's methods: the lock's address arrives in the register of `self`.
#define SELF __attribute__((swift_context)) void *lock
#define METHOD __attribute__((swiftcall))

typedef METHOD void (*Lock)(uint32_t thread, SELF);
typedef METHOD _Bool (*TryLock)(SELF);
typedef METHOD void (*Unlock)(SELF);

METHOD void cardea_lock(uint32_t thread, SELF) __asm__(LOCK);
METHOD _Bool cardea_try_lock(SELF) __asm__(TRY_LOCK);
METHOD void cardea_unlock(SELF) __asm__(UNLOCK);

METHOD void cardea_lock(uint32_t thread, SELF) {
    ((Lock)dlsym(RTLD_NEXT, LOCK))(thread, lock);
    __tsan_acquire(lock);
}

METHOD _Bool cardea_try_lock(SELF) {
    _Bool taken = ((TryLock)dlsym(RTLD_NEXT, TRY_LOCK))(lock);
    if (taken) __tsan_acquire(lock);
    return taken;
}

METHOD void cardea_unlock(SELF) {
    // Before the kernel lets another in: afterwards the lock may be gone.
    __tsan_release(lock);
    ((Unlock)dlsym(RTLD_NEXT, UNLOCK))(lock);
}
#endif
