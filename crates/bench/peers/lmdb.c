/* LMDB: one file mapped into memory, a single writer, readers that never wait. Its cache is the kernel's page cache. */
#include "peer.h"

#include <errno.h>
#include <lmdb.h>
#include <stdlib.h>
#include <sys/statvfs.h>

struct store {
    MDB_env *env;
    uint32_t tables;
    MDB_dbi dbi[];
};

struct session {
    struct store *store;
    /* Reset between uses: renewing costs no lock and no system call. */
    MDB_txn *reader;
    /* One per table, bound to `reader`. */
    MDB_cursor **cursors;
    /* Under way between begin and its end: `writer`, or `reading` with the reader. */
    MDB_txn *writer;
    int reading;
};

static int broken(int code, const char *what, char *error) {
    if (code == MDB_MAP_FULL)
        return peer_broken(error, "LMDB: %s: its map, as large as the file system, is full: free space on the drive", what);
    return peer_broken(error, "LMDB: %s: %s", what, mdb_strerror(code));
}

static const char *version(void) {
    static char text[32];
    int major, minor, patch;
    mdb_version(&major, &minor, &patch);
    snprintf(text, sizeof text, "%d.%d.%d", major, minor, patch);
    return text;
}

static int open_tables(struct store *store, const struct peer_setup *setup, char *error) {
    MDB_txn *txn;
    int code = mdb_txn_begin(store->env, NULL, 0, &txn);
    if (code)
        return broken(code, "begin", error);
    for (uint32_t table = 0; table < setup->tables; table++) {
        code = mdb_dbi_open(txn, setup->table_names[table], MDB_CREATE, &store->dbi[table]);
        if (code) {
            mdb_txn_abort(txn);
            return broken(code, "open a table", error);
        }
    }
    code = mdb_txn_commit(txn);
    return code ? broken(code, "commit", error) : PEER_OK;
}

static int store_open(const struct peer_setup *setup, void **out, char *settings, size_t settings_bytes, char *error) {
    struct statvfs space;
    if (statvfs(setup->dir, &space))
        return peer_broken(error, "LMDB: %s: %s", setup->dir, strerror(errno));
    /* The map is address space, not memory: as large as the file can ever be. */
    size_t map_bytes = (size_t)space.f_blocks * space.f_frsize & ~(size_t)0xffff;
    struct store *store = calloc(1, sizeof *store + setup->tables * sizeof store->dbi[0]);
    if (!store)
        return peer_broken(error, "LMDB: out of memory");
    store->tables = setup->tables;
    int code = mdb_env_create(&store->env);
    if (code) {
        free(store);
        return broken(code, "create", error);
    }
    /* Random reads of data larger than memory gain nothing from the kernel's readahead. No writable map: pages that a
       commit writes as a whole would first be read. Sessions, not threads, own their readers. */
    unsigned flags = MDB_NORDAHEAD | MDB_NOTLS;
    if (setup->durability != PEER_FULL)
        flags |= MDB_NOSYNC;
    code = mdb_env_set_mapsize(store->env, map_bytes);
    if (!code)
        code = mdb_env_set_maxdbs(store->env, setup->tables);
    if (!code)
        code = mdb_env_set_maxreaders(store->env, setup->clients_max + 16);
    if (!code)
        code = mdb_env_open(store->env, setup->dir, flags, 0644);
    int outcome = code ? broken(code, setup->dir, error) : open_tables(store, setup, error);
    if (outcome != PEER_OK) {
        mdb_env_close(store->env);
        free(store);
        return outcome;
    }
    peer_say(settings, settings_bytes, "memory: the kernel's page cache");
    peer_say(settings, settings_bytes, "map: %zu bytes, MDB_NORDAHEAD, MDB_NOTLS", map_bytes);
    peer_say(settings, settings_bytes, "commits: %s",
             setup->durability == PEER_FULL ? "data and meta page synced" : "MDB_NOSYNC: written to the page cache at each commit");
    peer_say(settings, settings_bytes, "isolation: serializable, a single writer");
    *out = store;
    return PEER_OK;
}

static int store_settle(void *at, char *error) {
    struct store *store = at;
    int code = mdb_env_sync(store->env, 1);
    return code ? broken(code, "sync", error) : PEER_OK;
}

static int store_close(void *at, char *error) {
    struct store *store = at;
    int code = mdb_env_sync(store->env, 1);
    mdb_env_close(store->env);
    free(store);
    return code ? broken(code, "sync", error) : PEER_OK;
}

static void session_close(void *at) {
    struct session *session = at;
    if (session->writer)
        mdb_txn_abort(session->writer);
    for (uint32_t table = 0; session->cursors && table < session->store->tables; table++)
        if (session->cursors[table])
            mdb_cursor_close(session->cursors[table]);
    if (session->reader)
        mdb_txn_abort(session->reader);
    free(session->cursors);
    free(session);
}

static int session_open(void *at, void **out, char *error) {
    struct store *store = at;
    struct session *session = calloc(1, sizeof *session);
    if (!session)
        return peer_broken(error, "LMDB: out of memory");
    session->store = store;
    session->cursors = calloc(store->tables, sizeof *session->cursors);
    int code = session->cursors ? mdb_txn_begin(store->env, NULL, MDB_RDONLY, &session->reader) : ENOMEM;
    for (uint32_t table = 0; !code && table < store->tables; table++)
        code = mdb_cursor_open(session->reader, store->dbi[table], &session->cursors[table]);
    if (code) {
        session_close(session);
        return broken(code, "open a session", error);
    }
    mdb_txn_reset(session->reader);
    *out = session;
    return PEER_OK;
}

