//! A store that is filled and measured.

use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Context as _, bail};
use flashgrain::{BeTreeStats, Check, Decision, LsmStats, Stats};
use flashgrain_device::{BackendKind, Device, Nanos};
use flashgrain_profile::Error;
use flashgrain_profile::load::Region;
use hdrhistogram::Histogram;
use serde::Serialize;

use super::Setup;
use crate::benchmark::Benchmark as _;
use crate::drive::{Driven, Host as _, Span, Tally, drive};
use crate::fill::{Filling, Order, fill};
use crate::keys::Distribution;
use crate::processor::ProcessorCosts;
use crate::records::Records;
use crate::store::{Store, StoreLocation, TREE};
use crate::workload::{Mix, OnRecords, Operation, Workload};

/// Longer than any run whose operations are counted.
const LONG: Duration = Duration::from_secs(10_000_000);

/// See the module.
pub struct Subject {
    store: Store,
    place: Rc<StoreLocation>,
    records: Records,
    backend: Option<BackendKind>,
    polled: bool,
    seed: u64,
}

/// Quantiles of times that a distribution is drawn from.
pub const QUANTILES: [f64; 12] = [0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.98, 0.99, 0.995, 0.999];

/// Times of operations.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Times {
    /// Operations whose times these are.
    pub count: u64,
    /// Mean, in microseconds.
    pub mean_us: f64,
    /// Median.
    pub p50_us: f64,
    /// One of ten takes longer.
    pub p90_us: f64,
    /// One of a hundred takes longer.
    pub p99_us: f64,
    /// At each of [`QUANTILES`].
    pub quantiles_us: [f64; QUANTILES.len()],
}

impl Times {
    fn of(latency_ns: &Histogram<u64>) -> Self {
        let at = |quantile| latency_ns.value_at_quantile(quantile) as f64 * 1e-3;
        Self {
            count: latency_ns.len(),
            mean_us: latency_ns.mean() * 1e-3,
            p50_us: at(0.5),
            quantiles_us: QUANTILES.map(at),
            p90_us: at(0.9),
            p99_us: at(0.99),
        }
    }
}

/// A measured run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Measured {
    /// Clients at a time.
    pub clients: u32,
    /// Operations a second of all of them.
    pub per_s: f64,
    /// Times of all operations.
    pub times: Times,
    /// Requests to read that the device got, for each operation.
    pub reads_each: f64,
    /// Bytes that it read, for each operation.
    pub read_bytes_each: f64,
    /// Requests to write that it got, for each operation.
    pub writes_each: f64,
    /// Bytes that it wrote, for each operation.
    pub written_bytes_each: f64,
    /// Processor time of the store and its clients, for each operation, in microseconds.
    pub cpu_us_each: f64,
}

impl Measured {
    /// Time for each operation of each client, in microseconds: all the time, whatever it was spent on.
    pub fn mean_us(&self) -> f64 {
        f64::from(self.clients) * 1e6 / self.per_s
    }

    /// Operations of a tally in `elapsed`, with the device's requests to read, the bytes of these, requests
    /// to write, and the bytes of these.
    pub(super) fn new(
        clients: u32,
        tally: &Tally,
        elapsed: Duration,
        cpu: Duration,
        requests: [u64; 4],
    ) -> Self {
        let operations = tally.operations().max(1) as f64;
        let [reads_each, read_bytes_each, writes_each, written_bytes_each] =
            requests.map(|count| count as f64 / operations);
        Self {
            clients,
            per_s: operations / elapsed.as_secs_f64(),
            times: Times::of(&tally.latency_ns()),
            reads_each,
            read_bytes_each,
            writes_each,
            written_bytes_each,
            cpu_us_each: cpu.as_secs_f64() * 1e6 / operations,
        }
    }

    fn of(clients: u32, driven: &Driven<Stats>) -> Self {
        let (before, after) = (&driven.before.device, &driven.after.device);
        let requests = [
            after.reads - before.reads,
            after.read_bytes - before.read_bytes,
            after.writes - before.writes,
            after.written_bytes - before.written_bytes,
        ];
        Self::new(clients, &driven.tally, driven.elapsed, driven.cpu, requests)
    }
}

/// The work of clients until they have done enough.
#[derive(Clone, Copy, Debug)]
pub struct Task {
    /// Their operations.
    pub mix: Mix,
    /// Clients at a time.
    pub clients: u32,
    /// Operations of all of them that count.
    pub operations: u64,
    /// Another stream of picks for each.
    pub stream: u64,
}

