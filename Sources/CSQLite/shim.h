// What Swift cannot call of SQLite: the SQLITE_TRANSIENT cast and the variadic configuration call.
#ifndef CARDEA_CSQLITE_H
#define CARDEA_CSQLITE_H

#include <sqlite3.h>
#include <sys/prctl.h>

static inline int cardea_bind_blob(sqlite3_stmt *statement, int index, const void *bytes, int count) {
    return sqlite3_bind_blob(statement, index, count == 0 ? "" : bytes, count, SQLITE_TRANSIENT);
}

static inline int cardea_set_checkpoint_on_close(sqlite3 *database, int enabled) {
    return sqlite3_db_config(database, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, enabled ? 0 : 1, (int *)0);
}

// For the thread that calls; at most 15 bytes. Here because the store has no other C of its own.
static inline void cardea_name_thread(const char *name) { prctl(PR_SET_NAME, name, 0, 0, 0); }

static inline int cardea_set_defensive(sqlite3 *database) {
    int first = sqlite3_db_config(database, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, (int *)0);
    return first == SQLITE_OK ? sqlite3_db_config(database, SQLITE_DBCONFIG_DEFENSIVE, 1, (int *)0) : first;
}

#endif
