// A program in namespaces of its own: it reaches no network but the sockets that are opened for it inside.
#ifndef CARDEA_CONFINE_H
#define CARDEA_CONFINE_H

#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>

// The steps of a confinement, of which the kernel may refuse any. A change here changes the words in Confinement.swift.
enum {
    CARDEA_CONFINED = 0, CARDEA_STEP_NAMESPACES, CARDEA_STEP_USER, CARDEA_STEP_LOOPBACK, CARDEA_STEP_MOUNTS,
    CARDEA_STEP_FILTER, CARDEA_STEP_SOCKET, CARDEA_STEP_COVER, CARDEA_STEP_CAPABILITIES, CARDEA_STEP_PROGRAM,
    CARDEA_STEP_CHANNEL, CARDEA_STEP_SIGNALS
};

// A step that failed, with its errno; all zero where none did.
struct cardea_confinement {
    int32_t step;
    int32_t code;
};

// 1 where this kernel keeps the signals of a confined program inside (Landlock of Linux 6.12), 0 where they reach every process of its user.
int cardea_keeps_signals(void);

// Forks the process that is to become the program, in user, network, mount and IPC namespaces of its own, with its loopback up. It waits
// on `channel` and ends with it. The calling process must have one thread.
//   command: the program, found in PATH, and its arguments; NULL at the end.
//   process, channel: of the child, where it could be confined.
struct cardea_confinement cardea_confine(char *const *command, pid_t *process, int *channel);

// Opens a listening socket inside. `descriptor` is it, close-on-exec and not blocking.
struct cardea_confinement cardea_listen_inside(
    int channel, const struct sockaddr_storage *address, socklen_t length, int *descriptor);

// Lets the program begin. Blocks until it has or could not.
//   orders: a sequence of strings, each with a letter before it and a NUL behind it: E an entry of the environment; N the file that
//   stands in the place of others; P a folder that is made a mount of its own, so that nobody inside renames it; D a folder and F a file
//   that shall not be seen.
struct cardea_confinement cardea_begin_confined(int channel, const void *orders, size_t length);

#endif
