/* SQLite with a write-ahead log: a connection per session, a table WITHOUT ROWID per table. Single writer; a small cache per connection, and the kernel's page cache. */
#include "peer.h"

#include <pthread.h>
#include <sqlite3.h>
#include <stdlib.h>

/* SQLite's own waiting for another writer sleeps for up to 100 ms at a time. Within a process, a lock is fairer and faster; this is left for what else may be busy. */
#define BUSY_TIMEOUT_MS 10000

/* The log is copied into the database after so many pages; the default of 1,000 syncs too often. */
#define CHECKPOINT_PAGES 16384

enum { GET, PUT, REMOVE, UPWARDS, DOWNWARDS, STATEMENTS };

struct store {
    pthread_mutex_t writing;
    char *path;
    char **names;
    uint32_t tables;
    int32_t durability;
    uint64_t connection_cache_bytes;
};

struct session {
    struct store *store;
    sqlite3 *db;
    /* STATEMENTS of them per table. */
    sqlite3_stmt **statements;
    sqlite3_stmt *begin, *begin_immediate, *commit, *rollback;
    int open, writing;
};

static const char *version(void) {
    return sqlite3_libversion();
}

static int broken(sqlite3 *db, const char *what, char *error) {
    return peer_broken(error, "SQLite: %s: %s", what, db ? sqlite3_errmsg(db) : "out of memory");
}

static void configure(void) {
    /* Connections are not shared, and nobody asks for statistics: no locks for either. */
    sqlite3_config(SQLITE_CONFIG_MULTITHREAD);
    sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0);
}

static int run(sqlite3 *db, char *error, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    char *sql = sqlite3_vmprintf(format, arguments);
    va_end(arguments);
    int code = sql ? sqlite3_exec(db, sql, NULL, NULL, NULL) : SQLITE_NOMEM;
    int outcome = code == SQLITE_OK ? PEER_OK : broken(db, sql ? sql : "out of memory", error);
    sqlite3_free(sql);
    return outcome;
}

static int connect(const struct store *store, sqlite3 **db, char *error) {
    static const char *const synchronous[] = {"FULL", "NORMAL", "OFF"};
    int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX;
    if (sqlite3_open_v2(store->path, db, flags, NULL) != SQLITE_OK)
        return broken(*db, store->path, error);
    sqlite3_busy_timeout(*db, BUSY_TIMEOUT_MS);
    return run(*db, error,
               "PRAGMA page_size=4096; PRAGMA journal_mode=WAL; PRAGMA synchronous=%s; PRAGMA wal_autocheckpoint=%d; "
               "PRAGMA cache_size=-%llu; PRAGMA mmap_size=0; PRAGMA temp_store=MEMORY",
               synchronous[store->durability], CHECKPOINT_PAGES, (unsigned long long)store->connection_cache_bytes / 1024);
}

static void store_free(struct store *store) {
    for (uint32_t table = 0; store->names && table < store->tables; table++)
        free(store->names[table]);
    free(store->names);
    sqlite3_free(store->path);
    pthread_mutex_destroy(&store->writing);
    free(store);
}

static int make_tables(const struct store *store, char *error) {
    sqlite3 *db = NULL;
    int outcome = connect(store, &db, error);
    for (uint32_t table = 0; outcome == PEER_OK && table < store->tables; table++)
        outcome = run(db, error, "CREATE TABLE IF NOT EXISTS \"%w\" (key BLOB PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID",
                      store->names[table]);
    sqlite3_close(db);
    return outcome;
}

static int store_open(const struct peer_setup *setup, void **out, char *settings, size_t settings_bytes, char *error) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, configure);
    struct store *store = calloc(1, sizeof *store);
    if (!store)
        return peer_broken(error, "SQLite: out of memory");
    pthread_mutex_init(&store->writing, NULL);
    store->durability = setup->durability;
    store->tables = setup->tables;
    /* A quarter for the inner nodes and the pages of the current transaction; the kernel's cache is shared by all connections. */
    store->connection_cache_bytes = peer_clamp(setup->cache_bytes / 4 / setup->clients_max, 256 << 10, 256 << 20);
    store->path = sqlite3_mprintf("%s/sqlite.db", setup->dir);
    store->names = calloc(setup->tables, sizeof *store->names);
    int complete = store->path && store->names;
    for (uint32_t table = 0; complete && table < setup->tables; table++)
        complete = (store->names[table] = strdup(setup->table_names[table])) != NULL;
    int outcome = complete ? make_tables(store, error) : peer_broken(error, "SQLite: out of memory");
    if (outcome != PEER_OK) {
        store_free(store);
        return outcome;
    }
    static const char *const commits[] = {
        "WAL, synchronous=FULL: each commit synced",
        "WAL, synchronous=NORMAL: synced at checkpoints",
        "WAL, synchronous=OFF",
    };
    peer_say(settings, settings_bytes, "memory: the kernel's page cache, and %llu bytes per connection",
             (unsigned long long)store->connection_cache_bytes);
    peer_say(settings, settings_bytes, "pages: 4096 bytes, WITHOUT ROWID");
    peer_say(settings, settings_bytes, "commits: %s", commits[setup->durability]);
    peer_say(settings, settings_bytes, "checkpoint: every %d pages", CHECKPOINT_PAGES);
    peer_say(settings, settings_bytes, "isolation: serializable, a single writer (BEGIN IMMEDIATE)");
    *out = store;
    return PEER_OK;
}