/// Clients whose operations change with time.
pub struct Watch<'a> {
    /// Clients at a time.
    pub clients: u32,
    /// Their operations in the slice of this number.
    pub mix: &'a dyn Fn(u32) -> Mix,
    /// The records that they choose.
    pub distribution: Distribution,
    /// Slices that count.
    pub slices: u32,
    /// Length of a slice.
    pub slice: Duration,
    /// Slices before them that do not count.
    pub warmup: u32,
}

/// A slice of a watched run.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Slice {
    /// When it ended, from the first one on.
    pub end_s: f64,
    /// Operations a second.
    pub per_s: f64,
    /// Runs of level 0 at its end.
    pub level_zero_runs: u64,
    /// Share of its writes that the store has slowed down, 0 to 1.
    pub slowed: f64,
}

/// Slices without a write that was slowed down.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Unslowed {
    /// Slices.
    pub slices: u32,
    /// Operations a second of all clients in them.
    pub per_s: f64,
    /// Median time of a write in them, in microseconds.
    pub write_p50_us: f64,
}

/// A run that was watched over time.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Watched {
    /// Clients at a time.
    pub clients: u32,
    /// Operations a second of all of them.
    pub per_s: f64,
    /// Look-ups.
    pub reads: Option<Times>,
    /// Updates.
    pub writes: Option<Times>,
    /// Requests to read that the device got, for each look-up.
    pub reads_each: Option<f64>,
    /// Runs of level 0, on average.
    pub level_zero_runs: f64,
    /// Bytes of tables that flushes wrote for each update.
    pub flushed_bytes_each: f64,
    /// Checkpoints.
    pub checkpoints: u64,
    /// Writes that were written to the log together, on average.
    pub writes_together: f64,
    /// Bytes written to the log for each update.
    pub log_bytes_each: f64,
    /// Writes that waited for the log to be written by another one, on average over time.
    pub waiting: f64,
    /// Most of them at the same time, also before the time that counts.
    pub waiting_max: u64,
    /// The slices without a write that was slowed down, if there are some with writes.
    pub unslowed: Option<Unslowed>,
    /// Over time.
    pub slices: Vec<Slice>,
}

/// For the clients of a task.
pub(super) fn span(seed: u64, task: &Task) -> Span {
    Span { operations_max: Some(task.operations), ..endless(seed, task.clients, task.stream) }
}

/// For clients with a stream of picks of their own, which never end.
fn endless(seed: u64, clients: u32, stream: u64) -> Span {
    Span {
        clients: clients as usize,
        warmup: Duration::ZERO,
        length: LONG,
        operations_max: None,
        written_bytes_max: None,
        rate_per_s: None,
        sample_every: 1,
        seed: seed ^ stream << 32,
    }
}

