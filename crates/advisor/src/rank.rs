//! The ranking of designs and its sensitivity: the nearest value of each lever that puts another family
//! first.

use flashgrain_cost::Interval;
use flashgrain_cost::ranking::{Designs, DriveCosts, Standing};
use serde::Serialize;

use crate::workload::{Workload, checked};

pub use flashgrain_cost::ranking::{Family, Row, WARRANTY_YEARS};

/// Designs, best first.
#[derive(Clone, Debug, Serialize)]
pub struct Ranking {
    /// One row per family.
    pub rows: Vec<Row>,
    /// Families that memory has no room for.
    pub left_out: Vec<Family>,
    /// Rate of the first over that of the second, at the same ends; `None` with one family.
    pub lead: Option<Interval>,
    /// The nearest workloads that another family is best for.
    pub changes: Vec<Change>,
}

/// Ranks all designs.
pub fn rank(workload: &Workload, drive: &DriveCosts) -> Ranking {
    let designs = Designs::of(drive);
    let Standing { rows, left_out, lead } = designs.standing(workload, drive);
    let changes = changes(&designs, workload, drive);
    Ranking { rows, left_out, lead, changes }
}

/// A part of the workload that is varied alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Lever {
    /// Share of the operations that write; the mixes within reads and within writes stay.
    WriteShare,
    /// Memory.
    Memory,
    /// Clients.
    Clients,
}

impl Lever {
    const ALL: [Self; 3] = [Self::WriteShare, Self::Memory, Self::Clients];
}

/// From here on another family is first.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Change {
    /// The quantity that is varied.
    pub lever: Lever,
    /// Its value now: a share, bytes, or a count.
    pub now: f64,
    /// The nearest value that was tried with another first.
    pub at: f64,
    /// Family that is first there.
    pub first: Family,
}

/// Steps on either side of the present value.
const STEPS: i32 = 12;

/// Memory and clients go up and down by this factor in all.
const SPAN: f64 = 64.0;

fn changes(designs: &Designs, workload: &Workload, drive: &DriveCosts) -> Vec<Change> {
    let first = |workload: &Workload| designs.first(workload, drive);
    let Some(now_first) = first(workload) else { return Vec::new() };
    let changed = |lever: Lever, down: bool| {
        (1..=STEPS).find_map(|step| {
            let at = value_at(workload, lever, step, down)?;
            let varied = vary(workload, lever, at)?;
            let family = first(&varied).filter(|family| *family != now_first)?;
            Some(Change { lever, now: value(workload, lever), at, first: family })
        })
    };
    let ways = Lever::ALL.into_iter().flat_map(|lever| [(lever, true), (lever, false)]);
    ways.filter_map(|(lever, down)| changed(lever, down)).collect()
}

fn value(workload: &Workload, lever: Lever) -> f64 {
    match lever {
        Lever::WriteShare => workload.operations.writes(),
        Lever::Memory => workload.memory_bytes as f64,
        Lever::Clients => f64::from(workload.clients),
    }
}

/// The value `step` steps away; `None` beyond the range.
fn value_at(workload: &Workload, lever: Lever, step: i32, down: bool) -> Option<f64> {
    let now = value(workload, lever);
    let way = f64::from(step) / f64::from(STEPS);
    match lever {
        Lever::WriteShare if down => (now > 0.0).then_some(now * (1.0 - way)),
        Lever::WriteShare => (now < 1.0).then_some(now + (1.0 - now) * way),
        Lever::Memory | Lever::Clients => {
            let factor = SPAN.powf(if down { -way } else { way });
            let at = (now * factor).round();
            (at >= 1.0).then_some(at)
        }
    }
}

/// The workload with another value of the lever; `None` if there can be no such workload.
fn vary(workload: &Workload, lever: Lever, at: f64) -> Option<Workload> {
    let mut varied = workload.clone();
    match lever {
        Lever::Memory => varied.memory_bytes = at as u64,
        Lever::Clients => varied.clients = at as u32,
        Lever::WriteShare => {
            let (reads, writes) = (workload.operations.reads(), workload.operations.writes());
            let operations = &mut varied.operations;
            let scale =
                |share: &mut f64, whole: f64, to: f64| *share *= if whole > 0.0 { to / whole } else { 0.0 };
            // Without writes now, the first ones are updates; without reads, hits.
            if writes == 0.0 {
                operations.updates = at;
            }
            if reads == 0.0 {
                operations.point_hits = 1.0 - at;
            }
            if writes > 0.0 {
                [&mut operations.inserts, &mut operations.updates, &mut operations.deletes]
                    .into_iter()
                    .for_each(|share| scale(share, writes, at));
            }
            if reads > 0.0 {
                [&mut operations.point_hits, &mut operations.point_misses, &mut operations.ranges]
                    .into_iter()
                    .for_each(|share| scale(share, reads, 1.0 - at));
            }
            if operations.ranges == 0.0 {
                operations.range_bytes = 0;
            }
        }
    }
    checked(varied).ok()
}
