/*
 * LevelDB's C API, as its version 1.23 has it, on Flashgrain. Programs that include "leveldb/c.h" are compiled with
 * this header instead of LevelDB's, and linked with libflashgrain_c. docs/c.md says how a database is kept, which
 * options have no effect, and which calls are refused.
 *
 * Conventions. Objects are opaque, and freed by the function that is named for it. Bytes are a pointer and a length.
 * Texts and values that are returned are freed with leveldb_free, which is free. A function that can fail takes the
 * place of a text, which is null or has the text of an earlier error: after an error it has a new text, and the old
 * one was freed; otherwise it stays. Numbers of the type uint8_t stand for false, 0, and true.
 */

#ifndef FLASHGRAIN_LEVELDB_C_H
#define FLASHGRAIN_LEVELDB_C_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct leveldb_t leveldb_t;
typedef struct leveldb_cache_t leveldb_cache_t;
typedef struct leveldb_comparator_t leveldb_comparator_t;
typedef struct leveldb_env_t leveldb_env_t;
typedef struct leveldb_filelock_t leveldb_filelock_t;
typedef struct leveldb_filterpolicy_t leveldb_filterpolicy_t;
typedef struct leveldb_iterator_t leveldb_iterator_t;
typedef struct leveldb_logger_t leveldb_logger_t;
typedef struct leveldb_options_t leveldb_options_t;
typedef struct leveldb_randomfile_t leveldb_randomfile_t;
typedef struct leveldb_readoptions_t leveldb_readoptions_t;
typedef struct leveldb_seqfile_t leveldb_seqfile_t;
typedef struct leveldb_snapshot_t leveldb_snapshot_t;
typedef struct leveldb_writablefile_t leveldb_writablefile_t;
typedef struct leveldb_writebatch_t leveldb_writebatch_t;
typedef struct leveldb_writeoptions_t leveldb_writeoptions_t;

/* Databases. */

leveldb_t *leveldb_open(const leveldb_options_t *options, const char *name, char **errptr);
void leveldb_close(leveldb_t *db);
void leveldb_destroy_db(const leveldb_options_t *options, const char *name, char **errptr);
/* Replays the log and verifies each page; it saves nothing from damage. */
void leveldb_repair_db(const leveldb_options_t *options, const char *name, char **errptr);

/* Reads and writes. */

void leveldb_put(leveldb_t *db, const leveldb_writeoptions_t *options, const char *key, size_t keylen,
                 const char *val, size_t vallen, char **errptr);
void leveldb_delete(leveldb_t *db, const leveldb_writeoptions_t *options, const char *key, size_t keylen,
                    char **errptr);
void leveldb_write(leveldb_t *db, const leveldb_writeoptions_t *options, leveldb_writebatch_t *batch,
                   char **errptr);
/* Null if there is no such key. */
char *leveldb_get(leveldb_t *db, const leveldb_readoptions_t *options, const char *key, size_t keylen,
                  size_t *vallen, char **errptr);
const leveldb_snapshot_t *leveldb_create_snapshot(leveldb_t *db);
void leveldb_release_snapshot(leveldb_t *db, const leveldb_snapshot_t *snapshot);

/* Properties, and compaction. */

/* Null if there is no such property. There are leveldb.stats, leveldb.num-files-at-level<N> and
   leveldb.approximate-memory-usage. */
char *leveldb_property_value(leveldb_t *db, const char *propname);
/* Reads the records of the ranges. */
void leveldb_approximate_sizes(leveldb_t *db, int num_ranges, const char *const *range_start_key,
                               const size_t *range_start_key_len, const char *const *range_limit_key,
                               const size_t *range_limit_key_len, uint64_t *sizes);
void leveldb_compact_range(leveldb_t *db, const char *start_key, size_t start_key_len, const char *limit_key,
                           size_t limit_key_len);

/* Iterators: on no record until they are moved. */

leveldb_iterator_t *leveldb_create_iterator(leveldb_t *db, const leveldb_readoptions_t *options);
void leveldb_iter_destroy(leveldb_iterator_t *);
uint8_t leveldb_iter_valid(const leveldb_iterator_t *);
void leveldb_iter_seek_to_first(leveldb_iterator_t *);
void leveldb_iter_seek_to_last(leveldb_iterator_t *);
void leveldb_iter_seek(leveldb_iterator_t *, const char *k, size_t klen);
void leveldb_iter_next(leveldb_iterator_t *);
void leveldb_iter_prev(leveldb_iterator_t *);
/* The iterator's, until it is moved. */
const char *leveldb_iter_key(const leveldb_iterator_t *, size_t *klen);
const char *leveldb_iter_value(const leveldb_iterator_t *, size_t *vlen);
void leveldb_iter_get_error(const leveldb_iterator_t *, char **errptr);

