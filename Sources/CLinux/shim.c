#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "shim.h"

int cardea_accept(int descriptor, struct sockaddr_storage *address, socklen_t *length) {
    return accept4(descriptor, (struct sockaddr *)address, length, SOCK_NONBLOCK | SOCK_CLOEXEC);
}

int cardea_stream_socket(int family) {
    return socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
}

int cardea_pipe(int *outlet, int *inlet, int capacity) {
    int ends[2];
    if (pipe2(ends, O_NONBLOCK | O_CLOEXEC) != 0) return -1;
    *outlet = ends[0];
    *inlet = ends[1];
    int granted = fcntl(ends[1], F_SETPIPE_SZ, capacity);
    // Beyond what a user may have it stays as it is: 16 pages, and 2 where he has very many.
    return granted > 0 ? granted : 4096;
}

ssize_t cardea_splice(int from, int to, size_t count) {
    // No SPLICE_F_MORE: whether more follows at once is the sender's affair, and what it has sent must not wait for it.
    return splice(from, NULL, to, NULL, count, SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
}

long cardea_peer_user(int descriptor) {
    struct ucred credentials;
    socklen_t length = sizeof credentials;
    if (getsockopt(descriptor, SOL_SOCKET, SO_PEERCRED, &credentials, &length) != 0) return -1;
    return (long)credentials.uid;
}

int cardea_affinity(void) {
    cpu_set_t set;
    CPU_ZERO(&set);
    if (sched_getaffinity(0, sizeof set, &set) != 0) return -1;
    return CPU_COUNT(&set);
}

int cardea_eai_nodata(void) { return EAI_NODATA; }

int cardea_original_destination(int descriptor, struct sockaddr_storage *address, socklen_t *length) {
    // 80 is SO_ORIGINAL_DST and IP6T_SO_ORIGINAL_DST; linux/netfilter_ipv4.h clashes with netinet/in.h.
    struct sockaddr_storage own;
    socklen_t own_length = sizeof own;
    if (getsockname(descriptor, (struct sockaddr *)&own, &own_length) != 0) return -1;
    *length = sizeof *address;
    int level = own.ss_family == AF_INET6 ? IPPROTO_IPV6 : IPPROTO_IP;
    if (getsockopt(descriptor, level, 80, address, length) == 0) return 0;
    memcpy(address, &own, sizeof own);
    *length = own_length;
    return 0;
}

int cardea_set_transparent(int descriptor, int family) {
    int one = 1;
    return family == AF_INET6 ? setsockopt(descriptor, IPPROTO_IPV6, IPV6_TRANSPARENT, &one, sizeof one)
                              : setsockopt(descriptor, IPPROTO_IP, IP_TRANSPARENT, &one, sizeof one);
}

int cardea_notify(const void *path, size_t path_length, const void *text, size_t length) {
    struct sockaddr_un address;
    memset(&address, 0, sizeof address);
    address.sun_family = AF_UNIX;
    if (path_length == 0 || path_length >= sizeof address.sun_path) return -EINVAL;
    memcpy(address.sun_path, path, path_length);
    if (address.sun_path[0] == '@') address.sun_path[0] = 0;
    int descriptor = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (descriptor < 0) return -errno;
    socklen_t size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + path_length);
    int result = sendto(descriptor, text, length, MSG_NOSIGNAL, (struct sockaddr *)&address, size) < 0 ? -errno : 0;
    close(descriptor);
    return result;
}

static int landlock(long result) { return result < 0 ? -errno : (int)result; }

int cardea_landlock_version(void) { return landlock(syscall(444, NULL, 0, 1)); }

int cardea_landlock_ruleset(uint64_t file_rights, uint64_t scopes) {
    // An older kernel takes a longer structure, as long as what it does not know is zero.
    struct { uint64_t file_rights, net_rights, scopes; } attributes = { file_rights, 0, scopes };
    return landlock(syscall(444, &attributes, sizeof attributes, 0));
}

int cardea_landlock_allow(int ruleset, const char *path, uint64_t rights, uint64_t of_files) {
    struct __attribute__((packed)) { uint64_t rights; int32_t parent; } rule;
    rule.parent = open(path, O_PATH | O_CLOEXEC);
    if (rule.parent < 0) return -errno;
    struct stat status;
    if (fstat(rule.parent, &status) != 0) {
        int result = -errno;
        close(rule.parent);
        return result;
    }
    rule.rights = S_ISDIR(status.st_mode) ? rights : rights & of_files;
    int result = rule.rights == 0 ? 0 : landlock(syscall(445, ruleset, 1, &rule, 0));
    close(rule.parent);
    return result;
}

int cardea_landlock_enforce(int ruleset) { return landlock(syscall(446, ruleset, 0)); }
