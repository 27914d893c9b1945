//! The best design of each family for one workload on one drive, best first.

use serde::Serialize;

use super::designs::{Candidate, Family, candidates};
use super::drive::{DriveCosts, Ends};
use super::price::{Asked, Bound, Engine, Priced, asked, price, situation};
use super::workload::Workload;
use crate::Interval;

/// Years that a lifetime budget assumes.
pub const WARRANTY_YEARS: f64 = 5.0;

/// Less than this factor is no reason for other parameters.
const BETTER_MIN: f64 = 1.001;

/// Part of the memory that a design may need for itself, such as for filters; the rest caches data.
const MEMORY_FRACTION: f64 = 0.75;

/// Designs, best first.
#[derive(Clone, Debug, Serialize)]
pub struct Standing {
    /// One row per family.
    pub rows: Vec<Row>,
    /// Families that memory has no room for.
    pub left_out: Vec<Family>,
    /// Rate of the first over that of the second, at the same ends; `None` with one family.
    pub lead: Option<Interval>,
}

/// The best design of a family.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// Its family.
    pub family: Family,
    /// The design with its parameters.
    pub design: String,
    /// Operations per second of all clients.
    pub rate_per_second: Interval,
    /// Mean latency.
    pub latency_us: Interval,
    /// The bottleneck.
    pub bound: Bound,
    /// Bytes written per byte changed, log included; `None` if nothing is changed.
    pub write_amplification: Option<f64>,
    /// Bytes read per byte returned; `None` if nothing is returned.
    pub read_amplification: Option<f64>,
    /// Bytes on the drive per byte of records.
    pub space_amplification: f64,
    /// Bytes written to the drive per day at that rate.
    pub written_bytes_per_day: Interval,
    /// Years until the lifetime budget of [`WARRANTY_YEARS`] is used up at that rate; `None` without a
    /// budget.
    pub lifetime_years: Option<Interval>,
}

/// A candidate that was priced.
struct Judged<'a> {
    candidate: &'a Candidate,
    asked: Asked,
    priced: Priced,
}

/// The designs with their parameters that a drive's costs ask for.
pub struct Designs(Vec<Candidate>);

impl Designs {
    /// For a drive.
    pub fn of(drive: &DriveCosts) -> Self {
        Self(candidates(drive.write_concurrency(), drive.read_parallelism()))
    }

    /// The family that is first; `None` if memory has room for none.
    pub fn first(&self, workload: &Workload, drive: &DriveCosts) -> Option<Family> {
        best_of_families(&self.0, workload, drive).first().map(|judged| judged.candidate.family)
    }

    /// All families, each priced at all ends of the drive's intervals.
    pub fn standing(&self, workload: &Workload, drive: &DriveCosts) -> Standing {
        let best = best_of_families(&self.0, workload, drive);
        let engine = Engine::ideal(workload);
        let rows = best.iter().map(|judged| row(judged, workload, &engine, drive)).collect();
        let lead = best.first().zip(best.get(1)).map(|(first, second)| {
            let ratio = |ends| {
                let rate = |judged: &Judged<'_>| price(&judged.asked, workload, &engine, drive, ends).rate;
                rate(first) / rate(second)
            };
            Interval::spanning(ratio(Ends::VALUE), Ends::corners().map(ratio))
        });
        let is_ranked = |family: &Family| best.iter().any(|judged| judged.candidate.family == *family);
        let left_out = Family::ALL.into_iter().filter(|family| !is_ranked(family)).collect();
        Standing { rows, left_out, lead }
    }
}

/// The best design of each family by predicted rate, best first.
fn best_of_families<'a>(
    candidates: &'a [Candidate],
    workload: &Workload,
    drive: &DriveCosts,
) -> Vec<Judged<'a>> {
    let engine = Engine::ideal(workload);
    let mut best: Vec<Judged<'a>> = Vec::new();
    let surroundings = situation(workload, &engine);
    let fits = |candidate: &&Candidate| {
        candidate.design.memory_bytes(&surroundings) <= MEMORY_FRACTION * surroundings.cache_bytes
    };
    for candidate in candidates.iter().filter(fits) {
        let asked = asked(candidate.design.as_ref(), workload, &engine);
        let priced = price(&asked, workload, &engine, drive, Ends::VALUE);
        let judged = Judged { candidate, asked, priced };
        match best.iter_mut().find(|own| own.candidate.family == candidate.family) {
            Some(own) if own.priced.rate * BETTER_MIN < judged.priced.rate => *own = judged,
            Some(_) => {}
            None => best.push(judged),
        }
    }
    best.sort_by(|a, b| b.priced.rate.total_cmp(&a.priced.rate));
    best
}

fn row(judged: &Judged<'_>, workload: &Workload, engine: &Engine, drive: &DriveCosts) -> Row {
    let Judged { candidate, asked, priced } = judged;
    let corners: Vec<Priced> =
        Ends::corners().map(|ends| price(asked, workload, engine, drive, ends)).collect();
    let spanning = |of: fn(&Priced) -> f64| Interval::spanning(of(priced), corners.iter().map(of));
    let over = |bytes: f64, user: f64| (user > 0.0).then(|| bytes / user);
    let written_bytes_per_day = spanning(Priced::written_per_day);
    let lifetime_years = workload.lifetime.map(|lifetime| {
        let allowed = lifetime.drive_writes_per_day * lifetime.drive_bytes as f64 * WARRANTY_YEARS;
        let years = |written: f64| if written > 0.0 { allowed / written } else { f64::INFINITY };
        Interval {
            low: years(written_bytes_per_day.high),
            value: years(written_bytes_per_day.value),
            high: years(written_bytes_per_day.low),
        }
    });
    let design = candidate.design.as_ref();
    Row {
        family: candidate.family,
        design: candidate.name.clone(),
        rate_per_second: spanning(|priced| priced.rate),
        latency_us: spanning(|priced| priced.latency_s).scaled(1e6),
        bound: priced.bound,
        write_amplification: over(priced.written_bytes, priced.changed_bytes),
        read_amplification: over(priced.read_bytes, priced.returned_bytes),
        space_amplification: design.space_amplification(&situation(workload, engine)),
        written_bytes_per_day,
        lifetime_years,
    }
}
