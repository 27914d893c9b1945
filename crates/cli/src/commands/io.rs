//! `flashgrain io`.

use std::path::PathBuf;

use clap::Args;
use flashgrain_bench::measure::{Direction, directions_table};
use flashgrain_device::{Device, Geometry, Identity};
use flashgrain_model::Workload;
use flashgrain_profile::Error;
use flashgrain_profile::load::{self, Load, Measured, Region};
use flashgrain_report::unit;
use serde::Serialize;

use crate::arguments::TargetOptions;
use crate::exit::Usage;
use crate::output::{Context, print, print_json};
use crate::target::{self, Access, Kind, ScratchSize};
use crate::units::{count_within, parse_positive_bytes, parse_seconds};
use crate::workload::WorkloadOptions;

/// Drive a target with one I/O workload and measure it.
///
/// A directory gets an unnamed scratch file, written once before the measurement. Existing files and block
/// devices are read; writing to them needs `--destroy-contents-of`. Several targets become one RAID 0. A
/// simulated drive runs in virtual time.
#[derive(Debug, Args)]
pub struct IoArguments {
    /// A directory, a file, a block device, the character device of an NVMe namespace (/dev/ngXnY, past the
    /// kernel's block layer), or several of one kind for a stripe set; or sim:PRESET or sim:FILE.toml.
    #[arg(required = true, value_name = "TARGET")]
    targets: Vec<PathBuf>,
    #[command(flatten)]
    workload: WorkloadOptions,
    /// Threads, each with its own queue; the requests in flight are spread over them. A simulated drive has
    /// one.
    #[arg(long, value_parser = count_within::<u32>(1..=1024), default_value_t = 1)]
    workers: u32,
    /// Size of the scratch file in a directory; 1 GiB unless given.
    #[arg(long, value_name = "SIZE", value_parser = parse_positive_bytes)]
    file_size: Option<u64>,
    /// Time that is measured; virtual time on a simulated drive.
    #[arg(long, value_name = "TIME", value_parser = parse_seconds, default_value = "10")]
    seconds: f64,
    /// Time before it that is not counted.
    #[arg(long, value_name = "TIME", value_parser = parse_seconds, default_value = "0.5")]
    warmup: f64,
    /// Poll the drive for completions instead of sleeping, where it has poll queues (not by libaio or
    /// sync).
    #[arg(long)]
    polled: bool,
    /// Print the result as JSON.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    target: TargetOptions,
}

/// Scratch file unless asked otherwise: larger than the caches of most drives' controllers.
const FILE_BYTES: u64 = 1 << 30;

pub fn run(arguments: &IoArguments, context: &Context) -> anyhow::Result<()> {
    let kind = Kind::of(&arguments.targets)?;
    arguments.check(kind)?;
    let interrupt = context.interrupt.watch()?;
    let workload = &arguments.workload;
    let access = if workload.writes() { Access::Write } else { Access::Read };
    let size = ScratchSize { asked: arguments.file_size, default: FILE_BYTES };
    let opened = target::open(&arguments.targets, size, access, workload.seed, &arguments.target, context)?;
    let device = opened.device();
    let Identity { backend, backend_reason, .. } = device.identity();
    context.note(&format!("backend {backend}: {backend_reason}"));
    let load = arguments.load(device.geometry());
    // Loads that the device cannot serve are refused before anything is written.
    load::check(device, &load)?;
    if kind == Kind::Existing && workload.writes() {
        context.interrupt.leaves(target::overwritten(&arguments.targets));
    }
    if kind == Kind::Scratch {
        let whole = Region { offset_bytes: 0, length_bytes: device.geometry().capacity_bytes };
        context.note(&format!("writing the scratch file of {} once", unit::bytes(whole.length_bytes as f64)));
        load::lay_out(device, whole, interrupt)?;
    }
    context.note(&format!("running {} for {} s", workload.describe(), arguments.seconds));
    let measured = load::run(device, &load, interrupt);
    target::note_shortages(device, context);
    let measured = measured?;
    let result = IoResult::new(device, &load, &measured);
    if arguments.json {
        print_json(&result)?;
    } else {
        print(&result.table())?;
    }
    if measured.interrupted { Err(Error::Interrupted.into()) } else { Ok(()) }
}

impl IoArguments {
    /// Checks the arguments without looking at the target.
    fn check(&self, kind: Kind) -> Result<(), Usage> {
        self.workload.check()?;
        let depth = self.workload.depth;
        if self.workers > depth {
            return Err(Usage(format!(
                "--workers {} with --depth {depth}: every worker needs at least one request in flight",
                self.workers
            )));
        }
        self.target.backend.check_polled(self.polled)?;
        if kind == Kind::Simulated {
            if self.polled {
                return Err(Usage(
                    "--polled is a way through the kernel, which a simulated drive has not: leave it out"
                        .into(),
                ));
            }
            if self.workers > 1 {
                return Err(Usage(
                    "--workers: a simulated drive has one, so that a run repeats exactly; give --depth the requests in flight of all"
                        .into(),
                ));
            }
            if self.file_size.is_some() {
                return Err(Usage(
                    "--file-size is the size of a scratch file: a simulated drive is used whole, or --region of it".into(),
                ));
            }
        }
        Ok(())
    }

    fn load(&self, geometry: &Geometry) -> Load {
        Load {
            workers: self.workers,
            polled: self.polled,
            ..self.workload.load(geometry, self.warmup, self.seconds)
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
    /// On a simulated drive: of the simulation.
    cpu_us_per_request: f64,
    interrupted: bool,
}

impl<'a> IoResult<'a> {
    fn new(device: &'a dyn Device, load: &Load, measured: &Measured) -> Self {
        Self {
            flashgrain_version: env!("CARGO_PKG_VERSION"),
            identity: device.identity(),
            geometry: device.geometry(),
            workload: load.workload,
            workers: load.workers,
            rate_per_s: load.rate_per_s,
            seed: load.seed,
            elapsed_s: measured.elapsed.seconds(),
            read: Direction::of_reads(measured),
            write: Direction::of_writes(measured),
            cpu_us_per_request: measured.cpu_us_per_request(),
            interrupted: measured.interrupted,
        }
    }

    fn table(&self) -> String {
        let whose = if self.identity.kind == "simulated" { " of simulation" } else { "" };
        let elapsed = unit::seconds(self.elapsed_s);
        let clock = if self.identity.kind == "simulated" { " of virtual time" } else { "" };
        directions_table(self.read.as_ref(), self.write.as_ref())
            + &format!(
                "CPU    {}{whose} per I/O over {elapsed}{clock}\n",
                unit::micros(self.cpu_us_per_request)
            )
    }
}
