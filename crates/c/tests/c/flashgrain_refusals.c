/* Each call with handles that are null, of a closed store, or of the parent process: the status, and the places of
 * results, which hold rubbish before. */
#define _POSIX_C_SOURCE 200809L
#include <flashgrain.h>
#include <sys/wait.h>
#include <unistd.h>
#include "check.h"

struct handles {
    fg_store *store;
    fg_tree *tree;
    fg_snapshot *snapshot;
    fg_transaction *transaction;
    fg_batch *batch;
    fg_iterator *iterator;
};

static fg_error *error;
static struct handles made;
static char *text;
static char **list;
static void *value;
static const void *key, *shown;
static size_t length, other_length;
static uint64_t removed;
static int32_t kind;
static bool found;

/* Rubbish in all places. */
static void soil(void) {
    memset(&made, 0xAA, sizeof made);
    memset(&text, 0xAA, sizeof text);
    memset(&list, 0xAA, sizeof list);
    memset(&value, 0xAA, sizeof value);
    memset(&key, 0xAA, sizeof key);
    memset(&shown, 0xAA, sizeof shown);
    length = other_length = 77;
    removed = 77;
    kind = 77;
    found = true;
}

/* A call that fails with this status and leaves its places, of which this is said, empty. */
#define REFUSED(expected, call, is_empty)                                                           \
    do {                                                                                            \
        fg_status status;                                                                           \
        soil();                                                                                     \
        status = (call);                                                                            \
        if (status != (expected)) {                                                                 \
            fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, fg_status_name(status), #call);   \
            exit(1);                                                                                \
        }                                                                                           \
        CHECK(fg_error_status(error) == (expected));                                                \
        fg_error_free(error);                                                                       \
        CHECK(is_empty);                                                                            \
    } while (0)

static void reads(const struct handles *of, fg_status expected) {
    char room[4];
    REFUSED(expected, fg_tree_get(of->tree, "a", 1, &value, &length, &error), value == NULL && length == 0);
    REFUSED(expected, fg_tree_get_into(of->tree, "a", 1, room, 4, &length, &found, &error), length == 0 && !found);
    REFUSED(expected, fg_tree_contains(of->tree, "a", 1, &found, &error), !found);
    REFUSED(expected, fg_tree_iterate(of->tree, NULL, 0, NULL, 0, &made.iterator, &error), made.iterator == NULL);
    REFUSED(expected, fg_tree_describe(of->tree, &kind, &length, &error), kind == 0 && length == 0);
    REFUSED(expected, fg_snapshot_get(of->snapshot, of->tree, "a", 1, &value, &length, &error),
            value == NULL && length == 0);
    REFUSED(expected, fg_snapshot_get_into(of->snapshot, of->tree, "a", 1, room, 4, &length, &found, &error),
            length == 0 && !found);
    REFUSED(expected, fg_snapshot_contains(of->snapshot, of->tree, "a", 1, &found, &error), !found);
    REFUSED(expected, fg_snapshot_iterate(of->snapshot, of->tree, NULL, 0, NULL, 0, &made.iterator, &error),
            made.iterator == NULL);
}

/* Those of a transaction and a batch. */
static void changes(const struct handles *of, fg_status expected) {
    char room[4];
    fg_transaction *transaction = of->transaction;
    REFUSED(expected, fg_transaction_get(transaction, of->tree, "a", 1, &value, &length, &error),
            value == NULL && length == 0);
    REFUSED(expected, fg_transaction_get_into(transaction, of->tree, "a", 1, room, 4, &length, &found, &error),
            length == 0 && !found);
    REFUSED(expected, fg_transaction_contains(transaction, of->tree, "a", 1, &found, &error), !found);
    REFUSED(expected, fg_transaction_iterate(transaction, of->tree, NULL, 0, NULL, 0, &made.iterator, &error),
            made.iterator == NULL);
    REFUSED(expected, fg_transaction_remove_range(transaction, of->tree, NULL, 0, NULL, 0, &removed, &error),
            removed == 0);
    REFUSED(expected, fg_transaction_put(transaction, of->tree, "a", 1, "1", 1, &error), true);
    REFUSED(expected, fg_transaction_remove(transaction, of->tree, "a", 1, &error), true);
    REFUSED(expected, fg_transaction_set_durability(transaction, FG_DURABILITY_NONE, &error), true);
    REFUSED(expected, fg_transaction_rollback(transaction, &error), true);
    REFUSED(expected, fg_transaction_commit(transaction, &error), true);
    REFUSED(expected, fg_batch_count(of->batch, &length, &error), length == 0);
    REFUSED(expected, fg_batch_put(of->batch, of->tree, "a", 1, "1", 1, &error), true);
    REFUSED(expected, fg_batch_remove(of->batch, of->tree, "a", 1, &error), true);
    REFUSED(expected, fg_batch_set_durability(of->batch, FG_DURABILITY_NONE, &error), true);
    REFUSED(expected, fg_batch_commit(of->batch, &error), true);
}

