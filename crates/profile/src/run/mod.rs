//! A whole profile run: layout, rounds of trials, fits, verification.

mod bench;
mod byte_shares;
mod cache;
mod cap;
mod create;
mod finish;
mod layout;
mod more;
mod regime;
mod rounds;
mod steady;
mod sustained;
mod sweep;
mod trials;

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;

use flashgrain_model::Estimate;

use crate::Error;
use crate::config::{Config, ExperimentName};
use crate::experiment::Trials;
use crate::experiment::request_size;
use crate::learn::cap::without_credits;
use crate::plan::{NO_WRITES, Plan, PlannedTrial, ROUNDS, Stage, allot};
use crate::progress::Progress;
use crate::samples::Samples;
use crate::schema::{Cap, DeviceProfile, WriteCache};
use crate::target::Target;

pub(crate) use bench::Bench;
use cache::Cache;
use rounds::{Bounds, Outcome};

/// A profile and the samples that it was made from.
#[derive(Debug)]
pub struct Profiled {
    /// The profile.
    pub profile: DeviceProfile,
    /// Every trial.
    pub samples: Samples,
}

/// Profiles `target` within the limits of `config`.
///
/// Nothing remains whatever happens: all writing goes to the target, which is a scratch file that vanishes
/// with its device, or a target that the user gave up explicitly when it was opened.
///
/// # Errors
/// [`Error::Argument`] if the limits make no sense on this device, [`Error::Interrupted`] if `interrupt`
/// became true, otherwise errors of the device. Trials that fail by themselves are no error; they are listed
/// in [`crate::schema::Budget::left_out`].
pub fn run(
    target: &Target<'_>,
    config: &Config,
    progress: &mut dyn Progress,
    interrupt: &AtomicBool,
) -> Result<Profiled, Error> {
    let mut plan = Plan::new(target, config)?;
    progress.planned(&plan);
    let mut bench = Bench::new(target, config, interrupt, progress, plan.budget_write_bytes, plan.seconds())?;
    let laid_out = layout::lay_out(&mut bench, &mut plan)?;
    let mut measured = measure(&mut bench, &plan, laid_out.bytes_per_second)?;
    measured.left_out.splice(0..0, laid_out.notes);
    if !plan.writes() {
        measured.left_out.insert(0, NO_WRITES.to_owned());
    }
    finish::finish(&mut bench, &plan, measured)
}

/// Results of the experiments, before any conclusion.
#[derive(Debug, Default)]
struct Measured {
    outcome: Outcome,
    /// How the regions of `request-size` were made.
    creation: String,
    /// Bandwidth seen during the layout.
    bytes_per_second: Option<f64>,
    /// A limit before the drive.
    cap: Option<Cap>,
    left_out: Vec<String>,
    /// `None` if nothing was written.
    write_cache: Option<WriteCache>,
}

/// Shares of the bytes and of the time that the search for the write cache may use.
const CACHE_BYTES_FRACTION: f64 = 0.1;
const CACHE_SECONDS_FRACTION: f64 = 0.05;

/// Before it, the cache must have passed on the data of the layout, where a flush does not see to that.
const CACHE_IDLE_FRACTION: f64 = 0.01;

/// Looks for the write cache if experiments write for their throughput.
fn find_cache(bench: &mut Bench<'_>, plan: &Plan) -> Result<Option<WriteCache>, Error> {
    let is_about_writes = |name: ExperimentName| {
        matches!(name, ExperimentName::Order | ExperimentName::Mix | ExperimentName::Sequential)
    };
    let bytes: u64 = plan
        .experiments
        .iter()
        .filter(|planned| planned.trials > 0 && is_about_writes(planned.name))
        .map(|planned| planned.stage.write_bytes)
        .sum();
    if !plan.writes() || bytes == 0 {
        return Ok(None);
    }
    bench.idle(plan.budget_s * CACHE_IDLE_FRACTION)?;
    let limits = ((bytes as f64 * CACHE_BYTES_FRACTION) as u64, plan.budget_s * CACHE_SECONDS_FRACTION);
    cache::find(bench, &plan.site, limits).map(Some)
}

