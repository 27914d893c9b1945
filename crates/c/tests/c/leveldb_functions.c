/* Each function of leveldb/c.h, with right and wrong arguments, and with other comparators. */
#include <leveldb/c.h>
#include "check.h"

static char *error;
static int destroyed;

/* The error of the last call, which there must be, has this text in it. */
static void fails(const char *expected) {
    if (error == NULL || strstr(error, expected) == NULL) {
        fprintf(stderr, "expected %s, got %s\n", expected, error ? error : "success");
        exit(1);
    }
    leveldb_free(error);
    error = NULL;
}

static void ok(void) {
    if (error != NULL) {
        fprintf(stderr, "%s\n", error);
        exit(1);
    }
}

static int value_is(char *value, size_t length, const char *expected) {
    int same = expected == NULL ? value == NULL
                                : value != NULL && length == strlen(expected) && memcmp(value, expected, length) == 0;
    leveldb_free(value);
    return same;
}

static int get_is(leveldb_t *db, const leveldb_readoptions_t *options, const char *key, const char *expected) {
    size_t length;
    char *value = leveldb_get(db, options, key, strlen(key), &length, &error);
    ok();
    return value_is(value, length, expected);
}

static int key_is(const leveldb_iterator_t *iterator, const char *expected) {
    size_t length;
    const char *key = leveldb_iter_key(iterator, &length);
    return key != NULL && length == strlen(expected) && memcmp(key, expected, length) == 0;
}

static void destroy(void *state) { (*(int *)state)++; }

static const char *name(void *state) {
    (void)state;
    return "test";
}

static int by_bytes(void *state, const char *a, size_t alen, const char *b, size_t blen) {
    int order = memcmp(a, b, alen < blen ? alen : blen);
    (void)state;
    return order != 0 ? order : (alen > blen) - (alen < blen);
}

static int reversed(void *state, const char *a, size_t alen, const char *b, size_t blen) {
    return by_bytes(state, b, blen, a, alen);
}

/* Letters of both cases are the same. */
static int without_case(void *state, const char *a, size_t alen, const char *b, size_t blen) {
    size_t i;
    for (i = 0; i < alen && i < blen; i++) {
        int one = a[i] | 32, other = b[i] | 32;
        if (one != other) return one - other;
    }
    (void)state;
    return (alen > blen) - (alen < blen);
}

static char *no_filter(void *state, const char *const *keys, const size_t *lengths, int count, size_t *length) {
    (void)state, (void)keys, (void)lengths, (void)count;
    *length = 0;
    return calloc(1, 1);
}

static uint8_t matches_nothing(void *state, const char *key, size_t klen, const char *filter, size_t flen) {
    (void)state, (void)key, (void)klen, (void)filter, (void)flen;
    return 0;
}

static void counted(void *state, const char *k, size_t klen) {
    (void)k, (void)klen;
    ((int *)state)[1]++;
}

static void counted_put(void *state, const char *k, size_t klen, const char *v, size_t vlen) {
    (void)k, (void)klen, (void)v, (void)vlen;
    ((int *)state)[0]++;
}

static void batches(leveldb_t *db) {
    leveldb_readoptions_t *read = leveldb_readoptions_create();
    leveldb_writeoptions_t *write = leveldb_writeoptions_create();
    leveldb_writebatch_t *batch = leveldb_writebatch_create(), *other = leveldb_writebatch_create();
    int counts[2] = {0, 0};
    leveldb_writebatch_put(batch, "gone", 4, "x", 1);
    leveldb_writebatch_clear(batch);
    leveldb_writebatch_put(batch, "one", 3, "1", 1);
    leveldb_writebatch_put(batch, "two", 3, "2", 1);
    leveldb_writebatch_delete(other, "one", 3);
    leveldb_writebatch_append(batch, other);
    leveldb_writebatch_append(batch, NULL);
    leveldb_writebatch_append(other, other);
    leveldb_writebatch_iterate(batch, counts, counted_put, counted);
    CHECK(counts[0] == 2 && counts[1] == 1);
    leveldb_writebatch_iterate(other, counts, counted_put, counted);
    CHECK(counts[0] == 2 && counts[1] == 3);
    leveldb_write(db, write, batch, &error);
    ok();
    CHECK(get_is(db, read, "one", NULL) && get_is(db, read, "two", "2") && get_is(db, read, "gone", NULL));
    leveldb_writebatch_put(batch, NULL, 3, "1", 1);
    leveldb_write(db, write, batch, &error);
    fails("Invalid argument: `key` is null");
    leveldb_write(db, write, NULL, &error);
    fails("Invalid argument");
    leveldb_writebatch_destroy(batch);
    leveldb_writebatch_destroy(other);
    leveldb_readoptions_destroy(read);
    leveldb_writeoptions_destroy(write);
}

