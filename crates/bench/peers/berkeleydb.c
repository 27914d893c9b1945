/* Berkeley DB: a B-tree with a cache of its own above the kernel's page cache (Debian builds it without direct I/O), locks on pages, and deadlocks that are found and broken.
 *
 * Instead of what is chosen for a store it takes "bare": no log, no transactions, one client, and its files around the kernel's page cache; and for a table "page_bytes=N". */
#define _GNU_SOURCE
#include "peer.h"

#include <db.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define PAGE_BYTES 4096
/* Requests that go around the page cache have places, lengths and memory that are multiples of this. */
#define DIRECT_BYTES 4096
/* More descriptors than a store has. */
#define FILES_MAX 4096
#define LOG_BUFFER_BYTES (4u << 20)
#define LOG_FILE_BYTES (128u << 20)
#define CHECKPOINT_SECONDS 60
#define CHECKPOINT_LOG_KIB (512u << 10)
/* Pages of the cache that the background thread keeps clean, so that readers need not write. */
#define CLEAN_PERCENT 10
/* Below this size, Berkeley DB makes its cache a quarter larger than it was told. */
#define CACHE_ENLARGED_BYTES (500ull << 20)

struct store {
    DB_ENV *env;
    /* Whether it has what the beginning of this file says. */
    int is_bare;
    uint32_t tables;
    pthread_t upkeep;
    int upkeep_runs;
    pthread_mutex_t ending;
    pthread_cond_t ended;
    int end;
    DB *db[];
};

struct session {
    struct store *store;
    DB_TXN *txn;
    /* Receive what is read; they grow. */
    void *key, *value;
    uint32_t key_capacity, value_capacity;
};

static const char *version(void) {
    static char text[32];
    int major, minor, patch;
    db_version(&major, &minor, &patch);
    snprintf(text, sizeof text, "%d.%d.%d", major, minor, patch);
    return text;
}

static int broken(int code, const char *what, char *error) {
    return peer_broken(error, "Berkeley DB: %s: %s", what, db_strerror(code));
}

/* Whether this thread is opening a bare store. */
static __thread int opens_bare;

/* Kinds of files, by their descriptors. Requests of bare stores go around the page cache, but for those without an offset, which Berkeley DB has when it makes a file. */
enum { CACHED, BARE, DIRECT };
static atomic_uchar file_kinds[FILES_MAX];

/* Berkeley DB opens a file. */
static int open_file(const char *path, int flags, ...) {
    va_list rest;
    va_start(rest, flags);
    mode_t mode = flags & O_CREAT ? va_arg(rest, mode_t) : 0;
    va_end(rest);
    int file = open(path, flags, mode);
    if (file >= 0 && file < FILES_MAX)
        file_kinds[file] = opens_bare ? BARE : CACHED;
    return file;
}

/* Whether a request goes around the page cache, where the file system can. */
static int is_direct(int file) {
    if (file < 0 || file >= FILES_MAX || file_kinds[file] == CACHED)
        return 0;
    if (file_kinds[file] == BARE)
        file_kinds[file] = fcntl(file, F_SETFL, fcntl(file, F_GETFL) | O_DIRECT) ? CACHED : DIRECT;
    return file_kinds[file] == DIRECT;
}

/* Memory of this thread for requests that go around the page cache. */
static void *direct_buffer(size_t bytes) {
    static __thread void *buffer;
    static __thread size_t capacity;
    if (bytes > capacity) {
        free(buffer);
        capacity = 0;
        if (posix_memalign(&buffer, DIRECT_BYTES, bytes)) {
            buffer = NULL;
            return NULL;
        }
        capacity = bytes;
    }
    return buffer;
}

static ssize_t read_file(int file, void *into, size_t bytes, off_t at) {
    if (!is_direct(file))
        return pread(file, into, bytes, at);
    off_t start = at / DIRECT_BYTES * DIRECT_BYTES;
    size_t before = (size_t)(at - start);
    size_t whole = (before + bytes + DIRECT_BYTES - 1) / DIRECT_BYTES * DIRECT_BYTES;
    char *buffer = direct_buffer(whole);
    if (!buffer) {
        errno = ENOMEM;
        return -1;
    }
    ssize_t done = pread(file, buffer, whole, start);
    if (done < 0)
        return done;
    size_t there = (size_t)done > before ? (size_t)done - before : 0;
    there = there < bytes ? there : bytes;
    memcpy(into, buffer + before, there);
    return (ssize_t)there;
}

