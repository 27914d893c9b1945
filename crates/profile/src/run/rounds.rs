//! Running trials by rounds. Each round visits every trial that still needs repeats, in an order drawn anew.

use std::collections::BTreeMap;

use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;

use super::bench::{Bench, is_fatal};
use crate::Error;
use crate::config::ExperimentName;
use crate::load::{Load, Pattern, Stop};
use crate::plan::PlannedTrial;
use crate::series::{Series, SweepRead};
use crate::stats::mix_seed;
use crate::target::Site;
use crate::trial::{LoadWork, Sweep, Work};

/// Leading share of a repeat that is not counted.
const WARMUP_SHARE: f64 = 0.15;

/// Repeats that no point needs more of.
const MOST_REPEATS: u32 = 25;

/// Rounds of a sweep: its groups' means grow sharper with every one.
const SWEEP_ROUNDS: u32 = 15;

/// So many failures, and at least a third of all visits, and the drive, not the trial, must be at fault.
const MANY_FAILURES: u32 = 8;

/// When and how far to go.
#[derive(Clone, Debug)]
pub(crate) struct Bounds {
    /// On the bench's clock.
    pub deadline_s: f64,
    /// Repeats that each load gets if there is time.
    pub rounds: u32,
    /// Bytes that each experiment may write.
    pub write_bytes: BTreeMap<ExperimentName, u64>,
    /// For messages.
    pub what: &'static str,
}

/// What the rounds gave.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    pub series: Vec<Series>,
    /// Time and bytes by experiment.
    pub used: BTreeMap<ExperimentName, Used>,
    /// Trials that failed or never got their turn, in words.
    pub left_out: Vec<String>,
}

/// What an experiment has used.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Used {
    pub trials: u32,
    pub seconds: f64,
    pub write_bytes: u64,
}

/// A trial on its way through the rounds.
struct Running {
    planned: PlannedTrial,
    series: Series,
    expected_s: f64,
    retired: bool,
}

impl Running {
    fn is_done(&self, rounds: u32, tight_enough: f64) -> bool {
        let visits = self.series.visits();
        match &self.planned.trial.work {
            Work::Load(_) => {
                visits >= MOST_REPEATS
                    || visits >= rounds && self.series.noise().is_some_and(|noise| noise <= tight_enough)
            }
            Work::Sweep(_) => visits >= SWEEP_ROUNDS,
        }
    }

    /// Bytes that a repeat writes at least.
    fn least_write_bytes(&self) -> u64 {
        let trial = &self.planned.trial;
        ((trial.in_flight_bytes() as f64 * trial.write_share()).ceil() as u64).min(self.planned.write_bytes)
    }
}

/// Runs all trials until they are tight enough or the bounds are reached.
pub(crate) fn run(
    bench: &mut Bench<'_>,
    site: &Site,
    planned: Vec<PlannedTrial>,
    mut bounds: Bounds,
) -> Result<Outcome, Error> {
    let mut outcome = Outcome::default();
    let mut running: Vec<Running> = planned
        .into_iter()
        .map(|planned| Running {
            series: Series::new(planned.trial.clone()),
            expected_s: planned.expected_s,
            retired: false,
            planned,
        })
        .collect();
    let (mut visits, mut failures) = (0, 0);
    for round in 0.. {
        let tight_enough = bench.config.tight_enough;
        let mut turn: Vec<&mut Running> = running
            .iter_mut()
            .filter(|one| !one.retired && !one.is_done(bounds.rounds, tight_enough))
            .collect();
        turn.shuffle(&mut Pcg64::seed_from_u64(mix_seed(bench.config.seed, u64::from(round))));
        let mut ran = 0;
        for one in turn {
            let name = one.planned.trial.experiment;
            bench.step(&format!("{}, round {}: {name}", bounds.what, round + 1))?;
            if bench.elapsed_s() + one.expected_s > bounds.deadline_s {
                continue;
            }
            let writes = one.planned.write_bytes > 0;
            let left = bounds.write_bytes.get(&name).copied().unwrap_or(0);
            if writes && left.min(bench.write_bytes_left()) < one.least_write_bytes() {
                one.retired = true;
                continue;
            }
            ran += 1;
            visits += 1;
            let (began_s, written_before) = (bench.elapsed_s(), bench.written_bytes);
            let result = visit(bench, site, one, round, left, bounds.deadline_s);
            if writes && result.is_ok() {
                bench.flush()?;
            }
            let (seconds, written) = (bench.elapsed_s() - began_s, bench.written_bytes - written_before);
            one.expected_s = if round == 0 { seconds } else { one.expected_s.max(seconds) };
            let used = outcome.used.entry(name).or_default();
            *used = Used {
                trials: used.trials + 1,
                seconds: used.seconds + seconds,
                write_bytes: used.write_bytes + written,
            };
            bounds.write_bytes.insert(name, left.saturating_sub(written));
            match result {
                Ok(()) => {}
                Err(error) => {
                    failures += 1;
                    if is_fatal(&error) || failures >= MANY_FAILURES && failures * 3 >= visits {
                        return Err(error);
                    }
                    one.retired = true;
                    outcome.left_out.push(format!("{}: {error}", one.planned.trial.describe()));
                }
            }
        }
        if ran == 0 {
            break;
        }
    }
    outcome.left_out.extend(never_run(&running));
    outcome.series = running.into_iter().map(|one| one.series).filter(|series| series.visits() > 0).collect();
    Ok(outcome)
}

