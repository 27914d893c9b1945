//! `flashgrain bench commit`: durable commits of one committer and of many, beside raw durable writes.

use clap::Args;
use flashgrain::Decision;
use flashgrain_device::{Device, FileDevice, OpenOptions};
use flashgrain_model::Workload;
use flashgrain_profile::Error;
use flashgrain_profile::load::{self, Load, Pattern, Region, Stop, Sync};
use flashgrain_profile::schema::Latency;
use flashgrain_report::unit;
use serde::Serialize;

use super::drive::{Driven, Operation, drive};
use super::measure::Bench;
use super::options::BenchOptions;
use crate::exit::Usage;
use crate::output::{Context, print, print_json};
use crate::units::parse_bytes;

/// Durable commits of one update each: by one committer, then by many, with raw durable writes of a log block before, between and after.
#[derive(Debug, Args)]
#[command(mut_arg("records", |argument| argument.default_value("100000")))]
#[command(mut_arg("cache", |argument| argument.default_value("300%")))]
#[command(mut_arg("durability", |argument| argument.default_value("sync")))]
#[command(mut_arg("seconds", |argument| argument.default_value("5")))]
#[command(mut_arg("warmup", |argument| argument.default_value("0.5")))]
pub struct CommitArguments {
    /// Committers at a time, beside one.
    #[arg(long, value_parser = clap::value_parser!(u32).range(2..=65_536), default_value_t = 64)]
    committers: u32,
    #[command(flatten)]
    options: BenchOptions,
}

/// Of the file that raw writes go to, over and over: like a log's ring.
const RAW_BYTES: u64 = 64 << 20;

#[derive(Debug, Serialize)]
struct CommitResult {
    flashgrain_version: &'static str,
    target: String,
    sync_method: String,
    write_bytes: u64,
    /// Before, between and after.
    raw: Vec<Durable>,
    one: Durable,
    committers: u32,
    many: Durable,
    /// Commits of one committer over raw durable writes.
    one_of_raw: f64,
    many_of_one: f64,
}

/// What was made durable one by one, or together.
#[derive(Debug, Serialize)]
struct Durable {
    per_s: f64,
    latency: Option<Latency>,
    /// Commits that shared a write.
    per_group: Option<f64>,
}

impl Durable {
    fn of(driven: &Driven) -> Self {
        let groups = driven.after.log.groups - driven.before.log.groups;
        Self {
            per_s: driven.operations as f64 / driven.elapsed_s,
            latency: (!driven.latency_ns.is_empty()).then(|| Latency::of(&driven.latency_ns)),
            per_group: (groups > 0)
                .then(|| (driven.after.log.records - driven.before.log.records) as f64 / groups as f64),
        }
    }
}

pub fn run(arguments: &CommitArguments, context: &Context) -> anyhow::Result<()> {
    let options = BenchOptions { tasks: arguments.committers, ..arguments.options.clone() };
    options.check()?;
    if !options.target.is_dir() {
        return Err(Usage("durable writes need a drive: name a directory".into()).into());
    }
    let interrupt = context.interrupt.watch()?;
    let bench = Bench { options, settling: 0, context, interrupt };
    let place = bench.place()?;
    let result = measure(&bench, arguments.committers, &place);
    place.remove()?;
    let result = result?;
    if bench.options.json { print_json(&result) } else { Ok(print(&result.table())?) }
}

