//! Running trials by rounds. Each round visits every trial that still needs repeats, in an order drawn anew.
//!
//! 1. The experiments whose conclusions rest on many short reads (`location`, `request-size`, `parallel`,
//!    `size`) run first and by themselves, each until its results suffice or it has used the time that the
//!    plan gives it. Writes often take longer than planned, as a drive has to put the data of its cache away;
//!    one round of them would otherwise use the time of all.
//! 2. Then all experiments run together until the deadline.

use std::collections::{BTreeMap, BTreeSet};

use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_pcg::Pcg64;

use super::bench::{Bench, is_fatal};
use super::cache::Cache;
use super::sweep::Sweeping;
use crate::Error;
use crate::config::ExperimentName;
use crate::experiment::depth;
use crate::load::{Load, Pattern, Stop};
use crate::plan::PlannedTrial;
use crate::schema::Regime;
use crate::series::Series;
use crate::stats::{median, mix_seed};
use crate::target::Site;
use crate::trial::{LoadWork, Place, Work};

/// Leading share of a repeat that is not counted.
const WARMUP_FRACTION: f64 = 0.15;

/// Repeats that no point needs more of.
const REPEATS_MAX: u32 = 25;

/// Sweeps of each kind: one tells nothing of another.
const SWEEPS_MIN: u32 = 2;

/// Reads of each label of a sweep: more sharpen its mean by little, and the sizes that are slow to read need
/// the time.
const SWEEP_READS: usize = 120;

/// So many failures, and at least a third of all visits, and the drive, not the trial, must be at fault.
const MANY_FAILURES: u32 = 8;

/// When and how far to go.
#[derive(Clone, Debug)]
pub(super) struct Bounds {
    /// Deadline on the bench's clock.
    pub deadline_s: f64,
    /// Repeats that each load gets if there is time.
    pub rounds: u32,
    /// Draws the places that sweeps read, and their order: with that of an earlier run they are the same.
    pub seed: u64,
    /// Bytes that each experiment may write.
    pub write_bytes: BTreeMap<ExperimentName, u64>,
    /// Seconds that each of the experiments that run first may use before the others begin.
    pub first_s: BTreeMap<ExperimentName, f64>,
    /// Name for messages.
    pub what: &'static str,
    /// The write cache, if one was found: sustained trials keep it full, and burst trials find it empty.
    pub cache: Option<Cache>,
}

/// Results of the rounds.
#[derive(Debug, Default)]
pub(super) struct Outcome {
    pub series: Vec<Series>,
    /// Time and bytes by experiment.
    pub used: BTreeMap<ExperimentName, Used>,
    /// Trials that failed, in words; [`Outcome::concluded`] adds those that never got their turn.
    pub left_out: Vec<String>,
    /// Trials that the deadline overtook before their first turn.
    pub never_run: BTreeMap<ExperimentName, u32>,
}

/// Trials, time and bytes that an experiment has used.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Used {
    pub trials: u32,
    pub seconds: f64,
    pub write_bytes: u64,
}

impl Outcome {
    pub(super) fn and(mut self, other: Self) -> Self {
        self.series.extend(other.series);
        for (name, count) in other.never_run {
            *self.never_run.entry(name).or_default() += count;
        }
        self.left_out.extend(other.left_out);
        for (name, used) in other.used {
            let sum = self.used.entry(name).or_default();
            sum.trials += used.trials;
            sum.seconds += used.seconds;
            sum.write_bytes += used.write_bytes;
        }
        self
    }

    /// Counts trials that the deadline overtook.
    pub(super) fn add_never_run<'a>(&mut self, trials: impl IntoIterator<Item = &'a PlannedTrial>) {
        for one in trials {
            *self.never_run.entry(one.trial.experiment).or_default() += 1;
        }
    }

    /// Books the time and bytes of a fill, in equal parts for the experiments that needed it.
    pub(super) fn book(&mut self, names: &BTreeSet<ExperimentName>, (seconds, written): (f64, u64)) {
        for name in names {
            let used = self.used.entry(*name).or_default();
            used.seconds += seconds / names.len() as f64;
            used.write_bytes += written / names.len() as u64;
        }
    }

    /// Says which trials the deadline overtook.
    pub(super) fn concluded(mut self) -> Self {
        let text = |(name, count): (&ExperimentName, &u32)| {
            format!("{name}: {count} trials that the end of the time budget came before")
        };
        self.left_out.extend(self.never_run.iter().map(text));
        self
    }
}

