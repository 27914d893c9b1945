//! The one load generator: everything that measures throughput or latency goes through it.
//!
//! A load is `concurrency` streams with one request outstanding each. The streams are spread over `workers`
//! threads with a channel of their own; with one worker everything runs on the calling thread, in the
//! device's time, and repeats exactly from its seed on a simulated drive.

mod in_flight;
pub(crate) mod layout;
mod memory;
mod replay;
mod request_source;
mod simulated_threads;
mod tally;
mod timed;
mod worker;

use std::sync::atomic::AtomicBool;
use std::sync::{Condvar, Mutex, PoisonError};

use flashgrain_device::limits::{self, Limit};
use flashgrain_device::{Device, Nanos, REQUEST_BYTES_MAX, ThreadTimes, bytes_text};
use flashgrain_model::Workload;
use flashgrain_settings::SyncMethod;
use hdrhistogram::Histogram;

use crate::Error;
use worker::Worker;

pub use in_flight::InFlight;
pub use layout::lay_out;
pub use replay::{Pace, Recorded, Replay, Replayed, replay};
pub use simulated_threads::{IoModel, SimulatedRun, SimulatedThreads, run_simulated};
pub use timed::{Timed, time_each};

/// The most streams of one worker: the depth of a channel.
const STREAMS_MAX: u32 = 32_000;

/// A range of the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Region {
    /// First byte.
    pub offset_bytes: u64,
    /// Length.
    pub length_bytes: u64,
}

/// When a load ends; whichever comes first. `None` does not end it, and one of them must be given.
#[derive(Clone, Copy, Debug, Default)]
pub struct Stop {
    /// After this much time, warm-up included.
    pub after_s: Option<f64>,
    /// After this many bytes moved, warm-up included.
    pub after_bytes: Option<u64>,
    /// After this many bytes *written*, warm-up included; never exceeded by more than one request per worker.
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

impl From<SyncMethod> for Sync {
    fn from(method: SyncMethod) -> Self {
        match method {
            SyncMethod::Dsync => Self::Dsync,
            SyncMethod::LinkedFlush => Self::LinkedFlush,
            SyncMethod::Fdatasync => Self::WriteThenFdatasync,
        }
    }
}

/// Rule for the places of requests.
#[derive(Clone, Debug, PartialEq)]
pub enum Pattern {
    /// By the workload's `random_share`: uniformly random starts, then on sequentially. Sequential streams
    /// start at staggered places.
    Mixed {
        /// Alignment of random starts. `None`: the request size if it is a power of two, otherwise 4 KiB;
        /// always at least the device's alignment.
        align_bytes: Option<u64>,
    },
    /// Exactly these offsets in order, wrapping around; the workers start at staggered places of the list.
    List(Vec<u64>),
}

/// A load: the work of `flashgrain io` and of every experiment.
#[derive(Clone, Debug)]
pub struct Load {
    /// Kind, request size, random share, streams in total.
    pub workload: Workload,
    /// Rule for the places of requests.
    pub pattern: Pattern,
    /// The part of the device that is used.
    pub region: Region,
    /// Driver threads; the streams are spread over them. 1 on a simulated drive.
    pub workers: u32,
    /// How writes are made durable.
    pub sync: Sync,
    /// Open loop: requests per second at exponentially distributed times, latency counted from the intended
    /// time, so that fewer requests cannot make a slow drive look fast. The streams are the most that may be
    /// outstanding.
    pub rate_per_s: Option<f64>,
    /// Poll for completions where the device has poll queues.
    pub polled: bool,
    /// Leading share of the run (by the bound that is closest to its end) that is not counted, 0 to 1.
    pub warmup_share: f64,
    /// End.
    pub stop: Stop,
    /// Seed of all randomness.
    pub seed: u64,
}

/// Results of a load, warm-up excluded.
#[derive(Clone, Debug)]
pub struct Measured {
    /// Counted span: the mean over the streams, each from its first counted request to the end of its last
    /// one.
    pub elapsed: Nanos,
    /// Streams that took part.
    pub streams: u64,
    /// Bytes read in it.
    pub bytes_read: u64,
    /// Bytes written in it.
    pub bytes_written: u64,
    /// Requests done in it.
    pub requests: u64,
    /// Bytes written, warm-up included: they wear the drive and count against the write budget.
    pub bytes_written_total: u64,
    /// Latencies of reads, nanoseconds.
    pub read_latency_ns: Histogram<u64>,
    /// Latencies of writes, nanoseconds.
    pub write_latency_ns: Histogram<u64>,
    /// CPU time of the driver threads, user and system.
    pub cpu: Nanos,
    /// Times of the driver threads by the scheduler's account, from the beginning to the end of the load.
    pub threads: ThreadTimes,
    /// Whether it was ended by the interrupt flag.
    pub interrupted: bool,
}

impl Measured {
    /// Reads and writes, bytes per second.
    pub fn bytes_per_second(&self) -> f64 {
        per_second((self.bytes_read + self.bytes_written) as f64, self.elapsed)
    }

