/* LeanStore, branch `io` of its public sources (Haas, Leis: What Modern NVMe Storage Can Do, And How To Exploit It): B-trees with
   a buffer pool, whose clients are tasks of its workers. That branch has no transactions and no recovery, and its log has no
   writer: a store ends with the process that opened it, which can open one. */
#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <iostream>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <unistd.h>

#include "Units.hpp"
#include "leanstore/Config.hpp"
#include "leanstore/LeanStore.hpp"
#include "leanstore/concurrency/Mean.hpp"
#include "leanstore/io/IoInterface.hpp"

extern "C" {
#include "peer.h"
}

namespace {

using leanstore::storage::btree::BTreeLL;
using leanstore::storage::btree::OP_RESULT;

/* Page writes of a worker at a time: 32 in the examples of LeanStore's README. */
constexpr unsigned WRITES_MAX = 32;

/* 4096 buffer partitions, as in those examples; 64 would be the default. */
constexpr unsigned PARTITION_BITS = 12;

/* Page frames that each worker keeps free at least. A worker that splits a node and finds no free frame polls for one and evicts
   none meanwhile: with LeanStore's one percent of a small pool, no insert ends. */
constexpr uint64_t FREE_FRAMES_MIN = 64;

/* Page frames per worker of the smallest buffer pool: with 400, filling did not end. */
constexpr uint64_t FRAMES_MIN = 1024;

/* Jobs for tasks of the store. */
struct work {
    size_t clients;
    peer_job job;
    void *context;
};

struct store {
    std::vector<std::string> names;
    std::vector<BTreeLL *> trees;
    unsigned workers;
    std::mutex lock;
    std::condition_variable changed;
    bool open = false;
    std::atomic<const work *> asked{nullptr};
    std::atomic<bool> closing{false};
    bool ended = false;
};

struct session {
    struct store *store;
    std::vector<uint8_t> value;
};

/* The first task. Only tasks can start tasks, so it waits for work until the store is closed. */
void serve(struct store *store) {
    using namespace leanstore;
    /* Never freed: tasks that LeanStore does not end may still point to it. */
    auto *db = new LeanStore();
    for (const auto &name : store->names)
        store->trees.push_back(&db->registerBTreeLL(name, name.substr(0, 1)));
    {
        std::lock_guard<std::mutex> guard(store->lock);
        store->open = true;
    }
    store->changed.notify_all();
    while (!store->closing) {
        const work *work = store->asked;
        if (!work) {
            mean::task::yield();
            continue;
        }
        auto one = [work](mean::BlockedRange clients, std::atomic<bool> &) {
            for (u64 client = clients.begin; client < clients.end; client++)
                work->job(work->context, client);
        };
        /* One client per task; some tasks find none left. */
        size_t tasks = (work->clients + store->workers - 1) / store->workers;
        mean::task::parallelFor(mean::BlockedRange(0, (u64)work->clients), one, (int)tasks, 1);
        {
            std::lock_guard<std::mutex> guard(store->lock);
            store->asked = nullptr;
        }
        store->changed.notify_all();
    }
    mean::env::shutdown();
    {
        std::lock_guard<std::mutex> guard(store->lock);
        store->ended = true;
    }
    store->changed.notify_all();
}

const char *version() { return "io"; }

int store_open(const struct peer_setup *setup, void **out, char *settings, size_t settings_bytes, char *error) {
    if (setup->durability != PEER_NONE)
        return peer_broken(error, "LeanStore: its branch io has no durable commits, only --durability none");
    uint64_t frames = setup->cache_bytes / sizeof(leanstore::storage::BufferFrame);
    uint64_t frames_min = FRAMES_MIN * setup->cores;
    if (frames < frames_min)
        return peer_broken(error, "LeanStore: a cache of %llu bytes is too small for its workers; give --cache %llu or more",
                           (unsigned long long)setup->cache_bytes,
                           (unsigned long long)(frames_min * sizeof(leanstore::storage::BufferFrame)));
    static std::atomic<bool> taken{false};
    if (taken.exchange(true))
        return peer_broken(error, "LeanStore: a process can open one store, once");
    auto *store = new struct store;
    store->workers = setup->cores;
    for (uint32_t table = 0; table < setup->tables; table++)
        store->names.push_back(setup->table_names[table]);
    std::string path = std::string(setup->dir) + "/leanstore";
    int file = open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC, 0600);
    if (file < 0)
        return peer_broken(error, "LeanStore: cannot make %s", path.c_str());
    close(file);
    /* It reports on standard output, where results of benchmarks go. */
    std::cout.setstate(std::ios::badbit);
    unsigned tasks = (setup->clients_max + store->workers - 1) / store->workers + 1;
    FLAGS_dram_gib = (double)setup->cache_bytes / (1024.0 * 1024.0 * 1024.0);
    FLAGS_ssd_path = path;
    FLAGS_worker_threads = store->workers;
    FLAGS_pp_threads = store->workers;
    FLAGS_partition_bits = PARTITION_BITS;
    FLAGS_worker_tasks = tasks;
    FLAGS_free_pct = std::max<uint64_t>(1, (100 * FREE_FRAMES_MIN * store->workers + frames - 1) / frames);
    FLAGS_async_batch_size = WRITES_MAX;
    /* Workers evict pages themselves, as in the paper. */
    FLAGS_nopp = true;
    FLAGS_optimistic_parent_pointer = true;
    FLAGS_xmerge = true;
    FLAGS_contention_split = true;
    FLAGS_wal = false;
    mean::IoOptions io("io_uring", path);
    io.write_back_buffer_size = PAGE_SIZE;
    io.iodepth = (int)(WRITES_MAX + tasks) * 2;
    io.channelCount = (int)store->workers;
    mean::env::init((int)store->workers, 0, io);
    mean::env::start([store] { serve(store); });
    std::unique_lock<std::mutex> guard(store->lock);
    store->changed.wait(guard, [&] { return store->open; });
    peer_say(settings, settings_bytes, "clients: tasks");
    peer_say(settings, settings_bytes, "workers: %u", store->workers);
    peer_say(settings, settings_bytes, "memory: %llu bytes, O_DIRECT", (unsigned long long)setup->cache_bytes);
    peer_say(settings, settings_bytes, "pages: %u bytes", (unsigned)PAGE_SIZE);
    peer_say(settings, settings_bytes, "I/O: %s", io.engine.c_str());
    peer_say(settings, settings_bytes, "commits: no log");
    peer_say(settings, settings_bytes, "isolation: single operations only, no rollback");
    *out = store;
    return PEER_OK;
}