impl Subject {
    /// Has clients work slice by slice, and measures them. A slice ends once the operations have ended that
    /// are under way; these last ones do not count.
    ///
    /// # Errors
    /// Those of the store; [`Error::Interrupted`].
    pub fn watch(&mut self, watch: &Watch<'_>, interrupt: &AtomicBool) -> anyhow::Result<Watched> {
        let (mut tally, mut slices, mut counted_s) = (Tally::default(), Vec::new(), 0.0);
        let (mut device_reads, mut log_records, mut log_groups, mut log_bytes) = (0, 0, 0, 0);
        let (mut queued_s, mut waiting_max) = (0.0, 0);
        let (mut checkpoints, mut flushed_bytes) = (0, 0);
        let (mut unslowed, mut unslowed_slices, mut unslowed_s) = (Tally::default(), 0, 0.0);
        for number in 0..watch.warmup + watch.slices {
            let flushed_before_bytes = self.flushed_bytes()?;
            let driven = self.slice(watch, number, interrupt)?;
            if number < watch.warmup {
                continue;
            }
            let (before, after) = (&driven.before, &driven.after);
            device_reads += after.device.reads - before.device.reads;
            log_records += after.log.records - before.log.records;
            log_groups += after.log.groups - before.log.groups;
            log_bytes += after.log.written_bytes - before.log.written_bytes;
            checkpoints += after.checkpoints.completed - before.checkpoints.completed;
            flushed_bytes += self.flushed_bytes()? - flushed_before_bytes;
            queued_s += after.log.queued_s - before.log.queued_s;
            waiting_max = after.log.queue_longest;
            counted_s += driven.elapsed.as_secs_f64();
            let writes = driven.tally.kinds().iter().find(|kind| kind.name == Operation::Update.name());
            let writes = writes.map_or(0, |kind| kind.latency_ns.len());
            let slowed = after.throttle.delayed - before.throttle.delayed;
            if slowed == 0 && writes > 0 {
                unslowed.add(&driven.tally);
                unslowed_slices += 1;
                unslowed_s += driven.elapsed.as_secs_f64();
            }
            slices.push(Slice {
                end_s: counted_s,
                per_s: driven.tally.operations() as f64 / driven.elapsed.as_secs_f64(),
                level_zero_runs: self.lsm_stats()?.levels.first().map_or(0, |level| level.runs),
                // A write may be slowed down twice, by its tree and by the store.
                slowed: (slowed as f64 / writes.max(1) as f64).min(1.0),
            });
            tally.add(&driven.tally);
        }
        let times_of = |tally: &Tally, name: &str| {
            let kind = tally.kinds().iter().find(|kind| kind.name == name);
            kind.filter(|kind| !kind.latency_ns.is_empty()).map(|kind| Times::of(&kind.latency_ns))
        };
        let times = |name: &str| times_of(&tally, name);
        let unslowed = times_of(&unslowed, Operation::Update.name()).map(|writes| Unslowed {
            slices: unslowed_slices,
            per_s: unslowed.operations() as f64 / unslowed_s,
            write_p50_us: writes.p50_us,
        });
        let writes = times(Operation::Update.name());
        let each = |bytes: u64| bytes as f64 / writes.map_or(1, |writes| writes.count.max(1)) as f64;
        let reads = times(Operation::Read.name());
        let runs: u64 = slices.iter().map(|slice| slice.level_zero_runs).sum();
        Ok(Watched {
            clients: watch.clients,
            per_s: tally.operations() as f64 / counted_s,
            reads_each: reads.map(|reads| device_reads as f64 / reads.count.max(1) as f64),
            reads,
            log_bytes_each: each(log_bytes),
            flushed_bytes_each: each(flushed_bytes),
            checkpoints,
            writes,
            level_zero_runs: runs as f64 / slices.len().max(1) as f64,
            writes_together: log_records as f64 / log_groups.max(1) as f64,
            waiting: queued_s / counted_s,
            waiting_max,
            unslowed,
            slices,
        })
    }

    /// Bytes of the tables of level 0 that were written so far.
    fn flushed_bytes(&mut self) -> anyhow::Result<u64> {
        Ok(self.lsm_stats()?.levels.first().map_or(0, |level| level.written_bytes))
    }

    fn slice(
        &mut self,
        watch: &Watch<'_>,
        number: u32,
        interrupt: &AtomicBool,
    ) -> anyhow::Result<Driven<Stats>> {
        let span = Span { length: watch.slice, ..endless(self.seed, watch.clients, u64::from(number + 1)) };
        let mix = (watch.mix)(number.saturating_sub(watch.warmup));
        self.drive((mix, watch.distribution), &span, interrupt)
    }

    fn drive(
        &mut self,
        (mix, distribution): (Mix, Distribution),
        span: &Span,
        interrupt: &AtomicBool,
    ) -> anyhow::Result<Driven<Stats>> {
        let workload = Workload::of(mix, distribution);
        let clients = OnRecords::new(workload, self.records, span.seed).clients(span.clients);
        let driven = drive(&mut self.store, span, clients, interrupt)?;
        if driven.is_interrupted { Err(Error::Interrupted.into()) } else { Ok(driven) }
    }

    /// Makes the store of `setup`, runs `work` with it, and removes the store.
    ///
    /// # Errors
    /// Those of the target, of the store and of `work`.
    pub fn with<T>(setup: &Setup, work: impl FnOnce(&mut Self) -> anyhow::Result<T>) -> anyhow::Result<T> {
        let place = Rc::new(setup.place()?);
        place.remove()?;
        let done = (|| {
            let mut store = place.create_as(setup.builder(&place)?)?;
            let tree = setup.tree.clone();
            store.run(move |db| db.tree_with(TREE, &tree).map(drop))?;
            let mut subject = Self {
                store,
                place: Rc::clone(&place),
                records: setup.records,
                backend: setup.backend,
                polled: setup.polled,
                seed: setup.seed,
            };
            let done = work(&mut subject)?;
            subject.store.close()?;
            Ok(done)
        })();
        place.remove()?;
        done
    }