/* Batches: one thread at a time uses one. */

leveldb_writebatch_t *leveldb_writebatch_create(void);
void leveldb_writebatch_destroy(leveldb_writebatch_t *);
void leveldb_writebatch_clear(leveldb_writebatch_t *);
void leveldb_writebatch_put(leveldb_writebatch_t *, const char *key, size_t klen, const char *val, size_t vlen);
void leveldb_writebatch_delete(leveldb_writebatch_t *, const char *key, size_t klen);
void leveldb_writebatch_iterate(const leveldb_writebatch_t *, void *state,
                                void (*put)(void *, const char *k, size_t klen, const char *v, size_t vlen),
                                void (*deleted)(void *, const char *k, size_t klen));
void leveldb_writebatch_append(leveldb_writebatch_t *destination, const leveldb_writebatch_t *source);

/* Options of a database. */

leveldb_options_t *leveldb_options_create(void);
void leveldb_options_destroy(leveldb_options_t *);
void leveldb_options_set_comparator(leveldb_options_t *, leveldb_comparator_t *);
void leveldb_options_set_filter_policy(leveldb_options_t *, leveldb_filterpolicy_t *);
void leveldb_options_set_create_if_missing(leveldb_options_t *, uint8_t);
void leveldb_options_set_error_if_exists(leveldb_options_t *, uint8_t);
void leveldb_options_set_paranoid_checks(leveldb_options_t *, uint8_t);
void leveldb_options_set_env(leveldb_options_t *, leveldb_env_t *);
void leveldb_options_set_info_log(leveldb_options_t *, leveldb_logger_t *);
void leveldb_options_set_write_buffer_size(leveldb_options_t *, size_t);
void leveldb_options_set_max_open_files(leveldb_options_t *, int);
void leveldb_options_set_cache(leveldb_options_t *, leveldb_cache_t *);
void leveldb_options_set_block_size(leveldb_options_t *, size_t);
void leveldb_options_set_block_restart_interval(leveldb_options_t *, int);
void leveldb_options_set_max_file_size(leveldb_options_t *, size_t);

enum { leveldb_no_compression = 0, leveldb_snappy_compression = 1 };
void leveldb_options_set_compression(leveldb_options_t *, int);

/* Comparators: one that does not order by bytes is refused by the first call that meets a difference. */

leveldb_comparator_t *leveldb_comparator_create(void *state, void (*destructor)(void *),
                                                int (*compare)(void *, const char *a, size_t alen, const char *b,
                                                               size_t blen),
                                                const char *(*name)(void *));
void leveldb_comparator_destroy(leveldb_comparator_t *);

/* Filter policies: those of the program are never called. */

leveldb_filterpolicy_t *leveldb_filterpolicy_create(
    void *state, void (*destructor)(void *),
    char *(*create_filter)(void *, const char *const *key_array, const size_t *key_length_array, int num_keys,
                           size_t *filter_length),
    uint8_t (*key_may_match)(void *, const char *key, size_t length, const char *filter, size_t filter_length),
    const char *(*name)(void *));
void leveldb_filterpolicy_destroy(leveldb_filterpolicy_t *);
leveldb_filterpolicy_t *leveldb_filterpolicy_create_bloom(int bits_per_key);

/* Options of reads and writes. */

leveldb_readoptions_t *leveldb_readoptions_create(void);
void leveldb_readoptions_destroy(leveldb_readoptions_t *);
void leveldb_readoptions_set_verify_checksums(leveldb_readoptions_t *, uint8_t);
void leveldb_readoptions_set_fill_cache(leveldb_readoptions_t *, uint8_t);
void leveldb_readoptions_set_snapshot(leveldb_readoptions_t *, const leveldb_snapshot_t *);
leveldb_writeoptions_t *leveldb_writeoptions_create(void);
void leveldb_writeoptions_destroy(leveldb_writeoptions_t *);
void leveldb_writeoptions_set_sync(leveldb_writeoptions_t *, uint8_t);

/* Caches and the environment. */

leveldb_cache_t *leveldb_cache_create_lru(size_t capacity);
void leveldb_cache_destroy(leveldb_cache_t *cache);
leveldb_env_t *leveldb_create_default_env(void);
void leveldb_env_destroy(leveldb_env_t *);
char *leveldb_env_get_test_directory(leveldb_env_t *);

/* Memory, and the version of the API: 1.23. */

void leveldb_free(void *ptr);
int leveldb_major_version(void);
int leveldb_minor_version(void);

#ifdef __cplusplus
}
#endif

#endif /* FLASHGRAIN_LEVELDB_C_H */