static int store_settle(void *at, char *error) {
    struct store *store = at;
    sqlite3 *db = NULL;
    int outcome = connect(store, &db, error);
    if (outcome == PEER_OK)
        outcome = run(db, error, "PRAGMA wal_checkpoint(TRUNCATE)");
    sqlite3_close(db);
    return outcome;
}

static int store_close(void *at, char *error) {
    int outcome = store_settle(at, error);
    store_free(at);
    return outcome;
}

static int prepare(struct session *session, sqlite3_stmt **statement, char *error, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    char *sql = sqlite3_vmprintf(format, arguments);
    va_end(arguments);
    int code = sql ? sqlite3_prepare_v3(session->db, sql, -1, SQLITE_PREPARE_PERSISTENT, statement, NULL) : SQLITE_NOMEM;
    int outcome = code == SQLITE_OK ? PEER_OK : broken(session->db, sql ? sql : "out of memory", error);
    sqlite3_free(sql);
    return outcome;
}

/* REPLACE in a table WITHOUT ROWID and without indexes overwrites in place, without a look-up before. */
static const char *const SQL[STATEMENTS] = {
    [GET] = "SELECT value FROM \"%w\" WHERE key=?",
    [PUT] = "REPLACE INTO \"%w\"(key, value) VALUES(?, ?)",
    [REMOVE] = "DELETE FROM \"%w\" WHERE key=?",
    [UPWARDS] = "SELECT key, value FROM \"%w\" WHERE key>=? ORDER BY key",
    [DOWNWARDS] = "SELECT key, value FROM \"%w\" WHERE key<=? ORDER BY key DESC",
};

static void end(struct session *session) {
    session->open = 0;
    if (session->writing)
        pthread_mutex_unlock(&session->store->writing);
    session->writing = 0;
}

static void rollback(void *at) {
    struct session *session = at;
    if (!session->open)
        return;
    /* SQLite may have rolled back by itself. */
    if (!sqlite3_get_autocommit(session->db)) {
        sqlite3_step(session->rollback);
        sqlite3_reset(session->rollback);
    }
    end(session);
}

static void session_close(void *at) {
    struct session *session = at;
    rollback(session);
    for (uint32_t i = 0; session->statements && i < session->store->tables * STATEMENTS; i++)
        sqlite3_finalize(session->statements[i]);
    sqlite3_finalize(session->begin);
    sqlite3_finalize(session->begin_immediate);
    sqlite3_finalize(session->commit);
    sqlite3_finalize(session->rollback);
    sqlite3_close(session->db);
    free(session->statements);
    free(session);
}

static int session_open(void *at, void **out, char *error) {
    struct store *store = at;
    struct session *session = calloc(1, sizeof *session);
    if (!session)
        return peer_broken(error, "SQLite: out of memory");
    session->store = store;
    session->statements = calloc((size_t)store->tables * STATEMENTS, sizeof *session->statements);
    int outcome = session->statements ? connect(store, &session->db, error) : peer_broken(error, "SQLite: out of memory");
    for (uint32_t i = 0; outcome == PEER_OK && i < store->tables * STATEMENTS; i++)
        outcome = prepare(session, &session->statements[i], error, SQL[i % STATEMENTS], store->names[i / STATEMENTS]);
    if (outcome == PEER_OK)
        outcome = prepare(session, &session->begin, error, "BEGIN");
    if (outcome == PEER_OK)
        outcome = prepare(session, &session->begin_immediate, error, "BEGIN IMMEDIATE");
    if (outcome == PEER_OK)
        outcome = prepare(session, &session->commit, error, "COMMIT");
    if (outcome == PEER_OK)
        outcome = prepare(session, &session->rollback, error, "ROLLBACK");
    if (outcome != PEER_OK) {
        session_close(session);
        return outcome;
    }
    *out = session;
    return PEER_OK;
}