static void reads(leveldb_t *db) {
    leveldb_readoptions_t *read = leveldb_readoptions_create();
    leveldb_writeoptions_t *write = leveldb_writeoptions_create();
    const leveldb_snapshot_t *snapshot;
    leveldb_iterator_t *iterator;
    size_t length;
    leveldb_readoptions_set_verify_checksums(read, 1);
    leveldb_readoptions_set_fill_cache(read, 0);
    leveldb_writeoptions_set_sync(write, 1);
    leveldb_put(db, write, "a", 1, "1", 1, &error);
    ok();
    leveldb_put(db, write, "empty", 5, "", 0, &error);
    ok();
    snapshot = leveldb_create_snapshot(db);
    leveldb_delete(db, NULL, "a", 1, &error);
    ok();
    leveldb_readoptions_set_snapshot(read, snapshot);
    CHECK(get_is(db, read, "a", "1"));
    iterator = leveldb_create_iterator(db, read);
    leveldb_release_snapshot(db, snapshot);
    leveldb_readoptions_set_snapshot(read, NULL);
    CHECK(get_is(db, read, "a", NULL) && get_is(db, read, "empty", "") && get_is(db, NULL, "", NULL));
    CHECK(!leveldb_iter_valid(iterator) && leveldb_iter_key(iterator, &length) == NULL && length == 0);
    leveldb_iter_seek_to_first(iterator);
    CHECK(leveldb_iter_valid(iterator) && key_is(iterator, "a"));
    leveldb_iter_next(iterator);
    CHECK(key_is(iterator, "empty"));
    CHECK(leveldb_iter_value(iterator, &length) != NULL && length == 0);
    leveldb_iter_seek_to_last(iterator);
    CHECK(key_is(iterator, "two"));
    leveldb_iter_prev(iterator);
    CHECK(key_is(iterator, "empty"));
    leveldb_iter_seek(iterator, "b", 1);
    CHECK(key_is(iterator, "empty"));
    leveldb_iter_seek(iterator, "", 0);
    CHECK(key_is(iterator, "a"));
    leveldb_iter_seek(iterator, "z", 1);
    CHECK(!leveldb_iter_valid(iterator));
    leveldb_iter_get_error(iterator, &error);
    ok();
    leveldb_iter_destroy(iterator);
    /* Arguments that cannot be. */
    leveldb_put(db, write, "", 0, "x", 1, &error);
    fails("Invalid argument: a key of 0 bytes");
    leveldb_put(db, write, NULL, 1, "x", 1, &error);
    /* The text of an earlier error is freed. */
    leveldb_put(NULL, write, "x", 1, "x", 1, &error);
    fails("Invalid argument: the database is null");
    CHECK(leveldb_get(NULL, read, "x", 1, &length, &error) == NULL && length == 0);
    fails("Invalid argument");
    leveldb_delete(db, write, "", 0, &error);
    ok();
    iterator = leveldb_create_iterator(NULL, NULL);
    leveldb_iter_seek_to_first(iterator);
    CHECK(!leveldb_iter_valid(iterator));
    leveldb_iter_get_error(iterator, &error);
    fails("Invalid argument");
    leveldb_iter_destroy(iterator);
    leveldb_readoptions_destroy(read);
    leveldb_writeoptions_destroy(write);
}

