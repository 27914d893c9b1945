/*
 * Flashgrain: an embedded, ordered, transactional key-value store. The guide is docs/c.md.
 *
 * Results. Functions that can fail return an fg_status, FG_STATUS_OK being 0, and take the place of an error as
 * their last argument. It may be null. Otherwise *error becomes null, or an error with a message that is to be
 * freed with fg_error_free. Results are written to the places before it, which need not be initialized: handles
 * and memory that are not there are null. A null pointer in any other place is FG_STATUS_ARGUMENT, unless the
 * function says otherwise.
 *
 * Ownership. Each handle is freed once, by the function whose name ends in _free, in any order. Using a handle
 * that was freed, or freeing it twice, is undefined. Use after fg_store_close is FG_STATUS_CLOSED. Memory that is
 * returned is freed with fg_free. Arguments are the program's: nothing of them is used after the function has
 * returned.
 *
 * Bytes are a pointer and a length; they may have null bytes. Names and paths are text that ends with one.
 *
 * Threads. Stores, trees and snapshots may be used by any number of threads at a time. Options, transactions,
 * batches and iterators may move between threads and are used by one at a time. None may be used in a child
 * process that was forked: open the store there.
 *
 * Errors of every function: FG_STATUS_ARGUMENT for null pointers, FG_STATUS_CLOSED, FG_STATUS_FORKED,
 * FG_STATUS_INTERNAL, and FG_STATUS_OUT_OF_MEMORY where memory is returned. Errors of reads: FG_STATUS_IO,
 * FG_STATUS_CORRUPT, FG_STATUS_POISONED, FG_STATUS_DROPPED, FG_STATUS_OTHER_STORE, FG_STATUS_OTHER_OPENING.
 */


#ifndef FLASHGRAIN_H
#define FLASHGRAIN_H

/* Made of crates/c/src by scripts/build-c-header.sh. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/**
 * How durable a commit is when it returns.
 */
enum fg_durability
#ifdef __cplusplus
  : int32_t
#endif // __cplusplus
 {
  /**
   * It survives a power cut.
   */
  FG_DURABILITY_SYNC = 0,
  /**
   * It is written but not flushed: it survives the end of the process, not a power cut.
   */
  FG_DURABILITY_BUFFERED = 1,
  /**
   * It is in memory only, until a later commit or the background writer takes it along.
   */
  FG_DURABILITY_NONE = 2,
};
#ifndef __cplusplus
typedef int32_t fg_durability;
#endif // __cplusplus

/**
 * How a call ended. The numbers are stable.
 */
enum fg_status
#ifdef __cplusplus
  : int32_t