    /// Puts all records in, by one client.
    ///
    /// # Errors
    /// Those of the store; [`Error::Interrupted`].
    pub fn fill(&mut self, order: Order, interrupt: &AtomicBool) -> anyhow::Result<()> {
        let filling = Filling::all(self.records, order, 1);
        let filled = fill(&mut self.store, &filling, interrupt, &mut |_| ())?;
        if filled.is_interrupted { Err(Error::Interrupted.into()) } else { Ok(()) }
    }

    /// Waits until all changes in memory are in tables, and no merge is due.
    ///
    /// # Errors
    /// Those of the store; [`Error::Interrupted`].
    pub fn settle(&mut self, interrupt: &AtomicBool) -> anyhow::Result<()> {
        self.store.run(|db| db.checkpoint())?;
        let began = self.store.now();
        while self.lsm_stats()?.debt_bytes > 0 {
            if interrupt.load(Ordering::Relaxed) {
                return Err(Error::Interrupted.into());
            }
            if self.store.now().since(began) > Nanos::from(LONG) {
                bail!("merges never end: {:?}", self.lsm_stats()?);
            }
            let next = self.store.now() + Nanos::from(self.store.tick());
            self.store.pass(next);
        }
        Ok(())
    }

    /// Has clients work, and measures them.
    ///
    /// # Errors
    /// Those of the store; [`Error::Interrupted`].
    pub fn run(&mut self, task: Task, interrupt: &AtomicBool) -> anyhow::Result<Measured> {
        let driven = self.drive((task.mix, Distribution::Uniform), &span(self.seed, &task), interrupt)?;
        Ok(Measured::of(task.clients, &driven))
    }

    /// Has clients work, and measures them and the following checkpoint, so that all their changes are
    /// written. Records that they insert are there from then on.
    ///
    /// # Errors
    /// Those of the store; [`Error::Interrupted`].
    pub fn run_and_write(&mut self, task: Task, interrupt: &AtomicBool) -> anyhow::Result<Measured> {
        let began = self.now();
        let mut driven = self.drive((task.mix, Distribution::Uniform), &span(self.seed, &task), interrupt)?;
        self.checkpoint()?;
        driven.elapsed = self.now().since(began).into();
        driven.after = self.store.stats();
        if task.mix.insert > 0.0 {
            // Some more may have ended after the span: the next ones insert them again.
            self.records.count += driven.tally.operations();
        }
        Ok(Measured::of(task.clients, &driven))
    }

    /// The drive below the store, and where the store has written.
    ///
    /// # Errors
    /// If it cannot be opened.
    pub fn raw(&self) -> anyhow::Result<(Arc<dyn Device>, Region)> {
        Ok((self.place.raw(self.backend, self.polled)?, self.store.written_region()))
    }

    /// The store's time.
    pub fn now(&self) -> Nanos {
        self.store.now()
    }

    /// Looks at all of the tree, and counts its nodes.
    ///
    /// # Errors
    /// Those of the store.
    pub fn check(&mut self) -> anyhow::Result<Check> {
        Ok(self.store.run(|db| db.tree(TREE)?.check())?)
    }

    /// How the tree is kept, and why.
    ///
    /// # Errors
    /// Those of the store.
    pub fn layout(&mut self) -> anyhow::Result<Vec<Decision>> {
        Ok(self.store.run(|db| db.tree(TREE).map(|tree| tree.layout()))?)
    }

    /// From now on, simulated processors take this time.
    pub fn set_costs(&mut self, costs: ProcessorCosts) {
        self.store.set_costs(costs);
    }

    /// Writes changes that are in memory only.
    ///
    /// # Errors
    /// Those of the store.
    pub fn checkpoint(&mut self) -> anyhow::Result<()> {
        Ok(self.store.run(|db| db.checkpoint())?)
    }

    /// The numbers of a Bε-tree; `None` if the tree is none.
    ///
    /// # Errors
    /// Those of the store.
    pub fn be_tree_stats(&mut self) -> anyhow::Result<Option<BeTreeStats>> {
        Ok(self.store.run(|db| db.tree(TREE).map(|tree| tree.be_tree_stats()))?)
    }

    /// The tree's own numbers.
    ///
    /// # Errors
    /// Those of the store.
    pub fn lsm_stats(&mut self) -> anyhow::Result<LsmStats> {
        let stats = self.store.run(|db| db.tree(TREE).map(|tree| tree.lsm_stats()))?;
        stats.context("the tree is no LSM-tree")
    }
}
