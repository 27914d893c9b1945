//! `flashgrain io`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use flashgrain_device::{Device, Geometry, Identity};
use flashgrain_model::Workload;
use flashgrain_profile::Error;
use flashgrain_profile::load::{self, Load, Measured, Pattern, Region, Stop, Sync};
use flashgrain_profile::schema::Latency;
use flashgrain_report::unit;
use hdrhistogram::Histogram;
use serde::Serialize;

use crate::arguments::{Backend, TargetOptions};
use crate::exit::Usage;
use crate::output::{Context, print, print_json};
use crate::target::{self, Access, ScratchSize};
use crate::units::{parse_positive_bytes, parse_rate, parse_region, parse_seconds, parse_share};

/// Drive a target with one I/O workload and measure it.
///
/// A directory gets an unnamed scratch file, written once before the measurement. Existing files and block devices are read;
/// writing to them needs `--destroy-contents-of`. Several targets become one RAID 0.
#[derive(Debug, Args)]
pub struct IoArguments {
    /// A directory, a file or a block device; several of one kind for a stripe set.
    #[arg(required = true, value_name = "TARGET")]
    targets: Vec<PathBuf>,
    /// Where requests go: `rand`, `seq`, or the share of requests that start at a random place, such as 10%.
    #[arg(long, value_name = "rand|seq|SHARE", value_parser = parse_pattern, default_value = "rand")]
    pattern: f64,
    /// Share of the requests that are reads, such as 0.7 or 70%.
    #[arg(long, value_name = "SHARE", value_parser = parse_share, default_value = "100%")]
    read_share: f64,
    /// Size of each request.
    #[arg(long, value_name = "SIZE", value_parser = parse_positive_bytes, default_value = "4KiB")]
    block_size: u64,
    /// Requests in flight, all workers together.
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=65_536), default_value_t = 32)]
    depth: u32,
    /// Threads, each with its own queue; the requests in flight are spread over them.
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=1024), default_value_t = 1)]
    workers: u32,
    /// How each write is made durable.
    #[arg(long, value_enum, default_value_t = SyncMethod::None)]
    sync: SyncMethod,
    /// Open loop: requests per second at random (Poisson) times, whether earlier ones are done or not.
    #[arg(long, value_name = "REQUESTS_PER_SECOND", value_parser = parse_rate)]
    rate: Option<f64>,
    /// Use only this part of the target, such as 1GiB:256MiB.
    #[arg(long, value_name = "OFFSET:LENGTH", value_parser = parse_region)]
    region: Option<Region>,
    /// Size of the scratch file in a directory; 1 GiB unless given.
    #[arg(long, value_name = "SIZE", value_parser = parse_positive_bytes)]
    file_size: Option<u64>,
    /// Time that is measured.
    #[arg(long, value_name = "TIME", value_parser = parse_seconds, default_value = "10")]
    seconds: f64,
    /// Time before it that is not counted.
    #[arg(long, value_name = "TIME", value_parser = parse_seconds, default_value = "0.5")]
    warmup: f64,
    /// Poll the drive for completions instead of sleeping, where it has poll queues (io_uring only).
    #[arg(long)]
    polled: bool,
    /// Seed of the offsets, the mix and the arrival times.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Print the result as JSON.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    target: TargetOptions,
}

/// Scratch file unless asked otherwise: larger than the caches of most drives' controllers.
const FILE_BYTES: u64 = 1 << 30;
/// Largest request: far beyond the largest that kernels send to a drive as one.
const MAX_BLOCK_BYTES: u64 = 64 << 20;
/// Most memory for requests in flight.
const MAX_MEMORY_BYTES: u64 = 4 << 30;

/// How a write is made durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum SyncMethod {
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

pub fn run(arguments: &IoArguments, context: &Context) -> anyhow::Result<()> {
    arguments.check()?;
    let interrupt = context.interrupt.watch()?;
    let access = if arguments.read_share < 1.0 { Access::Write } else { Access::Read };
    let size = ScratchSize { asked: arguments.file_size, default: FILE_BYTES };
    let device = target::open(&arguments.targets, size, access, &arguments.target, context)?;
    let Identity { backend, backend_reason, .. } = device.identity();
    context.note(&format!("backend {backend}: {backend_reason}"));
    if target::is_scratch(&arguments.targets) {
        let whole = Region { offset_bytes: 0, length_bytes: device.geometry().capacity_bytes };
        context.note(&format!("writing the scratch file of {} once", unit::bytes(whole.length_bytes as f64)));
        load::lay_out(&device, whole, interrupt)?;
    }
    if arguments.polled && device.identity().poll_queues != Some(true) {
        context.note("note: --polled has no effect: this drive has no poll queues (see its queue/io_poll under /sys/block)");
    }
    let load = arguments.load(device.geometry());
    context.note(&format!("running {} for {} s", arguments.describe(), arguments.seconds));
    let measured = load::run(&device, &load, interrupt)?;
    let result = IoResult::new(&device, &load, &measured);
    if arguments.json {
        print_json(&result)?;
    } else {
        print(&result.table())?;
    }
    if measured.interrupted { Err(Error::Interrupted.into()) } else { Ok(()) }
}

