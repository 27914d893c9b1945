//! Statistics of a drive: latencies, flash operations, and time by stage.

use flashgrain_device::Op;
use hdrhistogram::Histogram;
use serde::Serialize;

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
    /// Time of reads by stage.
    pub read_stages: StageTotals,
    /// Time of writes by stage.
    pub write_stages: StageTotals,
    /// Counts of operations inside the drive.
    pub counters: Counters,
}

/// Time per stage, summed over commands, nanoseconds. The stages of a command add up to its latency.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StageTotals {
    /// Time in the host's queue.
    pub queue_ns: u64,
    /// Command processing.
    pub controller_ns: u64,
    /// Time on the link.
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

impl StageTotals {
    #[inline]
    fn add(&mut self, stages: &Stages) {
        self.queue_ns += stages.queue;
        self.controller_ns += stages.controller;
        self.link_ns += stages.link;
        self.mapping_ns += stages.mapping;
        self.wait_ns += stages.wait;
        self.collect_ns += stages.collect;
        self.medium_ns += stages.medium;
    }

    fn merge(&mut self, other: &Self) {
        self.queue_ns += other.queue_ns;
        self.controller_ns += other.controller_ns;
        self.link_ns += other.link_ns;
        self.mapping_ns += other.mapping_ns;
        self.wait_ns += other.wait_ns;
        self.collect_ns += other.collect_ns;
        self.medium_ns += other.medium_ns;
    }

    /// Name and nanoseconds of every stage, in the order of the stages.
    pub fn named(&self) -> [(&'static str, u64); 7] {
        [
            ("queue", self.queue_ns),
            ("controller", self.controller_ns),
            ("link", self.link_ns),
            ("mapping", self.mapping_ns),
            ("wait", self.wait_ns),
            ("collect", self.collect_ns),
            ("medium", self.medium_ns),
        ]
    }

    /// All of it: the latencies of all commands.
    pub fn sum_ns(&self) -> u64 {
        self.named().iter().map(|(_, nanos)| nanos).sum()
    }
}

/// Counts of operations inside a drive. Fields that a medium does not have stay zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
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
    /// Bytes that the host gave up.
    pub host_bytes_discarded: u64,
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
    /// Chunks or parts of chunks that banks of 3D XPoint read.
    pub bank_reads: u64,
    /// The same for writes.
    pub bank_writes: u64,
    /// Accesses that moved a disk's arm.
    pub seeks: u64,
    /// Time of its arm's movements, nanoseconds.
    pub seek_ns: u64,
    /// Time of its waits for the platter to turn, nanoseconds.
    pub rotation_ns: u64,
    /// Reads that a disk had already read ahead, or was about to.
    pub read_ahead_hits: u64,
    /// Bytes that a disk wrote to its platters.
    pub platter_bytes_written: u64,
}

impl Counters {
    fn add(&mut self, other: &Self) {
        self.reads += other.reads;
        self.writes += other.writes;
        self.flushes += other.flushes;
        self.host_bytes_read += other.host_bytes_read;
        self.host_bytes_written += other.host_bytes_written;
        self.host_bytes_discarded += other.host_bytes_discarded;
        self.flash_reads += other.flash_reads;
        self.flash_programs += other.flash_programs;
        self.programmed_bytes += other.programmed_bytes;
        self.collect_programmed_bytes += other.collect_programmed_bytes;
        self.mapping_programmed_bytes += other.mapping_programmed_bytes;
        self.journal_programmed_bytes += other.journal_programmed_bytes;
        self.mapping_lookups += other.mapping_lookups;
        self.mapping_hits += other.mapping_hits;
        self.mapping_reads += other.mapping_reads;
        self.write_cache_hits += other.write_cache_hits;
        self.collected_blocks += other.collected_blocks;
        self.moved_units += other.moved_units;
        self.erases += other.erases;
        self.bank_reads += other.bank_reads;
        self.bank_writes += other.bank_writes;
        self.seeks += other.seeks;
        self.seek_ns += other.seek_ns;
        self.rotation_ns += other.rotation_ns;
        self.read_ahead_hits += other.read_ahead_hits;
        self.platter_bytes_written += other.platter_bytes_written;
    }