static ssize_t write_file(int file, const void *from, size_t bytes, off_t at) {
    if (!is_direct(file))
        return pwrite(file, from, bytes, at);
    if (at % DIRECT_BYTES || bytes % DIRECT_BYTES) {
        errno = EINVAL;
        return -1;
    }
    void *buffer = direct_buffer(bytes);
    if (!buffer) {
        errno = ENOMEM;
        return -1;
    }
    memcpy(buffer, from, bytes);
    return pwrite(file, buffer, bytes, at);
}

/* Berkeley DB's requests pass here from now on, in all of this process. */
static void pass_requests(void) {
    db_env_set_func_open(open_file);
    db_env_set_func_pread(read_file);
    db_env_set_func_pwrite(write_file);
}

/* Berkeley DB leaves checkpoints to its users. */
static void *upkeep(void *at) {
    struct store *store = at;
    pthread_mutex_lock(&store->ending);
    for (unsigned seconds = 0; !store->end; seconds++) {
        struct timespec until;
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_sec++;
        pthread_cond_timedwait(&store->ended, &store->ending, &until);
        if (store->end)
            break;
        pthread_mutex_unlock(&store->ending);
        int written;
        store->env->memp_trickle(store->env, CLEAN_PERCENT, &written);
        if (seconds % CHECKPOINT_SECONDS == CHECKPOINT_SECONDS - 1)
            store->env->txn_checkpoint(store->env, 0, 0, 0);
        else
            store->env->txn_checkpoint(store->env, CHECKPOINT_LOG_KIB, 0, 0);
        pthread_mutex_lock(&store->ending);
    }
    pthread_mutex_unlock(&store->ending);
    return NULL;
}

/* Returns the first error; closes all in any case. */
static int store_free(struct store *store) {
    int code = 0;
    if (store->upkeep_runs) {
        pthread_mutex_lock(&store->ending);
        store->end = 1;
        pthread_cond_signal(&store->ended);
        pthread_mutex_unlock(&store->ending);
        pthread_join(store->upkeep, NULL);
        code = store->env->txn_checkpoint(store->env, 0, 0, DB_FORCE);
    }
    for (uint32_t table = 0; table < store->tables; table++)
        if (store->db[table]) {
            int closed = store->db[table]->close(store->db[table], 0);
            code = code ? code : closed;
        }
    if (store->env) {
        int closed = store->env->close(store->env, 0);
        code = code ? code : closed;
    }
    pthread_cond_destroy(&store->ended);
    pthread_mutex_destroy(&store->ending);
    free(store);
    return code;
}

static int open_env(struct store *store, const struct peer_setup *setup, uint64_t cache_bytes) {
    int code = db_env_create(&store->env, 0);
    if (code)
        return code;
    DB_ENV *env = store->env;
    uint32_t locks = (uint32_t)peer_clamp(setup->clients_max * 2000ull, 20000, 500000);
    code = env->set_cachesize(env, (uint32_t)(cache_bytes >> 30), (uint32_t)(cache_bytes & ((1u << 30) - 1)), 1);
    if (!code)
        code = env->set_lg_bsize(env, LOG_BUFFER_BYTES);
    if (!code)
        code = env->set_lg_max(env, LOG_FILE_BYTES);
    if (!code)
        code = env->log_set_config(env, DB_LOG_AUTO_REMOVE, 1);
    if (!code)
        code = env->set_lk_detect(env, DB_LOCK_YOUNGEST);
    if (!code)
        code = env->set_lk_max_lockers(env, setup->clients_max * 4 + 1000);
    if (!code)
        code = env->set_lk_max_locks(env, locks);
    if (!code)
        code = env->set_lk_max_objects(env, locks);
    if (!code)
        code = env->set_tx_max(env, setup->clients_max * 2 + 100);
    if (!code && setup->durability != PEER_FULL)
        code = env->set_flags(env, setup->durability == PEER_BUFFERED ? DB_TXN_WRITE_NOSYNC : DB_TXN_NOSYNC, 1);
    if (code)
        return code;
    if (store->is_bare)
        return env->open(env, setup->dir, DB_CREATE | DB_INIT_MPOOL | DB_THREAD | DB_PRIVATE, 0644);
    uint32_t flags = DB_CREATE | DB_INIT_MPOOL | DB_INIT_TXN | DB_INIT_LOG | DB_INIT_LOCK | DB_THREAD | DB_PRIVATE | DB_RECOVER;
    return env->open(env, setup->dir, flags, 0644);
}