static void of_stores(const struct handles *of, const fg_options *copy, fg_status expected) {
    REFUSED(expected, fg_store_stats_json(of->store, &text, &error), text == NULL);
    REFUSED(expected, fg_store_tree_names(of->store, &list, &length, &error), list == NULL && length == 0);
    REFUSED(expected, fg_tree_open(of->store, "t", 0, 0, &made.tree, &error), made.tree == NULL);
    REFUSED(expected, fg_tree_open_existing(of->store, "t", &made.tree, &error), made.tree == NULL);
    REFUSED(expected, fg_snapshot_new(of->store, &made.snapshot, &error), made.snapshot == NULL);
    REFUSED(expected, fg_transaction_begin(of->store, &made.transaction, &error), made.transaction == NULL);
    REFUSED(expected, fg_batch_new(of->store, &made.batch, &error), made.batch == NULL);
    REFUSED(expected, fg_store_sync(of->store, &error), true);
    REFUSED(expected, fg_store_checkpoint(of->store, &error), true);
    REFUSED(expected, fg_store_check(of->store, &error), true);
    REFUSED(expected, fg_store_compact(of->store, &error), true);
    REFUSED(expected, fg_store_backup(of->store, copy, &error), true);
    REFUSED(expected, fg_store_drop_tree(of->store, "t", &error), true);
    REFUSED(expected, fg_store_rename_tree(of->store, "t", "u", &error), true);
    REFUSED(expected, fg_store_close(of->store, &error), true);
    REFUSED(expected, fg_tree_put(of->tree, "a", 1, "1", 1, &error), true);
    REFUSED(expected, fg_tree_remove(of->tree, "a", 1, &error), true);
    REFUSED(expected, fg_tree_remove_range(of->tree, NULL, 0, NULL, 0, &removed, &error), removed == 0);
    REFUSED(expected, fg_tree_clear_range(of->tree, NULL, 0, NULL, 0, &error), true);
}

static void walks(const struct handles *of, fg_status expected) {
    REFUSED(expected, fg_iterator_record(of->iterator, &key, &length, &shown, &other_length, &error),
            key == NULL && length == 0 && shown == NULL && other_length == 0);
    REFUSED(expected, fg_iterator_seek_first(of->iterator, &error), true);
    REFUSED(expected, fg_iterator_seek_last(of->iterator, &error), true);
    REFUSED(expected, fg_iterator_seek(of->iterator, "a", 1, &error), true);
    REFUSED(expected, fg_iterator_seek_back(of->iterator, "a", 1, &error), true);
    REFUSED(expected, fg_iterator_next(of->iterator, &error), true);
    REFUSED(expected, fg_iterator_prev(of->iterator, &error), true);
    CHECK(!fg_iterator_valid(of->iterator));
}

static void all(const struct handles *of, const fg_options *copy, fg_status expected) {
    reads(of, expected);
    changes(of, expected);
    of_stores(of, copy, expected);
    walks(of, expected);
}

