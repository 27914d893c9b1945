/* Each function of flashgrain.h, with right and wrong arguments. */
#include <flashgrain.h>
#include "check.h"

static fg_error *error;

/* A call that succeeds. */
#define OK(call)                                                                              \
    do {                                                                                      \
        fg_status status = (call);                                                            \
        if (status != FG_STATUS_OK) {                                                         \
            fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, fg_status_name(status),    \
                    fg_error_message(error));                                                 \
            exit(1);                                                                          \
        }                                                                                     \
        CHECK(error == NULL);                                                                 \
    } while (0)

/* A call that fails with this status, and with a message. */
#define FAILS(expected, call)                                \
    do {                                                     \
        fg_status status = (call);                           \
        CHECK(status == (expected));                         \
        CHECK(fg_error_status(error) == (expected));         \
        CHECK(strlen(fg_error_message(error)) > 3);          \
        fg_error_free(error);                                \
    } while (0)

static int value_is(void *value, size_t length, const char *expected) {
    int same = value != NULL && length == strlen(expected) && memcmp(value, expected, length) == 0;
    fg_free(value);
    return same;
}

static int iterator_is(const fg_iterator *iterator, const char *expected) {
    const void *key, *value;
    size_t key_length, value_length;
    if (!fg_iterator_valid(iterator)) return 0;
    OK(fg_iterator_record(iterator, &key, &key_length, &value, &value_length, &error));
    CHECK(value_length == 1 && memcmp(value, "1", 1) == 0);
    return key_length == strlen(expected) && memcmp(key, expected, key_length) == 0;
}

static void basics(void) {
    CHECK(strchr(fg_version(), '.') != NULL);
    CHECK(strcmp(fg_status_name(FG_STATUS_CONFLICT), "conflict") == 0);
    CHECK(strcmp(fg_status_name(-1), "unknown") == 0 && strcmp(fg_status_name(1000), "unknown") == 0);
    CHECK(strcmp(fg_error_message(NULL), "") == 0 && fg_error_status(NULL) == FG_STATUS_OK);
    fg_error_free(NULL);
    fg_free(NULL);
    fg_options_free(NULL);
    fg_store_free(NULL);
    fg_tree_free(NULL);
    fg_snapshot_free(NULL);
    fg_transaction_free(NULL);
    fg_batch_free(NULL);
    fg_iterator_free(NULL);
}

static fg_options *options_of(const char *path) {
    fg_options *options = fg_options_new();
    OK(fg_options_add_path(options, path, &error));
    OK(fg_options_set_cache_bytes(options, 16 << 20, &error));
    OK(fg_options_set_workers(options, 1, &error));
    OK(fg_options_set_durability(options, FG_DURABILITY_BUFFERED, &error));
    OK(fg_options_set_write_log(options, true, &error));
    OK(fg_options_set_recovery_log_bytes(options, 8 << 20, &error));
    OK(fg_options_set_size_bytes_max(options, 256 << 20, &error));
    FAILS(FG_STATUS_ARGUMENT, fg_options_set_durability(options, 3, &error));
    FAILS(FG_STATUS_ARGUMENT, fg_options_add_path(options, NULL, &error));
    FAILS(FG_STATUS_ARGUMENT, fg_options_add_path(NULL, path, &error));
    FAILS(FG_STATUS_ARGUMENT, fg_options_add_log_path(NULL, path, &error));
    FAILS(FG_STATUS_ARGUMENT, fg_options_set_cache_bytes(NULL, 1, &error));
    FAILS(FG_STATUS_ARGUMENT, fg_options_set_workers(NULL, 1, &error));
    FAILS(FG_STATUS_ARGUMENT, fg_options_set_durability(NULL, 0, &error));
    FAILS(FG_STATUS_ARGUMENT, fg_options_set_write_log(NULL, true, &error));
    FAILS(FG_STATUS_ARGUMENT, fg_options_set_recovery_log_bytes(NULL, 1, &error));
    FAILS(FG_STATUS_ARGUMENT, fg_options_set_size_bytes_max(NULL, 1, &error));
    return options;
}

