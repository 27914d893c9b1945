//! The one measure of the raw drive: requests without any store, in the same minute, as the limit that stores
//! are held against.

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use flashgrain::SyncMethod;
use flashgrain_device::{BackendKind, Device, FileDevice, OpenOptions};
use flashgrain_model::{Access, Workload};
use flashgrain_profile::Error;
use flashgrain_profile::load::{self, Load, Measured, Pattern, Region, Stop, Sync};
use flashgrain_profile::schema::Latency;
use serde::{Deserialize, Serialize};

/// Share of each measurement that is not counted.
const WARMUP_FRACTION: f64 = 0.2;

/// Requests as a store makes them.
#[derive(Clone, Copy, Debug)]
pub struct RawRequests {
    /// Size, concurrency and kind of the requests.
    pub workload: Workload,
    /// How each write is made durable.
    pub sync: Sync,
    /// Requests per second of an open loop; a closed loop if there is none.
    pub rate_per_s: Option<f64>,
}

impl RawRequests {
    /// Random reads or writes, `in_flight` at a time.
    pub fn random(access: Access, bytes: f64, in_flight: u32) -> Self {
        let workload = Workload::random(access, bytes, f64::from(in_flight));
        Self { workload, sync: Sync::None, rate_per_s: None }
    }

    /// Writes of a log block one after another, each made durable.
    pub fn durable_writes(bytes: f64, method: SyncMethod) -> Self {
        let workload = Workload { random_share: 0.0, ..Workload::random(Access::Write, bytes, 1.0) };
        Self { workload, sync: method.into(), rate_per_s: None }
    }
}

/// A device that is measured without a store.
pub struct RawDrive<'a> {
    /// The device.
    pub device: &'a dyn Device,
    /// Threads at most; a simulated device has one.
    pub workers: u32,
    /// Seed of the next measurement.
    pub seed: u64,
    /// Ends a measurement early.
    pub interrupt: &'a AtomicBool,
    /// Bytes that all measurements have written.
    pub written_bytes: u64,
}

impl<'a> RawDrive<'a> {
    /// The state before the first measurement.
    pub fn new(device: &'a dyn Device, workers: u32, seed: u64, interrupt: &'a AtomicBool) -> Self {
        Self { device, workers, seed, interrupt, written_bytes: 0 }
    }

    /// Makes requests in `region` until `stop`.
    ///
    /// # Errors
    /// Errors of the device.
    pub fn measure(&mut self, requests: RawRequests, region: Region, stop: Stop) -> Result<Measured, Error> {
        let RawRequests { workload, sync, rate_per_s } = requests;
        let workers = if self.device.simulation().is_some() { 1 } else { self.workers };
        let load = Load {
            workload,
            pattern: Pattern::Mixed { align_bytes: None },
            region,
            workers: workers.min(workload.concurrency as u32).max(1),
            sync,
            rate_per_s,
            polled: false,
            warmup_share: WARMUP_FRACTION,
            stop,
            seed: self.seed,
        };
        self.seed += 1;
        let measured = load::run(self.device, &load, self.interrupt)?;
        self.written_bytes += measured.bytes_written_total;
        Ok(measured)
    }

    /// The same, for a result that is of no use unless it is complete.
    ///
    /// # Errors
    /// Those of the device, and [`Error::Interrupted`].
    pub fn measure_to_end(
        &mut self,
        requests: RawRequests,
        region: Region,
        stop: Stop,
    ) -> Result<Measured, Error> {
        let measured = self.measure(requests, region, stop)?;
        if measured.interrupted { Err(Error::Interrupted) } else { Ok(measured) }
    }
}

/// An unnamed file for raw requests, written once so that reads reach the drive. It vanishes with this value.
pub struct RawFile {
    device: FileDevice,
}

/// The file is written in whole requests.
const LAY_OUT_BYTES: u64 = 1 << 20;

impl RawFile {
    /// Makes a file of at least `bytes` bytes in `directory`.
    ///
    /// # Errors
    /// Errors of the device.
    pub fn new(directory: &Path, bytes: u64, interrupt: &AtomicBool) -> Result<Self, Error> {
        let open = OpenOptions { write: true, ..OpenOptions::default() };
        let bytes = bytes.next_multiple_of(LAY_OUT_BYTES);
        let device = FileDevice::scratch(&[PathBuf::from(directory)], bytes, &open)?;
        let file = Self { device };
        load::lay_out(&file.device, file.region(), interrupt)?;
        Ok(file)
    }

