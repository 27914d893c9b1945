/* RocksDB: a log-structured merge tree. OptimisticTransactionDB: single operations go straight to the database below it and cost nothing more, and conflicts are found at commit, as Flashgrain does. */
#include "peer.h"

#include <rocksdb/c.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>

/* Of librocksdb's headers, which C cannot include; build.rs reads them. */
#ifndef PEER_ROCKSDB_VERSION
#define PEER_ROCKSDB_VERSION "unknown"
#endif

#define BLOCK_BYTES 4096
#define BLOOM_BITS 10
/* Values of this size and longer go into blob files, which compactions do not rewrite. */
#define BLOB_BYTES (16 << 10)
/* Debian's 7.8 has Bloom filters and the LRU cache; since 9, ribbon filters and the clock cache are what its authors advise. */
#ifdef PEER_ROCKSDB_MAJOR
#define IS_RECENT (PEER_ROCKSDB_MAJOR >= 9)
#else
#define IS_RECENT 0
#endif

/* What RocksDB takes for the block-based table's `data_block_index_type`. */
#define BINARY_SEARCH_AND_HASH 1
#define HASH_RATIO 0.75
#define LOG_LEVEL_WARN 2

/* Most keys that are looked up at a time. */
#define BATCH_MAX 64

#define PATH_BYTES 4096

struct store {
    rocksdb_optimistictransactiondb_t *transactions;
    /* The same database. */
    rocksdb_t *db;
    rocksdb_options_t *options;
    /* The options of a file have those of the family `default` apart; null: `options` are those of families, too. */
    rocksdb_options_t **family_options;
    char **family_names;
    size_t families_of_file;
    rocksdb_cache_t *cache;
    rocksdb_block_based_table_options_t *table_options;
    rocksdb_writeoptions_t *write;
    /* A column family per table, the last one is `default`. */
    rocksdb_column_family_handle_t **families;
    uint32_t tables;
};

struct session {
    struct store *store;
    rocksdb_readoptions_t *read;
    /* Kept for the next one after it has ended. */
    rocksdb_transaction_t *transaction;
    rocksdb_optimistictransaction_options_t *options;
    const rocksdb_snapshot_t *snapshot;
    int open;
};

static const char *version(void) {
    return PEER_ROCKSDB_VERSION;
}

/* Frees RocksDB's text. */
static int broken(char *text, const char *what, char *error) {
    int outcome = peer_broken(error, "RocksDB: %s: %s", what, text ? text : "out of memory");
    rocksdb_free(text);
    return outcome;
}

static void store_free(struct store *store) {
    for (uint32_t family = 0; store->families && family <= store->tables; family++)
        if (store->families[family])
            rocksdb_column_family_handle_destroy(store->families[family]);
    if (store->db)
        rocksdb_optimistictransactiondb_close_base_db(store->db);
    if (store->transactions)
        rocksdb_optimistictransactiondb_close(store->transactions);
    if (store->write)
        rocksdb_writeoptions_destroy(store->write);
    if (store->family_options)
        rocksdb_load_latest_options_destroy(store->options, store->family_names, store->family_options, store->families_of_file);
    else if (store->options)
        rocksdb_options_destroy(store->options);
    if (store->table_options)
        rocksdb_block_based_options_destroy(store->table_options);
    if (store->cache)
        rocksdb_cache_destroy(store->cache);
    free(store->families);
    free(store);
}

/* How the memory is divided. */
struct memory {
    uint64_t block_cache_bytes, write_buffers_bytes, write_buffer_bytes;
};

static struct memory divide(uint64_t cache_bytes) {
    struct memory memory;
    /* A quarter for all memtables together; more would be flushed less often, but blocks that are read are worth more. */
    memory.write_buffers_bytes = peer_clamp(cache_bytes / 4, 4 << 20, 512 << 20);
    memory.write_buffer_bytes = peer_clamp(memory.write_buffers_bytes / 4, 1 << 20, 64 << 20);
    memory.block_cache_bytes = cache_bytes > memory.write_buffers_bytes ? cache_bytes - memory.write_buffers_bytes : cache_bytes / 2;
    return memory;
}

