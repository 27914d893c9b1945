//! The one load generator: everything that measures throughput or latency goes through it (contract; being implemented).

use flashgrain_device::{Device, Nanos};
use flashgrain_model::Workload;
use hdrhistogram::Histogram;
use std::sync::atomic::AtomicBool;

use crate::Error;

/// A range of the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Region {
    /// First byte.
    pub offset_bytes: u64,
    /// Length.
    pub length_bytes: u64,
}

/// When a load ends; whichever comes first. `None` does not end it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Stop {
    /// After this much time, warm-up included.
    pub after_s: Option<f64>,
    /// After this many bytes moved, warm-up included.
    pub after_bytes: Option<u64>,
    /// After this many bytes *written*, warm-up included.
    pub after_bytes_written: Option<u64>,
    /// After this many requests, warm-up included.
    pub after_requests: Option<u64>,
}

/// How a write is made durable.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sync {
    /// Not at all.
    #[default]
    None,
    /// `RWF_DSYNC` on each write.
    Dsync,
    /// A flush after each write, as a linked pair.
    LinkedFlush,
    /// A write, and when it is done a flush, as two requests; the latency is that of both.
    WriteThenFdatasync,
}

/// Where requests go.
#[derive(Clone, Debug, PartialEq)]
pub enum Pattern {
    /// By the workload's `random_share`: uniformly random starts aligned to the request size (or `align_bytes`), then on sequentially. Streams
    /// start at staggered places and each has its own generator.
    Mixed {
        /// Alignment of random starts; `None` aligns to the smaller of request size and 4 KiB... never less than the device's alignment.
        align_bytes: Option<u64>,
    },
    /// Exactly these offsets in order, wrapping around; all streams share the list.
    List(Vec<u64>),
}

/// A load: what `flashgrain io` and every experiment run.
#[derive(Clone, Debug)]
pub struct Load {
    /// Kind, request size, random share, streams in total.
    pub workload: Workload,
    /// Where requests go.
    pub pattern: Pattern,
    /// The part of the device that is used.
    pub region: Region,
    /// Driver threads; the streams are spread over them. 1 on a simulated drive.
    pub workers: u32,
    /// How writes are made durable.
    pub sync: Sync,
    /// Open loop: requests per second at exponentially distributed times, latency counted from the intended time.
    pub rate_per_s: Option<f64>,
    /// Poll for completions where the device has poll queues.
    pub polled: bool,
    /// Leading share of the run (by time or by the bound that ends it) that is not counted, 0 to 1.
    pub warmup_share: f64,
    /// End.
    pub stop: Stop,
    /// Seed of all randomness.
    pub seed: u64,
}

/// What a load measured, warm-up excluded.
#[derive(Clone, Debug)]
pub struct Measured {
    /// Counted span.
    pub elapsed: Nanos,
    /// Bytes read in it.
    pub bytes_read: u64,
    /// Bytes written in it.
    pub bytes_written: u64,
    /// Requests done in it.
    pub requests: u64,
    /// Bytes written, warm-up included: what the drive's wear and the write budget saw.
    pub bytes_written_total: u64,
    /// Latencies of reads, nanoseconds.
    pub read_latency_ns: Histogram<u64>,
    /// Latencies of writes, nanoseconds.
    pub write_latency_ns: Histogram<u64>,
    /// CPU time of the driver threads, user and system.
    pub cpu: Nanos,
    /// Whether it was ended by the interrupt flag.
    pub interrupted: bool,
}

impl Measured {
    /// Reads and writes, bytes per second.
    pub fn bytes_per_second(&self) -> f64 {
        (self.bytes_read + self.bytes_written) as f64 / self.elapsed.seconds()
    }
}

/// Runs `load` on `device` until it stops or `interrupt` becomes true.
///
/// # Errors
/// The device's errors, and [`Error::Argument`] for a load that makes no sense on it.
pub fn run(_device: &dyn Device, _load: &Load, _interrupt: &AtomicBool) -> Result<Measured, Error> {
    todo!()
}

/// One timed request at depth 1.
#[derive(Clone, Copy, Debug)]
pub struct Timed {
    /// Where.
    pub offset_bytes: u64,
    /// How long.
    pub latency: Nanos,
}

/// Runs one request of `length_bytes` at each offset in order, one at a time, and keeps every latency: for the request-size and location
/// profiles, which look at distributions by place.
///
/// # Errors
/// As [`run`].
pub fn time_each(
    _device: &dyn Device,
    _op: flashgrain_device::Op,
    _length_bytes: u32,
    _offsets: &[u64],
    _interrupt: &AtomicBool,
) -> Result<Vec<Timed>, Error> {
    todo!()
}