/// Trials that the deadline or the bytes overtook before their first turn.
fn never_run(running: &[Running]) -> Vec<String> {
    let mut by_experiment: BTreeMap<ExperimentName, u32> = BTreeMap::new();
    for one in running.iter().filter(|one| one.series.visits() == 0 && !one.retired) {
        *by_experiment.entry(one.planned.trial.experiment).or_default() += 1;
    }
    let text = |(name, count)| format!("{name}: {count} trials that the time budget ended before");
    by_experiment.into_iter().map(text).collect()
}

/// One repeat.
fn visit(
    bench: &mut Bench<'_>,
    site: &Site,
    one: &mut Running,
    round: u32,
    write_bytes_left: u64,
    deadline_s: f64,
) -> Result<(), Error> {
    let order = bench.next_order();
    let seed = mix_seed(bench.config.seed ^ 0x5eed, u64::from(order));
    let slice_s = one.planned.slice_s.min(deadline_s - bench.elapsed_s()).max(0.001);
    match &one.planned.trial.work {
        Work::Load(work) => {
            let load = load_of(bench, site, &one.planned, work, slice_s, write_bytes_left, seed);
            let target = bench.target;
            let device = match work.backend.and_then(|index| target.backends.get(index)) {
                Some(backend) => match &backend.device {
                    Ok(device) => device.as_ref(),
                    Err(why) => return Err(Error::Argument(why.clone())),
                },
                None => target.device,
            };
            let load = Load { workers: bench.workers(device, work.workload.concurrency), ..load };
            let measured = bench.load(device, load)?;
            one.series.add(&measured, seed, order);
            Ok(())
        }
        Work::Sweep(sweep) => {
            let reads = sweep_once(bench, sweep, round, slice_s, seed)?;
            one.series.reads.extend(reads);
            Ok(())
        }
    }
}

fn load_of(
    bench: &Bench<'_>,
    site: &Site,
    planned: &PlannedTrial,
    work: &LoadWork,
    slice_s: f64,
    write_bytes_left: u64,
    seed: u64,
) -> Load {
    let writes = work.workload.read_share < 1.0;
    // Where a stream does one request only, a warm-up would be all of it.
    let single = writes && planned.write_bytes < 2 * planned.trial.in_flight_bytes();
    Load {
        workload: work.workload,
        pattern: Pattern::Mixed { align_bytes: None },
        region: site.main,
        workers: 1,
        sync: work.sync,
        rate_per_s: None,
        polled: bench.config.polled,
        warmup_share: if single { 0.0 } else { WARMUP_SHARE },
        stop: Stop {
            after_s: Some(slice_s),
            after_bytes: planned.bytes,
            after_bytes_written: writes.then(|| planned.write_bytes.min(write_bytes_left)),
            after_requests: work.max_requests,
        },
        seed,
    }
}

/// Reads of a sweep for `slice_s`: batch after batch, each with one read of every group in random order.
fn sweep_once(
    bench: &mut Bench<'_>,
    sweep: &Sweep,
    round: u32,
    slice_s: f64,
    seed: u64,
) -> Result<Vec<SweepRead>, Error> {
    let mut random = Pcg64::seed_from_u64(seed);
    let mut reads = Vec::new();
    let began_s = bench.elapsed_s();
    // The first call tells how long a batch takes; the others use the slice up.
    let mut batches = 2;
    loop {
        let mut labels = Vec::new();
        let mut offsets = Vec::new();
        for _ in 0..batches {
            let mut groups: Vec<_> = sweep.groups.iter().collect();
            groups.shuffle(&mut random);
            for group in groups {
                labels.push(group.label);
                offsets.push(
                    group.first_bytes + random.random_range(0..group.count.max(1)) * group.stride_bytes,
                );
            }
        }
        // The first read of a call finds the drive idle; it is made twice and counted once.
        offsets.splice(0..0, offsets.first().copied());
        let timed = bench.time_reads(sweep.length_bytes, &offsets)?;
        let counted = timed.iter().skip(1).zip(&labels);
        reads.extend(counted.map(|(timed, label)| SweepRead {
            sweep: round,
            label: *label,
            latency_us: timed.latency.seconds() * 1e6,
        }));
        let used_s = bench.elapsed_s() - began_s;
        let per_batch_s = used_s / (reads.len() as f64 / sweep.groups.len().max(1) as f64).max(1.0);
        let affordable = (slice_s - used_s) / per_batch_s.max(1e-9);
        if affordable < 1.0 {
            return Ok(reads);
        }
        // Half of what is left at a time: an estimate from two batches may be off.
        batches = ((affordable / 2.0).ceil() as usize).clamp(1, 256);
    }
}
