//! Berkeley DB, the B-tree that the paper measured: with the same memory, without log and transactions, and
//! around the kernel's page cache, which would have all of its files.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::Context as _;
use flashgrain_profile::Error;

use super::prediction::Prediction;
use super::state::State;
use super::{INSERT, LOOK_UP, Operations, Point, Tree, WARMUP_DIVISOR};
use crate::benchmark::Benchmark as _;
use crate::drive::{EngineHost, Host as _, drive};
use crate::engine::{Durability, Engine, EngineName, Settings, Setup};
use crate::fill::{Filling, Order, fill};
use crate::keys::Distribution;
use crate::measure::BlockCounters;
use crate::records::Records;
use crate::study::subject::{Measured, Task, span};
use crate::workload::{Mix, OnRecords, TABLES, Workload};

/// Its files are in this folder of the target.
const FOLDER: &str = "berkeley-db";

/// A store that is open, and its records by now.
struct Subject<'a> {
    engine: &'a dyn Engine,
    directory: &'a Path,
    records: Records,
    seed: u64,
    interrupt: &'a AtomicBool,
}

/// One tree with pages of `page_bytes`, from empty to removed: look-ups when it is loaded, then inserts, and
/// look-ups again.
pub(super) fn measure(
    prediction: &Prediction<'_>,
    target: &Path,
    page_bytes: u64,
    note: &dyn Fn(&str),
    interrupt: &AtomicBool,
) -> anyhow::Result<Point> {
    let directory = target.join(FOLDER);
    remove(&directory)?;
    let done = measure_in(prediction, &directory, page_bytes, note, interrupt);
    remove(&directory)?;
    done
}

fn remove(directory: &Path) -> anyhow::Result<()> {
    match std::fs::remove_dir_all(directory) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(error).with_context(|| format!("remove {}", directory.display()))
        }
        _ => Ok(()),
    }
}

fn measure_in(
    prediction: &Prediction<'_>,
    directory: &Path,
    page_bytes: u64,
    note: &dyn Fn(&str),
    interrupt: &AtomicBool,
) -> anyhow::Result<Point> {
    let options = prediction.options;
    let engine = EngineName::BerkeleyDb.open(&Setup {
        dir: directory.to_owned(),
        cache_bytes: options.cache_bytes(),
        durability: Durability::None,
        clients_max: 1,
        cores: 1,
        tables: TABLES,
        settings: Some(Settings { store: "bare".into(), table: format!("page_bytes={page_bytes}") }),
        page_bytes: None,
    })?;
    let (records, seed) = (options.records(), options.seed);
    let mut subject = Subject { engine: &*engine, directory, records, seed, interrupt };
    note("loading");
    subject.fill()?;
    let mut stream = 0;
    let mut run = |what: &str, mix: Mix, operations: u64| {
        note(what);
        let mut part = |operations| {
            stream += 1;
            subject.run_and_write(Task { mix, clients: 1, operations, stream })
        };
        part(operations / WARMUP_DIVISOR)?;
        part(operations)
    };
    let loaded = run("look-ups", LOOK_UP, options.look_ups)?;
    let inserts = run("inserts", INSERT, options.inserts)?;
    let grown = run("look-ups after inserts", LOOK_UP, options.look_ups)?;
    engine.close()?;
    Ok(Point {
        tree: Tree::BerkeleyDb,
        node_bytes: page_bytes,
        layout: Vec::new(),
        check: None,
        be_tree: None,
        loaded_scans: None,
        grown_scans: None,
        loaded: Some(Operations {
            measured: loaded,
            predicted: prediction.b_plus_look_up(page_bytes, State::Loaded),
        }),
        inserts: Operations {
            measured: inserts,
            predicted: prediction.of_insert(Tree::BPlus, page_bytes, &[]),
        },
        grown: Operations { measured: grown, predicted: prediction.b_plus_look_up(page_bytes, State::Grown) },
    })
}

impl Subject<'_> {
    fn fill(&self) -> anyhow::Result<()> {
        let filling = Filling::all(self.records, Order::Scattered, 1);
        let filled = std::thread::scope(|scope| {
            let mut host = EngineHost::new(scope, self.engine, None);
            fill(&mut host, &filling, self.interrupt, &mut |_| ())
        })?;
        self.engine.settle()?;
        if filled.is_interrupted { Err(Error::Interrupted.into()) } else { Ok(()) }
    }

    /// As [`Subject::run_and_write`](crate::study::Subject::run_and_write).
    fn run_and_write(&mut self, task: Task) -> anyhow::Result<Measured> {
        let span = span(self.seed, &task);
        let workload = Workload::of(task.mix, Distribution::Uniform);
        let clients = OnRecords::new(workload, self.records, span.seed).clients(span.clients);
        let (driven, took, counted) = std::thread::scope(|scope| {
            let mut host = EngineHost::new(scope, self.engine, Some(self.directory));
            let began = host.now();
            let driven = drive(&mut host, &span, clients, self.interrupt)?;
            self.engine.settle()?;
            let took: Duration = host.now().since(began).into();
            let counted = driven.before.zip(host.counters());
            anyhow::Ok((driven, took, counted.map(|(before, after)| after.since(&before))))
        })?;
        if driven.is_interrupted || self.interrupt.load(Ordering::Relaxed) {
            return Err(Error::Interrupted.into());
        }
        if task.mix.insert > 0.0 {
            self.records.count += driven.tally.operations();
        }
        let BlockCounters { reads, read_bytes, writes, written_bytes, .. } =
            counted.context("the kernel counts no requests of this directory's device")?;
        Ok(Measured::new(
            task.clients,
            &driven.tally,
            took,
            driven.cpu,
            [reads, read_bytes, writes, written_bytes],
        ))
    }
}
