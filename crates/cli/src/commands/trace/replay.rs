//! `flashgrain trace replay`.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use anyhow::ensure;
use clap::{Args, ValueEnum};
use flashgrain_device::Device;
use flashgrain_profile::Error;
use flashgrain_profile::load::{self, Pace, Region, Replay, Replayed};
use flashgrain_profile::schema::Latency;
use flashgrain_report::unit;
use flashgrain_trace::replay::{Gathered, Planned, RecordedLatency};
use flashgrain_trace::{Layer, Operation};
use serde::Serialize;

use super::check;
use crate::arguments::TargetOptions;
use crate::exit::Usage;
use crate::output::{Context, print, print_json};
use crate::target::{self, Access, Kind, ScratchSize};
use crate::units::{count_within, parse_factor, parse_positive_bytes};

/// Issue the requests of a trace again, to another drive.
///
/// At the trace's times (open loop; latency counts from then on), or as fast as they go (`--closed`). A
/// directory gets an unnamed scratch file, written once before. Existing files and block devices are read;
/// writing to them needs `--destroy-contents-of`. Each file of the trace gets a region of the target;
/// requests are rounded outwards to the target's alignment.
#[derive(Debug, Args)]
pub struct ReplayArguments {
    /// The trace; of any format that `flashgrain trace check` reads.
    #[arg(value_name = "TRACE")]
    trace: PathBuf,
    /// A directory, a file or a block device; or sim:PRESET or sim:FILE.toml.
    #[arg(value_name = "TARGET")]
    replayed_on: PathBuf,
    /// Closed loop: each request as soon as there is room, not at its time. A flush waits for all before it.
    #[arg(long)]
    closed: bool,
    /// How many times as fast as recorded.
    #[arg(long, value_name = "FACTOR", value_parser = parse_factor, default_value = "1", conflicts_with = "closed")]
    speed: f64,
    /// Requests in flight at most: 1024 in the open loop and 1 in the closed one unless given.
    #[arg(long, value_parser = count_within::<u32>(1..=32_000))]
    depth: Option<u32>,
    /// Which requests, if the trace has both: those to drives unless given.
    #[arg(long, value_enum)]
    layer: Option<LayerName>,
    /// Size of the scratch file in a directory: by default as large as the trace needs, and 1 GiB at most.
    #[arg(long, value_name = "SIZE", value_parser = parse_positive_bytes)]
    file_size: Option<u64>,
    /// Seed of the bytes that are written, and of a simulated drive.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Print the result as JSON.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    target: TargetOptions,
}

/// Layers as the user names them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum LayerName {
    /// System calls to files.
    Files,
    /// Block requests to drives.
    Drives,
}

const OPEN_DEPTH: u32 = 1024;
const FILE_BYTES_MAX: u64 = 1 << 30;

pub fn run(arguments: &ReplayArguments, context: &Context) -> anyhow::Result<()> {
    check_is_other(&arguments.trace, &arguments.replayed_on)?;
    let gathered = gather(arguments)?;
    let layer = match arguments.layer {
        Some(LayerName::Files) => Layer::File,
        Some(LayerName::Drives) => Layer::Drive,
        None => gathered.layer(),
    };
    let targets = [arguments.replayed_on.clone()];
    let kind = Kind::of(&targets)?;
    if arguments.file_size.is_some() && kind != Kind::Scratch {
        return Err(
            Usage("--file-size is the size of a scratch file: name a directory to get one".into()).into()
        );
    }
    let interrupt = context.interrupt.watch()?;
    let access = if gathered.modifies(layer) { Access::Write } else { Access::Read };
    let default = gathered.span_bytes(layer).clamp(1 << 20, FILE_BYTES_MAX);
    let size = ScratchSize { asked: arguments.file_size, default };
    let opened = target::open(&targets, size, access, arguments.seed, &arguments.target, context)?;
    let device = opened.device();
    let (capacity, align) = (device.geometry().capacity_bytes, device.geometry().offset_align_bytes);
    ensure!(
        capacity >= u64::from(align),
        "{} is too small to replay on: it has less than the {align} bytes of the shortest request",
        device.identity().target
    );
    let planned = gathered.plan(layer, capacity, u64::from(align));
    if planned.requests.is_empty() {
        return Err(
            Usage(format!("{}: the trace has no request to replay", arguments.trace.display())).into()
        );
    }
    if kind == Kind::Existing && access == Access::Write {
        context.interrupt.leaves(target::overwritten(&targets));
    }
    if kind == Kind::Scratch {
        context.note(&format!("writing the scratch file of {} once", unit::bytes(capacity as f64)));
        load::lay_out(device, Region { offset_bytes: 0, length_bytes: capacity }, interrupt)?;
    }
    let pace =
        if arguments.closed { Pace::AsFastAsItGoes } else { Pace::AsRecorded { speed: arguments.speed } };
    let depth = arguments.depth.unwrap_or(if arguments.closed { 1 } else { OPEN_DEPTH });
    let replay = Replay { requests: &planned.requests, pace, depth, seed: arguments.seed };
    let replayed = load::replay(device, &replay, interrupt)?;
    target::note_shortages(device, context);
    let result = Output::new(device, arguments, (depth, layer), &gathered, &planned, &replayed);
    if arguments.json {
        print_json(&result)?
    } else {
        print(&result.text())?
    }
    if replayed.interrupted { Err(Error::Interrupted.into()) } else { Ok(()) }
}

