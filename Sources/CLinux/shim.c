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