    /// Bytes programmed per byte written by the host; `None` if nothing was written.
    pub fn write_amplification(&self) -> Option<f64> {
        let programmed = self.programmed_bytes
            + self.collect_programmed_bytes
            + self.mapping_programmed_bytes
            + self.journal_programmed_bytes;
        (self.host_bytes_written > 0).then(|| programmed as f64 / self.host_bytes_written as f64)
    }
}

/// Counts of one drive while the simulation runs.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    pub counters: Counters,
    read_stages: StageTotals,
    write_stages: StageTotals,
}

impl Tally {
    /// A command is done.
    #[inline]
    pub fn finished(&mut self, command: &Command) {
        let (counters, bytes) = (&mut self.counters, u64::from(command.length_bytes));
        match command.op {
            Op::Read => {
                counters.reads += 1;
                counters.host_bytes_read += bytes;
                self.read_stages.add(&command.stages);
            }
            Op::Write | Op::WriteDsync | Op::WriteThenFlush => {
                counters.writes += 1;
                counters.host_bytes_written += bytes;
                self.write_stages.add(&command.stages);
            }
            Op::Flush => counters.flushes += 1,
            Op::Discard => counters.host_bytes_discarded += bytes,
        }
    }
}

/// Latencies and queue depth that the host observes while the simulation runs.
#[derive(Debug)]
pub(crate) struct HostTally {
    read_latency_ns: Histogram<u64>,
    write_latency_ns: Histogram<u64>,
    since_ns: u64,
    in_flight: u64,
    changed_ns: u64,
    in_flight_ns: u128,
}

/// Latencies are kept to three digits, up to a thousand seconds.
const DIGITS: u8 = 3;
const LATENCY_NS_MAX: u64 = 1_000_000_000_000;

/// A histogram for latencies in nanoseconds. Its bounds are given: a histogram that grows by itself would
/// record values as saturating at 2 ns.
#[expect(clippy::expect_used, reason = "the bounds are valid")]
pub(crate) fn latency_histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(1, LATENCY_NS_MAX, DIGITS).expect("valid bounds")
}

impl HostTally {
    /// Begins to count at `now_ns`, with `in_flight` requests on their way.
    pub fn new(now_ns: u64, in_flight: u64) -> Self {
        Self {
            read_latency_ns: latency_histogram(),
            write_latency_ns: latency_histogram(),
            since_ns: now_ns,
            in_flight,
            changed_ns: now_ns,
            in_flight_ns: 0,
        }
    }

    /// A request has arrived.
    #[inline]
    pub fn arrived(&mut self, now_ns: u64) {
        self.pass(now_ns);
        self.in_flight += 1;
    }

    /// A request is done.
    #[inline]
    pub fn left(&mut self, op: Op, latency_ns: u64, now_ns: u64) {
        self.pass(now_ns);
        self.in_flight -= 1;
        match op {
            Op::Read => self.read_latency_ns.saturating_record(latency_ns),
            Op::Write | Op::WriteDsync | Op::WriteThenFlush => {
                self.write_latency_ns.saturating_record(latency_ns);
            }
            Op::Flush | Op::Discard => {}
        }
    }

    #[inline]
    fn pass(&mut self, now_ns: u64) {
        self.in_flight_ns += u128::from(self.in_flight) * u128::from(now_ns - self.changed_ns);
        self.changed_ns = now_ns;
    }

    /// Counts anew.
    pub fn reset(&mut self, now_ns: u64) {
        *self = Self::new(now_ns, self.in_flight);
    }

    /// All counts of the host and of the drives.
    pub fn statistics<'a>(&self, drives: impl Iterator<Item = &'a Tally>, now_ns: u64) -> Statistics {
        let running = u128::from(self.in_flight) * u128::from(now_ns - self.changed_ns);
        let mut statistics = Statistics {
            elapsed_ns: now_ns - self.since_ns,
            read_latency_ns: self.read_latency_ns.clone(),
            write_latency_ns: self.write_latency_ns.clone(),
            in_flight_ns: self.in_flight_ns + running,
            read_stages: StageTotals::default(),
            write_stages: StageTotals::default(),
            counters: Counters::default(),
        };
        for tally in drives {
            statistics.counters.add(&tally.counters);
            statistics.read_stages.merge(&tally.read_stages);
            statistics.write_stages.merge(&tally.write_stages);
        }
        statistics
    }
}