static void trees(fg_store *store) {
    static const fg_tree_kind kinds[] = {FG_TREE_KIND_B_TREE, FG_TREE_KIND_LSM, FG_TREE_KIND_BE_TREE};
    static const char *const names[] = {"b", "lsm", "be"};
    static const char binary[] = "a\0b";
    fg_tree *tree;
    char **all;
    size_t i, count, length, key_bytes_max;
    uint64_t removed;
    int32_t kind;
    bool found;
    void *value;
    char buffer[4];
    for (i = 0; i < 3; i++) {
        OK(fg_tree_open(store, names[i], kinds[i], 4096, &tree, &error));
        OK(fg_tree_describe(tree, &kind, &key_bytes_max, &error));
        CHECK(kind == kinds[i] && key_bytes_max >= 512 && key_bytes_max < 4096);
        OK(fg_tree_put(tree, "a", 1, "red", 3, &error));
        OK(fg_tree_put(tree, binary, 3, NULL, 0, &error));
        OK(fg_tree_get(tree, "a", 1, &value, &length, &error));
        CHECK(value_is(value, length, "red"));
        OK(fg_tree_get(tree, binary, 3, &value, &length, &error));
        CHECK(value_is(value, length, ""));
        OK(fg_tree_get(tree, "none", 4, &value, &length, &error));
        CHECK(value == NULL && length == 0);
        OK(fg_tree_get(tree, NULL, 0, &value, &length, &error));
        CHECK(value == NULL && length == 0);
        OK(fg_tree_get_into(tree, "a", 1, buffer, 2, &length, &found, &error));
        CHECK(found && length == 3 && memcmp(buffer, "re", 2) == 0);
        OK(fg_tree_get_into(tree, "none", 4, NULL, 0, &length, &found, &error));
        CHECK(!found && length == 0);
        FAILS(FG_STATUS_ARGUMENT, fg_tree_get_into(tree, "a", 1, NULL, 2, &length, &found, &error));
        OK(fg_tree_contains(tree, binary, 3, &found, &error));
        CHECK(found);
        OK(fg_tree_remove(tree, "a", 1, &error));
        OK(fg_tree_contains(tree, "a", 1, &found, &error));
        CHECK(!found);
        OK(fg_tree_remove_range(tree, "a", 1, NULL, 0, &removed, &error));
        CHECK(removed == 1);
        OK(fg_tree_put(tree, "c", 1, "1", 1, &error));
        OK(fg_tree_clear_range(tree, NULL, 0, "d", 1, &error));
        OK(fg_tree_contains(tree, "c", 1, &found, &error));
        CHECK(!found);
        /* Arguments that cannot be. */
        FAILS(FG_STATUS_ARGUMENT, fg_tree_put(tree, NULL, 0, "x", 1, &error));
        FAILS(FG_STATUS_ARGUMENT, fg_tree_put(tree, NULL, 5, "x", 1, &error));
        FAILS(FG_STATUS_ARGUMENT, fg_tree_put(tree, "x", 1, NULL, 1, &error));
        FAILS(FG_STATUS_ARGUMENT, fg_tree_put(tree, "x", SIZE_MAX, "x", 1, &error));
        FAILS(FG_STATUS_ARGUMENT, fg_tree_put(NULL, "x", 1, "x", 1, &error));
        FAILS(FG_STATUS_ARGUMENT, fg_tree_get(tree, "x", 1, NULL, &length, &error));
        FAILS(FG_STATUS_ARGUMENT, fg_tree_get(tree, "x", 1, &value, NULL, &error));
        FAILS(FG_STATUS_ARGUMENT, fg_tree_contains(tree, "x", 1, NULL, &error));
        FAILS(FG_STATUS_ARGUMENT, fg_tree_remove_range(tree, NULL, 0, NULL, 0, NULL, &error));
        FAILS(FG_STATUS_ARGUMENT, fg_tree_clear_range(tree, NULL, 2, NULL, 0, &error));
        FAILS(FG_STATUS_ARGUMENT, fg_tree_remove(NULL, "x", 1, &error));
        FAILS(FG_STATUS_ARGUMENT, fg_tree_describe(tree, NULL, NULL, &error));
        fg_tree_free(tree);
    }
    OK(fg_store_tree_names(store, &all, &count, &error));
    CHECK(count == 3 && strcmp(all[0], "b") == 0 && strcmp(all[1], "be") == 0 && strcmp(all[2], "lsm") == 0);
    fg_free(all);
    FAILS(FG_STATUS_ARGUMENT, fg_tree_open(store, "x", 3, 0, &tree, &error));
    CHECK(tree == NULL);
    FAILS(FG_STATUS_ARGUMENT, fg_tree_open(store, "x", 0, 5000, &tree, &error));
    FAILS(FG_STATUS_ARGUMENT, fg_tree_open(store, "", 0, 0, &tree, &error));
    FAILS(FG_STATUS_ARGUMENT, fg_tree_open(store, "\xff", 0, 0, &tree, &error));
    FAILS(FG_STATUS_ARGUMENT, fg_tree_open(store, NULL, 0, 0, &tree, &error));
    FAILS(FG_STATUS_ARGUMENT, fg_tree_open(store, "x", 0, 0, NULL, &error));
    FAILS(FG_STATUS_NOT_FOUND, fg_tree_open_existing(store, "x", &tree, &error));
    OK(fg_tree_open_existing(store, "b", &tree, &error));
    OK(fg_store_rename_tree(store, "b", "c", &error));
    FAILS(FG_STATUS_NOT_FOUND, fg_store_rename_tree(store, "b", "d", &error));
    FAILS(FG_STATUS_DROPPED, fg_tree_put(tree, "x", 1, "x", 1, &error));
    fg_tree_free(tree);
    OK(fg_store_drop_tree(store, "c", &error));
    FAILS(FG_STATUS_NOT_FOUND, fg_store_drop_tree(store, "c", &error));
    OK(fg_store_drop_tree(store, "be", &error));
    OK(fg_store_drop_tree(store, "lsm", &error));
}

