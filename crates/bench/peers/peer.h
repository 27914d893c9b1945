/* What a store written in C offers to the benchmarks: one table of functions per store, all with the same meaning. */
#ifndef FLASHGRAIN_BENCH_PEER_H
#define FLASHGRAIN_BENCH_PEER_H

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* What every function returns that can fail. */
enum {
    PEER_OK = 0,
    PEER_NOT_FOUND = 1,
    /* Another transaction was faster; this one is rolled back. Only within a transaction: single operations try again by themselves. */
    PEER_CONFLICT = 2,
    /* The text is in the error buffer. A transaction that is under way stays so. */
    PEER_BROKEN = 3,
};

enum { PEER_FULL = 0, PEER_BUFFERED = 1, PEER_NONE = 2 };

/* For the text of PEER_BROKEN, ended by a zero. */
#define PEER_ERROR_BYTES 512

struct peer_setup {
    /* Exists. */
    const char *dir;
    uint64_t cache_bytes;
    int32_t durability;
    uint32_t clients_max;
    uint32_t cores;
    uint32_t tables;
    const char *const *table_names;
    /* Instead of what the peer chooses for the store and for each new table, in the engine's notation; null: it chooses. */
    const char *settings;
    const char *table_settings;
    /* Of leaves of tables that are made; 0: the peer chooses. */
    uint32_t page_bytes;
};

/* Keys have at least one byte. */
struct peer_bytes {
    const void *at;
    size_t length;
};

/* Called with a value that was found, and the place of its key. The bytes are valid during the call. */
typedef void (*peer_found)(void *context, size_t place, struct peer_bytes value);

/* Called with each record; 0 ends the scan. The bytes are valid during the call. */
typedef int (*peer_visit)(void *context, struct peer_bytes key, struct peer_bytes value);

/* Work of the client of this number. */
typedef void (*peer_job)(void *context, size_t client);

/* A `store` may be used by several threads at a time, a `session` by the thread that opened it. Callbacks use neither. */
struct peer {
    /* Of the library. */
    const char *(*version)(void);
    /* Opens the store in a directory, or makes it there. `settings`, of so many bytes, gets lines "name: value" of what was chosen. */
    int (*open)(const struct peer_setup *setup, void **store, char *settings, size_t settings_bytes, char *error);
    /* Waits until what was written is where it would be after a long rest. No session is used meanwhile. */
    int (*settle)(void *store, char *error);
    /* All sessions are closed before. The store is gone even if this fails. */
    int (*close)(void *store, char *error);
    int (*session_open)(void *store, void **session, char *error);
    /* Rolls back what is under way. */
    void (*session_close)(void *session);
    /* Calls `found` with place 0, or returns PEER_NOT_FOUND. */
    int (*get)(void *session, uint32_t table, struct peer_bytes key, peer_found found, void *context, char *error);
    /* Null if the store has none that is better than one after the other. */
    int (*get_many)(void *session, uint32_t table, const struct peer_bytes *keys, size_t count, peer_found found,
                    void *context, char *error);
    int (*put)(void *session, uint32_t table, struct peer_bytes key, struct peer_bytes value, char *error);
    /* PEER_OK as well if there is no such record. */
    int (*remove)(void *session, uint32_t table, struct peer_bytes key, char *error);
    /* From the first key that is not below `from` upwards, or from the last that is not above it downwards. */
    int (*scan)(void *session, uint32_t table, struct peer_bytes from, int backward, peer_visit visit, void *context,
                char *error);
    /* `reading`: nothing will be written. */
    int (*begin)(void *session, int reading, char *error);
    /* The transaction has ended, whatever this returns. */
    int (*commit)(void *session, char *error);
    void (*rollback)(void *session);
    /* Runs the jobs of `clients` clients, each in a task of the store, until all have ended. Null: clients are threads. */
    void (*run)(void *store, size_t clients, peer_job job, void *context);
    /* Within a job: lets other tasks run. Null if `run` is null. */
    void (*yield)(void);
};

/* Puts a text into the error buffer. */
__attribute__((format(printf, 2, 3))) static inline int peer_broken(char *error, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(error, PEER_ERROR_BYTES, format, arguments);
    va_end(arguments);
    return PEER_BROKEN;
}

/* Adds a line to the settings. */
__attribute__((format(printf, 3, 4))) static inline void peer_say(char *settings, size_t bytes, const char *format, ...) {
    size_t used = strlen(settings);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(settings + used, bytes - used, format, arguments);
    va_end(arguments);
    used = strlen(settings);
    if (used + 1 < bytes) {
        settings[used] = '\n';
        settings[used + 1] = 0;
    }
}

static inline uint64_t peer_clamp(uint64_t value, uint64_t least, uint64_t most) {
    return value < least ? least : value > most ? most : value;
}

/* memcmp with the shorter first. */
static inline int peer_compare(struct peer_bytes left, struct peer_bytes right) {
    size_t common = left.length < right.length ? left.length : right.length;
    int order = common ? memcmp(left.at, right.at, common) : 0;
    return order ? order : (left.length > right.length) - (left.length < right.length);
}

#endif
