//! Options of an experiment on a store, as they are typed.

use std::path::PathBuf;
use std::sync::Arc;

use clap::{Args, ValueEnum};
use flashgrain::Durability;
use flashgrain_bench::fill::Order;
use flashgrain_bench::keys::{Distribution, KEY_BYTES_MIN};
use flashgrain_bench::processor::ProcessorCosts;
use flashgrain_bench::records::Records;
use flashgrain_bench::store::{Options, StoreOptions};

use crate::arguments::Backend;
use crate::exit::Usage;
use crate::results;
use crate::units::{count_within, parse_positive_bytes, parse_seconds, parse_share, size_within};

/// The options that all experiments share.
#[derive(Clone, Debug, Args)]
pub struct BenchOptions {
    /// A directory on the drive; `mem` for a device in memory, so that the CPU is the limit; or sim:PRESET or
    /// sim:FILE.toml.
    #[arg(value_name = "TARGET")]
    pub target: PathBuf,
    /// Records in the store.
    #[arg(long, value_parser = count_within::<u64>(1..=1 << 40), default_value_t = 1_000_000)]
    pub records: u64,
    /// Bytes of each key.
    #[arg(long, value_parser = size_within::<u32>(KEY_BYTES_MIN as u64..=1024), default_value_t = 8)]
    pub key_bytes: u32,
    /// Bytes of each value.
    #[arg(long, value_parser = size_within::<u32>(0..=1 << 20), default_value_t = 120)]
    pub value_bytes: u32,
    /// Memory for pages: a size, or a share of the records' bytes.
    #[arg(long, value_name = "SIZE|SHARE", value_parser = parse_cache, default_value = "10%")]
    pub cache: CacheSize,
    /// Worker threads, or simulated ones; one per core unless given.
    #[arg(long, value_parser = count_within::<u32>(1..=1024))]
    pub workers: Option<u32>,
    /// Keep each worker on a core of its own, from the first on.
    #[arg(long)]
    pub pin: bool,
    /// Operations under way at a time, all workers together.
    #[arg(long, value_parser = count_within::<u32>(1..=65_536), default_value_t = 128)]
    pub tasks: u32,
    /// Time that is measured; virtual time on a simulated drive.
    #[arg(long, value_name = "TIME", value_parser = parse_seconds, default_value = "10")]
    pub seconds: f64,
    /// End after this number of operations if that is earlier; on a simulated drive a million unless given.
    #[arg(long, value_name = "COUNT", value_parser = count_within::<u64>(1..))]
    pub operations: Option<u64>,
    /// Time before it that is not counted.
    #[arg(long, value_name = "TIME", value_parser = parse_seconds, default_value = "2")]
    pub warmup: f64,
    /// Distribution of the records that are accessed: uniform, zipf, or zipf:THETA.
    #[arg(long, default_value = "uniform")]
    pub distribution: Distribution,
    /// How durable each write is when it returns.
    #[arg(long, value_enum, default_value_t = DurabilityName::None)]
    pub durability: DurabilityName,
    /// How requests to a directory reach the kernel.
    #[arg(long, value_enum, default_value_t = Backend::Auto)]
    pub backend: Backend,
    /// Poll the drive for completions instead of sleeping, where it has poll queues (not by libaio or sync).
    #[arg(long)]
    pub polled: bool,
    /// Keep each page at one place, one write per page: the baseline that out-of-place writing is compared
    /// with.
    #[arg(long)]
    pub in_place: bool,
    /// How the records are put in before the measurement: in key order, which makes full pages; at random,
    /// which leaves a third of each empty; or in stretches, which does so, too, but need not read a page
    /// again.
    #[arg(long, value_enum, default_value_t = Order::Sequential)]
    pub fill_order: Order,
    /// Give the store room such that its pages, each counted whole, would take this share of it, instead of
    /// letting it grow. A simulated drive is given that size; unless given it is half full, or has 1 GiB.
    #[arg(long, value_name = "SHARE", value_parser = parse_space_use)]
    pub space_use: Option<f64>,
    /// Size of the log's ring; by default as the layout decides.
    #[arg(long, value_name = "SIZE", value_parser = parse_positive_bytes)]
    pub log_size: Option<u64>,
    /// The most log that a recovery may have to read: less means more checkpoints.
    #[arg(long, value_name = "SIZE", value_parser = parse_positive_bytes)]
    pub recovery_log: Option<u64>,
    /// Node size; by default as the layout decides.
    #[arg(long, value_name = "SIZE", value_parser = parse_positive_bytes)]
    pub node_size: Option<u64>,
    /// A profile of the drive, or the folder of results with one, which decides the layout.
    #[arg(long, value_name = "FILE")]
    pub profile: Option<PathBuf>,
    /// A directory on another drive for the log.
    #[arg(long, value_name = "DIR")]
    pub log: Option<PathBuf>,
    /// Keep the store, in `flashgrain-bench` in the directory, and use the one that is there if it has the
    /// same records.
    #[arg(long)]
    pub keep: bool,
    /// Time that the raw device is measured before and after, at the same depth; 0s leaves it out.
    #[arg(long, value_name = "TIME", value_parser = parse_pause, default_value = "3")]
    pub raw_seconds: f64,
    /// Times that simulated processors take, in nanoseconds, instead of times measured here at first:
    /// LOOKUP,WRITE,WAIT,REQUEST.
    #[arg(long, value_name = "TIMES")]
    pub cpu_costs: Option<ProcessorCosts>,
    /// Seed of the picks.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Print the result as JSON.
    #[arg(long)]
    pub json: bool,
}

