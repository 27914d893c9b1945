/* WiredTiger: a B-tree with a cache of its own, snapshot isolation and optimistic conflicts. */
#include "peer.h"

#include <errno.h>
#include <stdlib.h>
#include <wiredtiger.h>

/* MongoDB's interval. */
#define CHECKPOINT_SECONDS 60

struct store {
    WT_CONNECTION *connection;
    char **uris;
    uint32_t tables;
};

struct session {
    WT_SESSION *session;
    /* One per table, kept open: opening one costs more than a look-up. */
    WT_CURSOR **cursors;
    int open;
};

static const char *version(void) {
    int major, minor, patch;
    static char text[32];
    wiredtiger_version(&major, &minor, &patch);
    snprintf(text, sizeof text, "%d.%d.%d", major, minor, patch);
    return text;
}

static int broken(int code, const char *what, char *error) {
    return peer_broken(error, "WiredTiger: %s: %s", what, wiredtiger_strerror(code));
}

static int make_tables(const struct store *store, const char *settings, char *error) {
    WT_SESSION *session;
    int code = store->connection->open_session(store->connection, NULL, NULL, &session);
    if (code)
        return broken(code, "open a session", error);
    char config[512];
    snprintf(config, sizeof config, "key_format=u,value_format=u,%s", settings);
    for (uint32_t table = 0; !code && table < store->tables; table++)
        code = session->create(session, store->uris[table], config);
    int closed = session->close(session, NULL);
    code = code ? code : closed;
    return code ? broken(code, "create a table", error) : PEER_OK;
}

static void store_free(struct store *store) {
    for (uint32_t table = 0; store->uris && table < store->tables; table++)
        free(store->uris[table]);
    free(store->uris);
    free(store);
}

static struct store *store_new(const struct peer_setup *setup) {
    struct store *store = calloc(1, sizeof *store);
    if (!store)
        return NULL;
    store->tables = setup->tables;
    store->uris = calloc(setup->tables, sizeof *store->uris);
    for (uint32_t table = 0; store->uris && table < setup->tables; table++) {
        size_t bytes = strlen(setup->table_names[table]) + sizeof "table:";
        store->uris[table] = malloc(bytes);
        if (!store->uris[table])
            break;
        snprintf(store->uris[table], bytes, "table:%s", setup->table_names[table]);
    }
    if (store->uris && (!setup->tables || store->uris[setup->tables - 1]))
        return store;
    store_free(store);
    return NULL;
}

static int open_with(const struct peer_setup *setup, const char *settings, const char *table_settings, void **out, char *error) {
    struct store *store = store_new(setup);
    if (!store)
        return peer_broken(error, "WiredTiger: out of memory");
    char config[1024];
    snprintf(config, sizeof config, "create,session_max=%u,%s", setup->clients_max + 32, settings);
    int code = wiredtiger_open(setup->dir, NULL, config, &store->connection);
    if (code) {
        store_free(store);
        return broken(code, setup->dir, error);
    }
    int outcome = make_tables(store, table_settings, error);
    if (outcome != PEER_OK) {
        store->connection->close(store->connection, NULL);
        store_free(store);
        return outcome;
    }
    *out = store;
    return PEER_OK;
}

/* With the caller's settings, and a WiredTiger.config in the directory, which WiredTiger reads by itself. */
static int store_open_as_told(const struct peer_setup *setup, void **out, char *settings, size_t settings_bytes, char *error) {
    peer_say(settings, settings_bytes, "store: %s", setup->settings);
    peer_say(settings, settings_bytes, "tables: %s", setup->table_settings);
    return open_with(setup, setup->settings, setup->table_settings, out, error);
}