static void set_tables(struct store *store, struct memory memory) {
    rocksdb_block_based_table_options_t *table = store->table_options = rocksdb_block_based_options_create();
#if IS_RECENT
    /* The charge of an entry is found while it works. */
    store->cache = rocksdb_cache_create_hyper_clock(memory.block_cache_bytes, 0);
    /* A third smaller than Bloom filters of the same rate of errors, below the first level, where most keys are. */
    rocksdb_block_based_options_set_filter_policy(table, rocksdb_filterpolicy_create_ribbon_hybrid(BLOOM_BITS, 1));
    rocksdb_block_based_options_set_format_version(table, 6);
#else
    store->cache = rocksdb_cache_create_lru(memory.block_cache_bytes);
    rocksdb_block_based_options_set_filter_policy(table, rocksdb_filterpolicy_create_bloom_full(BLOOM_BITS));
    rocksdb_block_based_options_set_format_version(table, 5);
#endif
    rocksdb_block_based_options_set_block_cache(table, store->cache);
    /* Blocks of 4 KiB: a look-up in data larger than memory reads one, and not four for the one record that it wants. */
    rocksdb_block_based_options_set_block_size(table, BLOCK_BYTES);
    /* Within the memory that was granted, before data blocks, and never evicted for the newest files. */
    rocksdb_block_based_options_set_cache_index_and_filter_blocks(table, 1);
    rocksdb_block_based_options_set_cache_index_and_filter_blocks_with_high_priority(table, 1);
    rocksdb_block_based_options_set_pin_l0_filter_and_index_blocks_in_cache(table, 1);
    rocksdb_block_based_options_set_pin_top_level_index_and_filter(table, 1);
    rocksdb_block_based_options_set_data_block_index_type(table, BINARY_SEARCH_AND_HASH);
    rocksdb_block_based_options_set_data_block_hash_ratio(table, HASH_RATIO);
    rocksdb_options_set_block_based_table_factory(store->options, table);
}

static void set_options(struct store *store, const struct peer_setup *setup, struct memory memory, int jobs, int style) {
    rocksdb_options_t *options = store->options = rocksdb_options_create();
    rocksdb_options_set_create_if_missing(options, 1);
    rocksdb_options_set_create_missing_column_families(options, 1);
    rocksdb_options_set_use_direct_reads(options, 1);
    rocksdb_options_set_use_direct_io_for_flush_and_compaction(options, 1);
    /* Without the page cache's readahead, compactions read ahead themselves. */
    rocksdb_options_compaction_readahead_size(options, 2 << 20);
    rocksdb_options_set_compression(options, rocksdb_no_compression);
    rocksdb_options_set_bottommost_compression(options, rocksdb_no_compression);
    rocksdb_options_set_compaction_style(options, style);
    rocksdb_options_set_level_compaction_dynamic_level_bytes(options, style == rocksdb_level_compaction);
    rocksdb_options_set_max_background_jobs(options, jobs);
    rocksdb_options_set_max_subcompactions(options, setup->cores);
    rocksdb_options_set_max_open_files(options, -1);
    rocksdb_options_set_write_buffer_size(options, memory.write_buffer_bytes);
    rocksdb_options_set_max_write_buffer_number(options, 4);
    rocksdb_options_set_db_write_buffer_size(options, memory.write_buffers_bytes);
    /* Conflicts are looked for in memtables, so the newest of those that are flushed is kept for transactions under way. */
    rocksdb_options_set_max_write_buffer_size_to_maintain(options, (int64_t)memory.write_buffer_bytes);
    rocksdb_options_set_target_file_size_base(options, peer_clamp(memory.write_buffer_bytes, 8 << 20, 64 << 20));
    rocksdb_options_set_max_bytes_for_level_base(options, memory.write_buffer_bytes * 4);
    /* Logs of other column families must not grow while one is written. */
    rocksdb_options_set_max_total_wal_size(options, 1 << 30);
    rocksdb_options_set_wal_bytes_per_sync(options, 1 << 20);
    rocksdb_options_set_info_log_level(options, LOG_LEVEL_WARN);
    rocksdb_options_set_keep_log_file_num(options, 4);
    set_tables(store, memory);
    rocksdb_options_set_enable_blob_files(options, 1);
    rocksdb_options_set_min_blob_size(options, BLOB_BYTES);
    rocksdb_options_set_enable_blob_gc(options, 1);
#if IS_RECENT
    rocksdb_options_set_blob_cache(options, store->cache);
#endif
}

