//! The place where everything is run: it keeps the time, the write budget, the interrupt and the progress.

use std::sync::atomic::{AtomicBool, Ordering};

use flashgrain_device::{Channel, ChannelOptions, Device, ErrorKind, Nanos, Op, ProcessorTicks, ThreadTimes};

use crate::Error;
use crate::config::Config;
use crate::load::{self, Load, Measured, Timed};
use crate::progress::{Progress, Step};
use crate::schema::ProcessorUse;
use crate::target::Target;

/// See the module.
pub(crate) struct Bench<'a> {
    pub target: &'a Target<'a>,
    pub config: &'a Config,
    pub interrupt: &'a AtomicBool,
    pub progress: &'a mut dyn Progress,
    /// Only ever asked for the time: experiments follow the device's clock, real or virtual.
    clock: Box<dyn Channel>,
    start: Nanos,
    /// Everything written so far.
    pub written_bytes: u64,
    write_limit_bytes: u64,
    /// Whether the user has wanted an end and gets the measurements until then: nothing more is measured.
    pub concluding: bool,
    /// When the run should be over, for the progress.
    pub total_s: f64,
    loads: u32,
    /// Of all loads; `None` on a simulated drive, which has no processors.
    threads: Option<ThreadTimes>,
    ticks: Option<ProcessorTicks>,
}

impl<'a> Bench<'a> {
    pub(crate) fn new(
        target: &'a Target<'a>,
        config: &'a Config,
        interrupt: &'a AtomicBool,
        progress: &'a mut dyn Progress,
        write_limit_bytes: u64,
        total_s: f64,
    ) -> Result<Self, Error> {
        let clock = target.device.open_channel(&ChannelOptions { depth: 1, arena: None, polled: false })?;
        let start = clock.now();
        let (written_bytes, loads) = (0, 0);
        let is_real = target.device.identity().kind != "simulated";
        Ok(Self {
            threads: is_real.then(ThreadTimes::of_this_thread).flatten().map(|_| ThreadTimes::default()),
            ticks: is_real.then(ProcessorTicks::now).flatten(),
            target,
            config,
            interrupt,
            progress,
            clock,
            start,
            written_bytes,
            write_limit_bytes,
            concluding: false,
            total_s,
            loads,
        })
    }

    /// Seconds since the start, on the device's clock.
    pub(crate) fn elapsed_s(&self) -> f64 {
        self.clock.now().since(self.start).seconds()
    }

    /// Bytes that may still be written.
    pub(crate) fn remaining_write_bytes(&self) -> u64 {
        self.write_limit_bytes.saturating_sub(self.written_bytes)
    }

    /// Allows more to be written: `sustain` has limits of its own.
    pub(crate) fn raise_limits(&mut self, write_bytes: u64, seconds: f64) {
        self.write_limit_bytes = self.write_limit_bytes.saturating_add(write_bytes);
        self.total_s += seconds;
    }

    /// Fails if the user wants to stop; tells the progress otherwise.
    pub(crate) fn step(&mut self, what: &str) -> Result<(), Error> {
        if self.interrupt.load(Ordering::Relaxed) && !self.concluding {
            return Err(Error::Interrupted);
        }
        let elapsed_s = self.elapsed_s();
        self.progress.step(&Step {
            fraction: (elapsed_s / self.total_s).min(1.0),
            what,
            elapsed_s,
            remaining_s: (self.total_s - elapsed_s).max(0.0),
            written_bytes: self.written_bytes,
        });
        Ok(())
    }

    /// If `error` is the user's wish to end, and measurements are to be kept, takes it for the end of
    /// measuring: returns a text on the missing parts.
    pub(crate) fn conclude(&mut self, error: Error) -> Result<String, Error> {
        if !(matches!(error, Error::Interrupted) && self.config.keep_interrupted) {
            return Err(error);
        }
        self.concluding = true;
        Ok(format!("interrupted after {:.1} s: the remaining measurements", self.elapsed_s()))
    }