static void properties(leveldb_t *db) {
    const char *starts[] = {"a", "z"}, *limits[] = {"u", "zz"};
    size_t lengths[] = {1, 1}, limit_lengths[] = {1, 2};
    uint64_t sizes[2];
    char *text = leveldb_property_value(db, "leveldb.stats");
    CHECK(text != NULL && strstr(text, "Tables") != NULL);
    leveldb_free(text);
    text = leveldb_property_value(db, "leveldb.num-files-at-level0");
    CHECK(text != NULL);
    leveldb_free(text);
    text = leveldb_property_value(db, "leveldb.approximate-memory-usage");
    CHECK(text != NULL && strtoull(text, NULL, 10) >= 32 << 20);
    leveldb_free(text);
    CHECK(leveldb_property_value(db, "stats") == NULL && leveldb_property_value(db, NULL) == NULL);
    leveldb_approximate_sizes(db, 2, starts, lengths, limits, limit_lengths, sizes);
    /* "empty" without a value, and "two" with one. */
    CHECK(sizes[0] == 9 && sizes[1] == 0);
    leveldb_compact_range(db, NULL, 0, NULL, 0);
    leveldb_compact_range(db, "a", 1, "b", 1);
}

/* A comparator that does not order by bytes is refused by the call that shows it, and changes nothing. */
static void comparators(const char *path, leveldb_options_t *options) {
    int (*others[])(void *, const char *, size_t, const char *, size_t) = {reversed, without_case};
    leveldb_comparator_t *comparator = leveldb_comparator_create(&destroyed, destroy, by_bytes, name);
    leveldb_writebatch_t *batch = leveldb_writebatch_create();
    leveldb_iterator_t *iterator;
    leveldb_t *db;
    size_t i, length;
    leveldb_writebatch_put(batch, "m", 1, "1", 1);
    leveldb_writebatch_put(batch, "M", 1, "2", 1);
    leveldb_options_set_comparator(options, comparator);
    CHECK(leveldb_open(options, path, &error) == NULL);
    fails("made with the comparator leveldb.BytewiseComparator");
    leveldb_destroy_db(options, path, &error);
    ok();
    db = leveldb_open(options, path, &error);
    ok();
    leveldb_put(db, NULL, "b", 1, "1", 1, &error);
    leveldb_put(db, NULL, "d", 1, "1", 1, &error);
    ok();
    leveldb_close(db);
    leveldb_comparator_destroy(comparator);
    CHECK(destroyed == 0); /* The options have it. */
    for (i = 0; i < 2; i++) {
        comparator = leveldb_comparator_create(&destroyed, destroy, others[i], name);
        leveldb_options_set_comparator(options, comparator);
        CHECK(destroyed == (int)i + 1);
        db = leveldb_open(options, path, &error);
        ok();
        CHECK(leveldb_get(db, NULL, "B", 1, &length, &error) == NULL);
        fails("the comparator test does not have \"B\" before \"b\"");
        leveldb_put(db, NULL, "D", 1, "2", 1, &error);
        fails(i == 0 ? "does not have \"D\" before \"b\"" : "does not have");
        leveldb_write(db, NULL, batch, &error);
        fails("does not have \"M\" before \"m\"");
        iterator = leveldb_create_iterator(db, NULL);
        leveldb_iter_seek(iterator, "B", 1);
        CHECK(!leveldb_iter_valid(iterator));
        leveldb_iter_get_error(iterator, &error);
        fails("does not have \"B\" before \"b\"");
        leveldb_iter_seek_to_first(iterator);
        CHECK(key_is(iterator, "b"));
        leveldb_iter_next(iterator);
        leveldb_iter_get_error(iterator, &error);
        if (i == 0) {
            CHECK(!leveldb_iter_valid(iterator));
            fails("does not have \"b\" before \"d\"");
        } else {
            CHECK(key_is(iterator, "d"));
            ok();
            leveldb_iter_next(iterator);
            CHECK(!leveldb_iter_valid(iterator));
        }
        leveldb_iter_destroy(iterator);
        leveldb_close(db);
        leveldb_comparator_destroy(comparator);
    }
    leveldb_options_set_comparator(options, NULL);
    CHECK(destroyed == 3);
    comparator = leveldb_comparator_create(NULL, NULL, by_bytes, NULL);
    leveldb_options_set_comparator(options, comparator);
    CHECK(leveldb_open(options, path, &error) == NULL);
    fails("a comparator without a name");
    leveldb_comparator_destroy(comparator);
    leveldb_options_set_comparator(options, NULL);
    leveldb_writebatch_destroy(batch);
}

