#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "confine.h"
#include "launcher.h"
#include "shim.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define CHANNEL_PLACE 3

static struct cardea_confinement failed(int step) { return (struct cardea_confinement){ step, errno }; }
static const struct cardea_confinement done = { CARDEA_CONFINED, 0 };

// --- The child: its namespaces --------------------------------------------------------------------------------------

static int write_text(const char *path, const char *text) {
    int file = open(path, O_WRONLY | O_CLOEXEC);
    if (file < 0) return -1;
    ssize_t written = write(file, text, strlen(text));
    int code = errno;
    close(file);
    errno = code;
    return written == (ssize_t)strlen(text) ? 0 : -1;
}

// The program is the user inside that it is outside.
static int keep_user(uid_t user, gid_t group) {
    char line[64];
    // Absent before Linux 3.19, where it is not needed.
    if (write_text("/proc/self/setgroups", "deny") != 0 && errno != ENOENT) return -1;
    snprintf(line, sizeof line, "%u %u 1", group, group);
    if (write_text("/proc/self/gid_map", line) != 0) return -1;
    snprintf(line, sizeof line, "%u %u 1", user, user);
    return write_text("/proc/self/uid_map", line);
}

static int raise_loopback(void) {
    int socket_ = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (socket_ < 0) return -1;
    struct ifreq request;
    memset(&request, 0, sizeof request);
    strcpy(request.ifr_name, "lo");
    request.ifr_flags = IFF_UP | IFF_RUNNING;
    int result = ioctl(socket_, SIOCSIFFLAGS, &request), code = errno;
    close(socket_);
    errno = code;
    return result;
}

#if defined(__x86_64__)
#define ARCHITECTURE AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define ARCHITECTURE AUDIT_ARCH_AARCH64
#else
#error "the filter of system calls knows no other architecture"
#endif

// The first 32 of an argument's 64 bits are the low ones.
#define LOAD_HIGH(member) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, member) + 4)
#define LOAD(member) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, member))
#define ANSWER(code) BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (code))
#define ALLOW BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)
#define IS(value, then, otherwise) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, then, otherwise)
// The bits of a socket's type that are no flags.
#define TYPE_OF_SOCKET 0xf
#define REFUSE_CALL(number, code) IS(number, 0, 1), ANSWER(code)

// Ways to others of the same user that no namespace closes: sockets by path, other kinds of sockets, keyrings, the terminal's input, and limits,
// by which another process could be made to leave its memory in a core file or to lose what it writes.
static int filter_calls(void) {
    struct sock_filter rules[] = {
        LOAD(arch),
        // Calls of another architecture have other numbers.
        IS(ARCHITECTURE, 1, 0),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
        LOAD(nr),
#if defined(__x86_64__)
        // The calls of x32 have other numbers, too.
        BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, 0x40000000, 0, 1),
        ANSWER(ENOSYS),
#endif
        REFUSE_CALL(__NR_io_uring_setup, ENOSYS),
        REFUSE_CALL(__NR_keyctl, ENOSYS),
        REFUSE_CALL(__NR_add_key, ENOSYS),
        REFUSE_CALL(__NR_request_key, ENOSYS),
        IS(__NR_ioctl, 0, 4),
        LOAD(args[1]),
        IS(TIOCSTI, 1, 0),
        IS(TIOCLINUX, 0, 1),
        ANSWER(EPERM),
        LOAD(nr),
        IS(__NR_prlimit64, 0, 8),
        LOAD(args[0]),
        IS(0, 5, 0),
        LOAD(args[2]),
        IS(0, 0, 2),
        LOAD_HIGH(args[2]),
        IS(0, 1, 0),
        ANSWER(EPERM),
        LOAD(nr),
        // A pair that knows no connection can be sent and led elsewhere.
        IS(__NR_socketpair, 0, 8),
        LOAD(args[0]),
        IS(AF_UNIX, 0, 4),
        LOAD(args[1]),
        BPF_STMT(BPF_ALU | BPF_AND | BPF_K, TYPE_OF_SOCKET),
        IS(SOCK_STREAM, 2, 0),
        IS(SOCK_SEQPACKET, 1, 0),
        ANSWER(EAFNOSUPPORT),
        LOAD(nr),
        IS(__NR_socket, 1, 0),
        ALLOW,
        LOAD(args[0]),
        IS(AF_INET, 3, 0),
        IS(AF_INET6, 2, 0),
        IS(AF_NETLINK, 1, 0),
        ANSWER(EAFNOSUPPORT),
        ALLOW,
    };
    struct sock_fprog program = { .len = sizeof rules / sizeof rules[0], .filter = rules };
    return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

// A process outside that is sent a signal may leave its memory in a core file, or the gateway end. Before Linux 6.12 the kernel cannot keep
// signals inside without a PID namespace.
static int keep_signals(void) {
    if (!cardea_keeps_signals()) return 0;
    const uint64_t abstract_sockets = 1, signals = 2;
    int rules = cardea_landlock_ruleset(0, abstract_sockets | signals);
    int result = rules < 0 ? rules : cardea_landlock_enforce(rules);
    if (rules >= 0) close(rules);
    errno = -result;
    return result < 0 ? -1 : 0;
}

