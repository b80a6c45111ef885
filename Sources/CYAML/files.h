#ifndef CARDEA_CYAML_FILES_H
#define CARDEA_CYAML_FILES_H

/* Linux calls that Swift's Glibc module does not carry, for the reading of secrets. They live here because this is the
 * only C module that Configuration imports. */

#include <fcntl.h>
#include <spawn.h>
#include <sys/vfs.h>
#include <unistd.h>

extern int pipe2(int ends[2], int flags);
extern int posix_spawn_file_actions_addclosefrom_np(posix_spawn_file_actions_t *actions, int from);

static inline int cyaml_pipe(int ends[2]) { return pipe2(ends, O_CLOEXEC); }

static inline int cyaml_spawn_close_from(posix_spawn_file_actions_t *actions, int from) {
    return posix_spawn_file_actions_addclosefrom_np(actions, from);
}

/* 1 for tmpfs, ramfs and read-only mounts, 0 for others and on failure. */
static inline int cyaml_is_memory_or_read_only(int file) {
    struct statfs system;
    if (fstatfs(file, &system) != 0) return 0;
    unsigned int kind = (unsigned int)system.f_type;
    return kind == 0x01021994u || kind == 0x858458f6u || (system.f_flags & 1) != 0;
}

#endif
