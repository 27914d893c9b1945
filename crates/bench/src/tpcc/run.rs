//! A run: clients that do transactions of the mix, and what they have measured.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use flashgrain_device::clock;
use hdrhistogram::Histogram;
use serde::Serialize;

use super::Dataset;
use super::mix::Kind;
use super::terminal::{Done, Home, Outcome, Terminal};
use crate::engine::{Engine, Session};

/// Latencies are kept to three digits, up to an hour.
const LATENCY_NS_MAX: u64 = 3_600_000_000_000;

const REPORTS_MAX: usize = 16;

/// How to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// How many at a time.
    pub clients: usize,
    /// Where they work.
    pub home: Home,
    /// Of all that they draw.
    pub seed: u64,
    /// What is written as the date, in seconds since 1970; not 0.
    pub date_seconds: u64,
    /// What begins before this has passed is done, but not counted.
    pub warm_up: Duration,
    /// When it ends.
    pub end: End,
}

/// When a run ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// So long after the warm-up.
    After(Duration),
    /// When each client has done so many transactions.
    Transactions(u64),
}

/// What others may see of a run, and how they end it.
#[derive(Debug, Default)]
pub struct Live {
    stopped: AtomicBool,
    done: AtomicU64,
}

impl Live {
    /// Lets each client end with the transaction it is at.
    pub fn stop(&self) {
        self.stopped.store(true, Ordering::Relaxed);
    }

    /// Transactions that have ended, those of the warm-up included.
    pub fn transactions(&self) -> u64 {
        self.done.load(Ordering::Relaxed)
    }
}

/// Of one kind of transaction.
#[derive(Clone, Debug)]
pub struct Counts {
    /// Those that were committed.
    pub committed: u64,
    /// New orders that were rolled back because of their item.
    pub rolled_back: u64,
    /// How often one lost to another and was tried again.
    pub conflicts: u64,
    /// Districts without a new order to deliver.
    pub districts_skipped: u64,
    /// From the first try to the end of the last, in nanoseconds.
    pub latency_ns: Histogram<u64>,
}

/// What a run has done after its warm-up.
#[derive(Clone, Debug)]
pub struct Report {
    /// From the end of the warm-up to the end of the last transaction.
    pub seconds: f64,
    /// In the order of [`Kind::ALL`].
    pub kinds: [Counts; 5],
}

/// A report's line for one kind of transaction.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[expect(missing_docs, reason = "as in Counts; percentiles of the latency in microseconds")]
pub struct Summary {
    pub kind: Kind,
    pub committed: u64,
    pub rolled_back: u64,
    pub conflicts: u64,
    pub districts_skipped: u64,
    pub p50_us: f64,
    pub p99_us: f64,
    pub p999_us: f64,
    pub p9999_us: f64,
    pub max_us: f64,
}

impl Report {
    fn new() -> anyhow::Result<Self> {
        let histogram = Histogram::new_with_max(LATENCY_NS_MAX, 3)?;
        let counts = Counts {
            committed: 0,
            rolled_back: 0,
            conflicts: 0,
            districts_skipped: 0,
            latency_ns: histogram,
        };
        Ok(Self { seconds: 0.0, kinds: std::array::from_fn(|_| counts.clone()) })
    }

    /// Of one kind.
    pub fn of(&self, kind: Kind) -> &Counts {
        &self.kinds[kind as usize]
    }

    /// Transactions of all kinds that have ended as they should.
    pub fn transactions(&self) -> u64 {
        self.kinds.iter().map(|counts| counts.committed + counts.rolled_back).sum()
    }

    /// [`Report::transactions`] by time.
    pub fn transactions_per_second(&self) -> f64 {
        self.transactions() as f64 / self.seconds
    }

    /// Of those that were committed.
    pub fn new_orders_per_minute(&self) -> f64 {
        self.of(Kind::NewOrder).committed as f64 * 60.0 / self.seconds
    }

    /// Of all kinds.
    pub fn conflicts(&self) -> u64 {
        self.kinds.iter().map(|counts| counts.conflicts).sum()
    }