static int store_open(const struct peer_setup *setup, void **out, char *settings, size_t settings_bytes, char *error) {
    static const char *const logs[] = {
        "log=(enabled=true,archive=true,file_max=64MB),transaction_sync=(enabled=true,method=fsync)",
        "log=(enabled=true,archive=true,file_max=64MB),transaction_sync=(enabled=false)",
        "log=(enabled=false)",
    };
    static const char *const commits[] = {
        "log, group commit with fsync",
        "log, buffered in memory until its background thread writes it",
        "no log; checkpoints only",
    };
    if (setup->settings)
        return store_open_as_told(setup, out, settings, settings_bytes, error);
    uint32_t eviction_threads = (uint32_t)peer_clamp(setup->cores, 2, 8);
    /* 4 KiB: what a random look-up in data larger than memory must read, and no more. */
    uint32_t page_bytes = setup->page_bytes ? setup->page_bytes : 4096;
    uint64_t page_memory_bytes = peer_clamp(setup->cache_bytes / 128, 256 << 10, 5 << 20);
    char config[512], table_config[128];
    snprintf(config, sizeof config,
             "cache_size=%llu,direct_io=[data],mmap=false,eviction=(threads_min=%u,threads_max=%u),"
             "checkpoint=(wait=%d),statistics=(none),%s",
             (unsigned long long)setup->cache_bytes, eviction_threads, eviction_threads,
             CHECKPOINT_SECONDS, logs[setup->durability]);
    snprintf(table_config, sizeof table_config,
             "type=file,allocation_size=4KB,leaf_page_max=%u,internal_page_max=4KB,memory_page_max=%llu", page_bytes,
             (unsigned long long)page_memory_bytes);
    int outcome = open_with(setup, config, table_config, out, error);
    if (outcome != PEER_OK)
        return outcome;
    peer_say(settings, settings_bytes, "memory: cache_size %llu bytes, direct_io=[data]", (unsigned long long)setup->cache_bytes);
    peer_say(settings, settings_bytes, "pages: leaf %u bytes, internal 4 KiB, in memory up to %llu bytes, no compression",
             page_bytes, (unsigned long long)page_memory_bytes);
    peer_say(settings, settings_bytes, "commits: %s", commits[setup->durability]);
    peer_say(settings, settings_bytes, "checkpoint: every %d s", CHECKPOINT_SECONDS);
    peer_say(settings, settings_bytes, "eviction: %u threads", eviction_threads);
    peer_say(settings, settings_bytes, "isolation: snapshot");
    return PEER_OK;
}

static int store_settle(void *at, char *error) {
    struct store *store = at;
    WT_SESSION *session;
    int code = store->connection->open_session(store->connection, NULL, NULL, &session);
    if (code)
        return broken(code, "open a session", error);
    code = session->checkpoint(session, NULL);
    int closed = session->close(session, NULL);
    code = code ? code : closed;
    return code ? broken(code, "checkpoint", error) : PEER_OK;
}

static int store_close(void *at, char *error) {
    struct store *store = at;
    int code = store->connection->close(store->connection, NULL);
    store_free(store);
    return code ? broken(code, "close", error) : PEER_OK;
}

static void session_close(void *at) {
    struct session *session = at;
    /* Closes its cursors, and rolls back. */
    if (session->session)
        session->session->close(session->session, NULL);
    free(session->cursors);
    free(session);
}

static int session_open(void *at, void **out, char *error) {
    struct store *store = at;
    struct session *session = calloc(1, sizeof *session);
    if (!session)
        return peer_broken(error, "WiredTiger: out of memory");
    session->cursors = calloc(store->tables, sizeof *session->cursors);
    int code = session->cursors
                   ? store->connection->open_session(store->connection, NULL, "isolation=snapshot", &session->session)
                   : ENOMEM;
    for (uint32_t table = 0; !code && table < store->tables; table++)
        code = session->session->open_cursor(session->session, store->uris[table], NULL, NULL, &session->cursors[table]);
    if (code) {
        session_close(session);
        return broken(code, "open a session", error);
    }
    *out = session;
    return PEER_OK;
}

static void rollback(void *at) {
    struct session *session = at;
    if (session->open)
        session->session->rollback_transaction(session->session, NULL);
    session->open = 0;
}