static void set_writes(struct store *store, const struct peer_setup *setup) {
    store->write = rocksdb_writeoptions_create();
    rocksdb_writeoptions_set_sync(store->write, setup->durability == PEER_FULL);
    rocksdb_writeoptions_disable_WAL(store->write, setup->durability == PEER_NONE);
}

/* The caller's OPTIONS file, which RocksDB reads from a directory of its own. */
static int load_options(struct store *store, const struct peer_setup *setup, char *error) {
    char folder[PATH_BYTES], path[PATH_BYTES];
    int length = snprintf(folder, sizeof folder, "%s/options", setup->dir);
    int whole = snprintf(path, sizeof path, "%s/OPTIONS-000001", folder);
    if (length < 0 || whole < 0 || (size_t)whole >= sizeof path || length >= whole)
        return peer_broken(error, "RocksDB: the path is too long: %s", setup->dir);
    mkdir(folder, 0777);
    FILE *file = fopen(path, "w");
    int is_written = file && fputs(setup->settings, file) >= 0;
    if ((file && fclose(file) != 0) || !is_written)
        return peer_broken(error, "RocksDB: %s cannot be written", path);
    store->cache = rocksdb_cache_create_lru(setup->cache_bytes);
    rocksdb_env_t *env = rocksdb_create_default_env();
    char *text = NULL;
    rocksdb_load_latest_options(folder, env, 0, store->cache, &store->options, &store->families_of_file, &store->family_names,
                                &store->family_options, &text);
    rocksdb_env_destroy(env);
    if (text)
        return broken(text, "the OPTIONS file", error);
    if (!store->families_of_file)
        return peer_broken(error, "RocksDB: the OPTIONS file has no column family");
    rocksdb_options_set_create_if_missing(store->options, 1);
    rocksdb_options_set_create_missing_column_families(store->options, 1);
    return PEER_OK;
}

static int open_families(struct store *store, const struct peer_setup *setup, char *error) {
    size_t families = setup->tables + 1;
    const char **names = calloc(families, sizeof *names);
    const rocksdb_options_t **options = calloc(families, sizeof *options);
    store->families = calloc(families, sizeof *store->families);
    char *text = NULL;
    if (names && options && store->families) {
        for (size_t family = 0; family < families; family++) {
            names[family] = family < setup->tables ? setup->table_names[family] : "default";
            options[family] = store->family_options ? store->family_options[0] : store->options;
        }
        store->transactions = rocksdb_optimistictransactiondb_open_column_families(
            store->options, setup->dir, (int)families, names, options, store->families, &text);
        if (store->transactions)
            store->db = rocksdb_optimistictransactiondb_get_base_db(store->transactions);
    }
    free(names);
    free(options);
    return store->db ? PEER_OK : broken(text, setup->dir, error);
}

/* With the caller's OPTIONS file. */
static int store_open_as_told(struct store *store, const struct peer_setup *setup, void **out, char *settings, size_t settings_bytes,
                              char *error) {
    int outcome = load_options(store, setup, error);
    if (outcome == PEER_OK) {
        set_writes(store, setup);
        outcome = open_families(store, setup, error);
    }
    if (outcome != PEER_OK) {
        store_free(store);
        return outcome;
    }
    peer_say(settings, settings_bytes, "options: an OPTIONS file, and a block cache of %llu bytes", (unsigned long long)setup->cache_bytes);
    *out = store;
    return PEER_OK;
}

