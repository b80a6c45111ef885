#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "launcher.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define CHANNEL_PLACE 3
#define REPORT_PLACE 4

const char *cardea_executable(void) {
    // The path as it was given, and not what it led to: a link that was moved, or a file that was replaced, is the upgrade.
    return (const char *)getauxval(AT_EXECFN);
}

// --- Messages -------------------------------------------------------------------------------------------------------

int cardea_channel(int ends[2]) {
    return socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) == 0 ? 0 : -errno;
}

int cardea_is_channel(int descriptor) {
    int type = 0, domain = 0;
    socklen_t length = sizeof type;
    if (getsockopt(descriptor, SOL_SOCKET, SO_TYPE, &type, &length) != 0) return 0;
    length = sizeof domain;
    if (getsockopt(descriptor, SOL_SOCKET, SO_DOMAIN, &domain, &length) != 0) return 0;
    return type == SOCK_SEQPACKET && domain == AF_UNIX;
}

int cardea_channel_send(int channel, const void *text, size_t length, const int *descriptors, size_t count) {
    if (count > CARDEA_CHANNEL_DESCRIPTORS) return -EINVAL;
    struct iovec part = { .iov_base = (void *)text, .iov_len = length };
    union { struct cmsghdr header; char room[CMSG_SPACE(sizeof(int) * CARDEA_CHANNEL_DESCRIPTORS)]; } control;
    struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1 };
    if (count > 0) {
        memset(&control, 0, sizeof control);
        message.msg_control = control.room;
        message.msg_controllen = CMSG_SPACE(sizeof(int) * count);
        struct cmsghdr *header = CMSG_FIRSTHDR(&message);
        header->cmsg_level = SOL_SOCKET;
        header->cmsg_type = SCM_RIGHTS;
        header->cmsg_len = CMSG_LEN(sizeof(int) * count);
        memcpy(CMSG_DATA(header), descriptors, sizeof(int) * count);
    }
    return sendmsg(channel, &message, MSG_NOSIGNAL | MSG_DONTWAIT) < 0 ? -errno : 0;
}

ssize_t cardea_channel_receive(int channel, void *text, size_t room, int *descriptors, size_t *count, int waits) {
    struct iovec part = { .iov_base = text, .iov_len = room };
    union { struct cmsghdr header; char room[CMSG_SPACE(sizeof(int) * CARDEA_CHANNEL_DESCRIPTORS)]; } control;
    struct msghdr message = {
        .msg_iov = &part, .msg_iovlen = 1, .msg_control = control.room, .msg_controllen = sizeof control.room,
    };
    *count = 0;
    ssize_t length;
    do length = recvmsg(channel, &message, MSG_CMSG_CLOEXEC | (waits ? 0 : MSG_DONTWAIT));
    while (length < 0 && errno == EINTR);
    if (length < 0) return -errno;
    for (struct cmsghdr *header = CMSG_FIRSTHDR(&message); header; header = CMSG_NXTHDR(&message, header)) {
        if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) continue;
        size_t found = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        memcpy(descriptors, CMSG_DATA(header), found * sizeof(int));
        *count = found;
    }
    return length;
}

// --- The gateway's side ---------------------------------------------------------------------------------------------

int cardea_launch(int launcher, int channel) {
    return cardea_channel_send(launcher, "S", 1, &channel, 1);
}

int cardea_launch_kill(int launcher) { return cardea_channel_send(launcher, "K", 1, NULL, 0); }

int cardea_next_launch_note(int launcher, struct cardea_launch_note *note) {
    ssize_t length = recv(launcher, note, sizeof *note, MSG_DONTWAIT);
    if (length == (ssize_t)sizeof *note) return 1;
    return length < 0 && (errno == EAGAIN || errno == EINTR) ? 0 : -1;
}

// --- The launcher ---------------------------------------------------------------------------------------------------

// Signals that a terminal or a stop sends to all processes of a group are the gateway's to answer.
static const int deaf_to[] = { SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGPIPE };
enum { DEAF_COUNT = sizeof deaf_to / sizeof deaf_to[0] };

static void tell(int socket, int32_t kind, int32_t value) {
    struct cardea_launch_note note = { kind, value };
    // Who does not read is gone.
    (void)!send(socket, &note, sizeof note, MSG_NOSIGNAL);
}

static void close_from(unsigned first) {
    if (close_range(first, ~0u, 0) == 0) return;
    // Forbidden by a filter of system calls.
    for (unsigned descriptor = first; descriptor < 65536; descriptor++) close((int)descriptor);
}

