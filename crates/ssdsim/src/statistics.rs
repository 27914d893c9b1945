//! What a drive counted: latencies, flash operations, and where time went.

use flashgrain_device::Op;
use hdrhistogram::Histogram;

use crate::drive::{Command, Stages};

/// Counters and latencies of a device since its start or the last reset, summed over its drives.
#[derive(Clone, Debug)]
pub struct Statistics {
    /// Virtual time covered, nanoseconds.
    pub elapsed_ns: u64,
    /// Latencies of reads, nanoseconds.
    pub read_latency_ns: Histogram<u64>,
    /// Latencies of writes, nanoseconds.
    pub write_latency_ns: Histogram<u64>,
    /// Requests in the device, integrated over time: requests x nanoseconds.
    pub in_flight_ns: u128,
    /// Where the time of reads went.
    pub read_stages: StageTotals,
    /// Where the time of writes went.
    pub write_stages: StageTotals,
    /// What happened inside.
    pub counters: Counters,
}

/// Time per stage, summed over commands, nanoseconds. The stages of a command add up to its latency.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StageTotals {
    /// In the host's queue.
    pub queue_ns: u64,
    /// Command processing.
    pub controller_ns: u64,
    /// On the link.
    pub link_ns: u64,
    /// Looking up the mapping.
    pub mapping_ns: u64,
    /// Waiting for a chip or for room in the write cache.
    pub wait_ns: u64,
    /// Waiting for garbage collection.
    pub collect_ns: u64,
    /// The medium at work.
    pub medium_ns: u64,
}

/// What happened inside. Fields that a medium does not have stay zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Commands that read.
    pub reads: u64,
    /// Commands that wrote.
    pub writes: u64,
    /// Flushes.
    pub flushes: u64,
    /// Bytes that the host read.
    pub host_bytes_read: u64,
    /// Bytes that the host wrote.
    pub host_bytes_written: u64,
    /// Flash reads for the host.
    pub flash_reads: u64,
    /// Flash programs for the host.
    pub flash_programs: u64,
    /// Bytes programmed for the host, padding included.
    pub programmed_bytes: u64,
    /// Bytes programmed by garbage collection and wear levelling.
    pub collect_programmed_bytes: u64,
    /// Bytes programmed for the mapping table.
    pub mapping_programmed_bytes: u64,
    /// Bytes programmed because of flushes, before their row was full.
    pub journal_programmed_bytes: u64,
    /// Mapping lookups.
    pub mapping_lookups: u64,
    /// Lookups that found their entry in memory.
    pub mapping_hits: u64,
    /// Reads of translation pages.
    pub mapping_reads: u64,
    /// Units of reads that were in the write cache.
    pub write_cache_hits: u64,
    /// Blocks that were collected.
    pub collected_blocks: u64,
    /// Valid units that were moved.
    pub moved_units: u64,
    /// Erased blocks.
    pub erases: u64,
}

impl Counters {
    /// Bytes programmed per byte written by the host; `None` if nothing was written.
    pub fn write_amplification(&self) -> Option<f64> {
        let programmed = self.programmed_bytes
            + self.collect_programmed_bytes
            + self.mapping_programmed_bytes
            + self.journal_programmed_bytes;
        (self.host_bytes_written > 0).then(|| programmed as f64 / self.host_bytes_written as f64)
    }
}

/// Counts while the simulation runs.
#[derive(Debug)]
pub(crate) struct Tally {
    pub counters: Counters,
}

impl Default for Tally {
    fn default() -> Self {
        Self { counters: Counters::default() }
    }
}

impl Tally {
    /// A request has arrived.
    pub fn arrived(&mut self, _now_ns: u64) {
        todo!()
    }

    /// A request is done.
    pub fn left(&mut self, _op: Op, _latency_ns: u64, _now_ns: u64) {
        todo!()
    }

    /// A command is done.
    pub fn finished(&mut self, command: &Command, _now_ns: u64) {
        let _: Stages = command.stages;
        todo!()
    }
}