    /// Position of the next load among all of the run.
    pub(crate) fn next_order(&mut self) -> u32 {
        self.loads += 1;
        self.loads - 1
    }

    /// Runs a load within the write budget.
    pub(crate) fn load(&mut self, device: &dyn Device, mut load: Load) -> Result<Measured, Error> {
        if load.workload.read_share < 1.0 {
            let remaining = self.remaining_write_bytes();
            load.stop.after_bytes_written =
                Some(load.stop.after_bytes_written.map_or(remaining, |bytes| bytes.min(remaining)));
        }
        let measured = load::run(device, &load, self.interrupt)?;
        self.written_bytes += measured.bytes_written_total;
        // More threads than processors wait for each other, as such a load demands.
        if let Some(threads) = self.threads.as_mut().filter(|_| load.workers <= processors()) {
            threads.add(measured.threads);
        }
        if measured.interrupted { Err(Error::Interrupted) } else { Ok(measured) }
    }

    /// How the threads of all loads fared until now.
    pub(crate) fn processor(&self) -> Option<ProcessorUse> {
        let threads = self.threads?;
        let ticks = self.ticks.zip(ProcessorTicks::now());
        Some(ProcessorUse {
            ran_s: threads.ran.seconds(),
            waited_s: threads.waited.seconds(),
            stolen_share: ticks.and_then(|(before, now)| now.stolen_share_since(before)),
        })
    }

    /// Times single reads.
    pub(crate) fn time_reads(&mut self, length_bytes: u32, offsets: &[u64]) -> Result<Vec<Timed>, Error> {
        let timed = load::time_each(self.target.device, Op::Read, length_bytes, offsets, self.interrupt)?;
        if self.interrupt.load(Ordering::Relaxed) { Err(Error::Interrupted) } else { Ok(timed) }
    }

    /// Makes everything durable and returns how long that took, seconds. Behind a trial that wrote it keeps
    /// the drive's write-back out of the next one.
    pub(crate) fn flush(&mut self) -> Result<f64, Error> {
        let timed = load::time_each(self.target.device, Op::Flush, 0, &[0], self.interrupt)?;
        Ok(timed.iter().map(|one| one.latency.seconds()).sum())
    }

    /// Lets time pass without requests to the drive, so that it can pass on the content of its cache.
    pub(crate) fn idle(&mut self, seconds: f64) -> Result<(), Error> {
        let mut now = self.clock.now();
        let until = now + Nanos::from_seconds(seconds.max(0.0));
        // Channels append no more than there is room for, and need some to wait.
        let mut none = Vec::with_capacity(1);
        while now < until && !self.interrupt.load(Ordering::Relaxed) {
            self.clock.wait(1, Some(until), &mut none)?;
            let before = std::mem::replace(&mut now, self.clock.now());
            if now == before {
                // Time that stands still while nothing is asked cannot be waited for.
                break;
            }
        }
        Ok(())
    }

    /// Driver threads for a load of `concurrency` streams on `device`.
    pub(crate) fn workers(&self, device: &dyn Device, concurrency: f64) -> u32 {
        let streams = concurrency as u32;
        // pread and pwrite know no queue: as with the databases that use them, depth comes from threads.
        if device.identity().backend == "sync" {
            return streams.max(1);
        }
        let most = self.config.workers.unwrap_or_else(|| default_workers(device));
        most.clamp(1, streams.max(1))
    }
}

/// One thread drives some 700,000 requests a second (NVMe paper §2.4), and a drive's interrupts want a
/// processor, too.
fn default_workers(device: &dyn Device) -> u32 {
    if device.identity().kind == "simulated" {
        return 1;
    }
    (processors() / 2).clamp(1, 4)
}

fn processors() -> u32 {
    std::thread::available_parallelism().map_or(1, |processors| processors.get() as u32)
}

/// Whether a failure ends the run instead of the trial that met it.
pub(crate) fn is_fatal(error: &Error) -> bool {
    match error {
        Error::Interrupted => true,
        Error::Device(device) => device.kind() == ErrorKind::NoSpace,
        _ => false,
    }
}