static struct cardea_confinement enter(uid_t user, gid_t group) {
    if (unshare(CLONE_NEWUSER | CLONE_NEWNET | CLONE_NEWNS | CLONE_NEWIPC) != 0) return failed(CARDEA_STEP_NAMESPACES);
    if (keep_user(user, group) != 0) return failed(CARDEA_STEP_USER);
    if (raise_loopback() != 0) return failed(CARDEA_STEP_LOOPBACK);
    if (mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL) != 0) return failed(CARDEA_STEP_MOUNTS);
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return failed(CARDEA_STEP_FILTER);
    if (keep_signals() != 0) return failed(CARDEA_STEP_SIGNALS);
    if (filter_calls() != 0) return failed(CARDEA_STEP_FILTER);
    return done;
}

// --- The child: sockets and files -----------------------------------------------------------------------------------

// The gateway shares the one socket among its loops.
static int listening(const struct sockaddr_storage *address, socklen_t length) {
    int one = 1, socket_ = socket(address->ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (socket_ < 0) return -1;
    (void)setsockopt(socket_, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (address->ss_family == AF_INET6) (void)setsockopt(socket_, IPPROTO_IPV6, IPV6_V6ONLY, &one, sizeof one);
    if (bind(socket_, (const struct sockaddr *)address, length) == 0 && listen(socket_, SOMAXCONN) == 0) return socket_;
    int code = errno;
    close(socket_);
    errno = code;
    return -1;
}

static int cover(char kind, const char *path, const char *nothing) {
    struct stat status;
    // Absent: there is nothing to see.
    if (lstat(path, &status) != 0) return errno == ENOENT || errno == ENOTDIR || errno == EACCES ? 0 : -1;
    switch (kind) {
    case 'P': return mount(path, path, NULL, MS_BIND | MS_REC, NULL);
    case 'D': return mount("none", path, "tmpfs", MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC, "size=4k,mode=0555");
    default: return nothing ? mount(nothing, path, NULL, MS_BIND, NULL) : -1;
    }
}

// A program with the capabilities of its namespace could take the covers away.
static int give_up_capabilities(void) {
    for (int capability = 0; capability <= CAP_LAST_CAP || prctl(PR_CAPBSET_READ, capability) >= 0; capability++) {
        if (prctl(PR_CAPBSET_DROP, capability, 0, 0, 0) != 0 && errno != EINVAL) return -1;
    }
    if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) != 0) return -1;
    struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
    struct __user_cap_data_struct none[2] = { { 0 } };
    return (int)syscall(SYS_capset, &header, none);
}

static void forget_signals(void) {
    struct sigaction usual = { .sa_handler = SIG_DFL };
    for (int signal = 1; signal < NSIG; signal++) sigaction(signal, &usual, NULL);
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
}

// Returns where the program could not begin.
static struct cardea_confinement begin(char *const *command, int file) {
    struct stat status;
    if (fstat(file, &status) != 0 || status.st_size <= 0) return failed(CARDEA_STEP_CHANNEL);
    char *orders = mmap(NULL, (size_t)status.st_size, PROT_READ | PROT_WRITE, MAP_PRIVATE, file, 0);
    if (orders == MAP_FAILED) return failed(CARDEA_STEP_CHANNEL);
    char *end = orders + status.st_size, *nothing = NULL, folder[PATH_MAX];
    if (end[-1] != 0) return (struct cardea_confinement){ CARDEA_STEP_CHANNEL, EINVAL };
    if (!getcwd(folder, sizeof folder)) return failed(CARDEA_STEP_COVER);
    size_t entries = 0;
    for (char *order = orders; order < end; order += strlen(order) + 1) entries += *order == 'E';
    char **environment = calloc(entries + 1, sizeof *environment);
    if (!environment) return failed(CARDEA_STEP_PROGRAM);
    entries = 0;
    for (char *order = orders; order < end; order += strlen(order) + 1) {
        switch (*order) {
        case 'E': environment[entries++] = order + 1; break;
        case 'N': nothing = order + 1; break;
        default: if (cover(*order, order + 1, nothing) != 0) return failed(CARDEA_STEP_COVER);
        }
    }
    // The working directory is still the one below the mounts.
    if (chdir(folder) != 0) return failed(CARDEA_STEP_COVER);
    if (give_up_capabilities() != 0) return failed(CARDEA_STEP_CAPABILITIES);
    forget_signals();
    execvpe(command[0], command, environment);
    return failed(CARDEA_STEP_PROGRAM);
}

static void answer(struct cardea_confinement outcome, int descriptor) {
    (void)cardea_channel_send(CHANNEL_PLACE, &outcome, sizeof outcome, &descriptor, descriptor < 0 ? 0 : 1);
}