static int open_in_style(const struct peer_setup *setup, int style, void **out, char *settings, size_t settings_bytes, char *error) {
    static const char *const commits[] = {
        "WAL, synced for each group of commits",
        "WAL, written to the page cache at each commit",
        "no WAL",
    };
    struct store *store = calloc(1, sizeof *store);
    if (!store)
        return peer_broken(error, "RocksDB: out of memory");
    store->tables = setup->tables;
    if (setup->settings)
        return store_open_as_told(store, setup, out, settings, settings_bytes, error);
    struct memory memory = divide(setup->cache_bytes);
    int jobs = (int)peer_clamp(2 * setup->cores, 4, 16);
    set_options(store, setup, memory, jobs, style);
    set_writes(store, setup);
    int outcome = open_families(store, setup, error);
    if (outcome != PEER_OK) {
        store_free(store);
        return outcome;
    }
    peer_say(settings, settings_bytes, "memory: block cache %llu bytes (indexes and filters in it), memtables %llu bytes",
             (unsigned long long)memory.block_cache_bytes, (unsigned long long)memory.write_buffers_bytes);
    peer_say(settings, settings_bytes, "cache: %s", IS_RECENT ? "HyperClockCache" : "LRU");
    peer_say(settings, settings_bytes, "I/O: direct reads%s, direct flush and compaction", IS_RECENT ? ", asynchronous in scans and MultiGet" : "");
    peer_say(settings, settings_bytes, "tables: a column family each, blocks of %d bytes with hash index, %s filters of %d bits, no compression",
             BLOCK_BYTES, IS_RECENT ? "ribbon" : "bloom", BLOOM_BITS);
    peer_say(settings, settings_bytes, "values: from %d bytes on in blob files", BLOB_BYTES);
    peer_say(settings, settings_bytes, "compaction: %s, %d background jobs, %u subcompactions",
             style == rocksdb_level_compaction ? "leveled, dynamic level bytes" : "universal", jobs, setup->cores);
    peer_say(settings, settings_bytes, "commits: %s", commits[setup->durability]);
    peer_say(settings, settings_bytes, "isolation: snapshot, optimistic (OptimisticTransactionDB)");
    peer_say(settings, settings_bytes, "several look-ups: MultiGet, %d keys at a time", BATCH_MAX);
    *out = store;
    return PEER_OK;
}

static int open_leveled(const struct peer_setup *setup, void **out, char *settings, size_t settings_bytes, char *error) {
    return open_in_style(setup, rocksdb_level_compaction, out, settings, settings_bytes, error);
}

static int open_universal(const struct peer_setup *setup, void **out, char *settings, size_t settings_bytes, char *error) {
    return open_in_style(setup, rocksdb_universal_compaction, out, settings, settings_bytes, error);
}

static int flush_all(struct store *store, char *error) {
    rocksdb_flushoptions_t *options = rocksdb_flushoptions_create();
    rocksdb_flushoptions_set_wait(options, 1);
    char *text = NULL;
    for (uint32_t table = 0; !text && table < store->tables; table++)
        rocksdb_flush_cf(store->db, options, store->families[table], &text);
    rocksdb_flushoptions_destroy(options);
    return text ? broken(text, "flush", error) : PEER_OK;
}

/* What is still to be flushed or compacted. */
static uint64_t outstanding(const struct store *store) {
    static const char *const properties[] = {
        "rocksdb.mem-table-flush-pending",
        "rocksdb.num-running-flushes",
        "rocksdb.compaction-pending",
        "rocksdb.num-running-compactions",
    };
    uint64_t sum = 0;
    for (uint32_t table = 0; table < store->tables; table++)
        for (size_t i = 0; i < sizeof properties / sizeof properties[0]; i++) {
            uint64_t number = 0;
            rocksdb_property_int_cf(store->db, store->families[table], properties[i], &number);
            sum += number;
        }
    return sum;
}

static int store_settle(void *at, char *error) {
    struct store *store = at;
    int outcome = flush_all(store, error);
    /* Between two compactions nothing may be outstanding for a moment. */
    for (int quiet = 0; outcome == PEER_OK && quiet < 5;) {
        nanosleep(&(struct timespec){.tv_nsec = 20 * 1000 * 1000}, NULL);
        quiet = outstanding(store) ? 0 : quiet + 1;
    }
    return outcome;
}

static int store_close(void *at, char *error) {
    struct store *store = at;
    int outcome = flush_all(store, error);
    store_free(store);
    return outcome;
}