#endif // __cplusplus
 {
  /**
   * It is done.
   */
  FG_STATUS_OK = 0,
  /**
   * An argument is null, out of its range, or too long.
   */
  FG_STATUS_ARGUMENT = 1,
  /**
   * There is no such store or tree. A key that is not there is no error.
   */
  FG_STATUS_NOT_FOUND = 2,
  /**
   * There is such a store or tree already.
   */
  FG_STATUS_EXISTS = 3,
  /**
   * The store is open already, in this process or another one.
   */
  FG_STATUS_LOCKED = 4,
  /**
   * The store was written in a format of another version.
   */
  FG_STATUS_VERSION = 5,
  /**
   * The tree belongs to another store.
   */
  FG_STATUS_OTHER_STORE = 6,
  /**
   * The tree's handle is of another opening of the store.
   */
  FG_STATUS_OTHER_OPENING = 7,
  /**
   * The tree was dropped or renamed.
   */
  FG_STATUS_DROPPED = 8,
  /**
   * Another commit has changed a key that the transaction writes: nothing was done, begin again.
   */
  FG_STATUS_CONFLICT = 9,
  /**
   * The device is full. Reads go on; removing records makes room.
   */
  FG_STATUS_FULL = 10,
  /**
   * The commit is made, but not durable yet.
   */
  FG_STATUS_NOT_DURABLE = 11,
  /**
   * Background work of the tree failed, so that it takes no writes. The next write tries again.
   */
  FG_STATUS_TREE_FAILED = 12,
  /**
   * An earlier write failed, so that the store takes no more writes. Open it again.
   */
  FG_STATUS_POISONED = 13,
  /**
   * The device returned other bytes than were written.
   */
  FG_STATUS_CORRUPT = 14,
  /**
   * The device refused a request.
   */
  FG_STATUS_IO = 15,
  /**
   * A merge operator is missing or failed.
   */
  FG_STATUS_OPERATOR = 16,
  /**
   * The store was opened to be read only.
   */
  FG_STATUS_READ_ONLY = 17,
  /**
   * The store is closed.
   */
  FG_STATUS_CLOSED = 18,
  /**
   * The store was opened by the process that this one was forked from.
   */
  FG_STATUS_FORKED = 19,
  /**
   * The transaction or batch has been committed already.
   */
  FG_STATUS_FINISHED = 20,
  /**
   * The C library has no memory for a result.
   */
  FG_STATUS_OUT_OF_MEMORY = 21,
  /**
   * A mistake in the library. The call may have had its effect or not; close the store.
   */
  FG_STATUS_INTERNAL = 22,
};
#ifndef __cplusplus
typedef int32_t fg_status;
#endif // __cplusplus

/**
 * The structure that a tree is kept in.
 */
enum fg_tree_kind
#ifdef __cplusplus
  : int32_t
#endif // __cplusplus
 {
  /**
   * A B+-tree, for reads.
   */
  FG_TREE_KIND_B_TREE = 0,
  /**
   * An LSM-tree: writes read nothing, and cost a small part of what they cost in a B+-tree that is larger
   * than memory.
   */
  FG_TREE_KIND_LSM = 1,
  /**
   * A Bε-tree: writes read nothing, and look-ups read about as much as in a B+-tree.
   */
  FG_TREE_KIND_BE_TREE = 2,
};
#ifndef __cplusplus
typedef int32_t fg_tree_kind;
#endif // __cplusplus

/**
 * Writes that are done as one. One thread at a time uses it.
 */
typedef struct fg_batch fg_batch;

/**
 * An error, with its status and its message. Free it with `fg_error_free`.
 */
typedef struct fg_error fg_error;

/**
 * A position in the records of a tree. One thread at a time uses it.
 */
typedef struct fg_iterator fg_iterator;

/**
 * The place of a store and its options. One thread at a time uses it; a store that was opened with it does
 * not need it any more, and it may open others.
 */
typedef struct fg_options fg_options;

/**
 * All trees as they were at one moment. Any number of threads may use it.
 */
typedef struct fg_snapshot fg_snapshot;

/**
 * A store that was opened. Any number of threads may use it.
 */
typedef struct fg_store fg_store;

/**
 * Reads and writes that are done as one. One thread at a time uses it.
 */
typedef struct fg_transaction fg_transaction;

/**
 * A tree of a store. Any number of threads may use it.
 */
typedef struct fg_tree fg_tree;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/**
 * A new batch of writes to any trees of the store. Free it with fg_batch_free, committed or not.
 *
 * Errors: FG_STATUS_CLOSED.
 */
fg_status fg_batch_new(const fg_store *store, fg_batch **batch, fg_error **error);

/**
 * Does all writes as one: all of them are there then, or after an error or a crash perhaps none. The batch
 * is finished, whatever is returned.
 *
 * Errors: FG_STATUS_FINISHED, and those of fg_tree_put.
 */
fg_status fg_batch_commit(fg_batch *batch,
                          fg_error **error);

/**
 * The number of keys that the batch writes.
 *
 * Errors: FG_STATUS_FINISHED.
 */
fg_status fg_batch_count(const fg_batch *batch, size_t *count, fg_error **error);

/**
 * Frees a batch; nothing at a null pointer.
 */
