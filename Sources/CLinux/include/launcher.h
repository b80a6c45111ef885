// The launcher: a copy of the process from before it held anything, which starts the program anew when it is told; and messages that
// carry descriptors.
#ifndef CARDEA_LAUNCHER_H
#define CARDEA_LAUNCHER_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

// A message of the launcher.
struct cardea_launch_note {
    int32_t kind;
    // A process, an errno or a wait status.
    int32_t value;
};
enum { CARDEA_LAUNCHED = 1, CARDEA_NOT_LAUNCHED = 2, CARDEA_ENDED = 3 };

// Forks the launcher. The process must have one thread, and be as the program started anew shall find it: no sandbox, no secret.
// The launcher dies with the calling thread.
//   arguments: of `main`; they and the environment are those of now.
// Our end of its socket, or -errno.
int cardea_start_launcher(char *const *arguments);

// The path that the kernel was told to execute when this process began; NULL where the kernel does not say.
const char *cardea_executable(void);

// The launcher starts the program and gives it `channel` (the variable CARDEA_HANDOVER names it). 0 or -errno.
int cardea_launch(int launcher, int channel);
// Kills what it has started. 0 or -errno.
int cardea_launch_kill(int launcher);
// 1: `note` is one; 0: none waits; -1: the launcher is gone.
int cardea_next_launch_note(int launcher, struct cardea_launch_note *note);

// Two ends of a channel of messages. 0 or -errno.
int cardea_channel(int ends[2]);
// Whether this is an end of such a channel.
int cardea_is_channel(int descriptor);
// Sends one message without waiting. 0 or -errno.
int cardea_channel_send(int channel, const void *text, size_t length, const int *descriptors, size_t count);
// Receives one message, its descriptors close-on-exec. Its length; 0 at the end of the channel; -errno, which is -EAGAIN where no
// message waits and the call shall not wait.
ssize_t cardea_channel_receive(int channel, void *text, size_t room, int *descriptors, size_t *count, int waits);
enum { CARDEA_CHANNEL_DESCRIPTORS = 64, CARDEA_CHANNEL_TEXT = 16384 };

#endif