static void end(struct session *session) {
    rocksdb_readoptions_set_snapshot(session->read, NULL);
    /* The wrapper only: the snapshot is the transaction's. */
    rocksdb_free((void *)session->snapshot);
    session->snapshot = NULL;
    session->open = 0;
}

static void rollback(void *at) {
    struct session *session = at;
    if (!session->open)
        return;
    char *text = NULL;
    rocksdb_transaction_rollback(session->transaction, &text);
    rocksdb_free(text);
    end(session);
}

static void session_close(void *at) {
    struct session *session = at;
    rollback(session);
    if (session->transaction)
        rocksdb_transaction_destroy(session->transaction);
    rocksdb_optimistictransaction_options_destroy(session->options);
    rocksdb_readoptions_destroy(session->read);
    free(session);
}

static int session_open(void *at, void **out, char *error) {
    struct session *session = calloc(1, sizeof *session);
    if (!session)
        return peer_broken(error, "RocksDB: out of memory");
    session->store = at;
    session->read = rocksdb_readoptions_create();
#if IS_RECENT
    rocksdb_readoptions_set_async_io(session->read, 1);
#endif
    session->options = rocksdb_optimistictransaction_options_create();
    rocksdb_optimistictransaction_options_set_set_snapshot(session->options, 1);
    *out = session;
    return PEER_OK;
}

static int get(void *at, uint32_t table, struct peer_bytes key, peer_found found, void *context, char *error) {
    struct session *session = at;
    struct store *store = session->store;
    char *text = NULL;
    rocksdb_pinnableslice_t *slice =
        session->open ? rocksdb_transaction_get_pinned_cf(session->transaction, session->read, store->families[table], key.at, key.length, &text)
                      : rocksdb_get_pinned_cf(store->db, session->read, store->families[table], key.at, key.length, &text);
    if (text)
        return broken(text, "get", error);
    if (!slice)
        return PEER_NOT_FOUND;
    struct peer_bytes value;
    value.at = rocksdb_pinnableslice_value(slice, &value.length);
    found(context, 0, value);
    rocksdb_pinnableslice_destroy(slice);
    return PEER_OK;
}

static int get_batch(struct session *session, uint32_t table, const struct peer_bytes *keys, size_t first, size_t count,
                     peer_found found, void *context, char *error) {
    const char *at[BATCH_MAX];
    size_t lengths[BATCH_MAX];
    rocksdb_pinnableslice_t *slices[BATCH_MAX];
    char *texts[BATCH_MAX];
    for (size_t i = 0; i < count; i++) {
        at[i] = keys[first + i].at;
        lengths[i] = keys[first + i].length;
    }
    rocksdb_batched_multi_get_cf(session->store->db, session->read, session->store->families[table], count, at, lengths, slices, texts, 0);
    char *first_text = NULL;
    for (size_t i = 0; i < count; i++) {
        if (texts[i] && !first_text)
            first_text = texts[i];
        else
            rocksdb_free(texts[i]);
        if (!slices[i])
            continue;
        struct peer_bytes value;
        value.at = rocksdb_pinnableslice_value(slices[i], &value.length);
        found(context, first + i, value);
        rocksdb_pinnableslice_destroy(slices[i]);
    }
    return first_text ? broken(first_text, "multi get", error) : PEER_OK;
}

/* Hands on the place of a key that was looked up alone. */
struct placed {
    peer_found found;
    void *context;
    size_t place;
};

static void found_placed(void *context, size_t place, struct peer_bytes value) {
    const struct placed *placed = context;
    (void)place;
    placed->found(placed->context, placed->place, value);
}

static int get_many(void *at, uint32_t table, const struct peer_bytes *keys, size_t count, peer_found found, void *context, char *error) {
    struct session *session = at;
    int outcome = PEER_OK;
    if (session->open) {
        /* RocksDB's own for transactions is the same loop, with copies. */
        struct placed placed = {found, context, 0};
        for (; outcome < PEER_CONFLICT && placed.place < count; placed.place++)
            outcome = get(session, table, keys[placed.place], found_placed, &placed, error);
        return outcome == PEER_NOT_FOUND ? PEER_OK : outcome;
    }
    for (size_t first = 0; outcome == PEER_OK && first < count; first += BATCH_MAX)
        outcome = get_batch(session, table, keys, first, count - first < BATCH_MAX ? count - first : BATCH_MAX, found, context, error);
    return outcome;
}