static _Noreturn void wait_for_orders(char *const *command, int given, uid_t user, gid_t group) {
    if (given != CHANNEL_PLACE) {
        if (dup3(given, CHANNEL_PLACE, O_CLOEXEC) < 0) _exit(127);
        close(given);
    }
    if (close_range(CHANNEL_PLACE + 1, ~0u, 0) != 0) {
        for (int descriptor = CHANNEL_PLACE + 1; descriptor < 65536; descriptor++) close(descriptor);
    }
    struct cardea_confinement outcome = enter(user, group);
    // The environment may hold secrets. Earlier, the files of /proc in which the user is written would not be ours.
    prctl(PR_SET_DUMPABLE, 0);
    answer(outcome, -1);
    while (outcome.step == CARDEA_CONFINED) {
        char message[1 + sizeof(struct sockaddr_storage)];
        int descriptors[CARDEA_CHANNEL_DESCRIPTORS];
        size_t count = 0;
        ssize_t length = cardea_channel_receive(CHANNEL_PLACE, message, sizeof message, descriptors, &count, 1);
        // The gateway has ended before the program began.
        if (length <= 0) break;
        if (*message == 'L' && length > 1) {
            struct sockaddr_storage address;
            memset(&address, 0, sizeof address);
            memcpy(&address, message + 1, (size_t)length - 1);
            int socket_ = listening(&address, (socklen_t)length - 1);
            answer(socket_ < 0 ? failed(CARDEA_STEP_SOCKET) : done, socket_);
            if (socket_ >= 0) close(socket_);
        } else if (*message == 'X' && count == 1) {
            outcome = begin(command, descriptors[0]);
            answer(outcome, -1);
        }
        for (size_t index = 0; index < count; index++) close(descriptors[index]);
    }
    _exit(127);
}

// --- The gateway's side ---------------------------------------------------------------------------------------------

// The child's word; `descriptor` is -1 where it sends none.
static struct cardea_confinement hear(int channel, int *descriptor) {
    struct cardea_confinement outcome;
    int descriptors[CARDEA_CHANNEL_DESCRIPTORS];
    size_t count = 0;
    *descriptor = -1;
    ssize_t length = cardea_channel_receive(channel, &outcome, sizeof outcome, descriptors, &count, 1);
    if (count > 0) *descriptor = descriptors[0];
    if (length == (ssize_t)sizeof outcome) return outcome;
    return (struct cardea_confinement){ CARDEA_STEP_CHANNEL, length < 0 ? (int)-length : EPIPE };
}

int cardea_keeps_signals(void) { return cardea_landlock_version() >= 6; }

struct cardea_confinement cardea_confine(char *const *command, pid_t *process, int *channel) {
    int ends[2], result = cardea_channel(ends), none;
    if (result != 0) return (struct cardea_confinement){ CARDEA_STEP_CHANNEL, -result };
    uid_t user = geteuid();
    gid_t group = getegid();
    pid_t child = fork();
    if (child == 0) {
        // The gateway's side of the channel, in the place of a closed standard descriptor: as long as it is open here, its end is not seen.
        close(ends[0]);
        wait_for_orders(command, ends[1], user, group);
    }
    struct cardea_confinement outcome = child < 0 ? failed(CARDEA_STEP_NAMESPACES) : done;
    close(ends[1]);
    if (child > 0) outcome = hear(ends[0], &none);
    if (outcome.step == CARDEA_CONFINED) {
        *process = child;
        *channel = ends[0];
        return outcome;
    }
    close(ends[0]);
    if (child > 0) waitpid(child, NULL, 0);
    return outcome;
}

struct cardea_confinement cardea_listen_inside(
    int channel, const struct sockaddr_storage *address, socklen_t length, int *descriptor
) {
    char message[1 + sizeof *address];
    if (length > sizeof *address) return (struct cardea_confinement){ CARDEA_STEP_SOCKET, EINVAL };
    *message = 'L';
    memcpy(message + 1, address, length);
    int result = cardea_channel_send(channel, message, 1 + length, NULL, 0);
    if (result != 0) return (struct cardea_confinement){ CARDEA_STEP_CHANNEL, -result };
    struct cardea_confinement outcome = hear(channel, descriptor);
    if (outcome.step == CARDEA_CONFINED && *descriptor < 0) outcome.step = CARDEA_STEP_CHANNEL;
    return outcome;
}

struct cardea_confinement cardea_begin_confined(int channel, const void *orders, size_t length) {
    int file = memfd_create("cardea-orders", MFD_CLOEXEC), none;
    if (file < 0) return failed(CARDEA_STEP_CHANNEL);
    size_t written = 0;
    while (written < length) {
        ssize_t more = write(file, (const char *)orders + written, length - written);
        if (more < 0 && errno == EINTR) continue;
        if (more <= 0) break;
        written += (size_t)more;
    }
    struct cardea_confinement outcome = written == length ? done : failed(CARDEA_STEP_CHANNEL);
    int result = outcome.step == CARDEA_CONFINED ? cardea_channel_send(channel, "X", 1, &file, 1) : 0;
    close(file);
    if (outcome.step != CARDEA_CONFINED) return outcome;
    if (result != 0) return (struct cardea_confinement){ CARDEA_STEP_CHANNEL, -result };
    outcome = hear(channel, &none);
    // The program's beginning has closed the other end.
    return outcome.step == CARDEA_STEP_CHANNEL && outcome.code == EPIPE ? done : outcome;
}