/// Prepares and runs all trials.
fn measure(bench: &mut Bench<'_>, plan: &Plan, bytes_per_second: Option<f64>) -> Result<Measured, Error> {
    let config = bench.config;
    let mut measured = Measured { bytes_per_second, ..Measured::default() };
    let deadline_s = plan.budget_s - plan.verification.seconds - plan.finishing_s;
    let mut regions = Vec::new();
    let (creation_began_s, written_before) = (bench.elapsed_s(), bench.written_bytes);
    let by_request_size = plan.experiments.iter().find(|planned| planned.name == ExperimentName::RequestSize);
    if let Some(planned) =
        by_request_size.filter(|planned| planned.trials > 0 && plan.site.request_size.length_bytes > 0)
    {
        let pace = (planned.stage.seconds, bytes_per_second.unwrap_or(1e8));
        let created = create::create(bench, plan, pace, config.seed)?;
        measured.left_out.extend(created.notes);
        measured.creation = created.how;
        regions = created.regions;
    }
    let creation = (bench.elapsed_s() - creation_began_s, bench.written_bytes - written_before);

    let searched_before = bench.written_bytes;
    measured.write_cache = find_cache(bench, plan)?;
    let cache = measured.write_cache.as_ref().and_then(Cache::of);
    let searched_bytes = bench.written_bytes - searched_before;
    let planned_bytes: u64 = plan.experiments.iter().map(|planned| planned.stage.write_bytes).sum();
    let byte_share = 1.0 - searched_bytes as f64 / planned_bytes.max(1) as f64;

    // Trials may use the time that layout and creation left over.
    let planned_s: f64 = plan.experiments.iter().map(|planned| planned.stage.seconds).sum();
    let stretch = (deadline_s - bench.elapsed_s()).max(0.0) / planned_s.max(f64::MIN_POSITIVE);
    let mut trials: Vec<PlannedTrial> = Vec::new();
    let mut write_bytes = BTreeMap::new();
    let mut first_s = BTreeMap::new();
    for planned in &plan.experiments {
        let name = planned.name;
        let remaining_write_bytes = (planned.stage.write_bytes as f64 * byte_share.max(0.0)) as u64;
        let stage = Stage { seconds: planned.stage.seconds * stretch, write_bytes: remaining_write_bytes };
        let limits = plan.limits(stage, config, name, bytes_per_second);
        let named = match name {
            ExperimentName::RequestSize => Trials {
                // The regions as they were made, not as they were planned.
                trials: if regions.is_empty() { Vec::new() } else { request_size::sweeps(&regions) },
                ..plan.trials(bench.target, config, name)
            },
            _ => plan.trials(bench.target, config, name),
        };
        let allotted = match cache {
            Some(cache) => regime::allot_regimes(named, limits, cache),
            None => allot(named, limits),
        };
        measured.left_out.extend(allotted.left_out);
        trials.extend(allotted.trials);
        write_bytes.insert(name, stage.write_bytes);
        if name.runs_first() {
            // Of `depth` only one column of the map runs first.
            let share = if name == ExperimentName::Depth { 0.5 } else { 1.0 };
            first_s.insert(name, stage.seconds * share);
        }
    }
    let seed = bench.config.seed;
    let bounds = Bounds { deadline_s, rounds: ROUNDS, seed, write_bytes, first_s, what: "measuring", cache };
    measured.outcome = trials::run(bench, &plan.site, trials, bounds)?;
    if creation.1 > 0 {
        let used = measured.outcome.used.entry(ExperimentName::RequestSize).or_default();
        used.seconds += creation.0;
        used.write_bytes += creation.1;
    }
    more::use_the_rest(bench, plan, &mut measured, deadline_s)?;
    measured.left_out.append(&mut measured.outcome.left_out);
    if !bench.concluding {
        measured.cap = cap::look_for(bench, plan, &measured.outcome.series, &mut measured.left_out)?;
    }
    if let Some(cap) = &mut measured.cap {
        without_credits(cap, &mut measured.outcome.series);
        // A cap's credits look like a cache from outside.
        if let Some(found) = &mut measured.write_cache {
            let why = "the drive is capped, and credits of the cap look like a cache".to_owned();
            found.capacity_bytes.estimate = Estimate::Undetermined { why };
            found.capacity_bytes.confidence = 0.0;
        }
    }
    Ok(measured)
}