    /// The file.
    pub fn device(&self) -> &dyn Device {
        &self.device
    }

    /// The file through another interface of the kernel.
    ///
    /// # Errors
    /// If that is not available.
    pub fn with_backend(&self, backend: BackendKind) -> Result<FileDevice, Error> {
        Ok(self.device.with_backend(backend)?)
    }

    /// All of it.
    pub fn region(&self) -> Region {
        Region { offset_bytes: 0, length_bytes: self.device.geometry().capacity_bytes }
    }
}

/// Bytes of each request of a [`RawLimit`].
const REQUEST_BYTES: f64 = 4096.0;

/// Random reads and random writes of 4 KiB.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RawLimit {
    /// Reads per second at the depth that was asked for.
    pub reads_per_s: f64,
    /// CPU microseconds of each.
    pub cpu_us_per_read: f64,
    /// Writes per second at the same depth.
    pub writes_per_s: f64,
}

impl RawLimit {
    /// Measures for about `seconds`, with `depth` requests in flight.
    ///
    /// # Errors
    /// Errors of the device.
    pub fn measure(
        file: &RawFile,
        depth: u32,
        cores: u32,
        seconds: f64,
        seed: u64,
        interrupt: &AtomicBool,
    ) -> Result<Self, Error> {
        let mut drive = RawDrive::new(file.device(), cores, seed, interrupt);
        let mut run = |access| {
            let requests = RawRequests::random(access, REQUEST_BYTES, depth);
            drive.measure(requests, file.region(), after(seconds / 2.0))
        };
        let (reads, writes) = (run(Access::Read)?, run(Access::Write)?);
        Ok(Self {
            reads_per_s: reads.iops(),
            cpu_us_per_read: reads.cpu_us_per_request(),
            writes_per_s: writes.iops(),
        })
    }

    /// Latency of `reads_per_s` random reads of 4 KiB per second in an open loop, with at most `depth` under
    /// way, as the waiting client sees it. Measures for about `seconds`. `None` if it was interrupted.
    ///
    /// # Errors
    /// Errors of the device.
    pub fn latency_at(
        file: &RawFile,
        reads_per_s: f64,
        depth: u32,
        cores: u32,
        seconds: f64,
        seed: u64,
        interrupt: &AtomicBool,
    ) -> Result<Option<Latency>, Error> {
        let mut drive = RawDrive::new(file.device(), cores, seed, interrupt);
        let reads = RawRequests::random(Access::Read, REQUEST_BYTES, depth);
        let requests = RawRequests { rate_per_s: Some(reads_per_s), ..reads };
        let measured = drive.measure(requests, file.region(), after(seconds))?;
        let Measured { read_latency_ns, interrupted, .. } = measured;
        Ok((!interrupted && !read_latency_ns.is_empty()).then(|| Latency::of(&read_latency_ns)))
    }
}

fn after(seconds: f64) -> Stop {
    Stop { after_s: Some(seconds), ..Stop::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_drive_is_measured_on_a_file_of_any_size() {
        let (folder, interrupt) = (tempfile::tempdir().unwrap(), AtomicBool::new(false));
        let file = RawFile::new(folder.path(), (1 << 20) + 1, &interrupt).unwrap();
        let limit = RawLimit::measure(&file, 4, 2, 0.1, 1, &interrupt).unwrap();
        assert!(limit.reads_per_s > 0.0 && limit.writes_per_s > 0.0, "{limit:?}");
    }

    #[test]
    fn reads_at_a_rate_have_their_latency() {
        let (folder, interrupt) = (tempfile::tempdir().unwrap(), AtomicBool::new(false));
        let file = RawFile::new(folder.path(), 1 << 20, &interrupt).unwrap();
        let latency = RawLimit::latency_at(&file, 1000.0, 4, 2, 0.2, 1, &interrupt).unwrap().unwrap();
        assert!((50..400).contains(&latency.count) && latency.p50_us > 0.0, "{latency:?}");
    }
}
