//! Durable commits of one committer and of many, compared with raw durable writes.

use flashgrain::{Bytes, Setting, Stats, SyncMethod};
use flashgrain_profile::Error;
use flashgrain_profile::load::Stop;
use flashgrain_profile::schema::Latency;
use flashgrain_report::unit;
use serde::Serialize;

use super::{Experiment, Operation, operate};
use crate::drive::Driven;
use crate::measure::{RawDrive, RawFile, RawRequests};
use crate::store::{Options, StoreLocation, StoreOptions};

/// Of the file that raw writes go to, over and over: like a log's ring.
const RAW_BYTES: u64 = 64 << 20;

/// Commits of one committer and of many, compared with the raw device.
#[derive(Debug, Serialize)]
pub struct CommitResult {
    flashgrain_version: &'static str,
    target: String,
    sync_method: &'static str,
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

/// Rate and latency of durable writes, one by one or together.
#[derive(Debug, Serialize)]
struct Durable {
    per_s: f64,
    latency: Option<Latency>,
    /// Commits that shared a write.
    per_group: Option<f64>,
}

impl Durable {
    fn of(driven: &Driven<Stats>) -> Self {
        let latency_ns = driven.tally.latency_ns();
        let groups = driven.after.log.groups - driven.before.log.groups;
        Self {
            per_s: driven.tally.operations() as f64 / driven.elapsed.as_secs_f64(),
            latency: (!latency_ns.is_empty()).then(|| Latency::of(&latency_ns)),
            per_group: (groups > 0)
                .then(|| (driven.after.log.records - driven.before.log.records) as f64 / groups as f64),
        }
    }
}

/// Durable commits of one update each: by one committer, then by as many as there are tasks, with raw durable
/// writes of a log block before, between and after.
///
/// # Errors
/// Those of the target and the store; durable writes need a drive.
pub fn commit(experiment: &Experiment<'_>) -> anyhow::Result<CommitResult> {
    if !experiment.options.target.is_dir() {
        return Err(Error::Argument("durable writes need a drive: name a directory".into()).into());
    }
    let place = experiment.place()?;
    let result = measure(experiment, &place);
    place.remove()?;
    result
}

fn measure(experiment: &Experiment<'_>, place: &StoreLocation) -> anyhow::Result<CommitResult> {
    let Experiment { options, interrupt, .. } = experiment;
    let mut store = experiment.filled(place)?;
    let layout = store.run(|db| db.layout().to_vec());
    let mut settings = layout.iter().map(|decision| &decision.setting);
    let sync_method = settings.clone().find_map(Setting::sync_method).unwrap_or(SyncMethod::Fdatasync);
    let block = settings.find_map(Setting::log_block).map_or(4096, |Bytes(bytes)| bytes);
    let log = options.log.as_ref().unwrap_or(&options.target);
    let file = RawFile::new(log, RAW_BYTES, interrupt)?;
    let mut drive = RawDrive::new(file.device(), 1, options.seed, interrupt);
    let mut durable_writes = || -> anyhow::Result<Durable> {
        let seconds = options.raw_seconds.max(0.1);
        experiment.listener.note(&format!("raw durable writes for {}", unit::seconds(seconds)));
        let stop = Stop { after_s: Some(seconds), ..Stop::default() };
        let requests = RawRequests::durable_writes(block as f64, sync_method);
        let measured = drive.measure_to_end(requests, file.region(), stop)?;
        let latency_ns = &measured.write_latency_ns;
        Ok(Durable {
            per_s: latency_ns.len() as f64 / measured.elapsed.seconds(),
            latency: (!latency_ns.is_empty()).then(|| Latency::of(latency_ns)),
            per_group: None,
        })
    };
    let mut raw = vec![durable_writes()?];
    let committers = options.store.tasks;
    let mut committed = |tasks| {
        experiment.listener.note(&format!("committing, {tasks} at a time"));
        let options = Options { store: StoreOptions { tasks, ..options.store.clone() }, ..options.clone() };
        let driven = operate(&mut store, Operation::Update, &options, interrupt)?;
        if driven.is_interrupted { Err(Error::Interrupted.into()) } else { Ok(Durable::of(&driven)) }
    };
    let one: anyhow::Result<Durable> = committed(1);
    let one = one?;
    raw.push(durable_writes()?);
    let many = committed(committers)?;
    raw.push(durable_writes()?);
    store.close()?;
    let raw_per_s = raw.iter().map(|raw| raw.per_s).sum::<f64>() / raw.len() as f64;
    Ok(CommitResult {
        flashgrain_version: env!("CARGO_PKG_VERSION"),
        target: place.describe(),
        sync_method: sync_method.name(),
        write_bytes: block,
        one_of_raw: one.per_s / raw_per_s,
        many_of_one: many.per_s / one.per_s,
        raw,
        one,
        committers,
        many,
    })
}

impl CommitResult {
    /// The result as a table for people.
    pub fn table(&self) -> String {
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
        row(&unit::things(self.committers.into(), "committer"), &self.many);
        text + &format!(
            "\none committer reaches {:.2} of the raw durable writes; {} reach {:.1} times one's commits\n",
            self.one_of_raw, self.committers, self.many_of_one
        )
    }
}