void fg_batch_free(fg_batch *batch);

/**
 * Gives a key this value; of several writes to a key the last one counts.
 *
 * Errors: FG_STATUS_ARGUMENT for a key or value that is too long, or an empty key, and if all writes
 * together are longer than a commit may be; FG_STATUS_OTHER_STORE, FG_STATUS_OTHER_OPENING,
 * FG_STATUS_DROPPED for the tree; FG_STATUS_FINISHED. The batch stays as it was.
 */
fg_status fg_batch_put(fg_batch *batch,
                       const fg_tree *tree,
                       const void *key,
                       size_t key_length,
                       const void *value,
                       size_t value_length,
                       fg_error **error);

/**
 * Removes a key, whether it is there or not.
 *
 * Errors: as fg_batch_put.
 */
fg_status fg_batch_remove(fg_batch *batch,
                          const fg_tree *tree,
                          const void *key,
                          size_t key_length,
                          fg_error **error);

/**
 * Sets how durable it is to be when its commit returns, an fg_durability.
 *
 * Errors: FG_STATUS_ARGUMENT for a number that is none, FG_STATUS_FINISHED.
 */
fg_status fg_batch_set_durability(fg_batch *batch, int32_t durability, fg_error **error);

/**
 * The message of an error, in English and with advice. It is the error's: it lives as long as that. Empty at
 * a null pointer.
 */
const char *fg_error_message(const fg_error *error);

/**
 * The status that the function returned with this error; FG_STATUS_OK at a null pointer.
 */
fg_status fg_error_status(const fg_error *error);

/**
 * Frees an error. A null pointer is none.
 */
void fg_error_free(fg_error *error);

/**
 * The name of a status, such as "conflict"; "unknown" for a number that is none. The text is the library's
 * own.
 */
const char *fg_status_name(int32_t status);

/**
 * Frees a value, text or list that a function returned; nothing at a null pointer. It is the C library's
 * `free`.
 */
void fg_free(void *memory);

/**
 * Frees an iterator; nothing at a null pointer.
 */
void fg_iterator_free(fg_iterator *iterator);

/**
 * Whether the iterator is on a record; not at a null pointer.
 */
bool fg_iterator_valid(const fg_iterator *iterator);

/**
 * Key and value of the record that the iterator is on. They are the iterator's, until it is moved or freed.
 *
 * Errors: FG_STATUS_NOT_FOUND if it is on none.
 */
fg_status fg_iterator_record(const fg_iterator *iterator,
                             const void **key,
                             size_t *key_length,
                             const void **value,
                             size_t *value_length,
                             fg_error **error);

/**
 * To the first record. It is on none afterwards if there is none within its bounds, and after an error.
 *
 * Errors: those of reads.
 */
fg_status fg_iterator_seek_first(fg_iterator *iterator,
                                 fg_error **error);

/**
 * To the last record. It is on none afterwards if there is none within its bounds, and after an error.
 *
 * Errors: those of reads.
 */
fg_status fg_iterator_seek_last(fg_iterator *iterator,
                                fg_error **error);

/**
 * To the first record whose key is not smaller than this one. It is on none afterwards if there is none
 * within its bounds, and after an error.
 *
 * Errors: those of reads.
 */
fg_status fg_iterator_seek(fg_iterator *iterator,
                           const void *key,
                           size_t key_length,
                           fg_error **error);

/**
 * To the last record whose key is not larger than this one. It is on none afterwards if there is none within
 * its bounds, and after an error.
 *
 * Errors: those of reads.
 */
fg_status fg_iterator_seek_back(fg_iterator *iterator,
                                const void *key,
                                size_t key_length,
                                fg_error **error);

/**
 * To the next record. On no record it stays there. It is on none afterwards if there is none within its
 * bounds, and after an error.
 *
 * Errors: those of reads.
 */
fg_status fg_iterator_next(fg_iterator *iterator,
                           fg_error **error);