/// A trial on its way through the rounds.
struct Running {
    planned: PlannedTrial,
    series: Series,
    sweeping: Option<Sweeping>,
    expected_s: f64,
    retired: bool,
}

impl Running {
    fn new(planned: PlannedTrial, seed: u64) -> Self {
        let sweeping = match &planned.trial.work {
            Work::Sweep(sweep) => Some(Sweeping::new(sweep, seed)),
            Work::Load(_) => None,
        };
        let (series, expected_s) = (Series::new(planned.trial.clone()), planned.expected_s);
        Self { planned, series, sweeping, expected_s, retired: false }
    }

    /// Whether it may be left out without a note: a depth that is only measured while the rate rises.
    fn is_optional(&self) -> bool {
        let trial = &self.planned.trial;
        trial.experiment == ExperimentName::Depth
            && trial.workload().is_some_and(|workload| workload.concurrency > depth::DEEPEST as f64)
    }

    fn is_done(&self, rounds: u32, tight_enough: f64) -> bool {
        let visits = self.series.visits();
        match &self.planned.trial.work {
            Work::Load(_) => {
                let tight = || self.series.noise().is_some_and(|noise| noise <= tight_enough);
                visits >= REPEATS_MAX.min(self.planned.repeats_max) || visits >= rounds && tight()
            }
            Work::Sweep(sweep) => {
                let labels: BTreeSet<u64> = sweep.groups.iter().map(|group| group.label).collect();
                visits >= SWEEPS_MIN && self.series.reads.len() >= SWEEP_READS * labels.len()
            }
        }
    }

    fn regime(&self) -> Option<Regime> {
        self.planned.trial.regime
    }

    /// Whether the deadline overtook it before its first turn.
    fn never_ran(&self) -> bool {
        self.series.visits() == 0 && !self.retired && !self.is_optional()
    }

    /// Bytes that a repeat writes at least.
    fn write_bytes_min(&self) -> u64 {
        let trial = &self.planned.trial;
        ((trial.in_flight_bytes() as f64 * trial.write_share()).ceil() as u64).min(self.planned.write_bytes)
    }
}

/// The rounds, and the time and bytes that they have used so far.
struct Rounds<'r, 'b> {
    bench: &'r mut Bench<'b>,
    site: &'r Site,
    bounds: Bounds,
    outcome: Outcome,
    visits: u32,
    failures: u32,
    /// Written since the cache was empty.
    dirty_bytes: u64,
}

/// Runs trials that may follow each other. Also returns the bytes that may still be written.
pub(super) fn run_together(
    bench: &mut Bench<'_>,
    site: &Site,
    planned: Vec<PlannedTrial>,
    bounds: Bounds,
) -> Result<(Outcome, BTreeMap<ExperimentName, u64>), Error> {
    let (seed, tight_enough) = (bounds.seed, bench.config.tight_enough);
    let mut running: Vec<Running> = planned.into_iter().map(|planned| Running::new(planned, seed)).collect();
    let mut rounds = Rounds {
        bench,
        site,
        bounds,
        outcome: Outcome::default(),
        visits: 0,
        failures: 0,
        dirty_bytes: u64::MAX,
    };
    let mut together = rounds.bounds.first_s.is_empty();
    'rounds: for round in 0.. {
        let least = rounds.bounds.rounds;
        let deep = worth_measuring(&running, rounds.bench.target.device.identity().backend == "sync");
        let mut turn: Vec<&mut Running> = running
            .iter_mut()
            .zip(deep)
            .filter_map(|(one, worth)| worth.then_some(one))
            .filter(|one| !one.retired && !one.is_done(least, tight_enough))
            .filter(|one| together || rounds.is_first(one))
            .collect();
        let mut random = Pcg64::seed_from_u64(mix_seed(seed, u64::from(round)));
        turn.shuffle(&mut random);
        let before = rounds.visits;
        for one in turn {
            if let Err(error) = rounds.take_turn(one, round) {
                let missing = rounds.bench.conclude(error)?;
                rounds.outcome.left_out.push(missing);
                break 'rounds;
            }
        }
        if rounds.visits == before {
            if together {
                break;
            }
            together = true;
        }
    }
    let (mut outcome, write_bytes) = (rounds.outcome, rounds.bounds.write_bytes);
    outcome.add_never_run(running.iter().filter(|one| one.never_ran()).map(|one| &one.planned));
    outcome.series = running.into_iter().map(|one| one.series).filter(|series| series.visits() > 0).collect();
    Ok((outcome, write_bytes))
}