void run(void *at, size_t clients, peer_job job, void *context) {
    auto *store = static_cast<struct store *>(at);
    struct work work = {clients, job, context};
    std::unique_lock<std::mutex> guard(store->lock);
    store->asked = &work;
    store->changed.wait(guard, [&] { return store->asked == nullptr; });
}

void yield() { mean::task::yield(); }

/* Nothing is deferred except writes of dirty pages, which wait until memory is needed. */
int settle(void *, char *) { return PEER_OK; }

int store_close(void *at, char *) {
    auto *store = static_cast<struct store *>(at);
    store->closing = true;
    {
        std::unique_lock<std::mutex> guard(store->lock);
        store->changed.wait(guard, [&] { return store->ended; });
    }
    mean::env::join();
    return PEER_OK;
}

int session_open(void *at, void **out, char *) {
    *out = new session{static_cast<struct store *>(at), {}};
    return PEER_OK;
}

void session_close(void *at) { delete static_cast<struct session *>(at); }

u8 *bytes_of(struct peer_bytes bytes) { return static_cast<u8 *>(const_cast<void *>(bytes.at)); }

/* Other tasks of the worker run after each operation. */
int done(int outcome) {
    mean::task::yield();
    return outcome;
}

int get(void *at, uint32_t table, struct peer_bytes key, peer_found found, void *context, char *error) {
    auto *session = static_cast<struct session *>(at);
    auto &value = session->value;
    /* An optimistic read: it is repeated if another worker was changing these bytes meanwhile. */
    auto keep = [&](const u8 *from, u16 length) {
        if (length <= PAGE_SIZE)
            value.assign(from, from + length);
    };
    switch (session->store->trees[table]->lookup(bytes_of(key), key.length, keep)) {
    case OP_RESULT::OK:
        found(context, 0, peer_bytes{value.data(), value.size()});
        return done(PEER_OK);
    case OP_RESULT::NOT_FOUND:
        return done(PEER_NOT_FOUND);
    default:
        return peer_broken(error, "LeanStore: look-up");
    }
}

/* The update does not insert, and an insert of a key that is there ends the process, as two clients that insert the same key at
   the same time would. The workloads insert each key once. */
int put(void *at, uint32_t table, struct peer_bytes key, struct peer_bytes value, char *error) {
    auto *session = static_cast<struct session *>(at);
    auto &tree = *session->store->trees[table];
    bool same_length = true;
    auto replace = [&](u8 *to, u16 length) {
        same_length = length == value.length;
        if (same_length)
            memcpy(to, value.at, length);
    };
    OP_RESULT outcome = tree.updateSameSize(bytes_of(key), key.length, replace);
    if (outcome == OP_RESULT::OK && same_length)
        return done(PEER_OK);
    if (outcome == OP_RESULT::OK)
        outcome = tree.remove(bytes_of(key), key.length);
    if (outcome != OP_RESULT::OK && outcome != OP_RESULT::NOT_FOUND)
        return peer_broken(error, "LeanStore: update");
    outcome = tree.insert(bytes_of(key), key.length, bytes_of(value), value.length);
    return outcome == OP_RESULT::OK ? done(PEER_OK) : peer_broken(error, "LeanStore: insert");
}

int remove_record(void *at, uint32_t table, struct peer_bytes key, char *error) {
    auto *session = static_cast<struct session *>(at);
    OP_RESULT outcome = session->store->trees[table]->remove(bytes_of(key), key.length);
    bool is_done = outcome == OP_RESULT::OK || outcome == OP_RESULT::NOT_FOUND;
    return is_done ? done(PEER_OK) : peer_broken(error, "LeanStore: remove");
}

/* LeanStore finds nothing if `from` is above all keys of its leaf: scans of the workloads begin at a key that is there. */
int scan(void *at, uint32_t table, struct peer_bytes from, int backward, peer_visit visit, void *context, char *error) {
    auto *session = static_cast<struct session *>(at);
    auto &tree = *session->store->trees[table];
    auto each = [&](const u8 *key, u16 key_length, const u8 *value, u16 value_length) {
        return visit(context, peer_bytes{key, key_length}, peer_bytes{value, value_length}) != 0;
    };
    auto undo = [] {};
    OP_RESULT outcome = backward ? tree.scanDesc(bytes_of(from), from.length, each, undo)
                                 : tree.scanAsc(bytes_of(from), from.length, each, undo);
    bool is_done = outcome == OP_RESULT::OK || outcome == OP_RESULT::NOT_FOUND;
    return is_done ? done(PEER_OK) : peer_broken(error, "LeanStore: scan");
}

int begin(void *, int, char *) { return PEER_OK; }

int commit(void *, char *) { return PEER_OK; }

void rollback(void *) {}

} /* namespace */

extern "C" const struct peer leanstore_peer = {
    version, store_open, settle, store_close, session_open, session_close, get, nullptr,
    put,     remove_record, scan, begin,      commit,       rollback,      run, yield,
};
