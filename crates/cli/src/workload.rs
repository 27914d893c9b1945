//! A workload as it is typed: the shared part of `io` and `sim run`.

use clap::{Args, ValueEnum};
use flashgrain_device::Geometry;
use flashgrain_model::Workload;
use flashgrain_profile::load::{Load, Pattern, Region, Stop, Sync};
use flashgrain_report::unit;

use crate::exit::Usage;
use crate::units::{count_within, parse_positive_bytes, parse_rate, parse_region, parse_share};

/// Largest request: far beyond the largest that kernels send to a drive as one.
const BLOCK_BYTES_MAX: u64 = 64 << 20;
/// Most memory for requests in flight.
const MEMORY_BYTES_MAX: u64 = 4 << 30;

/// Form and order of requests.
#[derive(Debug, Args)]
pub struct WorkloadOptions {
    /// Order of the requests: `rand`, `seq`, or the share of requests that start at a random place, such as
    /// 10%.
    #[arg(long, value_name = "rand|seq|SHARE", value_parser = parse_pattern, default_value = "rand")]
    pub pattern: f64,
    /// Share of the requests that are reads, such as 0.7 or 70%.
    #[arg(long, value_name = "SHARE", value_parser = parse_share, default_value = "100%")]
    pub read_share: f64,
    /// Size of each request.
    #[arg(long, value_name = "SIZE", value_parser = parse_positive_bytes, default_value = "4KiB")]
    pub block_size: u64,
    /// Requests in flight, all workers together.
    #[arg(long, value_parser = count_within::<u32>(1..=65_536), default_value_t = 32)]
    pub depth: u32,
    /// How each write is made durable.
    #[arg(long, value_enum, default_value_t = SyncMethod::None)]
    pub sync: SyncMethod,
    /// Open loop: requests per second at random (Poisson) times, whether earlier ones are done or not.
    #[arg(long, value_name = "REQUESTS_PER_SECOND", value_parser = parse_rate)]
    pub rate: Option<f64>,
    /// Use only this part of the target, such as 1GiB:256MiB.
    #[arg(long, value_name = "OFFSET:LENGTH", value_parser = parse_region)]
    pub region: Option<Region>,
    /// Seed of the offsets, the mix and the arrival times.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
}

/// How a write is made durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum SyncMethod {
    /// Not at all.
    None,
    /// `RWF_DSYNC` on each write.
    Dsync,
    /// A write linked to a flush in one submission.
    LinkedFlush,
    /// A write, and `fdatasync` when it is done.
    Fdatasync,
}

fn parse_pattern(text: &str) -> Result<f64, String> {
    match text {
        "rand" => Ok(1.0),
        "seq" => Ok(0.0),
        share => parse_share(share).map_err(|_| "expected rand, seq, or a share such as 10%".to_owned()),
    }
}

impl WorkloadOptions {
    /// Refuses workloads that make no sense on any target.
    pub fn check(&self) -> Result<(), Usage> {
        if self.sync != SyncMethod::None && !self.writes() {
            return Err(Usage(
                "--sync makes writes durable, but there are none: add --read-share 0 or another share below 1".into(),
            ));
        }
        let memory = self.block_size.saturating_mul(u64::from(self.depth));
        if self.block_size > BLOCK_BYTES_MAX || memory > MEMORY_BYTES_MAX {
            return Err(Usage(format!(
                "--depth {} with --block-size {}: a request may have up to {}, all in flight up to {}",
                self.depth,
                unit::bytes(self.block_size as f64),
                unit::bytes(BLOCK_BYTES_MAX as f64),
                unit::bytes(MEMORY_BYTES_MAX as f64)
            )));
        }
        Ok(())
    }

    pub fn writes(&self) -> bool {
        self.read_share < 1.0
    }

    /// In words, such as `4 KiB requests, 100 % random, 70 % reads, 32 in flight`.
    pub fn describe(&self) -> String {
        format!(
            "{} requests, {} random, {} reads, {} in flight",
            unit::bytes(self.block_size as f64),
            unit::share(self.pattern),
            unit::share(self.read_share),
            self.depth
        )
    }

    /// By one worker, for `warmup_s` that do not count and `seconds` that do.
    pub fn load(&self, geometry: &Geometry, warmup_s: f64, seconds: f64) -> Load {
        let whole = Region { offset_bytes: 0, length_bytes: geometry.capacity_bytes };
        let run_s = warmup_s + seconds;
        Load {
            workload: Workload {
                read_share: self.read_share,
                request_bytes: self.block_size as f64,
                random_share: self.pattern,
                concurrency: f64::from(self.depth),
            },
            pattern: Pattern::Mixed { align_bytes: None },
            region: self.region.unwrap_or(whole),
            workers: 1,
            sync: match self.sync {
                SyncMethod::None => Sync::None,
                SyncMethod::Dsync => Sync::Dsync,
                SyncMethod::LinkedFlush => Sync::LinkedFlush,
                SyncMethod::Fdatasync => Sync::WriteThenFdatasync,
            },
            rate_per_s: self.rate,
            polled: false,
            warmup_share: warmup_s / run_s,
            stop: Stop { after_s: Some(run_s), ..Stop::default() },
            seed: self.seed,
        }
    }
}