impl Rounds<'_, '_> {
    /// Whether a trial is one of those that run first, and its experiment has time left for that. Of `depth`
    /// these are the page's, which go on while the rate rises.
    fn is_first(&self, one: &Running) -> bool {
        let name = one.planned.trial.experiment;
        if name == ExperimentName::Depth && depth_of(one, self.site.page_bytes).is_none() {
            return false;
        }
        let used_s = self.outcome.used.get(&name).map_or(0.0, |used| used.seconds);
        self.bounds.first_s.get(&name).is_some_and(|allowed_s| used_s < *allowed_s)
    }

    /// Visits a trial if time and bytes allow, and books the time and bytes that it used.
    fn take_turn(&mut self, one: &mut Running, round: u32) -> Result<(), Error> {
        let name = one.planned.trial.experiment;
        self.bench.step(&format!("{}, round {}: {name}", self.bounds.what, round + 1))?;
        if self.bench.elapsed_s() + one.expected_s + self.draining_s(one) > self.bounds.deadline_s {
            return Ok(());
        }
        let writes = one.planned.write_bytes > 0;
        let remaining =
            self.bounds.write_bytes.get(&name).copied().unwrap_or(0).min(self.bench.remaining_write_bytes());
        if writes && remaining < one.write_bytes_min() {
            one.retired = true;
            return Ok(());
        }
        self.visits += 1;
        let (began_s, written_before) = (self.bench.elapsed_s(), self.bench.written_bytes);
        self.prepare_cache(one)?;
        let visited_s = self.bench.elapsed_s();
        let result = self.visit(one, round, remaining);
        let in_cache = self.bench.written_bytes - written_before;
        self.dirty_bytes = self.dirty_bytes.saturating_add(in_cache);
        if writes && result.is_ok() && one.regime() != Some(Regime::Sustained) {
            let flush_s = self.bench.flush()?;
            self.dirty_bytes =
                self.bounds.cache.map_or(0, |cache| cache.remaining_bytes(self.dirty_bytes, flush_s));
        }
        let prepared_s = visited_s - began_s;
        let seconds = self.bench.elapsed_s() - began_s;
        let written = self.bench.written_bytes - written_before;
        let alone_s = seconds - prepared_s;
        one.expected_s = if round == 0 { alone_s } else { one.expected_s.max(alone_s) };
        let used = self.outcome.used.entry(name).or_default();
        used.trials += 1;
        used.seconds += seconds;
        used.write_bytes += written;
        if let Some(remaining) = self.bounds.write_bytes.get_mut(&name) {
            *remaining = remaining.saturating_sub(written);
        }
        result.or_else(|error| self.note_failure(one, error))
    }

    /// Time that the cache must drain before the trial.
    fn draining_s(&self, one: &Running) -> f64 {
        match (self.bounds.cache, one.regime()) {
            (Some(cache), Some(Regime::Burst)) => cache.drain_s(self.dirty_bytes),
            _ => 0.0,
        }
    }

    /// Has the cache drain if the trial needs that.
    fn prepare_cache(&mut self, one: &Running) -> Result<(), Error> {
        if one.regime() == Some(Regime::Burst) && self.dirty_bytes > 0 {
            self.bench.idle(self.draining_s(one))?;
            self.dirty_bytes = 0;
        }
        Ok(())
    }