static void iterators(fg_store *store, fg_tree *tree) {
    static const char *const keys[] = {"a", "c", "e", "g"};
    fg_iterator *iterator;
    const void *key, *value;
    size_t i, key_length, value_length;
    for (i = 0; i < 4; i++) OK(fg_tree_put(tree, keys[i], 1, "1", 1, &error));
    OK(fg_tree_iterate(tree, NULL, 0, NULL, 0, &iterator, &error));
    CHECK(!fg_iterator_valid(iterator) && !fg_iterator_valid(NULL));
    FAILS(FG_STATUS_NOT_FOUND, fg_iterator_record(iterator, &key, &key_length, &value, &value_length, &error));
    OK(fg_iterator_next(iterator, &error));
    CHECK(!fg_iterator_valid(iterator));
    OK(fg_iterator_seek_first(iterator, &error));
    CHECK(iterator_is(iterator, "a"));
    OK(fg_iterator_next(iterator, &error));
    CHECK(iterator_is(iterator, "c"));
    OK(fg_iterator_prev(iterator, &error));
    CHECK(iterator_is(iterator, "a"));
    OK(fg_iterator_prev(iterator, &error));
    CHECK(!fg_iterator_valid(iterator));
    OK(fg_iterator_seek_last(iterator, &error));
    CHECK(iterator_is(iterator, "g"));
    OK(fg_iterator_next(iterator, &error));
    CHECK(!fg_iterator_valid(iterator));
    OK(fg_iterator_seek(iterator, "d", 1, &error));
    CHECK(iterator_is(iterator, "e"));
    OK(fg_iterator_seek_back(iterator, "d", 1, &error));
    CHECK(iterator_is(iterator, "c"));
    OK(fg_iterator_next(iterator, &error));
    CHECK(iterator_is(iterator, "e"));
    FAILS(FG_STATUS_ARGUMENT, fg_iterator_record(iterator, NULL, &key_length, &value, &value_length, &error));
    FAILS(FG_STATUS_ARGUMENT, fg_iterator_seek(iterator, NULL, 1, &error));
    FAILS(FG_STATUS_ARGUMENT, fg_iterator_seek_first(NULL, &error));
    fg_iterator_free(iterator);
    /* Within bounds. */
    OK(fg_tree_iterate(tree, "b", 1, "g", 1, &iterator, &error));
    OK(fg_iterator_seek_first(iterator, &error));
    CHECK(iterator_is(iterator, "c"));
    OK(fg_iterator_prev(iterator, &error));
    CHECK(!fg_iterator_valid(iterator));
    OK(fg_iterator_seek_last(iterator, &error));
    CHECK(iterator_is(iterator, "e"));
    OK(fg_iterator_seek(iterator, "a", 1, &error));
    CHECK(iterator_is(iterator, "c"));
    OK(fg_iterator_seek_back(iterator, "z", 1, &error));
    CHECK(iterator_is(iterator, "e"));
    OK(fg_iterator_seek(iterator, "f", 1, &error));
    CHECK(!fg_iterator_valid(iterator));
    OK(fg_iterator_seek_back(iterator, "b", 1, &error));
    CHECK(!fg_iterator_valid(iterator));
    fg_iterator_free(iterator);
    FAILS(FG_STATUS_ARGUMENT, fg_tree_iterate(tree, NULL, 0, NULL, 0, NULL, &error));
    (void)store;
}

