//! What the drive does without any engine, measured in the same minute: the limit that engines are held against.

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use flashgrain_device::{FileDevice, OpenOptions};
use flashgrain_model::{Access, Workload};
use flashgrain_profile::load::{self, Load, Measured, Pattern, Region, Stop, Sync};
use flashgrain_profile::schema::Latency;
use serde::{Deserialize, Serialize};

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

/// A file beside the engines' for raw requests.
pub struct Raw {
    device: FileDevice,
    region: Region,
}

const REQUEST_BYTES: f64 = 4096.0;

/// The file is written in whole requests.
const WRITE_BYTES: u64 = 1 << 20;

impl Raw {
    /// Of at least so many bytes in `directory`, written once so that reads reach the drive. It vanishes with this value.
    ///
    /// # Errors
    /// Those of the device.
    pub fn new(directory: &Path, bytes: u64, interrupt: &AtomicBool) -> anyhow::Result<Self> {
        let bytes = bytes.next_multiple_of(WRITE_BYTES);
        let device = FileDevice::scratch(&[PathBuf::from(directory)], bytes, &OpenOptions::default())?;
        let region = Region { offset_bytes: 0, length_bytes: bytes };
        load::lay_out(&device, region, interrupt)?;
        Ok(Self { device, region })
    }

    /// Measures for about `seconds`, with `depth` requests in flight.
    ///
    /// # Errors
    /// Those of the device.
    pub fn measure(
        &self,
        depth: u32,
        cores: u32,
        seconds: f64,
        seed: u64,
        interrupt: &AtomicBool,
    ) -> anyhow::Result<RawLimit> {
        let run = |access| {
            let load = Load { stop: after(seconds / 2.0), ..self.load(access, depth, cores, seed) };
            load::run(&self.device, &load, interrupt)
        };
        let (reads, writes) = (run(Access::Read)?, run(Access::Write)?);
        Ok(RawLimit {
            reads_per_s: reads.iops(),
            cpu_us_per_read: reads.cpu_us_per_request(),
            writes_per_s: writes.iops(),
        })
    }

    /// Latency of so many random reads of 4 KiB per second in an open loop, of which `depth` may be under way, as seen by whom they are for. Measures for about `seconds`.
    /// `None` if it was interrupted.
    ///
    /// # Errors
    /// Those of the device.
    pub fn latency_at(
        &self,
        reads_per_s: f64,
        depth: u32,
        cores: u32,
        seconds: f64,
        seed: u64,
        interrupt: &AtomicBool,
    ) -> anyhow::Result<Option<Latency>> {
        let load = Load {
            rate_per_s: Some(reads_per_s),
            stop: after(seconds),
            ..self.load(Access::Read, depth, cores, seed)
        };
        let Measured { read_latency_ns, interrupted, .. } = load::run(&self.device, &load, interrupt)?;
        Ok((!interrupted && !read_latency_ns.is_empty()).then(|| Latency::of(&read_latency_ns)))
    }

    fn load(&self, access: Access, depth: u32, cores: u32, seed: u64) -> Load {
        Load {
            workload: Workload::random(access, REQUEST_BYTES, f64::from(depth)),
            pattern: Pattern::Mixed { align_bytes: None },
            region: self.region,
            workers: cores.min(depth).max(1),
            sync: Sync::None,
            rate_per_s: None,
            polled: false,
            warmup_share: 0.2,
            stop: Stop::default(),
            seed,
        }
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
        let raw = Raw::new(folder.path(), (1 << 20) + 1, &interrupt).unwrap();
        let limit = raw.measure(4, 2, 0.1, 1, &interrupt).unwrap();
        assert!(limit.reads_per_s > 0.0 && limit.writes_per_s > 0.0, "{limit:?}");
    }

    #[test]
    fn reads_at_a_rate_have_their_latency() {
        let (folder, interrupt) = (tempfile::tempdir().unwrap(), AtomicBool::new(false));
        let raw = Raw::new(folder.path(), 1 << 20, &interrupt).unwrap();
        let latency = raw.latency_at(1000.0, 4, 2, 0.2, 1, &interrupt).unwrap().unwrap();
        assert!((50..400).contains(&latency.count) && latency.p50_us > 0.0, "{latency:?}");
    }
}
