//! What the device itself does at the same depth: the limit that the store is measured against.

use std::sync::atomic::AtomicBool;

use flashgrain_device::Device;
use flashgrain_model::{Access, Workload};
use flashgrain_profile::load::{self, Load, Pattern, Region, Stop, Sync};
use serde::Serialize;

use crate::workload::Direction;

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
    /// One more run: `depth` random reads of `bytes` at a time by `workers` threads, anywhere in `region`.
    pub fn measure(
        &mut self,
        device: &dyn Device,
        region: Region,
        (bytes, depth, workers): (u32, u32, u32),
        seconds: f64,
        seed: u64,
        interrupt: &AtomicBool,
    ) -> anyhow::Result<()> {
        let load = Load {
            workload: Workload::random(Access::Read, f64::from(bytes), f64::from(depth)),
            pattern: Pattern::Mixed { align_bytes: None },
            region,
            workers,
            sync: Sync::None,
            rate_per_s: None,
            polled: false,
            warmup_share: 0.2,
            stop: Stop { after_s: Some(seconds), ..Stop::default() },
            seed: seed + self.runs.len() as u64,
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