/**
 * To the record before. On no record it stays there. It is on none afterwards if there is none within its
 * bounds, and after an error.
 *
 * Errors: those of reads.
 */
fg_status fg_iterator_prev(fg_iterator *iterator,
                           fg_error **error);

/**
 * New options, all with their defaults and without a place. Free them with fg_options_free.
 */
fg_options *fg_options_new(void);

/**
 * Frees options; nothing at a null pointer.
 */
void fg_options_free(fg_options *options);

/**
 * Adds the directory, or the raw block device, that the store is in. With several the store is striped over
 * them, in their order.
 */
fg_status fg_options_add_path(fg_options *options,
                              const char *path,
                              fg_error **error);

/**
 * Adds a directory or block device for the log, if it is to have one of its own.
 */
fg_status fg_options_add_log_path(fg_options *options, const char *path, fg_error **error);

/**
 * Sets the memory for pages and write buffers of all trees, a hard budget: 256 MiB unless set.
 */
fg_status fg_options_set_cache_bytes(fg_options *options, uint64_t bytes, fg_error **error);

/**
 * Sets the number of the store's own threads: one for each core unless set.
 */
fg_status fg_options_set_workers(fg_options *options, size_t workers, fg_error **error);

/**
 * Sets how durable commits are that do not say, an fg_durability: FG_DURABILITY_SYNC unless set.
 *
 * Errors: FG_STATUS_ARGUMENT for a number that is none.
 */
fg_status fg_options_set_durability(fg_options *options, int32_t durability, fg_error **error);

/**
 * Sets whether commits are written to the log, as they are unless set. Without it they become durable with
 * the next checkpoint, for which commits of FG_DURABILITY_SYNC and FG_DURABILITY_BUFFERED wait.
 */
fg_status fg_options_set_write_log(fg_options *options,
                                   bool written,
                                   fg_error **error);

/**
 * Sets the most log that is replayed after a crash: 128 MiB unless set. Less means more checkpoints.
 */
fg_status fg_options_set_recovery_log_bytes(fg_options *options,
                                            uint64_t bytes,
                                            fg_error **error);

/**
 * Sets the most that the store grows to in its directory: unless set, as long as the disk has room. A new
 * store is made as large at once.
 */
fg_status fg_options_set_size_bytes_max(fg_options *options,
                                        uint64_t bytes,
                                        fg_error **error);

/**
 * Takes a snapshot of all trees as they are now, which delays no writer. Free it with fg_snapshot_free:
 * until then the store keeps the records that it sees.
 *
 * Errors: FG_STATUS_CLOSED, FG_STATUS_POISONED.
 */
fg_status fg_snapshot_new(const fg_store *store,
                          fg_snapshot **snapshot,
                          fg_error **error);

/**
 * Frees a snapshot; nothing at a null pointer. Iterators that it made go on.
 */
void fg_snapshot_free(fg_snapshot *snapshot);

/**
 * Reads the value of a key as of the snapshot. `*value` is in memory of its own: free it with fg_free. It is
 * null if there is no such key, which is no error; the value of no bytes is not null.
 *
 * Errors: those of reads.
 */
fg_status fg_snapshot_get(const fg_snapshot *snapshot,
                          const fg_tree *tree,
                          const void *key,
                          size_t key_length,
                          void **value,
                          size_t *value_length,
                          fg_error **error);

/**
 * Reads the value of a key as of the snapshot into memory of the program, as much of it as `capacity` bytes
 * take. `*value_length` is the length of the whole value, and `*found` whether there is such a key.
 *
 * Errors: those of reads.
 */
fg_status fg_snapshot_get_into(const fg_snapshot *snapshot,
                               const fg_tree *tree,
                               const void *key,
                               size_t key_length,
                               void *buffer,
                               size_t capacity,
                               size_t *value_length,
                               bool *found,
                               fg_error **error);

/**
 * Whether there is such a key as of the snapshot; the value is not read.
 *
 * Errors: those of reads.
 */