static int open_tables(struct store *store, const struct peer_setup *setup, uint32_t page_bytes) {
    uint32_t flags = DB_CREATE | DB_THREAD | (store->is_bare ? 0 : DB_AUTO_COMMIT);
    for (uint32_t table = 0; table < setup->tables; table++) {
        char file[256];
        snprintf(file, sizeof file, "%s.db", setup->table_names[table]);
        int code = db_create(&store->db[table], store->env, 0);
        DB *db = store->db[table];
        if (code)
            return code;
        if ((code = db->set_pagesize(db, page_bytes)) ||
            (code = db->open(db, NULL, file, NULL, DB_BTREE, flags, 0644)))
            return code;
    }
    return 0;
}

static int store_open(const struct peer_setup *setup, void **out, char *settings, size_t settings_bytes, char *error) {
    static const char *const commits[] = {
        "log synced at each commit (group commit)",
        "DB_TXN_WRITE_NOSYNC: log written to the page cache at each commit",
        "DB_TXN_NOSYNC: log in memory until its buffer is full",
    };
    struct store *store = calloc(1, sizeof *store + setup->tables * sizeof store->db[0]);
    if (!store)
        return peer_broken(error, "Berkeley DB: out of memory");
    store->tables = setup->tables;
    uint32_t page_bytes = PAGE_BYTES;
    store->is_bare = setup->settings && !strcmp(setup->settings, "bare");
    int is_known = !setup->settings || store->is_bare;
    if (setup->table_settings)
        is_known = is_known && sscanf(setup->table_settings, "page_bytes=%u", &page_bytes) == 1;
    if (!is_known) {
        free(store);
        return peer_broken(error, "Berkeley DB: unknown settings: expected \"bare\" for the store and \"page_bytes=N\" for tables");
    }
    if (store->is_bare && setup->clients_max > 1) {
        free(store);
        return peer_broken(error, "Berkeley DB: a bare store has no locks: it takes one client");
    }
    pthread_mutex_init(&store->ending, NULL);
    pthread_cond_init(&store->ended, NULL);
    /* Its own cache needs no system calls, so it gets the most; the page cache would hold the same pages again. */
    uint64_t cache_bytes = store->is_bare ? setup->cache_bytes : setup->cache_bytes / 4 * 3;
    if (cache_bytes < CACHE_ENLARGED_BYTES)
        cache_bytes = cache_bytes / 5 * 4;
    /* Who has no bare stores has no requests that pass here. */
    static pthread_once_t has_bare = PTHREAD_ONCE_INIT;
    if (store->is_bare)
        pthread_once(&has_bare, pass_requests);
    opens_bare = store->is_bare;
    int code = open_env(store, setup, cache_bytes);
    if (!code)
        code = open_tables(store, setup, page_bytes);
    opens_bare = 0;
    if (!code && !store->is_bare) {
        code = pthread_create(&store->upkeep, NULL, upkeep, store);
        store->upkeep_runs = !code;
    }
    if (code) {
        store_free(store);
        return broken(code, setup->dir, error);
    }
    peer_say(settings, settings_bytes, "pages: B-tree, %u bytes", page_bytes);
    if (store->is_bare) {
        peer_say(settings, settings_bytes, "memory: cache %llu bytes", (unsigned long long)cache_bytes);
        peer_say(settings, settings_bytes, "commits: no log, no transactions; files around the page cache");
        *out = store;
        return PEER_OK;
    }
    peer_say(settings, settings_bytes, "memory: cache %llu bytes, log buffer %u bytes, the rest for the page cache", (unsigned long long)cache_bytes,
             LOG_BUFFER_BYTES);
    peer_say(settings, settings_bytes, "commits: %s", commits[setup->durability]);
    peer_say(settings, settings_bytes, "checkpoint: every %d s or %u KiB of log; %d %% of the cache kept clean", CHECKPOINT_SECONDS,
             CHECKPOINT_LOG_KIB, CLEAN_PERCENT);
    peer_say(settings, settings_bytes, "isolation: serializable, locks on pages, the youngest of a deadlock is rolled back");
    *out = store;
    return PEER_OK;
}