/// Refuses a target that is the trace itself, under whatever name: its writes would change the trace.
fn check_is_other(trace: &Path, target: &Path) -> Result<(), Usage> {
    let inode = |path| fs::metadata(path).ok().map(|metadata| (metadata.dev(), metadata.ino()));
    match inode(trace).filter(|trace| inode(target) == Some(*trace)) {
        Some(_) => Err(Usage(format!("{} is the trace itself: name another target", target.display()))),
        None => Ok(()),
    }
}

/// All requests of the trace; a damaged trace is not replayed.
fn gather(arguments: &ReplayArguments) -> anyhow::Result<Gathered> {
    let mut gathered = Gathered::default();
    for request in check::open(&arguments.trace)? {
        gathered
            .take(&request.map_err(|error| {
                anyhow::Error::from(error).context(arguments.trace.display().to_string())
            })?);
    }
    Ok(gathered)
}

/// The result, for programs; the text for people is made from it.
#[derive(Debug, Serialize)]
struct Output {
    flashgrain_version: &'static str,
    target: String,
    layer: &'static str,
    /// `open` or `closed`.
    pace: &'static str,
    depth: u32,
    seed: u64,
    elapsed_s: f64,
    recorded_s: f64,
    reads: Kindred,
    writes: Kindred,
    flushes: Kindred,
    rounded: u64,
    cut: u64,
    left_out: u64,
    late: u64,
    interrupted: bool,
}

/// Requests of one kind.
#[derive(Debug, Serialize)]
struct Kindred {
    per_second: f64,
    bytes_per_second: f64,
    latency: Latency,
    /// When they were recorded, if the trace says so.
    recorded: Option<RecordedLatency>,
}

impl Output {
    fn new(
        device: &dyn Device,
        arguments: &ReplayArguments,
        (depth, layer): (u32, Layer),
        gathered: &Gathered,
        planned: &Planned,
        replayed: &Replayed,
    ) -> Self {
        let elapsed_s = replayed.elapsed.seconds().max(1e-9);
        let [reads, writes, flushes] = &replayed.latency_ns;
        let [read, written] = replayed.bytes;
        let of = |latency: &_, bytes: u64, operation| {
            let latency = Latency::of(latency);
            let per_second = latency.count as f64 / elapsed_s;
            let recorded = gathered.recorded_latency(layer, operation);
            Kindred { per_second, bytes_per_second: bytes as f64 / elapsed_s, latency, recorded }
        };
        Self {
            flashgrain_version: env!("CARGO_PKG_VERSION"),
            target: device.identity().target.clone(),
            layer: if layer == Layer::File { "files" } else { "drives" },
            pace: if arguments.closed { "closed" } else { "open" },
            depth,
            seed: arguments.seed,
            elapsed_s,
            recorded_s: planned.requests.last().map_or(0.0, |last| last.at.seconds()),
            reads: of(reads, read, Operation::Read),
            writes: of(writes, written, Operation::Write),
            flushes: of(flushes, 0, Operation::Flush),
            rounded: planned.rounded,
            cut: planned.cut,
            left_out: planned.left_out,
            late: replayed.late,
            interrupted: replayed.interrupted,
        }
    }

    fn text(&self) -> String {
        let mut text = format!(
            "{} loop on {}, {} in flight at most: {} of a recording of {}, seed {}\n",
            self.pace,
            self.target,
            self.depth,
            unit::seconds(self.elapsed_s),
            unit::seconds(self.recorded_s),
            self.seed
        );
        for (name, of) in [("reads", &self.reads), ("writes", &self.writes), ("flushes", &self.flushes)] {
            if of.latency.count == 0 {
                continue;
            }
            text += &format!(
                "{name:8} {:>8}  {}/s  {}  mean {}  p50 {}  p90 {}  p99 {}  p99.9 {}  max {}\n",
                unit::count(of.latency.count as f64),
                unit::count(of.per_second),
                unit::rate(of.bytes_per_second),
                unit::micros(of.latency.mean_us),
                unit::micros(of.latency.p50_us),
                unit::micros(of.latency.p90_us),
                unit::micros(of.latency.p99_us),
                unit::micros(of.latency.p99_9_us),
                unit::micros(of.latency.max_us),
            );
            if let Some(recorded) = of.recorded {
                text += &format!(
                    "recorded {:>8}  p50 {}  p99 {}\n",
                    unit::count(recorded.count as f64),
                    unit::micros(recorded.p50_us),
                    unit::micros(recorded.p99_us),
                );
            }
        }
        for (count, what) in [
            (self.rounded, "requests were rounded outwards to the target's alignment"),
            (self.cut, "requests were cut where the target ends, or because they are too long"),
            (self.left_out, "requests without bytes were left out"),
            (self.late, "requests were late: as many as may were in flight"),
        ] {
            if count > 0 {
                text += &format!("{}: {what}\n", unit::count(count as f64));
            }
        }
        text
    }
}
