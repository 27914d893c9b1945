//! How fast threads that merge together can be.

use serde::{Deserialize, Serialize};

use crate::{Access, IoModel, Workload};

/// The processor's part of a compaction.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct MergeProcessor {
    /// Seconds in which one thread reads, compares, checksums and copies one byte.
    pub seconds_per_byte: f64,
    /// Threads that run at the same time; more of them take turns.
    pub hardware_threads: f64,
}

/// 500 MB/s per thread: a merge of uncompressed records that are much longer than their keys, with a checksum
/// per block on either side.
const SECONDS_PER_BYTE: f64 = 2e-9;

impl MergeProcessor {
    /// A processor of that many hardware threads at the usual speed of a merge.
    pub fn of_threads(hardware_threads: f64) -> Self {
        Self { seconds_per_byte: SECONDS_PER_BYTE, hardware_threads }
    }

    /// Seconds per byte that one of `threads` merging threads moves: reads, merges, and writes in pieces of
    /// `file_bytes` (MQSSD paper §5.2: X·(t + s + T(α + β)/B) for X files).
    ///
    /// A cost model gives device *time*, which all threads share: one's byte waits for those of the others.
    /// The threads' shares of the processor add, and do not overlap with their own I/O. `None` if the model
    /// does not know reads or writes.
    pub fn thread_seconds_per_byte(&self, io: &dyn IoModel, file_bytes: f64, threads: f64) -> Option<f64> {
        let device = move_seconds_per_byte(io, file_bytes, threads)?;
        let turns = (threads / self.hardware_threads).max(1.0);
        Some(self.seconds_per_byte * turns + threads * device)
    }
}

/// Device time per byte that is read and written in pieces of `file_bytes` by so many threads.
pub fn move_seconds_per_byte(io: &dyn IoModel, file_bytes: f64, threads: f64) -> Option<f64> {
    let of = |access| io.seconds_per_byte(&Workload::random(access, file_bytes, threads));
    Some(of(Access::Read)? + of(Access::Write)?)
}