fn measure(bench: &Bench<'_>, committers: u32, place: &super::target::Place) -> anyhow::Result<CommitResult> {
    let mut store = bench.filled(place)?;
    let layout = store.run(|db| db.layout().to_vec());
    let decided = |setting: &str| layout.iter().find(|decision: &&Decision| decision.setting == setting);
    let sync_method = decided("sync method").map_or_else(String::new, |decision| decision.value.clone());
    let block = decided("log block").and_then(|decision| parse_bytes(&decision.value).ok()).unwrap_or(4096);
    let log = bench.options.log.as_ref().unwrap_or(&bench.options.target);
    let open = OpenOptions { write: true, ..OpenOptions::default() };
    let file = FileDevice::scratch(std::slice::from_ref(log), RAW_BYTES, &open)?;
    let whole = Region { offset_bytes: 0, length_bytes: RAW_BYTES };
    load::lay_out(&file, whole, bench.interrupt)?;
    let mut raw = vec![durable_writes(bench, &file, block, &sync_method)?];
    let mut committed = Vec::new();
    for tasks in [1, committers] {
        bench.context.note(&format!("committing, {tasks} at a time"));
        let options = BenchOptions { tasks, ..bench.options.clone() };
        let driven = drive(&mut store, Operation::Update, &options, bench.interrupt)?;
        if driven.interrupted {
            return Err(Error::Interrupted.into());
        }
        committed.push(Durable::of(&driven));
        raw.push(durable_writes(bench, &file, block, &sync_method)?);
    }
    store.close()?;
    let raw_per_s = raw.iter().map(|raw| raw.per_s).sum::<f64>() / raw.len() as f64;
    let [one, many] = <[Durable; 2]>::try_from(committed).map_err(|_| Error::Interrupted)?;
    Ok(CommitResult {
        flashgrain_version: env!("CARGO_PKG_VERSION"),
        target: place.describe(),
        sync_method,
        write_bytes: block,
        one_of_raw: one.per_s / raw_per_s,
        many_of_one: many.per_s / one.per_s,
        raw,
        one,
        committers,
        many,
    })
}

/// Writes of a log block one after another, each made durable as the log is.
fn durable_writes(
    bench: &Bench<'_>,
    file: &dyn Device,
    bytes: u64,
    sync_method: &str,
) -> anyhow::Result<Durable> {
    let seconds = bench.options.raw_seconds.max(0.1);
    bench.context.note(&format!("raw durable writes for {}", unit::seconds(seconds)));
    let load = Load {
        workload: Workload {
            read_share: 0.0,
            request_bytes: bytes as f64,
            random_share: 0.0,
            concurrency: 1.0,
        },
        pattern: Pattern::Mixed { align_bytes: None },
        region: Region { offset_bytes: 0, length_bytes: RAW_BYTES },
        workers: 1,
        sync: match sync_method {
            "RWF_DSYNC" => Sync::Dsync,
            "linked flush" => Sync::LinkedFlush,
            _ => Sync::WriteThenFdatasync,
        },
        rate_per_s: None,
        polled: false,
        warmup_share: 0.1,
        stop: Stop { after_s: Some(seconds), ..Stop::default() },
        seed: bench.options.seed,
    };
    let measured = load::run(file, &load, bench.interrupt)?;
    if measured.interrupted {
        return Err(Error::Interrupted.into());
    }
    let latency_ns = &measured.write_latency_ns;
    Ok(Durable {
        per_s: latency_ns.len() as f64 / measured.elapsed.seconds(),
        latency: (!latency_ns.is_empty()).then(|| Latency::of(latency_ns)),
        per_group: None,
    })
}

impl CommitResult {
    fn table(&self) -> String {
        let mut text = format!(
            "durable commits in {}, made durable by {}\n\n{:<24} {:>9} {:>10} {:>10} {:>10} {:>16}\n",
            self.target, self.sync_method, "", "per s", "mean", "p50", "p99", "commits a write"
        );
        let mut row = |name: &str, durable: &Durable| {
            let latency = |of: fn(&Latency) -> f64| {
                durable.latency.as_ref().map_or_else(|| "-".into(), |latency| unit::micros(of(latency)))
            };
            let group = durable.per_group.map_or_else(|| "-".into(), |group| format!("{group:.1}"));
            text += &format!(
                "{name:<24} {:>9} {:>10} {:>10} {:>10} {group:>16}\n",
                unit::count(durable.per_s),
                latency(|latency| latency.mean_us),
                latency(|latency| latency.p50_us),
                latency(|latency| latency.p99_us)
            );
        };
        let write = format!("raw {} writes", unit::bytes(self.write_bytes as f64));
        self.raw.iter().for_each(|raw| row(&write, raw));
        row("1 committer", &self.one);
        row(&format!("{} committers", self.committers), &self.many);
        text + &format!(
            "\none committer reaches {:.2} of the raw durable writes; {} reach {:.1} times one's commits\n",
            self.one_of_raw, self.committers, self.many_of_one
        )
    }
}