fg_status fg_snapshot_contains(const fg_snapshot *snapshot,
                               const fg_tree *tree,
                               const void *key,
                               size_t key_length,
                               bool *found,
                               fg_error **error);

/**
 * An iterator over the records as of the snapshot from `lower`, with it, to `upper`, without it; a null
 * pointer is no bound. It is on no record until it is moved, has a snapshot of its own, and does not need
 * the other handles. Free it with fg_iterator_free.
 *
 * Errors: those of reads.
 */
fg_status fg_snapshot_iterate(const fg_snapshot *snapshot,
                              const fg_tree *tree,
                              const void *lower,
                              size_t lower_length,
                              const void *upper,
                              size_t upper_length,
                              fg_iterator **iterator,
                              fg_error **error);

/**
 * Opens the store that is there.
 *
 * Errors: FG_STATUS_NOT_FOUND, FG_STATUS_LOCKED, FG_STATUS_VERSION, FG_STATUS_CORRUPT, FG_STATUS_ARGUMENT
 * for options that cannot be, FG_STATUS_IO.
 */
fg_status fg_store_open(const fg_options *options,
                        fg_store **store,
                        fg_error **error);

/**
 * Makes a new store; its directory is made too, or is empty.
 *
 * Errors: FG_STATUS_EXISTS if something is there that would be lost, FG_STATUS_ARGUMENT, FG_STATUS_IO.
 */
fg_status fg_store_create(const fg_options *options,
                          fg_store **store,
                          fg_error **error);

/**
 * Opens the store, or makes one if there is none.
 *
 * Errors: those of fg_store_open and fg_store_create.
 */
fg_status fg_store_open_or_create(const fg_options *options, fg_store **store, fg_error **error);

/**
 * Opens the store that is there and changes nothing of it; several processes may do so at a time. Writes
 * then return FG_STATUS_READ_ONLY.
 *
 * Errors: those of fg_store_open.
 */
fg_status fg_store_open_read_only(const fg_options *options,
                                  fg_store **store,
                                  fg_error **error);

/**
 * Makes a store in memory, with a cache of `cache_bytes`; it is gone when it is closed. It reserves 64 GiB
 * of addresses, of which only those in use take memory. A limit of addresses (`ulimit -v`) and valgrind may
 * refuse them: use a store in a directory there.
 *
 * Errors: FG_STATUS_ARGUMENT if the cache is too small, FG_STATUS_IO if the addresses are refused.
 */
fg_status fg_store_in_memory(uint64_t cache_bytes, fg_store **store, fg_error **error);

/**
 * Closes a store: waits for calls that are under way, takes a last checkpoint, and marks the store as
 * closed. Calls with any handle of it then return FG_STATUS_CLOSED; all handles are still to be freed, and
 * the store's files stay locked until they are.
 *
 * Errors: FG_STATUS_CLOSED if it was closed before. FG_STATUS_POISONED, FG_STATUS_IO: it is closed, and
 * opens as after a crash.
 */
fg_status fg_store_close(const fg_store *store,
                         fg_error **error);

/**
 * Frees the handle of a store; nothing at a null pointer. A store that was not closed is closed with the
 * last of its handles, trees, snapshots, transactions, batches and iterators among them.
 */
void fg_store_free(fg_store *store);

/**
 * Makes everything that is committed durable, however it was committed.
 *
 * Errors: FG_STATUS_POISONED, FG_STATUS_IO.
 */
fg_status fg_store_sync(const fg_store *store, fg_error **error);

/**
 * Brings a checkpoint about and waits for it: the next opening then has no log to replay. Checkpoints also
 * come by themselves.
 *
 * Errors: FG_STATUS_POISONED, FG_STATUS_IO, FG_STATUS_FULL, FG_STATUS_READ_ONLY.
 */
fg_status fg_store_checkpoint(const fg_store *store,
                              fg_error **error);