static _Noreturn void become(
    char *const *arguments, int channel, int report, const struct sigaction *before, const sigset_t *mask, int is_watched
) {
    // Out of each other's way first.
    int far_channel = fcntl(channel, F_DUPFD_CLOEXEC, 16), far_report = fcntl(report, F_DUPFD_CLOEXEC, 16);
    if (far_channel < 0 || far_report < 0 || dup2(far_channel, CHANNEL_PLACE) < 0
        || dup3(far_report, REPORT_PLACE, O_CLOEXEC) < 0) {
        (void)!write(report, &errno, sizeof errno);
        _exit(127);
    }
    close_from(REPORT_PLACE + 1);
    for (size_t index = 0; index < DEAF_COUNT; index++) sigaction(deaf_to[index], &before[index], NULL);
    sigprocmask(SIG_SETMASK, mask, NULL);
    setenv("CARDEA_HANDOVER", "3", 1);
    // They name a process that is not this one.
    unsetenv("LISTEN_PID");
    unsetenv("LISTEN_FDS");
    unsetenv("LISTEN_FDNAMES");
    if (is_watched) unsetenv("WATCHDOG_PID");
    extern char **environ;
    execve(cardea_executable(), arguments, environ);
    (void)!write(REPORT_PLACE, &errno, sizeof errno);
    _exit(127);
}

static pid_t launch(
    char *const *arguments, int socket, int channel, const struct sigaction *before, const sigset_t *mask, int is_watched
) {
    int report[2];
    if (pipe2(report, O_CLOEXEC) != 0) {
        tell(socket, CARDEA_NOT_LAUNCHED, errno);
        return 0;
    }
    pid_t child = fork();
    if (child == 0) become(arguments, channel, report[1], before, mask, is_watched);
    int failure = child < 0 ? errno : 0;
    close(report[1]);
    // Ends with the exec, which closes the other end.
    if (child > 0 && read(report[0], &failure, sizeof failure) != (ssize_t)sizeof failure) failure = 0;
    close(report[0]);
    if (failure != 0) {
        if (child > 0) waitpid(child, NULL, 0);
        tell(socket, CARDEA_NOT_LAUNCHED, failure);
        return 0;
    }
    tell(socket, CARDEA_LAUNCHED, child);
    return child;
}

static _Noreturn void run_launcher(char *const *arguments, int given, pid_t parent) {
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != parent) _exit(0);
    // The environment may hold secrets; nobody of our user reads it here.
    prctl(PR_SET_DUMPABLE, 0);
    prctl(PR_SET_NAME, "cardea-launcher");
    int socket = dup3(given, CHANNEL_PLACE, O_CLOEXEC);
    if (given == CHANNEL_PLACE) socket = given;
    // Listening sockets that came with the start must be closed for all when the gateway closes them.
    close_from(CHANNEL_PLACE + 1);
    const char *watched = getenv("WATCHDOG_PID");
    int is_watched = watched && strtol(watched, NULL, 10) == (long)parent;
    struct sigaction before[DEAF_COUNT], deaf = { .sa_handler = SIG_IGN };
    for (size_t index = 0; index < DEAF_COUNT; index++) sigaction(deaf_to[index], &deaf, &before[index]);
    sigset_t ends, mask;
    sigemptyset(&ends);
    sigaddset(&ends, SIGCHLD);
    sigprocmask(SIG_BLOCK, &ends, &mask);
    int signals = signalfd(-1, &ends, SFD_NONBLOCK | SFD_CLOEXEC);
    pid_t child = 0;
    while (signals >= 0) {
        struct pollfd watch[2] = { { socket, POLLIN, 0 }, { signals, POLLIN, 0 } };
        if (poll(watch, 2, -1) < 0 && errno != EINTR) break;
        if (watch[1].revents) {
            struct signalfd_siginfo signal;
            while (read(signals, &signal, sizeof signal) > 0) {}
            int status = 0;
            if (child > 0 && waitpid(child, &status, WNOHANG) == child) {
                child = 0;
                tell(socket, CARDEA_ENDED, status);
            }
        }
        if (!watch[0].revents) continue;
        char word = 0;
        int channel[CARDEA_CHANNEL_DESCRIPTORS];
        size_t count = 0;
        if (cardea_channel_receive(socket, &word, 1, channel, &count, 1) <= 0) break;
        if (word == 'K' && child > 0) kill(child, SIGKILL);
        if (word == 'S' && count == 1) child = launch(arguments, socket, channel[0], before, &mask, is_watched);
        for (size_t index = 0; index < count; index++) close(channel[index]);
    }
    _exit(0);
}

int cardea_start_launcher(char *const *arguments) {
    if (!cardea_executable()) return -ENOENT;
    int ends[2], result = cardea_channel(ends);
    if (result != 0) return result;
    pid_t parent = getpid(), child = fork();
    if (child < 0) result = -errno;
    if (child == 0) run_launcher(arguments, ends[1], parent);
    close(ends[1]);
    if (result == 0) return ends[0];
    close(ends[0]);
    return result;
}