static void snapshots(fg_store *store, fg_tree *tree) {
    fg_snapshot *snapshot;
    fg_iterator *iterator;
    void *value;
    size_t length;
    bool found;
    char buffer[1];
    OK(fg_snapshot_new(store, &snapshot, &error));
    OK(fg_tree_remove(tree, "a", 1, &error));
    OK(fg_snapshot_get(snapshot, tree, "a", 1, &value, &length, &error));
    CHECK(value_is(value, length, "1"));
    OK(fg_snapshot_get_into(snapshot, tree, "a", 1, buffer, 1, &length, &found, &error));
    CHECK(found && length == 1 && buffer[0] == '1');
    OK(fg_snapshot_contains(snapshot, tree, "a", 1, &found, &error));
    CHECK(found);
    OK(fg_snapshot_iterate(snapshot, tree, NULL, 0, NULL, 0, &iterator, &error));
    OK(fg_iterator_seek_first(iterator, &error));
    CHECK(iterator_is(iterator, "a"));
    fg_snapshot_free(snapshot);
    OK(fg_iterator_next(iterator, &error));
    CHECK(iterator_is(iterator, "c"));
    fg_iterator_free(iterator);
    OK(fg_tree_contains(tree, "a", 1, &found, &error));
    CHECK(!found);
    FAILS(FG_STATUS_ARGUMENT, fg_snapshot_new(NULL, &snapshot, &error));
    FAILS(FG_STATUS_ARGUMENT, fg_snapshot_get(NULL, tree, "a", 1, &value, &length, &error));
}