/**
 * Reads and verifies all of the store: each page of each tree, the page table and the accounts of space.
 *
 * Errors: the first damage, as FG_STATUS_CORRUPT or FG_STATUS_IO.
 */
fg_status fg_store_check(const fg_store *store,
                         fg_error **error);

/**
 * Makes the store's files as short as its records allow, while others go on reading and writing.
 *
 * Errors: FG_STATUS_FULL if there is no room for a checkpoint, FG_STATUS_POISONED, FG_STATUS_READ_ONLY.
 */
fg_status fg_store_compact(const fg_store *store,
                           fg_error **error);

/**
 * Copies all trees, as they are at one moment, to a new store at the place of `target`, while others go on
 * reading and writing. The copy is complete, durable and closed when this returns.
 *
 * Errors: those of fg_store_create and of reads; after an error there is no copy.
 */
fg_status fg_store_backup(const fg_store *store,
                          const fg_options *target,
                          fg_error **error);

/**
 * Statistics of all parts of the store, as text in JSON. Free it with fg_free.
 *
 * Errors: FG_STATUS_CLOSED.
 */
fg_status fg_store_stats_json(const fg_store *store, char **json, fg_error **error);

/**
 * The names of all trees, in order: `*count` texts. The list and its texts are one piece of memory: free the
 * list with fg_free, and nothing else of it.
 *
 * Errors: FG_STATUS_CLOSED.
 */
fg_status fg_store_tree_names(const fg_store *store,
                              char ***names,
                              size_t *count,
                              fg_error **error);

/**
 * Removes a tree with all its records. Calls with handles of it then return FG_STATUS_DROPPED; iterators
 * that there are go on.
 *
 * Errors: FG_STATUS_NOT_FOUND, and those of fg_tree_put.
 */
fg_status fg_store_drop_tree(const fg_store *store,
                             const char *name,
                             fg_error **error);

/**
 * Gives a tree another name. Handles that were taken by the old name are refused as those of a dropped tree.
 *
 * Errors: FG_STATUS_NOT_FOUND, FG_STATUS_EXISTS, and those of fg_tree_put.
 */
fg_status fg_store_rename_tree(const fg_store *store,
                               const char *name,
                               const char *new_name,
                               fg_error **error);

/**
 * Begins a transaction: it reads all trees as they are now, and its own writes. Free it with
 * fg_transaction_free, committed or not.
 *
 * Errors: FG_STATUS_CLOSED, FG_STATUS_POISONED.
 */
fg_status fg_transaction_begin(const fg_store *store,
                               fg_transaction **transaction,
                               fg_error **error);

/**
 * Does all writes as one, if no other commit has changed one of their keys since the transaction began. The
 * transaction is finished then, whatever is returned.
 *
 * Errors: FG_STATUS_CONFLICT: nothing was done, begin again. FG_STATUS_FINISHED, and those of fg_tree_put.
 */
fg_status fg_transaction_commit(fg_transaction *transaction,
                                fg_error **error);

/**
 * Forgets all writes so far; the transaction goes on with the state that it reads.
 *
 * Errors: FG_STATUS_FINISHED.
 */
fg_status fg_transaction_rollback(fg_transaction *transaction, fg_error **error);

/**
 * Frees a transaction; nothing at a null pointer. One that was not committed never was.
 */
void fg_transaction_free(fg_transaction *transaction);

/**
 * Gives a key this value.
 *
 * Errors: FG_STATUS_ARGUMENT for a key or value that is too long, or an empty key, and if all writes
 * together are longer than a commit may be; FG_STATUS_OTHER_STORE, FG_STATUS_OTHER_OPENING,
 * FG_STATUS_DROPPED for the tree; FG_STATUS_FINISHED. The transaction stays as it was.
 */
fg_status fg_transaction_put(fg_transaction *transaction,
                             const fg_tree *tree,
                             const void *key,
                             size_t key_length,
                             const void *value,
                             size_t value_length,
                             fg_error **error);