    /// One per kind.
    pub fn summaries(&self) -> [Summary; 5] {
        Kind::ALL.map(|kind| {
            let counts = self.of(kind);
            let at = |quantile| counts.latency_ns.value_at_quantile(quantile) as f64 / 1e3;
            Summary {
                kind,
                committed: counts.committed,
                rolled_back: counts.rolled_back,
                conflicts: counts.conflicts,
                districts_skipped: counts.districts_skipped,
                p50_us: at(0.5),
                p99_us: at(0.99),
                p999_us: at(0.999),
                p9999_us: at(0.9999),
                max_us: at(1.0),
            }
        })
    }

    fn note(&mut self, done: Done, latency: Duration) {
        let counts = &mut self.kinds[done.kind as usize];
        match done.outcome {
            Outcome::RolledBack => counts.rolled_back += 1,
            Outcome::Committed { districts_skipped } => {
                counts.committed += 1;
                counts.districts_skipped += u64::from(districts_skipped);
            }
        }
        counts.conflicts += done.conflicts;
        counts.latency_ns.saturating_record(latency.as_nanos() as u64);
    }

    fn add(&mut self, other: &Self) -> anyhow::Result<()> {
        for (to, from) in self.kinds.iter_mut().zip(&other.kinds) {
            to.committed += from.committed;
            to.rolled_back += from.rolled_back;
            to.conflicts += from.conflicts;
            to.districts_skipped += from.districts_skipped;
            to.latency_ns.add(&from.latency_ns)?;
        }
        Ok(())
    }
}

/// Runs the mix over a database that was loaded. `live` is for others who want to look or to stop it.
///
/// # Errors
/// What the engine says, and records that are not TPC-C's.
pub fn run(
    engine: &dyn Engine,
    dataset: &Dataset,
    options: &Options,
    live: &Arc<Live>,
) -> anyhow::Result<Report> {
    dataset.scale.check()?;
    anyhow::ensure!(
        options.date_seconds > 0,
        "a run needs a date: 0 stands for orders that are not delivered"
    );
    let shared = Arc::new(Shared {
        dataset: *dataset,
        options: *options,
        live: Arc::clone(live),
        reports: (0..options.clients.clamp(1, REPORTS_MAX))
            .map(|_| Ok(Mutex::new(Report::new()?)))
            .collect::<anyhow::Result<_>>()?,
        counted_from: now() + options.warm_up,
    });
    let job = Arc::clone(&shared);
    engine.run(options.clients, Arc::new(move |client, session| job.client(client, session)))?;
    let mut report = Report::new()?;
    for part in &shared.reports {
        report.add(&part.lock().unwrap_or_else(PoisonError::into_inner))?;
    }
    report.seconds = now().saturating_sub(shared.counted_from).as_secs_f64();
    Ok(report)
}

struct Shared {
    dataset: Dataset,
    options: Options,
    live: Arc<Live>,
    /// Few, as histograms are large; more than one, so that clients do not wait for each other.
    reports: Vec<Mutex<Report>>,
    /// On the clock.
    counted_from: Duration,
}

impl Shared {
    fn client(&self, client: usize, session: &mut dyn Session) -> anyhow::Result<()> {
        let result = self.work(client, session);
        if result.is_err() {
            // The others' figures are worth nothing now.
            self.live.stop();
        }
        result
    }

    fn work(&self, client: usize, session: &mut dyn Session) -> anyhow::Result<()> {
        let mut terminal = Terminal::new(session, &self.dataset, &self.options, client)?;
        let report = &self.reports[client % self.reports.len()];
        let mut count = 0;
        let mut begun = now();
        while !self.is_over(begun, count) {
            let done = terminal.step()?;
            let ended = now();
            if begun >= self.counted_from {
                report.lock().unwrap_or_else(PoisonError::into_inner).note(done, ended - begun);
            }
            begun = ended;
            count += 1;
            self.live.done.fetch_add(1, Ordering::Relaxed);
        }
        Ok(())
    }

    fn is_over(&self, now: Duration, count: u64) -> bool {
        let is_at_end = match self.options.end {
            End::After(span) => now >= self.counted_from + span,
            End::Transactions(each) => count >= each,
        };
        is_at_end || self.live.stopped.load(Ordering::Relaxed)
    }
}

fn now() -> Duration {
    clock::now().into()
}