static WT_CURSOR *cursor_of(struct session *session, uint32_t table, struct peer_bytes key) {
    WT_CURSOR *cursor = session->cursors[table];
    WT_ITEM item = {.data = key.at, .size = key.length};
    cursor->set_key(cursor, &item);
    return cursor;
}

static int is_conflict(int code) {
    return code == WT_ROLLBACK;
}

static int failed(struct session *session, int code, const char *what, char *error) {
    if (is_conflict(code) && session->open) {
        rollback(session);
        return PEER_CONFLICT;
    }
    return broken(code, what, error);
}

static int get(void *at, uint32_t table, struct peer_bytes key, peer_found found, void *context, char *error) {
    struct session *session = at;
    WT_CURSOR *cursor;
    WT_ITEM value;
    int code;
    do {
        cursor = cursor_of(session, table, key);
        code = cursor->search(cursor);
        if (!code)
            code = cursor->get_value(cursor, &value);
    } while (is_conflict(code) && !session->open);
    if (!code)
        found(context, 0, (struct peer_bytes){value.data, value.size});
    /* Else the cursor would pin its page. */
    cursor->reset(cursor);
    if (code == WT_NOTFOUND)
        return PEER_NOT_FOUND;
    return code ? failed(session, code, "get", error) : PEER_OK;
}

static int put(void *at, uint32_t table, struct peer_bytes key, struct peer_bytes value, char *error) {
    struct session *session = at;
    WT_CURSOR *cursor;
    WT_ITEM item = {.data = value.at, .size = value.length};
    int code;
    do {
        cursor = cursor_of(session, table, key);
        cursor->set_value(cursor, &item);
        /* Replaces what is there: cursors overwrite unless told otherwise. */
        code = cursor->insert(cursor);
    } while (is_conflict(code) && !session->open);
    if (code)
        cursor->reset(cursor);
    return code ? failed(session, code, "put", error) : PEER_OK;
}

static int remove_record(void *at, uint32_t table, struct peer_bytes key, char *error) {
    struct session *session = at;
    WT_CURSOR *cursor;
    int code;
    do {
        cursor = cursor_of(session, table, key);
        code = cursor->remove(cursor);
    } while (is_conflict(code) && !session->open);
    cursor->reset(cursor);
    return code && code != WT_NOTFOUND ? failed(session, code, "remove", error) : PEER_OK;
}

static int scan(void *at, uint32_t table, struct peer_bytes from, int backward, peer_visit visit, void *context, char *error) {
    struct session *session = at;
    WT_CURSOR *cursor;
    int order, code;
    do {
        cursor = cursor_of(session, table, from);
        code = cursor->search_near(cursor, &order);
    } while (is_conflict(code) && !session->open);
    if (!code && !backward && order < 0)
        code = cursor->next(cursor);
    if (!code && backward && order > 0)
        code = cursor->prev(cursor);
    while (!code) {
        WT_ITEM key, value;
        code = cursor->get_key(cursor, &key);
        if (!code)
            code = cursor->get_value(cursor, &value);
        if (code || !visit(context, (struct peer_bytes){key.data, key.size}, (struct peer_bytes){value.data, value.size}))
            break;
        code = backward ? cursor->prev(cursor) : cursor->next(cursor);
    }
    cursor->reset(cursor);
    return code && code != WT_NOTFOUND ? failed(session, code, "scan", error) : PEER_OK;
}

static int begin(void *at, int reading, char *error) {
    struct session *session = at;
    (void)reading;
    int code = session->session->begin_transaction(session->session, "isolation=snapshot");
    if (code)
        return broken(code, "begin", error);
    session->open = 1;
    return PEER_OK;
}

static int commit(void *at, char *error) {
    struct session *session = at;
    int code = session->session->commit_transaction(session->session, NULL);
    /* A failed commit has rolled back. */
    session->open = 0;
    if (is_conflict(code))
        return PEER_CONFLICT;
    return code ? broken(code, "commit", error) : PEER_OK;
}

const struct peer wiredtiger_peer = {
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