/* Keys that cannot be, and places of which one is null: the others are empty. */
static void arguments(const struct handles *of) {
    const fg_status expected = FG_STATUS_ARGUMENT;
    char room[4];
    REFUSED(expected, fg_tree_get(of->tree, NULL, 1, &value, &length, &error), value == NULL && length == 0);
    REFUSED(expected, fg_tree_get(of->tree, "a", 1, &value, NULL, &error), value == NULL);
    REFUSED(expected, fg_tree_get_into(of->tree, "a", 1, NULL, 4, &length, &found, &error), length == 0 && !found);
    REFUSED(expected, fg_tree_contains(of->tree, NULL, 1, &found, &error), !found);
    REFUSED(expected, fg_tree_iterate(of->tree, NULL, 1, NULL, 0, &made.iterator, &error), made.iterator == NULL);
    REFUSED(expected, fg_tree_remove_range(of->tree, NULL, 1, NULL, 0, &removed, &error), removed == 0);
    REFUSED(expected, fg_snapshot_get_into(of->snapshot, of->tree, NULL, 1, room, 4, &length, &found, &error),
            length == 0 && !found);
    REFUSED(expected, fg_tree_describe(of->tree, &kind, NULL, &error), true);
    REFUSED(expected, fg_store_tree_names(of->store, &list, NULL, &error), list == NULL);
    REFUSED(expected, fg_store_open(NULL, &made.store, &error), made.store == NULL);
    REFUSED(expected, fg_store_create(NULL, &made.store, &error), made.store == NULL);
    REFUSED(expected, fg_store_open_or_create(NULL, &made.store, &error), made.store == NULL);
    REFUSED(expected, fg_store_open_read_only(NULL, &made.store, &error), made.store == NULL);
    REFUSED(expected, fg_store_in_memory(1, &made.store, &error), made.store == NULL);
    REFUSED(expected, fg_iterator_seek(of->iterator, NULL, 2, &error), !fg_iterator_valid(of->iterator));
    CHECK(fg_iterator_seek_first(of->iterator, NULL) == FG_STATUS_OK && fg_iterator_valid(of->iterator));
    REFUSED(expected, fg_iterator_seek_back(of->iterator, NULL, 2, &error), !fg_iterator_valid(of->iterator));
    CHECK(fg_iterator_seek_first(of->iterator, NULL) == FG_STATUS_OK && fg_iterator_valid(of->iterator));
}

int main(int argc, char **argv) {
    struct handles of, none, finished;
    char path[512];
    int status;
    fg_options *copy = fg_options_new();
    CHECK(argc == 2 && strlen(argv[1]) < 480);
    sprintf(path, "%s/copy", argv[1]);
    CHECK(fg_options_add_path(copy, path, NULL) == FG_STATUS_OK);
    memset(&none, 0, sizeof none);
    CHECK(fg_store_in_memory(8 << 20, &of.store, NULL) == FG_STATUS_OK);
    CHECK(fg_tree_open(of.store, "t", FG_TREE_KIND_B_TREE, 0, &of.tree, NULL) == FG_STATUS_OK);
    CHECK(fg_tree_put(of.tree, "a", 1, "1", 1, NULL) == FG_STATUS_OK);
    CHECK(fg_snapshot_new(of.store, &of.snapshot, NULL) == FG_STATUS_OK);
    CHECK(fg_transaction_begin(of.store, &of.transaction, NULL) == FG_STATUS_OK);
    CHECK(fg_batch_new(of.store, &of.batch, NULL) == FG_STATUS_OK);
    CHECK(fg_tree_iterate(of.tree, NULL, 0, NULL, 0, &of.iterator, NULL) == FG_STATUS_OK);
    CHECK(fg_iterator_seek_first(of.iterator, NULL) == FG_STATUS_OK);
    arguments(&of);
    all(&none, copy, FG_STATUS_ARGUMENT);
    finished = of;
    CHECK(fg_transaction_begin(of.store, &finished.transaction, NULL) == FG_STATUS_OK);
    CHECK(fg_batch_new(of.store, &finished.batch, NULL) == FG_STATUS_OK);
    CHECK(fg_transaction_commit(finished.transaction, NULL) == FG_STATUS_OK);
    CHECK(fg_batch_commit(finished.batch, NULL) == FG_STATUS_OK);
    changes(&finished, FG_STATUS_FINISHED);
    fg_transaction_free(finished.transaction);
    fg_batch_free(finished.batch);
    if (fork() == 0) {
        all(&of, copy, FG_STATUS_FORKED);
        _exit(0);
    }
    CHECK(wait(&status) > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0);
    CHECK(fg_iterator_valid(of.iterator));
    CHECK(fg_store_close(of.store, NULL) == FG_STATUS_OK);
    all(&of, copy, FG_STATUS_CLOSED);
    fg_iterator_free(of.iterator);
    fg_batch_free(of.batch);
    fg_transaction_free(of.transaction);
    fg_snapshot_free(of.snapshot);
    fg_tree_free(of.tree);
    fg_store_free(of.store);
    fg_options_free(copy);
    puts("PASS");
    return 0;
}