static int store_settle(void *at, char *error) {
    struct store *store = at;
    int code = store->is_bare ? store->env->memp_sync(store->env, NULL) : store->env->txn_checkpoint(store->env, 0, 0, DB_FORCE);
    return code ? broken(code, "checkpoint", error) : PEER_OK;
}

static int store_close(void *at, char *error) {
    int code = store_free(at);
    return code ? broken(code, "close", error) : PEER_OK;
}

static void rollback(void *at) {
    struct session *session = at;
    if (session->txn)
        session->txn->abort(session->txn);
    session->txn = NULL;
}

static void session_close(void *at) {
    struct session *session = at;
    rollback(session);
    free(session->key);
    free(session->value);
    free(session);
}

static int session_open(void *at, void **out, char *error) {
    struct session *session = calloc(1, sizeof *session);
    if (!session)
        return peer_broken(error, "Berkeley DB: out of memory");
    session->store = at;
    session->key_capacity = session->value_capacity = PAGE_BYTES;
    session->key = malloc(session->key_capacity);
    session->value = malloc(session->value_capacity);
    if (!session->key || !session->value) {
        session_close(session);
        return peer_broken(error, "Berkeley DB: out of memory");
    }
    *out = session;
    return PEER_OK;
}

static DBT given(struct peer_bytes bytes) {
    return (DBT){.data = (void *)bytes.at, .size = (uint32_t)bytes.length};
}

static DBT receiving(void *buffer, uint32_t capacity) {
    return (DBT){.data = buffer, .ulen = capacity, .flags = DB_DBT_USERMEM};
}

static struct peer_bytes bytes_of(const DBT *dbt) {
    return (struct peer_bytes){dbt->data, dbt->size};
}

/* After DB_BUFFER_SMALL: `dbt` says what it needs. */
static int grow(void **buffer, uint32_t *capacity, DBT *dbt) {
    if (dbt->size > *capacity) {
        void *larger = realloc(*buffer, dbt->size);
        if (!larger)
            return ENOMEM;
        *buffer = larger;
        *capacity = dbt->size;
    }
    dbt->data = *buffer;
    dbt->ulen = *capacity;
    return 0;
}

static int is_conflict(int code) {
    return code == DB_LOCK_DEADLOCK || code == DB_LOCK_NOTGRANTED;
}

static int failed(struct session *session, int code, const char *what, char *error) {
    if (is_conflict(code) && session->txn) {
        rollback(session);
        return PEER_CONFLICT;
    }
    return broken(code, what, error);
}

static int get(void *at, uint32_t table, struct peer_bytes key, peer_found found, void *context, char *error) {
    struct session *session = at;
    DB *db = session->store->db[table];
    DBT wanted = given(key), value = receiving(session->value, session->value_capacity);
    int code;
    do {
        code = db->get(db, session->txn, &wanted, &value, 0);
        if (code == DB_BUFFER_SMALL && !(code = grow(&session->value, &session->value_capacity, &value)))
            code = db->get(db, session->txn, &wanted, &value, 0);
        /* Another client may have made it larger meanwhile. */
    } while (code == DB_BUFFER_SMALL || (is_conflict(code) && !session->txn));
    if (code == DB_NOTFOUND)
        return PEER_NOT_FOUND;
    if (code)
        return failed(session, code, "get", error);
    found(context, 0, bytes_of(&value));
    return PEER_OK;
}

static int put(void *at, uint32_t table, struct peer_bytes key, struct peer_bytes value, char *error) {
    struct session *session = at;
    DB *db = session->store->db[table];
    DBT record_key = given(key), record = given(value);
    int code;
    do {
        code = db->put(db, session->txn, &record_key, &record, 0);
    } while (is_conflict(code) && !session->txn);
    return code ? failed(session, code, "put", error) : PEER_OK;
}

