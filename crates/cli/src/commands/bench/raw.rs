//! What the device itself does at the same depth: the limit that the store is measured against.

use std::sync::atomic::AtomicBool;

use flashgrain::SpaceStats;
use flashgrain_device::Device;
use flashgrain_model::{Access, Workload};
use flashgrain_profile::load::{self, Load, Pattern, Region, Stop, Sync};
use serde::Serialize;

use super::options::BenchOptions;
use crate::workload::Direction;

/// Of each read: what most nodes have.
const READ_BYTES: f64 = 4096.0;

/// Reads of a simulated device, at most.
const SIMULATED_READS: u64 = 200_000;

/// Random reads of the device, in runs before and after the store's.
#[derive(Debug, Default, Serialize)]
pub struct Raw {
    pub runs: Vec<RawRun>,
}

/// One run.
#[derive(Debug, Serialize)]
pub struct RawRun {
    pub read: Option<Direction>,
    pub cpu_us_per_read: f64,
}

impl Raw {
    /// Where a store's pages are. Segments are taken from the first on; the rest of a file was never written and would be answered without the drive.
    pub fn region(space: &SpaceStats) -> Region {
        let written = (space.segments - space.free_segments) * space.segment_bytes;
        Region { offset_bytes: space.segments_start_bytes, length_bytes: written }
    }

    /// One more run: random reads anywhere in `region`, as many at a time as the store has tasks.
    pub fn measure(
        &mut self,
        device: &dyn Device,
        region: Region,
        options: &BenchOptions,
        interrupt: &AtomicBool,
    ) -> anyhow::Result<()> {
        let is_simulated = device.simulation().is_some();
        let load = Load {
            workload: Workload::random(Access::Read, READ_BYTES, f64::from(options.tasks)),
            pattern: Pattern::Mixed { align_bytes: None },
            region,
            workers: if is_simulated { 1 } else { options.workers() },
            sync: Sync::None,
            rate_per_s: None,
            polled: false,
            warmup_share: 0.2,
            stop: Stop {
                after_s: Some(options.raw_seconds),
                after_requests: is_simulated.then(|| SIMULATED_READS.max(16 * u64::from(options.tasks))),
                ..Stop::default()
            },
            seed: options.seed + self.runs.len() as u64,
        };
        let measured = load::run(device, &load, interrupt)?;
        let (read, cpu_us_per_read) = (Direction::of_reads(&measured), measured.cpu_us_per_request());
        self.runs.push(RawRun { read, cpu_us_per_read });
        Ok(())
    }

    fn mean(&self, of: impl Fn(&RawRun) -> f64) -> Option<f64> {
        let count = self.runs.len();
        (count > 0).then(|| self.runs.iter().map(of).sum::<f64>() / count as f64)
    }

    /// Reads per second, mean over the runs.
    pub fn reads_per_s(&self) -> Option<f64> {
        self.mean(|run| run.read.as_ref().map_or(0.0, |read| read.requests_per_s))
    }

    /// Mean over the runs.
    pub fn cpu_us_per_read(&self) -> Option<f64> {
        self.mean(|run| run.cpu_us_per_read)
    }
}
