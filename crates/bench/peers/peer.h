/* What a store written in C offers to the benchmarks: one table of functions per store, all with the same meaning. */
#ifndef FLASHGRAIN_BENCH_PEER_H
#define FLASHGRAIN_BENCH_PEER_H

#include <stddef.h>
#include <stdint.h>

/* What every function returns that can fail. */
enum {
    PEER_OK = 0,
    PEER_NOT_FOUND = 1,
    /* Another transaction was faster; this one is rolled back. */
    PEER_CONFLICT = 2,
    /* The text is in the error buffer. */
    PEER_BROKEN = 3,
};

enum { PEER_FULL = 0, PEER_BUFFERED = 1, PEER_NONE = 2 };

/* For the text of PEER_BROKEN, ended by a zero. */
#define PEER_ERROR_BYTES 512

struct peer_setup {
    const char *dir;
    uint64_t cache_bytes;
    int32_t durability;
    uint32_t clients_max;
    uint32_t cores;
    uint32_t tables;
    const char *const *table_names;
};

struct peer_bytes {
    const void *at;
    size_t length;
};

/* Called with each record; 0 ends the scan. */
typedef int (*peer_visit)(void *context, struct peer_bytes key, struct peer_bytes value);

/* `store` may be used by several threads at a time, a `session` by one. Bytes that a function gives out stay valid until the next call with the same session. */
struct peer {
    /* Opens the store in a directory, or makes it there. `settings`, of so many bytes, gets lines "name: value" of what was chosen. */
    int (*open)(const struct peer_setup *setup, void **store, char *settings, size_t settings_bytes, char *error);
    int (*settle)(void *store, char *error);
    int (*close)(void *store, char *error);
    int (*session_open)(void *store, void **session, char *error);
    void (*session_close)(void *session);
    int (*get)(void *session, uint32_t table, struct peer_bytes key, struct peer_bytes *value, char *error);
    /* Null if the store has none that is better than one after the other. Calls `visit` with the place of the key as its context's number. */
    int (*get_many)(void *session, uint32_t table, const struct peer_bytes *keys, size_t count,
                    void (*visit)(void *context, size_t place, struct peer_bytes value), void *context, char *error);
    int (*put)(void *session, uint32_t table, struct peer_bytes key, struct peer_bytes value, char *error);
    int (*remove)(void *session, uint32_t table, struct peer_bytes key, char *error);
    /* From the first key that is not below `from` upwards, or from the last that is not above it downwards. */
    int (*scan)(void *session, uint32_t table, struct peer_bytes from, int backward, peer_visit visit, void *context,
                char *error);
    int (*begin)(void *session, char *error);
    int (*commit)(void *session, char *error);
    void (*rollback)(void *session);
};

#endif
