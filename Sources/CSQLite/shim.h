// Wrappers of SQLite calls that need the SQLITE_TRANSIENT cast or variadic arguments, and of Linux calls for the store.
#ifndef CARDEA_CSQLITE_H
#define CARDEA_CSQLITE_H

#include <errno.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <sys/syscall.h>
#include <unistd.h>

// Behind _GNU_SOURCE, which Swift's own view of these headers has not; the number is Linux's for all processors.
#ifndef O_TMPFILE
#define O_TMPFILE (020000000 | O_DIRECTORY)
#endif

static inline int cardea_bind_blob(sqlite3_stmt *statement, int index, const void *bytes, int count) {
    return sqlite3_bind_blob(statement, index, count == 0 ? "" : bytes, count, SQLITE_TRANSIENT);
}

static inline int cardea_set_checkpoint_on_close(sqlite3 *database, int enabled) {
    return sqlite3_db_config(database, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, enabled ? 0 : 1, (int *)0);
}

// A file in this folder that never has a name there, for reading and writing; -1 where its file system has none.
static inline int cardea_nameless_file(const char *folder) { return open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600); }

// Blocks for the first `bytes`. 0, or an errno; where the file system cannot do it nothing is written instead, as posix_fallocate would.
static inline int cardea_reserve(int descriptor, long bytes) {
    return syscall(SYS_fallocate, descriptor, 0, 0L, bytes) == 0 ? 0 : errno;
}

static inline int cardea_set_defensive(sqlite3 *database) {
    int first = sqlite3_db_config(database, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, (int *)0);
    return first == SQLITE_OK ? sqlite3_db_config(database, SQLITE_DBCONFIG_DEFENSIVE, 1, (int *)0) : first;
}

#endif