impl IoArguments {
    /// What can be said about the arguments without looking at the target.
    fn check(&self) -> Result<(), Usage> {
        let writes = self.read_share < 1.0;
        if self.workers > self.depth {
            return Err(Usage(format!(
                "--workers {} with --depth {}: every worker needs at least one request in flight",
                self.workers, self.depth
            )));
        }
        if self.sync != SyncMethod::None && !writes {
            return Err(Usage(
                "--sync makes writes durable, but there are none: add --read-share 0 or another share below 1".into(),
            ));
        }
        if self.polled && !matches!(self.target.backend, Backend::Auto | Backend::IoUring) {
            return Err(Usage("--polled needs the io_uring backend".into()));
        }
        let memory = self.block_size.saturating_mul(u64::from(self.depth));
        if self.block_size > MAX_BLOCK_BYTES || memory > MAX_MEMORY_BYTES {
            return Err(Usage(format!(
                "--depth {} with --block-size {}: a request may have up to {}, all in flight up to {}",
                self.depth,
                unit::bytes(self.block_size as f64),
                unit::bytes(MAX_BLOCK_BYTES as f64),
                unit::bytes(MAX_MEMORY_BYTES as f64)
            )));
        }
        Ok(())
    }

    /// The load in words, such as `4 KiB requests, 100 % random, 70 % reads, 32 in flight`.
    fn describe(&self) -> String {
        format!(
            "{} requests, {} random, {} reads, {} in flight",
            unit::bytes(self.block_size as f64),
            unit::share(self.pattern),
            unit::share(self.read_share),
            self.depth
        )
    }

    fn load(&self, geometry: &Geometry) -> Load {
        let whole = Region { offset_bytes: 0, length_bytes: geometry.capacity_bytes };
        let run_s = self.warmup + self.seconds;
        Load {
            workload: Workload {
                read_share: self.read_share,
                request_bytes: self.block_size as f64,
                random_share: self.pattern,
                concurrency: f64::from(self.depth),
            },
            pattern: Pattern::Mixed { align_bytes: None },
            region: self.region.unwrap_or(whole),
            workers: self.workers,
            sync: match self.sync {
                SyncMethod::None => Sync::None,
                SyncMethod::Dsync => Sync::Dsync,
                SyncMethod::LinkedFlush => Sync::LinkedFlush,
                SyncMethod::Fdatasync => Sync::WriteThenFdatasync,
            },
            rate_per_s: self.rate,
            polled: self.polled,
            warmup_share: self.warmup / run_s,
            stop: Stop { after_s: Some(run_s), ..Stop::default() },
            seed: self.seed,
        }
    }
}

/// The result, for programs; the table for people is made from it.
#[derive(Debug, Serialize)]
struct IoResult<'a> {
    flashgrain_version: &'static str,
    identity: &'a Identity,
    geometry: &'a Geometry,
    workload: Workload,
    workers: u32,
    rate_per_s: Option<f64>,
    seed: u64,
    elapsed_s: f64,
    read: Option<Direction>,
    write: Option<Direction>,
    cpu_us_per_request: f64,
    interrupted: bool,
}

/// What one direction reached.
#[derive(Debug, Serialize)]
struct Direction {
    requests_per_s: f64,
    bytes_per_s: f64,
    latency: Latency,
}

impl Direction {
    fn new(bytes: u64, latency_ns: &Histogram<u64>, elapsed_s: f64) -> Option<Self> {
        (!latency_ns.is_empty()).then(|| Self {
            requests_per_s: latency_ns.len() as f64 / elapsed_s,
            bytes_per_s: bytes as f64 / elapsed_s,
            latency: Latency::of(latency_ns),
        })
    }
}

impl<'a> IoResult<'a> {
    fn new(device: &'a dyn Device, load: &Load, measured: &Measured) -> Self {
        let elapsed_s = measured.elapsed.seconds();
        Self {
            flashgrain_version: env!("CARGO_PKG_VERSION"),
            identity: device.identity(),
            geometry: device.geometry(),
            workload: load.workload,
            workers: load.workers,
            rate_per_s: load.rate_per_s,
            seed: load.seed,
            elapsed_s,
            read: Direction::new(measured.bytes_read, &measured.read_latency_ns, elapsed_s),
            write: Direction::new(measured.bytes_written, &measured.write_latency_ns, elapsed_s),
            cpu_us_per_request: measured.cpu_us_per_request(),
            interrupted: measured.interrupted,
        }
    }

    fn table(&self) -> String {
        let mut text = format!(
            "{:<7}{:>9}{:>14}{:>10}{:>10}{:>10}{:>10}{:>10}{:>10}\n",
            "", "IOPS", "bandwidth", "mean", "p50", "p90", "p99", "p99.9", "max"
        );
        for (name, direction) in [("reads", &self.read), ("writes", &self.write)] {
            let Some(Direction { requests_per_s, bytes_per_s, latency }) = direction else { continue };
            text += &format!("{name:<7}{:>9}{:>14}", unit::count(*requests_per_s), unit::rate(*bytes_per_s));
            let Latency { mean_us, p50_us, p90_us, p99_us, p99_9_us, max_us, .. } = latency;
            for micros in [mean_us, p50_us, p90_us, p99_us, p99_9_us, max_us] {
                text += &format!("{:>10}", unit::micros(*micros));
            }
            text.push('\n');
        }
        if self.read.is_none() && self.write.is_none() {
            text += "nothing was completed in the measured time\n";
        }
        text + &format!(
            "CPU    {} per I/O over {}\n",
            unit::micros(self.cpu_us_per_request),
            unit::seconds(self.elapsed_s)
        )
    }
}