/* A statement of a table with its key bound. */
static sqlite3_stmt *statement_of(struct session *session, uint32_t table, int which, struct peer_bytes key) {
    sqlite3_stmt *statement = session->statements[table * STATEMENTS + which];
    sqlite3_bind_blob(statement, 1, key.at, (int)key.length, SQLITE_STATIC);
    return statement;
}

static struct peer_bytes column(sqlite3_stmt *statement, int number) {
    const void *at = sqlite3_column_blob(statement, number);
    return (struct peer_bytes){at, (size_t)sqlite3_column_bytes(statement, number)};
}

/* What a failed operation of a transaction means: whoever waited too long for another is rolled back. */
static int failed(struct session *session, int code, const char *what, char *error) {
    if ((code & 0xff) == SQLITE_BUSY && session->open) {
        rollback(session);
        return PEER_CONFLICT;
    }
    return broken(session->db, what, error);
}

static int get(void *at, uint32_t table, struct peer_bytes key, peer_found found, void *context, char *error) {
    struct session *session = at;
    sqlite3_stmt *statement = statement_of(session, table, GET, key);
    int code = sqlite3_step(statement);
    if (code == SQLITE_ROW)
        found(context, 0, column(statement, 0));
    sqlite3_reset(statement);
    if (code == SQLITE_ROW)
        return PEER_OK;
    return code == SQLITE_DONE ? PEER_NOT_FOUND : failed(session, code, "get", error);
}

static int change(struct session *session, sqlite3_stmt *statement, char *error) {
    int alone = !session->open;
    if (!alone && !session->writing)
        return peer_broken(error, "SQLite: this transaction was begun for reading");
    if (alone)
        pthread_mutex_lock(&session->store->writing);
    int code = sqlite3_step(statement);
    /* The error's text is gone after the reset of another statement only. */
    sqlite3_reset(statement);
    if (alone)
        pthread_mutex_unlock(&session->store->writing);
    return code == SQLITE_DONE ? PEER_OK : failed(session, code, "write", error);
}

static int put(void *at, uint32_t table, struct peer_bytes key, struct peer_bytes value, char *error) {
    sqlite3_stmt *statement = statement_of(at, table, PUT, key);
    /* A null pointer would be NULL instead of an empty blob. */
    sqlite3_bind_blob(statement, 2, value.length ? value.at : "", (int)value.length, SQLITE_STATIC);
    return change(at, statement, error);
}

static int remove_record(void *at, uint32_t table, struct peer_bytes key, char *error) {
    return change(at, statement_of(at, table, REMOVE, key), error);
}

static int scan(void *at, uint32_t table, struct peer_bytes from, int backward, peer_visit visit, void *context, char *error) {
    struct session *session = at;
    sqlite3_stmt *statement = statement_of(session, table, backward ? DOWNWARDS : UPWARDS, from);
    int code;
    while ((code = sqlite3_step(statement)) == SQLITE_ROW)
        if (!visit(context, column(statement, 0), column(statement, 1)))
            break;
    sqlite3_reset(statement);
    return code == SQLITE_ROW || code == SQLITE_DONE ? PEER_OK : failed(session, code, "scan", error);
}

static int begin(void *at, int reading, char *error) {
    struct session *session = at;
    if (!reading)
        pthread_mutex_lock(&session->store->writing);
    session->writing = !reading;
    session->open = 1;
    sqlite3_stmt *statement = reading ? session->begin : session->begin_immediate;
    int code = sqlite3_step(statement);
    sqlite3_reset(statement);
    if (code == SQLITE_DONE)
        return PEER_OK;
    int outcome = failed(session, code, "begin", error);
    if (session->open)
        end(session);
    return outcome;
}

static int commit(void *at, char *error) {
    struct session *session = at;
    int code = sqlite3_step(session->commit);
    sqlite3_reset(session->commit);
    if (code == SQLITE_DONE) {
        end(session);
        return PEER_OK;
    }
    int outcome = failed(session, code, "commit", error);
    rollback(session);
    return outcome;
}

const struct peer sqlite_peer = {
    .version = version,
    .open = store_open,
    .settle = store_settle,
    .close = store_close,
    .session_open = session_open,
    .session_close = session_close,
    .get = get,
    .get_many = NULL,
    .put = put,
    .remove = remove_record,
    .scan = scan,
    .begin = begin,
    .commit = commit,
    .rollback = rollback,
};