/**
 * Removes a key, whether it is there or not.
 *
 * Errors: as fg_transaction_put.
 */
fg_status fg_transaction_remove(fg_transaction *transaction,
                                const fg_tree *tree,
                                const void *key,
                                size_t key_length,
                                fg_error **error);

/**
 * Sets how durable it is to be when its commit returns, an fg_durability.
 *
 * Errors: FG_STATUS_ARGUMENT for a number that is none, FG_STATUS_FINISHED.
 */
fg_status fg_transaction_set_durability(fg_transaction *transaction,
                                        int32_t durability,
                                        fg_error **error);

/**
 * Removes the records that the transaction sees from `lower`, with it, to `upper`, without it; a null
 * pointer is no bound. `*removed` is how many they were.
 *
 * Errors: as fg_transaction_put.
 */
fg_status fg_transaction_remove_range(fg_transaction *transaction,
                                      const fg_tree *tree,
                                      const void *lower,
                                      size_t lower_length,
                                      const void *upper,
                                      size_t upper_length,
                                      uint64_t *removed,
                                      fg_error **error);

/**
 * Reads the value of a key as the transaction sees it, with its own writes. `*value` is in memory of its
 * own: free it with fg_free. It is null if there is no such key, which is no error; the value of no bytes is
 * not null.
 *
 * Errors: those of reads; FG_STATUS_FINISHED.
 */
fg_status fg_transaction_get(const fg_transaction *transaction,
                             const fg_tree *tree,
                             const void *key,
                             size_t key_length,
                             void **value,
                             size_t *value_length,
                             fg_error **error);

/**
 * Reads the value of a key as the transaction sees it, with its own writes into memory of the program, as
 * much of it as `capacity` bytes take. `*value_length` is the length of the whole value, and `*found`
 * whether there is such a key.
 *
 * Errors: those of reads; FG_STATUS_FINISHED.
 */
fg_status fg_transaction_get_into(const fg_transaction *transaction,
                                  const fg_tree *tree,
                                  const void *key,
                                  size_t key_length,
                                  void *buffer,
                                  size_t capacity,
                                  size_t *value_length,
                                  bool *found,
                                  fg_error **error);

/**
 * Whether there is such a key as the transaction sees it, with its own writes; the value is not read.
 *
 * Errors: those of reads; FG_STATUS_FINISHED.
 */
fg_status fg_transaction_contains(const fg_transaction *transaction,
                                  const fg_tree *tree,
                                  const void *key,
                                  size_t key_length,
                                  bool *found,
                                  fg_error **error);

/**
 * An iterator over the records as the transaction sees it, with its own writes from `lower`, with it, to
 * `upper`, without it; a null pointer is no bound. It is on no record until it is moved, has a snapshot of
 * its own, and does not need the other handles. Free it with fg_iterator_free.
 *
 * Errors: those of reads; FG_STATUS_FINISHED.
 */
fg_status fg_transaction_iterate(const fg_transaction *transaction,
                                 const fg_tree *tree,
                                 const void *lower,
                                 size_t lower_length,
                                 const void *upper,
                                 size_t upper_length,
                                 fg_iterator **iterator,
                                 fg_error **error);

/**
 * The tree of this name, of 1 to 256 bytes in UTF-8. If there is none it is made: of `kind`, an
 * fg_tree_kind, with nodes of `node_bytes`, a power of two from 4096 to 65536, or zero for the store's own
 * size. A tree that there is stays as it is. Free the handle with fg_tree_free.
 *
 * Errors: FG_STATUS_ARGUMENT for a name, a kind or a size that cannot be, and those of fg_tree_put.
 */
fg_status fg_tree_open(const fg_store *store,
                       const char *name,
                       int32_t kind,
                       uint32_t node_bytes,
                       fg_tree **tree,
                       fg_error **error);

/**
 * The tree of this name, which there must be. Free the handle with fg_tree_free.
 *
 * Errors: FG_STATUS_NOT_FOUND.
 */