static void transactions(fg_store *store, fg_tree *tree) {
    fg_transaction *one, *other;
    fg_iterator *iterator;
    void *value;
    size_t length;
    uint64_t removed;
    bool found;
    char buffer[1];
    OK(fg_transaction_begin(store, &one, &error));
    OK(fg_transaction_begin(store, &other, &error));
    OK(fg_transaction_set_durability(one, FG_DURABILITY_NONE, &error));
    FAILS(FG_STATUS_ARGUMENT, fg_transaction_set_durability(one, -1, &error));
    OK(fg_transaction_put(one, tree, "a", 1, "1", 1, &error));
    OK(fg_transaction_put(other, tree, "a", 1, "2", 1, &error));
    OK(fg_transaction_get(one, tree, "a", 1, &value, &length, &error));
    CHECK(value_is(value, length, "1"));
    OK(fg_transaction_get_into(other, tree, "a", 1, buffer, 1, &length, &found, &error));
    CHECK(found && buffer[0] == '2');
    OK(fg_transaction_remove(one, tree, "c", 1, &error));
    OK(fg_transaction_contains(one, tree, "c", 1, &found, &error));
    CHECK(!found);
    OK(fg_transaction_remove_range(one, tree, "e", 1, "g", 1, &removed, &error));
    CHECK(removed == 1);
    OK(fg_transaction_iterate(one, tree, NULL, 0, NULL, 0, &iterator, &error));
    OK(fg_iterator_seek_first(iterator, &error));
    CHECK(iterator_is(iterator, "a"));
    OK(fg_iterator_next(iterator, &error));
    CHECK(iterator_is(iterator, "g"));
    fg_iterator_free(iterator);
    OK(fg_transaction_commit(one, &error));
    FAILS(FG_STATUS_FINISHED, fg_transaction_commit(one, &error));
    FAILS(FG_STATUS_FINISHED, fg_transaction_put(one, tree, "a", 1, "1", 1, &error));
    FAILS(FG_STATUS_FINISHED, fg_transaction_get(one, tree, "a", 1, &value, &length, &error));
    FAILS(FG_STATUS_FINISHED, fg_transaction_rollback(one, &error));
    FAILS(FG_STATUS_CONFLICT, fg_transaction_commit(other, &error));
    fg_transaction_free(one);
    fg_transaction_free(other);
    OK(fg_transaction_begin(store, &one, &error));
    OK(fg_transaction_put(one, tree, "a", 1, "9", 1, &error));
    OK(fg_transaction_rollback(one, &error));
    OK(fg_transaction_commit(one, &error));
    fg_transaction_free(one);
    OK(fg_tree_get(tree, "a", 1, &value, &length, &error));
    CHECK(value_is(value, length, "1"));
    FAILS(FG_STATUS_ARGUMENT, fg_transaction_begin(store, NULL, &error));
    FAILS(FG_STATUS_ARGUMENT, fg_transaction_commit(NULL, &error));
}

static void batches(fg_store *store, fg_tree *tree) {
    fg_store *elsewhere;
    fg_tree *foreign;
    fg_batch *batch;
    size_t count;
    bool found;
    OK(fg_batch_new(store, &batch, &error));
    OK(fg_batch_set_durability(batch, FG_DURABILITY_SYNC, &error));
    FAILS(FG_STATUS_ARGUMENT, fg_batch_set_durability(batch, 7, &error));
    OK(fg_batch_put(batch, tree, "x", 1, "1", 1, &error));
    OK(fg_batch_put(batch, tree, "y", 1, "1", 1, &error));
    OK(fg_batch_remove(batch, tree, "x", 1, &error));
    OK(fg_store_in_memory(8 << 20, &elsewhere, &error));
    OK(fg_tree_open(elsewhere, "t", FG_TREE_KIND_B_TREE, 0, &foreign, &error));
    FAILS(FG_STATUS_OTHER_STORE, fg_batch_put(batch, foreign, "x", 1, "1", 1, &error));
    fg_store_free(elsewhere);
    fg_tree_free(foreign);
    OK(fg_batch_count(batch, &count, &error));
    CHECK(count == 2);
    OK(fg_batch_commit(batch, &error));
    FAILS(FG_STATUS_FINISHED, fg_batch_commit(batch, &error));
    FAILS(FG_STATUS_FINISHED, fg_batch_count(batch, &count, &error));
    FAILS(FG_STATUS_FINISHED, fg_batch_set_durability(batch, 0, &error));
    fg_batch_free(batch);
    OK(fg_tree_contains(tree, "x", 1, &found, &error));
    CHECK(!found);
    OK(fg_tree_contains(tree, "y", 1, &found, &error));
    CHECK(found);
    FAILS(FG_STATUS_ARGUMENT, fg_batch_new(store, NULL, &error));
}