    /// Requests per second.
    pub fn iops(&self) -> f64 {
        per_second(self.requests as f64, self.elapsed)
    }

    /// CPU time of the driver per request, microseconds.
    pub fn cpu_us_per_request(&self) -> f64 {
        if self.requests == 0 { 0.0 } else { self.cpu.seconds() * 1e6 / self.requests as f64 }
    }
}

fn per_second(count: f64, elapsed: Nanos) -> f64 {
    if elapsed == Nanos(0) { 0.0 } else { count / elapsed.seconds() }
}

/// Runs `load` on `device` until it stops or `interrupt` becomes true.
///
/// # Errors
/// The device's errors, [`Error::Io`] for a request that failed, and [`Error::Argument`] for a load that
/// makes no sense on the device.
pub fn run(device: &dyn Device, load: &Load, interrupt: &AtomicBool) -> Result<Measured, Error> {
    check(device, load)?;
    let mut results = if load.workers == 1 {
        vec![Worker::new(device, load, 0).and_then(|worker| watched(worker, interrupt))]
    } else {
        on_threads(device, load, interrupt)
    };
    let mut total = results.swap_remove(0)?;
    for result in results {
        total.add(&result?);
    }
    Ok(total)
}

/// Runs the worker on the calling thread, and asks the scheduler how the thread fared.
fn watched(worker: Worker<'_>, interrupt: &AtomicBool) -> Result<Measured, Error> {
    let before = ThreadTimes::of_this_thread();
    let mut measured = worker.run(interrupt)?;
    if let (Some(before), Some(after)) = (before, ThreadTimes::of_this_thread()) {
        measured.threads = after.since(before);
    }
    Ok(measured)
}

/// One thread per worker.
///
/// 1. Every worker opens its channel and makes its memory, and then waits at the gate.
/// 2. When all are there, the gate opens and all start. If one could not be made, or its thread not started,
///    the gate says so and all end at once: no worker waits for one that does not come.
fn on_threads(device: &dyn Device, load: &Load, interrupt: &AtomicBool) -> Vec<Result<Measured, Error>> {
    let gate = &Gate::new(load.workers);
    let work = move |index| {
        let worker = Worker::new(device, load, index);
        let goes = gate.pass(worker.is_ok());
        // One that could be made has nothing to do without the others.
        if !goes && worker.is_ok() { Ok(Measured::default()) } else { watched(worker?, interrupt) }
    };
    std::thread::scope(|scope| {
        let mut handles = Vec::new();
        let mut refused = None;
        for index in 0..load.workers {
            match std::thread::Builder::new().spawn_scoped(scope, move || work(index)) {
                Ok(handle) => handles.push(handle),
                Err(source) => {
                    gate.give_up();
                    let doing = format!("start worker {} of {}", index + 1, load.workers);
                    refused = Some(Err(limits::limited(doing, source, &[Limit::Threads]).into()));
                    break;
                }
            }
        }
        let join = |handle: std::thread::ScopedJoinHandle<'_, _>| {
            handle.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        };
        // The error that kept a worker from starting comes first: the other workers only stopped because of
        // it.
        refused.into_iter().chain(handles.into_iter().map(join)).collect()
    })
}