    /// A trial that fails is left out; a drive on which trials keep failing ends the run.
    fn note_failure(&mut self, one: &mut Running, error: Error) -> Result<(), Error> {
        self.failures += 1;
        if is_fatal(&error) || self.failures >= MANY_FAILURES && self.failures * 3 >= self.visits {
            return Err(error);
        }
        one.retired = true;
        self.outcome.left_out.push(format!("{}: {error}", one.planned.trial.describe()));
        Ok(())
    }

    /// One repeat.
    fn visit(&mut self, one: &mut Running, round: u32, remaining_write_bytes: u64) -> Result<(), Error> {
        let bench = &mut *self.bench;
        let slice_s = one.planned.slice_s.min(self.bounds.deadline_s - bench.elapsed_s()).max(0.001);
        match (&one.planned.trial.work, &mut one.sweeping) {
            (Work::Sweep(_), Some(sweeping)) => {
                let reads = sweeping.run(bench, round, slice_s)?;
                one.series.reads.extend(reads);
            }
            (Work::Sweep(_), None) => {}
            (Work::Load(work), _) => {
                let order = bench.next_order();
                let seed = mix_seed(bench.config.seed ^ 0x5eed, u64::from(order));
                let load = load_of(bench, self.site, &one.planned, work, slice_s, remaining_write_bytes);
                let growing;
                let device = match work.place {
                    Place::Device => bench.target.device,
                    Place::Backend(index) => bench.target.through(index)?,
                    Place::GrowingFile => {
                        growing = bench.target.growing_file()?;
                        &growing
                    }
                };
                let workers = bench.workers(device, work.workload.concurrency);
                let measured = bench.load(device, Load { workers, seed, ..load })?;
                one.series.add(&measured, seed, order);
            }
        }
        Ok(())
    }
}

/// Queue depth of a trial of `depth` with pages.
fn depth_of(one: &Running, page_bytes: u64) -> Option<u64> {
    let trial = &one.planned.trial;
    let workload = trial.workload().filter(|_| trial.experiment == ExperimentName::Depth)?;
    (workload.request_bytes as u64 == page_bytes).then_some(workload.concurrency as u64)
}

/// Tells for each trial whether it is still worth measuring, given the measurements so far. If depth comes
/// from threads, depths beyond 256 are not, because thousands of threads would measure the scheduler.
fn worth_measuring(running: &[Running], by_threads: bool) -> Vec<bool> {
    let is_worth = |one: &Running| {
        let trial = &one.planned.trial;
        let Some(workload) = trial.workload().filter(|_| trial.experiment == ExperimentName::Depth) else {
            return true;
        };
        let bytes = workload.request_bytes as u64;
        let rate_at = |depth: u64| {
            let same = running.iter().find(|other| depth_of(other, bytes) == Some(depth))?;
            median(&same.series.throughputs()).filter(|_| !by_threads)
        };
        depth::is_worth_measuring(workload.concurrency as u64, rate_at)
    };
    running.iter().map(is_worth).collect()
}

fn load_of(
    bench: &Bench<'_>,
    site: &Site,
    planned: &PlannedTrial,
    work: &LoadWork,
    slice_s: f64,
    remaining_write_bytes: u64,
) -> Load {
    let writes = work.workload.read_share < 1.0;
    // If each stream makes only one request, a warm-up would be all of it.
    let single = writes && planned.write_bytes < 2 * planned.trial.in_flight_bytes();
    Load {
        workload: work.workload,
        pattern: Pattern::Mixed { align_bytes: None },
        region: site.main,
        workers: 1,
        sync: work.sync,
        rate_per_s: None,
        polled: bench.config.polled,
        warmup_share: if single { 0.0 } else { WARMUP_FRACTION },
        stop: Stop {
            after_s: Some(slice_s),
            after_bytes: planned.bytes,
            after_bytes_written: writes.then(|| planned.write_bytes.min(remaining_write_bytes)),
            after_requests: work.max_requests,
        },
        seed: 0,
    }
}
