// Parts of Linux that Glibc's Swift module leaves out: epoll, eventfd, prctl and the socket calls whose arguments Swift cannot spell.
#ifndef CARDEA_CLINUX_H
#define CARDEA_CLINUX_H

// No _GNU_SOURCE here: Swift's Glibc module reads the same system headers without it, and the two views of one type would
// clash. What needs it stands in shim.c.
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sockios.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

// epoll_event is packed on x86-64; these two accessors spare Swift from knowing that.
static inline uint64_t cardea_epoll_key(const struct epoll_event *event) { return event->data.u64; }
static inline uint32_t cardea_epoll_events(const struct epoll_event *event) { return event->events; }

// Whether a read of the socket, or an accept, would find something now. Does not wait.
static inline int cardea_has_input(int descriptor) {
    struct pollfd socket = { .fd = descriptor, .events = POLLIN };
    return poll(&socket, 1, 0) > 0;
}

static inline int cardea_epoll_ctl(int epoll, int operation, int descriptor, uint32_t events, uint64_t key) {
    struct epoll_event event;
    memset(&event, 0, sizeof event);
    event.events = events;
    event.data.u64 = key;
    return epoll_ctl(epoll, operation, descriptor, &event);
}

// accept4 with SOCK_NONBLOCK and SOCK_CLOEXEC.
int cardea_accept(int descriptor, struct sockaddr_storage *address, socklen_t *length);

// A stream socket with SOCK_NONBLOCK and SOCK_CLOEXEC.
int cardea_stream_socket(int family);

// A pipe with O_NONBLOCK and O_CLOEXEC. Bytes that it holds, or -1.
int cardea_pipe(int *outlet, int *inlet, int capacity);

// splice(2) without waiting.
ssize_t cardea_splice(int from, int to, size_t count);

static inline int cardea_connect(int descriptor, const struct sockaddr_storage *address, socklen_t length) {
    return connect(descriptor, (const struct sockaddr *)address, length);
}

static inline int cardea_bind(int descriptor, const struct sockaddr_storage *address, socklen_t length) {
    return bind(descriptor, (const struct sockaddr *)address, length);
}

static inline int cardea_socket_error(int descriptor) {
    int error = 0;
    socklen_t length = sizeof error;
    if (getsockopt(descriptor, SOL_SOCKET, SO_ERROR, &error, &length) != 0) return errno;
    return error;
}

// Octets in the socket's send queue (SIOCOUTQ); -1 where the kernel does not say.
static inline int cardea_unsent_count(int descriptor) {
    int count = 0;
    return ioctl(descriptor, SIOCOUTQ, &count) == 0 ? count : -1;
}

static inline int cardea_set_option(int descriptor, int level, int option, int value) {
    return setsockopt(descriptor, level, option, &value, sizeof value);
}

static inline int cardea_get_option(int descriptor, int level, int option) {
    int value = -1;
    socklen_t length = sizeof value;
    return getsockopt(descriptor, level, option, &value, &length) == 0 ? value : -1;
}

// A datagram to a unix socket by path, or, where the path begins with '@', by abstract name. One attempt; 0 or -errno.
int cardea_notify(const void *path, size_t path_length, const void *text, size_t length);

// User of the process at the other end of a unix socket; -1 when the kernel does not say.
long cardea_peer_user(int descriptor);

static inline int cardea_inotify(void) { return inotify_init1(IN_NONBLOCK | IN_CLOEXEC); }

// Whatever may have given a file in the folder another content or another target.
static inline int cardea_inotify_folder(int descriptor, const char *folder) {
    return inotify_add_watch(descriptor, folder, IN_CLOSE_WRITE | IN_CREATE | IN_MOVED_TO | IN_DELETE | IN_ONLYDIR);
}

// Readable after an address of this network namespace was added or removed (rtnetlink(7)).
static inline int cardea_address_events(void) {
    int descriptor = socket(AF_NETLINK, SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC, NETLINK_ROUTE);
    if (descriptor < 0) return -1;
    struct sockaddr_nl groups = { .nl_family = AF_NETLINK, .nl_groups = RTMGRP_IPV4_IFADDR | RTMGRP_IPV6_IFADDR };
    if (bind(descriptor, (struct sockaddr *)&groups, sizeof groups) == 0) return descriptor;
    close(descriptor);
    return -1;
}

// Signals of the set as readable records; they must be blocked in every thread.
static inline int cardea_signal_descriptor(const sigset_t *set) { return signalfd(-1, set, SFD_NONBLOCK | SFD_CLOEXEC); }

// The number of the next signal that waits, 0 for none.
static inline int cardea_next_signal(int descriptor) {
    struct signalfd_siginfo signal;
    return read(descriptor, &signal, sizeof signal) == (ssize_t)sizeof signal ? (int)signal.ssi_signo : 0;
}

static inline uint64_t cardea_boottime(void) {
    struct timespec now;
    clock_gettime(CLOCK_BOOTTIME, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static inline int64_t cardea_wall_milliseconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

// Processors of the affinity mask; -1 when the kernel's mask is larger than 1024 processors.
int cardea_affinity(void);

// Each of these returns 0 or -errno. prctl is variadic; the limits' first argument has another type in C than in Swift.
static inline int cardea_forbid_dumps(void) { return prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) == 0 ? 0 : -errno; }
static inline int cardea_forbid_new_privileges(void) {
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 ? 0 : -errno;
}
static inline int cardea_set_core_limit(unsigned long bytes) {
    struct rlimit limit = {bytes, bytes};
    return setrlimit(RLIMIT_CORE, &limit) == 0 ? 0 : -errno;
}
static inline int cardea_raise_descriptor_limit(void) {
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return -errno;
    limit.rlim_cur = limit.rlim_max;
    return setrlimit(RLIMIT_NOFILE, &limit) == 0 ? 0 : -errno;
}
static inline unsigned long cardea_descriptor_limit(void) {
    struct rlimit limit;
    return getrlimit(RLIMIT_NOFILE, &limit) == 0 ? limit.rlim_cur : 0;
}

// landlock(7) by its numbers: Debian 12's headers end with the second version of the interface. Each returns -errno on failure.
int cardea_landlock_version(void);
// A descriptor of an empty set of rules. What the kernel does not know must not be asked for.
int cardea_landlock_ruleset(uint64_t file_rights, uint64_t scopes);
// Allows `rights` below a path; a path that is no folder gets only those in `of_files`, as the kernel refuses the others there.
int cardea_landlock_allow(int ruleset, const char *path, uint64_t rights, uint64_t of_files);
// For this thread and whatever it starts. Needs no_new_privs.
int cardea_landlock_enforce(int ruleset);

// EAI_NODATA, an extension of glibc.
int cardea_eai_nodata(void);

// Where a redirected connection was going: SO_ORIGINAL_DST where a NAT rule moved it, else the socket's own address.
int cardea_original_destination(int descriptor, struct sockaddr_storage *address, socklen_t *length);

// Lets a listener take connections to addresses that are not this machine's (TPROXY); needs CAP_NET_ADMIN.
int cardea_set_transparent(int descriptor, int family);

#endif