/// A barrier at which workers wait for each other, but not for a worker that fails to start.
struct Gate {
    /// How many have not come yet; `None` if one will never come.
    missing: Mutex<Option<u32>>,
    changed: Condvar,
}

impl Gate {
    fn new(workers: u32) -> Self {
        Self { missing: Mutex::new(Some(workers)), changed: Condvar::new() }
    }

    /// Waits until all workers that will come have come. It returns whether all are ready.
    fn pass(&self, ready: bool) -> bool {
        let mut missing = self.missing.lock().unwrap_or_else(PoisonError::into_inner);
        *missing = missing.filter(|_| ready).map(|missing| missing - 1);
        self.changed.notify_all();
        while missing.is_some_and(|missing| missing > 0) {
            missing = self.changed.wait(missing).unwrap_or_else(PoisonError::into_inner);
        }
        missing.is_some()
    }

    /// One will not come.
    fn give_up(&self) {
        *self.missing.lock().unwrap_or_else(PoisonError::into_inner) = None;
        self.changed.notify_all();
    }
}

/// Refuses loads that make no sense, with a text that names sensible ones.
///
/// # Errors
/// [`Error::Argument`].
pub fn check(device: &dyn Device, load: &Load) -> Result<(), Error> {
    let argument = |problem: String| Err(Error::Argument(problem));
    let (geometry, workload, region) = (device.geometry(), &load.workload, load.region);
    let align = u64::from(geometry.offset_align_bytes);
    let request = workload.request_bytes;
    if !(request >= 1.0 && request <= f64::from(REQUEST_BYTES_MAX) && (request as u64).is_multiple_of(align))
    {
        return argument(format!(
            "a block size of {request} bytes: use a multiple of {align} bytes, at most 1 GiB"
        ));
    }
    if !(workload.concurrency >= 1.0
        && workload.concurrency <= f64::from(STREAMS_MAX) * f64::from(load.workers))
    {
        return argument(format!(
            "{} requests in flight: use 1 to {STREAMS_MAX} per worker",
            workload.concurrency
        ));
    }
    if load.workers == 0 || f64::from(load.workers) > workload.concurrency {
        return argument(format!(
            "{} workers: use at least 1 and at most one per request in flight",
            load.workers
        ));
    }
    for (name, share) in [
        ("read share", workload.read_share),
        ("random share", workload.random_share),
        ("warm-up share", load.warmup_share),
    ] {
        if !(0.0..=1.0).contains(&share) {
            return argument(format!("a {name} of {share}: use 0 to 1"));
        }
    }
    let end = region.offset_bytes.checked_add(region.length_bytes);
    if !region.offset_bytes.is_multiple_of(align) || end.is_none_or(|end| end > device.capacity_bytes()) {
        let capacity = bytes_text(device.capacity_bytes());
        return argument(format!(
            "the region must lie within the device's {capacity} and start at a multiple of {align}"
        ));
    }
    if region.length_bytes < request as u64 {
        return argument(format!(
            "the region of {} bytes is smaller than one request of {request}",
            region.length_bytes
        ));
    }
    if workload.read_share < 1.0 && !geometry.writable {
        return argument(
            "the device was opened for reading only: a load with writes needs one opened for writing".into(),
        );
    }
    if load.rate_per_s.is_some_and(|rate| !(rate > 0.0 && rate.is_finite())) {
        return argument("the target rate must be above zero".into());
    }
    let Stop { after_s, after_bytes, after_bytes_written, after_requests } = load.stop;
    if after_s.is_none() && after_bytes.is_none() && after_bytes_written.is_none() && after_requests.is_none()
    {
        return argument("a load without an end: give it a time, bytes or requests".into());
    }
    if after_s.is_some_and(|seconds| !(seconds > 0.0 && seconds.is_finite())) {
        return argument("the run time must be above zero seconds".into());
    }
    Ok(())
}