/* The transaction under way, or the reader for a single operation, which `reading_done` ends. */
static int reading_txn(struct session *session, MDB_txn **txn, char *error) {
    if (session->writer) {
        *txn = session->writer;
        return PEER_OK;
    }
    *txn = session->reader;
    int code = session->reading ? 0 : mdb_txn_renew(session->reader);
    return code ? broken(code, "renew", error) : PEER_OK;
}

static void reading_done(struct session *session) {
    if (!session->writer && !session->reading)
        mdb_txn_reset(session->reader);
}

static int get(void *at, uint32_t table, struct peer_bytes key, peer_found found, void *context, char *error) {
    struct session *session = at;
    MDB_txn *txn;
    int outcome = reading_txn(session, &txn, error);
    if (outcome != PEER_OK)
        return outcome;
    MDB_val wanted = {key.length, (void *)key.at}, value;
    int code = mdb_get(txn, session->store->dbi[table], &wanted, &value);
    if (!code)
        found(context, 0, (struct peer_bytes){value.mv_data, value.mv_size});
    reading_done(session);
    if (code == MDB_NOTFOUND)
        return PEER_NOT_FOUND;
    return code ? broken(code, "get", error) : PEER_OK;
}

/* Puts, or removes if `value` is null. */
static int change(struct session *session, uint32_t table, struct peer_bytes key, const struct peer_bytes *value, char *error) {
    MDB_txn *txn = session->writer;
    if (session->reading)
        return peer_broken(error, "LMDB: this transaction was begun for reading");
    int code = txn ? 0 : mdb_txn_begin(session->store->env, NULL, 0, &txn);
    if (code)
        return broken(code, "begin", error);
    MDB_val record_key = {key.length, (void *)key.at};
    if (value) {
        MDB_val record = {value->length, (void *)value->at};
        code = mdb_put(txn, session->store->dbi[table], &record_key, &record, 0);
    } else {
        code = mdb_del(txn, session->store->dbi[table], &record_key, NULL);
        if (code == MDB_NOTFOUND)
            code = 0;
    }
    if (session->writer)
        return code ? broken(code, "write", error) : PEER_OK;
    if (code) {
        mdb_txn_abort(txn);
        return broken(code, "write", error);
    }
    code = mdb_txn_commit(txn);
    return code ? broken(code, "commit", error) : PEER_OK;
}

static int put(void *at, uint32_t table, struct peer_bytes key, struct peer_bytes value, char *error) {
    return change(at, table, key, &value, error);
}

static int remove_record(void *at, uint32_t table, struct peer_bytes key, char *error) {
    return change(at, table, key, NULL, error);
}

/* Positions the cursor on the first record of the scan. */
static int seek(MDB_cursor *cursor, struct peer_bytes from, int backward, MDB_val *key, MDB_val *value) {
    *key = (MDB_val){from.length, (void *)from.at};
    int code = mdb_cursor_get(cursor, key, value, MDB_SET_RANGE);
    if (!backward)
        return code;
    if (code == MDB_NOTFOUND)
        return mdb_cursor_get(cursor, key, value, MDB_LAST);
    if (!code && peer_compare((struct peer_bytes){key->mv_data, key->mv_size}, from) > 0)
        return mdb_cursor_get(cursor, key, value, MDB_PREV);
    return code;
}

static int scan(void *at, uint32_t table, struct peer_bytes from, int backward, peer_visit visit, void *context, char *error) {
    struct session *session = at;
    MDB_txn *txn;
    int outcome = reading_txn(session, &txn, error);
    if (outcome != PEER_OK)
        return outcome;
    MDB_cursor *cursor = session->cursors[table];
    int code = session->writer ? mdb_cursor_open(txn, session->store->dbi[table], &cursor) : mdb_cursor_renew(txn, cursor);
    if (code) {
        reading_done(session);
        return broken(code, "cursor", error);
    }
    MDB_val key, value;
    for (code = seek(cursor, from, backward, &key, &value); !code;
         code = mdb_cursor_get(cursor, &key, &value, backward ? MDB_PREV : MDB_NEXT))
        if (!visit(context, (struct peer_bytes){key.mv_data, key.mv_size}, (struct peer_bytes){value.mv_data, value.mv_size}))
            break;
    if (session->writer)
        mdb_cursor_close(cursor);
    reading_done(session);
    return code && code != MDB_NOTFOUND ? broken(code, "scan", error) : PEER_OK;
}

static int begin(void *at, int reading, char *error) {
    struct session *session = at;
    int code = reading ? mdb_txn_renew(session->reader) : mdb_txn_begin(session->store->env, NULL, 0, &session->writer);
    if (code)
        return broken(code, "begin", error);
    session->reading = reading;
    return PEER_OK;
}

static int commit(void *at, char *error) {
    struct session *session = at;
    int code = 0;
    if (session->writer)
        code = mdb_txn_commit(session->writer);
    else
        mdb_txn_reset(session->reader);
    session->writer = NULL;
    session->reading = 0;
    return code ? broken(code, "commit", error) : PEER_OK;
}

static void rollback(void *at) {
    struct session *session = at;
    if (session->writer)
        mdb_txn_abort(session->writer);
    else if (session->reading)
        mdb_txn_reset(session->reader);
    session->writer = NULL;
    session->reading = 0;
}

const struct peer lmdb_peer = {
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