/// Memory for pages.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum CacheSize {
    Bytes(u64),
    /// Of the records' bytes.
    Share(f64),
}

/// [`Durability`], as the user names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum DurabilityName {
    /// It survives a power cut.
    Sync,
    /// It is on its way to the device.
    Buffered,
    /// It is in memory.
    None,
}

impl DurabilityName {
    pub fn durability(self) -> Durability {
        match self {
            Self::Sync => Durability::Sync,
            Self::Buffered => Durability::Buffered,
            Self::None => Durability::None,
        }
    }
}

impl DurabilityName {
    /// The name as it is typed.
    pub fn name(self) -> &'static str {
        match self {
            Self::Sync => "sync",
            Self::Buffered => "buffered",
            Self::None => "none",
        }
    }
}

fn parse_cache(text: &str) -> Result<CacheSize, String> {
    let Some(percent) = text.trim().strip_suffix('%') else {
        return parse_positive_bytes(text).map(CacheSize::Bytes);
    };
    match percent.trim_end().parse::<f64>() {
        Ok(percent) if percent > 0.0 && percent <= 1000.0 => Ok(CacheSize::Share(percent / 100.0)),
        _ => Err("expected a size, or a share above 0% and up to 1000% of the records' bytes".into()),
    }
}

fn parse_space_use(text: &str) -> Result<f64, String> {
    match parse_share(text) {
        Ok(share) if (0.01..=0.9).contains(&share) => Ok(share),
        _ => Err("expected a share from 1% to 90%: a store needs some room to work in".into()),
    }
}

fn parse_pause(text: &str) -> Result<f64, String> {
    if text.trim().trim_end_matches('s') == "0" { Ok(0.0) } else { parse_seconds(text) }
}

impl BenchOptions {
    /// For the harness, if it makes sense; looks at the profile, if there is one, and not at the target.
    pub fn options(&self) -> anyhow::Result<Options> {
        let records = Records {
            count: self.records,
            key_bytes: self.key_bytes as usize,
            value_bytes: self.value_bytes as usize,
        };
        let cores = || std::thread::available_parallelism().map_or(1, |cores| cores.get() as u32);
        let profile = self.profile.as_ref().map(|path| results::read_profile(path)).transpose()?;
        let store = StoreOptions {
            cache_bytes: match self.cache {
                CacheSize::Bytes(bytes) => bytes,
                CacheSize::Share(share) => (records.bytes() as f64 * share) as u64,
            },
            workers: self.workers.unwrap_or_else(cores),
            pin: self.pin,
            tasks: self.tasks,
            durability: self.durability.durability(),
            in_place: self.in_place,
            backend: self.backend.kind(),
            polled: self.polled,
            log_bytes: self.log_size,
            recovery_log_bytes: self.recovery_log,
            node_bytes: self.node_size,
            profile: profile.map(Arc::new),
        };
        let options = Options {
            target: self.target.clone(),
            log: self.log.clone(),
            records,
            fill_order: self.fill_order,
            space_use: self.space_use,
            store,
            seconds: self.seconds,
            operations_max: self.operations,
            warmup_s: self.warmup,
            distribution: self.distribution,
            keep: self.keep,
            raw_seconds: self.raw_seconds,
            processor: self.cpu_costs,
            seed: self.seed,
        };
        self.check(&options)?;
        Ok(options.for_target())
    }

    fn check(&self, options: &Options) -> Result<(), Usage> {
        let StoreOptions { tasks, workers, .. } = options.store;
        if workers > tasks {
            return Err(Usage(format!("--tasks {tasks} for {workers} workers: each needs at least one")));
        }
        if options.simulated().is_some() && (self.keep || self.log.is_some() || self.pin) {
            return Err(Usage(
                "a simulated drive vanishes with the benchmark and has no cores: leave --keep, --log and --pin out"
                    .into(),
            ));
        }
        if (self.backend.kind().is_some() || self.polled)
            && (options.simulated().is_some() || self.target.as_os_str() == "mem")
        {
            return Err(Usage(
                "--backend and --polled are ways to a directory through the kernel: leave them out, or name a directory"
                    .into(),
            ));
        }
        self.backend.check_polled(self.polled)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cache_is_a_size_or_a_share() {
        assert_eq!(parse_cache("10%"), Ok(CacheSize::Share(0.1)));
        assert_eq!(parse_cache("64MiB"), Ok(CacheSize::Bytes(64 << 20)));
        assert!(parse_cache("0").is_err() && parse_cache("0%").is_err() && parse_cache("x%").is_err());
        assert_eq!(parse_pause("0s"), Ok(0.0));
    }
}