/* Every call after the store was closed. */
static void closed(fg_store *store, fg_tree *tree, fg_iterator *iterator) {
    fg_snapshot *snapshot;
    fg_tree *other;
    char *json;
    char **names;
    void *value;
    size_t length;
    FAILS(FG_STATUS_CLOSED, fg_store_close(store, &error));
    FAILS(FG_STATUS_CLOSED, fg_tree_put(tree, "a", 1, "1", 1, &error));
    FAILS(FG_STATUS_CLOSED, fg_tree_get(tree, "a", 1, &value, &length, &error));
    FAILS(FG_STATUS_CLOSED, fg_iterator_seek_first(iterator, &error));
    FAILS(FG_STATUS_CLOSED, fg_snapshot_new(store, &snapshot, &error));
    CHECK(snapshot == NULL);
    FAILS(FG_STATUS_CLOSED, fg_tree_open(store, "t", 0, 0, &other, &error));
    FAILS(FG_STATUS_CLOSED, fg_store_sync(store, &error));
    FAILS(FG_STATUS_CLOSED, fg_store_stats_json(store, &json, &error));
    FAILS(FG_STATUS_CLOSED, fg_store_tree_names(store, &names, &length, &error));
    CHECK(json == NULL && names == NULL && length == 0);
}

int main(int argc, char **argv) {
    char path[512], copy[512];
    fg_options *options, *target;
    fg_store *store, *again;
    fg_tree *tree;
    fg_iterator *iterator;
    char *json;
    void *value;
    size_t length;
    CHECK(argc == 2 && strlen(argv[1]) < 480);
    sprintf(path, "%s/store", argv[1]);
    sprintf(copy, "%s/copy", argv[1]);
    basics();
    options = options_of(path);
    FAILS(FG_STATUS_NOT_FOUND, fg_store_open(options, &store, &error));
    CHECK(store == NULL);
    FAILS(FG_STATUS_ARGUMENT, fg_store_open(NULL, &store, &error));
    FAILS(FG_STATUS_ARGUMENT, fg_store_open(options, NULL, &error));
    CHECK(fg_store_open(options, &store, NULL) == FG_STATUS_NOT_FOUND);
    OK(fg_store_create(options, &store, &error));
    FAILS(FG_STATUS_LOCKED, fg_store_open(options, &again, &error));
    FAILS(FG_STATUS_LOCKED, fg_store_create(options, &again, &error));
    FAILS(FG_STATUS_ARGUMENT, fg_store_in_memory(1, &again, &error));
    trees(store);
    OK(fg_tree_open(store, "t", FG_TREE_KIND_B_TREE, 0, &tree, &error));
    iterators(store, tree);
    snapshots(store, tree);
    transactions(store, tree);
    batches(store, tree);
    OK(fg_store_sync(store, &error));
    OK(fg_store_checkpoint(store, &error));
    OK(fg_store_check(store, &error));
    OK(fg_store_compact(store, &error));
    OK(fg_store_stats_json(store, &json, &error));
    CHECK(json[0] == '{' && strstr(json, "\"cache\":{\"budget_bytes\":") != NULL);
    fg_free(json);
    target = fg_options_new();
    OK(fg_options_add_path(target, copy, &error));
    OK(fg_options_add_log_path(target, copy, &error));
    FAILS(FG_STATUS_ARGUMENT, fg_store_backup(store, NULL, &error));
    fg_options_free(target);
    target = options_of(copy);
    OK(fg_store_backup(store, target, &error));
    FAILS(FG_STATUS_EXISTS, fg_store_backup(store, target, &error));
    OK(fg_tree_iterate(tree, NULL, 0, NULL, 0, &iterator, &error));
    OK(fg_store_close(store, &error));
    closed(store, tree, iterator);
    fg_iterator_free(iterator);
    fg_store_free(store);
    fg_tree_free(tree);

    FAILS(FG_STATUS_EXISTS, fg_store_create(options, &again, &error));
    OK(fg_store_open_read_only(target, &store, &error));
    OK(fg_tree_open_existing(store, "t", &tree, &error));
    OK(fg_tree_get(tree, "y", 1, &value, &length, &error));
    CHECK(value_is(value, length, "1"));
    FAILS(FG_STATUS_READ_ONLY, fg_tree_remove(tree, "y", 1, &error));
    fg_tree_free(tree);
    fg_store_free(store);
    OK(fg_store_open_or_create(options, &store, &error));
    fg_store_free(store);
    fg_options_free(target);
    fg_options_free(options);
    puts("PASS");
    return 0;
}
