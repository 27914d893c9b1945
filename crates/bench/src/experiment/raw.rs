//! Reads of the device itself at the same depth: the limit that the store is measured against.

use std::sync::atomic::AtomicBool;

use flashgrain_device::Device;
use flashgrain_model::Access;
use flashgrain_profile::load::{Region, Stop};
use serde::Serialize;

use crate::measure::{Direction, RawDrive, RawRequests};
use crate::store::Options;

/// Of each read: the size of most nodes.
const READ_BYTES: f64 = 4096.0;

/// Reads of a simulated device, at most.
const SIMULATED_READS: u64 = 200_000;

/// Random reads of the device, in runs before and after the store's.
#[derive(Debug, Default, Serialize)]
pub struct Raw {
    /// The measurements, in order.
    pub runs: Vec<RawRun>,
}

/// One run.
#[derive(Debug, Serialize)]
pub struct RawRun {
    /// None if nothing was read.
    pub read: Option<Direction>,
    /// Processor time of each.
    pub cpu_us_per_read: f64,
}

impl Raw {
    /// One more run: random reads anywhere in `region`, as many at a time as the store has tasks.
    pub(super) fn measure(
        &mut self,
        device: &dyn Device,
        region: Region,
        options: &Options,
        interrupt: &AtomicBool,
    ) -> anyhow::Result<()> {
        let tasks = options.store.tasks;
        let simulated_max = SIMULATED_READS.max(16 * u64::from(tasks));
        let stop = Stop {
            after_s: Some(options.raw_seconds),
            after_requests: device.simulation().is_some().then_some(simulated_max),
            ..Stop::default()
        };
        let seed = options.seed + self.runs.len() as u64;
        let measured = RawDrive::new(device, options.store.workers, seed, interrupt).measure(
            RawRequests::random(Access::Read, READ_BYTES, tasks),
            region,
            stop,
        )?;
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