static int put(void *at, uint32_t table, struct peer_bytes key, struct peer_bytes value, char *error) {
    struct session *session = at;
    struct store *store = session->store;
    char *text = NULL;
    if (session->open)
        rocksdb_transaction_put_cf(session->transaction, store->families[table], key.at, key.length, value.at, value.length, &text);
    else
        rocksdb_put_cf(store->db, store->write, store->families[table], key.at, key.length, value.at, value.length, &text);
    return text ? broken(text, "put", error) : PEER_OK;
}

static int remove_record(void *at, uint32_t table, struct peer_bytes key, char *error) {
    struct session *session = at;
    struct store *store = session->store;
    char *text = NULL;
    if (session->open)
        rocksdb_transaction_delete_cf(session->transaction, store->families[table], key.at, key.length, &text);
    else
        rocksdb_delete_cf(store->db, store->write, store->families[table], key.at, key.length, &text);
    return text ? broken(text, "remove", error) : PEER_OK;
}

static int scan(void *at, uint32_t table, struct peer_bytes from, int backward, peer_visit visit, void *context, char *error) {
    struct session *session = at;
    rocksdb_column_family_handle_t *family = session->store->families[table];
    rocksdb_iterator_t *iterator = session->open ? rocksdb_transaction_create_iterator_cf(session->transaction, session->read, family)
                                                 : rocksdb_create_iterator_cf(session->store->db, session->read, family);
    (backward ? rocksdb_iter_seek_for_prev : rocksdb_iter_seek)(iterator, from.at, from.length);
    while (rocksdb_iter_valid(iterator)) {
        struct peer_bytes key, value;
        key.at = rocksdb_iter_key(iterator, &key.length);
        value.at = rocksdb_iter_value(iterator, &value.length);
        if (!visit(context, key, value))
            break;
        (backward ? rocksdb_iter_prev : rocksdb_iter_next)(iterator);
    }
    char *text = NULL;
    rocksdb_iter_get_error(iterator, &text);
    rocksdb_iter_destroy(iterator);
    return text ? broken(text, "scan", error) : PEER_OK;
}

static int begin(void *at, int reading, char *error) {
    struct session *session = at;
    (void)reading;
    (void)error;
    session->transaction = rocksdb_optimistictransaction_begin(session->store->transactions, session->store->write, session->options,
                                                               session->transaction);
    session->snapshot = rocksdb_transaction_get_snapshot(session->transaction);
    rocksdb_readoptions_set_snapshot(session->read, session->snapshot);
    session->open = 1;
    return PEER_OK;
}

/* `Busy`: a key has a newer version. `TryAgain`: the memtables do not reach back far enough to know. */
static int is_conflict(const char *text) {
    return !strncmp(text, "Resource busy", 13) || strstr(text, "Try again") != NULL;
}

static int commit(void *at, char *error) {
    struct session *session = at;
    char *text = NULL;
    rocksdb_transaction_commit(session->transaction, &text);
    if (!text) {
        end(session);
        return PEER_OK;
    }
    rollback(session);
    if (!is_conflict(text))
        return broken(text, "commit", error);
    rocksdb_free(text);
    return PEER_CONFLICT;
}

#define FUNCTIONS(open_function)      \
    .version = version,               \
    .open = open_function,            \
    .settle = store_settle,           \
    .close = store_close,             \
    .session_open = session_open,     \
    .session_close = session_close,   \
    .get = get,                       \
    .get_many = get_many,             \
    .put = put,                       \
    .remove = remove_record,          \
    .scan = scan,                     \
    .begin = begin,                   \
    .commit = commit,                 \
    .rollback = rollback

const struct peer rocksdb_peer = {FUNCTIONS(open_leveled)};

const struct peer rocksdb_universal_peer = {FUNCTIONS(open_universal)};