static int remove_record(void *at, uint32_t table, struct peer_bytes key, char *error) {
    struct session *session = at;
    DB *db = session->store->db[table];
    DBT record_key = given(key);
    int code;
    do {
        code = db->del(db, session->txn, &record_key, 0);
    } while (is_conflict(code) && !session->txn);
    return code && code != DB_NOTFOUND ? failed(session, code, "remove", error) : PEER_OK;
}

/* Moves the cursor; with DB_SET_RANGE, to the first key that is not below `from`, which is not in the session's buffer. */
static int step(struct session *session, DBC *cursor, uint32_t how, struct peer_bytes from, DBT *key, DBT *value) {
    for (;;) {
        *key = receiving(session->key, session->key_capacity);
        *value = receiving(session->value, session->value_capacity);
        if (how == DB_SET_RANGE) {
            if (from.length > session->key_capacity) {
                key->size = (uint32_t)from.length;
                if (grow(&session->key, &session->key_capacity, key))
                    return ENOMEM;
            }
            memcpy(session->key, from.at, from.length);
            key->size = (uint32_t)from.length;
        }
        int code = cursor->get(cursor, key, value, how);
        if (code != DB_BUFFER_SMALL)
            return code;
        if (grow(&session->key, &session->key_capacity, key) || grow(&session->value, &session->value_capacity, value))
            return ENOMEM;
    }
}

/* To the first record of the scan, behind `from` if that was visited already. */
static int seek(struct session *session, DBC *cursor, struct peer_bytes from, int backward, int visited, DBT *key, DBT *value) {
    int code = step(session, cursor, DB_SET_RANGE, from, key, value);
    if (code == DB_NOTFOUND)
        return backward ? step(session, cursor, DB_LAST, from, key, value) : code;
    if (code)
        return code;
    int order = peer_compare(bytes_of(key), from);
    if (backward && (order > 0 || visited))
        return step(session, cursor, DB_PREV, from, key, value);
    return visited && order == 0 ? step(session, cursor, DB_NEXT, from, key, value) : code;
}

static int scan(void *at, uint32_t table, struct peer_bytes from, int backward, peer_visit visit, void *context, char *error) {
    struct session *session = at;
    DB *db = session->store->db[table];
    /* Where a scan that is no transaction goes on after a deadlock. */
    char *last = malloc(from.length + 1);
    struct peer_bytes position = {last, from.length};
    if (!last)
        return broken(ENOMEM, "scan", error);
    memcpy(last, from.at, from.length);
    int code, visited = 0;
    do {
        DBC *cursor;
        code = db->cursor(db, session->txn, &cursor, 0);
        if (code)
            break;
        DBT key, value;
        code = seek(session, cursor, position, backward, visited, &key, &value);
        while (!code) {
            if (!visit(context, bytes_of(&key), bytes_of(&value)))
                break;
            visited = 1;
            if (!session->txn) {
                char *larger = key.size > position.length ? realloc(last, key.size) : last;
                if (!larger) {
                    code = ENOMEM;
                    break;
                }
                last = larger;
                memcpy(last, key.data, key.size);
                position = (struct peer_bytes){last, key.size};
            }
            code = step(session, cursor, backward ? DB_PREV : DB_NEXT, position, &key, &value);
        }
        int closed = cursor->close(cursor);
        code = code ? code : closed;
    } while (is_conflict(code) && !session->txn);
    free(last);
    return code && code != DB_NOTFOUND ? failed(session, code, "scan", error) : PEER_OK;
}

static int begin(void *at, int reading, char *error) {
    struct session *session = at;
    (void)reading;
    DB_ENV *env = session->store->env;
    if (session->store->is_bare)
        return PEER_OK;
    /* Locks, for readers too: with DB_MULTIVERSION and DB_TXN_SNAPSHOT every change copies its page, which made single puts and gets ten times slower here. */
    int code = env->txn_begin(env, NULL, &session->txn, 0);
    return code ? broken(code, "begin", error) : PEER_OK;
}

static int commit(void *at, char *error) {
    struct session *session = at;
    if (session->store->is_bare)
        return PEER_OK;
    int code = session->txn->commit(session->txn, 0);
    session->txn = NULL;
    if (is_conflict(code))
        return PEER_CONFLICT;
    return code ? broken(code, "commit", error) : PEER_OK;
}

const struct peer berkeleydb_peer = {
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