fg_status fg_tree_open_existing(const fg_store *store,
                                const char *name,
                                fg_tree **tree,
                                fg_error **error);

/**
 * Frees the handle of a tree; nothing at a null pointer. The tree stays.
 */
void fg_tree_free(fg_tree *tree);

/**
 * The kind of the tree, an fg_tree_kind, and the length of its longest keys.
 */
fg_status fg_tree_describe(const fg_tree *tree,
                           int32_t *kind,
                           size_t *key_bytes_max,
                           fg_error **error);

/**
 * Gives a key this value, as a commit of its own with the store's durability.
 *
 * Errors: FG_STATUS_ARGUMENT for a key or value that is too long, or an empty key; FG_STATUS_DROPPED,
 * FG_STATUS_FULL, FG_STATUS_TREE_FAILED, FG_STATUS_POISONED, FG_STATUS_IO, FG_STATUS_READ_ONLY.
 */
fg_status fg_tree_put(const fg_tree *tree,
                      const void *key,
                      size_t key_length,
                      const void *value,
                      size_t value_length,
                      fg_error **error);

/**
 * Removes a key, whether it is there or not.
 *
 * Errors: those of fg_tree_put.
 */
fg_status fg_tree_remove(const fg_tree *tree, const void *key, size_t key_length, fg_error **error);

/**
 * Removes the records from `lower`, with it, to `upper`, without it; a null pointer is no bound. `*removed`
 * is how many they were. They are removed in steps, in the order of keys: after an error or a crash those
 * before some key are gone.
 *
 * Errors: those of fg_tree_put.
 */
fg_status fg_tree_remove_range(const fg_tree *tree,
                               const void *lower,
                               size_t lower_length,
                               const void *upper,
                               size_t upper_length,
                               uint64_t *removed,
                               fg_error **error);

/**
 * Removes the records of a range, as fg_tree_remove_range does, without counting them. An LSM-tree notes the
 * range alone, and all of it is gone or none.
 *
 * Errors: those of fg_tree_put.
 */
fg_status fg_tree_clear_range(const fg_tree *tree,
                              const void *lower,
                              size_t lower_length,
                              const void *upper,
                              size_t upper_length,
                              fg_error **error);

/**
 * Reads the value of a key. `*value` is in memory of its own: free it with fg_free. It is null if there is
 * no such key, which is no error; the value of no bytes is not null.
 *
 * Errors: those of reads.
 */
fg_status fg_tree_get(const fg_tree *tree,
                      const void *key,
                      size_t key_length,
                      void **value,
                      size_t *value_length,
                      fg_error **error);

/**
 * Reads the value of a key into memory of the program, as much of it as `capacity` bytes take.
 * `*value_length` is the length of the whole value, and `*found` whether there is such a key.
 *
 * Errors: those of reads.
 */
fg_status fg_tree_get_into(const fg_tree *tree,
                           const void *key,
                           size_t key_length,
                           void *buffer,
                           size_t capacity,
                           size_t *value_length,
                           bool *found,
                           fg_error **error);

/**
 * Whether there is such a key; the value is not read.
 *
 * Errors: those of reads.
 */
fg_status fg_tree_contains(const fg_tree *tree,
                           const void *key,
                           size_t key_length,
                           bool *found,
                           fg_error **error);

/**
 * An iterator over the records from `lower`, with it, to `upper`, without it; a null pointer is no bound. It
 * is on no record until it is moved, has a snapshot of its own, and does not need the other handles. Free it
 * with fg_iterator_free.
 *
 * Errors: those of reads.
 */
fg_status fg_tree_iterate(const fg_tree *tree,
                          const void *lower,
                          size_t lower_length,
                          const void *upper,
                          size_t upper_length,
                          fg_iterator **iterator,
                          fg_error **error);

/**
 * The version of the library, such as "0.1.0". The text is the library's own: do not free it.
 */
const char *fg_version(void);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* FLASHGRAIN_H */
