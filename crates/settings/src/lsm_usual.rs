//! The numbers of an LSM-tree where none are given.

use crate::FilterBits;

/// Memtables take this part of the cache. Tables are at most as large, unless their size is given.
pub const MEMTABLE_DIVISOR: u64 = 8;
/// The most bytes of a memtable.
pub const MEMTABLE_BYTES_MAX: u64 = 64 << 20;

/// With the least fanout as many levels have more bytes than any device.
pub const LEVELS_MAX: usize = 48;

/// Bits of the filters for each key.
pub const FILTER: FilterBits = FilterBits(100);

/// Requests that a part of a job keeps under way: it reads two partitions ahead of each run, and writes.
/// Concurrent jobs are for levels that wait for each other, so half of the requests that saturate the drive
/// are for them.
pub const REQUESTS_PER_PART: u32 = 8;
/// See [`REQUESTS_PER_PART`].
pub const REQUESTS_PER_JOB: u32 = 16;

/// Least tables that a part of a job merges.
pub const TABLES_PER_PART: u64 = 2;

/// Bytes of a partition, which a merge reads at once.
pub const PARTITION_BYTES: u64 = 64 << 10;

/// The most jobs.
const JOBS: u32 = 8;
/// The most parts of a job.
const PARTS: u32 = 16;

/// Most jobs that merge at a time, where `in_flight` requests saturate the drive.
pub fn jobs(in_flight: u32) -> u32 {
    among(in_flight, REQUESTS_PER_JOB, JOBS)
}

/// Most ranges of keys that a job is cut into, where `in_flight` requests saturate the drive.
pub fn parts(in_flight: u32) -> u32 {
    among(in_flight, REQUESTS_PER_PART, PARTS)
}

/// So many are enough to saturate the drive.
fn among(in_flight: u32, each: u32, most: u32) -> u32 {
    (in_flight / each).clamp(1, most)
}