int main(int argc, char **argv) {
    leveldb_options_t *options = leveldb_options_create();
    leveldb_env_t *environment = leveldb_create_default_env();
    leveldb_cache_t *cache = leveldb_cache_create_lru(1 << 20);
    leveldb_filterpolicy_t *bloom = leveldb_filterpolicy_create_bloom(10);
    leveldb_filterpolicy_t *own =
        leveldb_filterpolicy_create(&destroyed, destroy, no_filter, matches_nothing, name);
    leveldb_t *db;
    leveldb_iterator_t *iterator;
    char *directory, path[512];
    CHECK(argc == 2 && strlen(argv[1]) < 480);
    sprintf(path, "%s/database", argv[1]);
    CHECK(leveldb_major_version() == 1 && leveldb_minor_version() == 23);
    directory = leveldb_env_get_test_directory(environment);
    CHECK(directory != NULL && strcmp(directory, getenv("TEST_TMPDIR")) == 0);
    leveldb_free(directory);
    leveldb_options_set_env(options, environment);
    leveldb_options_set_cache(options, cache);
    leveldb_options_set_info_log(options, NULL);
    leveldb_options_set_paranoid_checks(options, 1);
    leveldb_options_set_write_buffer_size(options, 1 << 20);
    leveldb_options_set_max_open_files(options, 10);
    leveldb_options_set_block_size(options, 20000);
    leveldb_options_set_block_restart_interval(options, 8);
    leveldb_options_set_max_file_size(options, 1 << 20);
    leveldb_options_set_compression(options, leveldb_no_compression);
    leveldb_options_set_compression(options, leveldb_snappy_compression);
    leveldb_options_set_filter_policy(options, own);
    leveldb_options_set_filter_policy(options, bloom);
    leveldb_filterpolicy_destroy(own);
    CHECK(destroyed == 1);
    destroyed = 0;
    CHECK(leveldb_open(options, path, &error) == NULL);
    fails("Invalid argument");
    CHECK(leveldb_open(options, NULL, &error) == NULL);
    fails("Invalid argument: `name` is null");
    CHECK(leveldb_open(NULL, path, NULL) == NULL);
    leveldb_repair_db(options, path, &error);
    fails("not a Flashgrain store");
    leveldb_destroy_db(options, path, &error);
    ok();
    leveldb_options_set_create_if_missing(options, 1);
    db = leveldb_open(options, path, &error);
    ok();
    CHECK(leveldb_open(options, path, &error) == NULL);
    fails("IO error");
    leveldb_destroy_db(options, path, &error);
    fails("IO error");
    batches(db);
    reads(db);
    properties(db);
    iterator = leveldb_create_iterator(db, NULL);
    leveldb_close(db);
    leveldb_iter_seek_to_first(iterator);
    CHECK(!leveldb_iter_valid(iterator));
    leveldb_iter_get_error(iterator, &error);
    fails("IO error: the store is closed");
    leveldb_iter_destroy(iterator);
    leveldb_options_set_error_if_exists(options, 1);
    CHECK(leveldb_open(options, path, &error) == NULL);
    fails("error_if_exists");
    leveldb_options_set_error_if_exists(options, 0);
    leveldb_repair_db(options, path, &error);
    ok();
    comparators(path, options);
    leveldb_destroy_db(options, path, &error);
    ok();
    leveldb_filterpolicy_destroy(bloom);
    leveldb_cache_destroy(cache);
    leveldb_env_destroy(environment);
    leveldb_options_destroy(options);
    puts("PASS");
    return 0;
}
