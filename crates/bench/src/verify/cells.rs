//! Verifications of several engines and workloads, and the verdict over all of them.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use anyhow::ensure;
use flashgrain_advisor::Workload;
use flashgrain_advisor::engine::{EngineName, EngineVersion};
use flashgrain_profile::{DeviceProfile, Error};
use flashgrain_report::unit;
use serde::Serialize;

use super::{Options, Verification, is_runnable, verify};
use crate::listener::Listener;

/// Engines of other projects.
pub const FOREIGN: [EngineName; 4] =
    [EngineName::Rocksdb, EngineName::Sqlite, EngineName::Mariadb, EngineName::Wiredtiger];

/// Advised settings never run slower than this share of the default's rate.
const GAIN_MIN: f64 = 0.95;

/// Half of the cells gain this.
const GAIN_AIM: f64 = 1.2;
const GAINING_FRACTION: f64 = 0.5;

/// Predicted and measured gains differ by at most this factor in most cells.
const PREDICTED_FACTOR: f64 = 1.5;
const PREDICTED_FRACTION: f64 = 0.8;

/// All cells that were measured.
#[derive(Debug, Serialize)]
pub struct Cells {
    cells: Vec<Verification>,
    verdict: Vec<Verdict>,
    /// Engines that cannot be run here, each with its reason.
    left_out: Vec<String>,
    /// It was ended early: cells are missing.
    pub interrupted: bool,
}

/// An aim, and the cells that reach it.
#[derive(Debug, PartialEq, Serialize)]
struct Verdict {
    aim: String,
    is_met: bool,
    cells: usize,
    reached: usize,
    /// Cells that do not.
    missed: Vec<String>,
}

/// Verifies the advice for each workload and each engine that can be run here.
///
/// # Errors
/// As [`verify`]; an interrupt ends the measurement with the cells that are complete.
pub fn verify_cells(
    engines: &[EngineVersion],
    workloads: &[Workload],
    profile: &DeviceProfile,
    options: &Options,
    listener: &dyn Listener,
    interrupt: &Arc<AtomicBool>,
) -> anyhow::Result<Cells> {
    let mut runnable = Vec::new();
    let mut left_out = Vec::new();
    for engine in engines {
        match is_runnable(engine.engine) {
            Ok(()) => runnable.push(*engine),
            Err(why) => left_out.push(format!("{} is left out: {why}", engine.engine.describe())),
        }
    }
    left_out.iter().for_each(|text| listener.note(&format!("note: {text}")));
    ensure!(!runnable.is_empty(), "none of the engines can be run here");
    let mut cells = Vec::new();
    let mut interrupted = false;
    let all = workloads.iter().flat_map(|workload| runnable.iter().map(move |engine| (workload, *engine)));
    for (workload, engine) in all {
        listener.note(&format!("cell: {} with {}", engine.engine.describe(), workload.name));
        match verify(engine, workload, profile, options, listener, interrupt) {
            Err(error) if matches!(error.downcast_ref(), Some(Error::Interrupted)) => {
                interrupted = true;
                break;
            }
            verified => cells.push(verified?),
        }
    }
    let gains: Vec<Gains> = cells.iter().map(Gains::of).collect();
    Ok(Cells { verdict: verdict(&gains).into(), cells, left_out, interrupted })
}

/// The gains of a cell.
struct Gains {
    cell: String,
    measured: f64,
    predicted: f64,
}

impl Gains {
    fn of(cell: &Verification) -> Self {
        Self {
            cell: format!("{} {}", cell.engine.describe(), cell.workload.name),
            measured: cell.measured_gain.median,
            predicted: cell.predicted_gain.value,
        }
    }

    fn is_predicted(&self) -> bool {
        let ratio = self.predicted / self.measured;
        (PREDICTED_FACTOR.recip()..=PREDICTED_FACTOR).contains(&ratio)
    }
}

fn verdict(gains: &[Gains]) -> [Verdict; 3] {
    let of = |aim: String, share: f64, reaches: &dyn Fn(&Gains) -> bool| {
        let missed: Vec<&Gains> = gains.iter().filter(|cell| !reaches(cell)).collect();
        let reached = gains.len() - missed.len();
        Verdict {
            aim,
            is_met: reached as f64 >= share * gains.len() as f64,
            cells: gains.len(),
            reached,
            missed: missed.iter().map(|cell| format!("{} {:.2}", cell.cell, cell.measured)).collect(),
        }
    };
    [
        of(format!("never below {GAIN_MIN} of the default"), 1.0, &|cell| cell.measured >= GAIN_MIN),
        of(format!("at least {GAIN_AIM} x in half of the cells"), GAINING_FRACTION, &|cell| {
            cell.measured >= GAIN_AIM
        }),
        of(
            format!("predicted within a factor of {PREDICTED_FACTOR} in 80 % of the cells"),
            PREDICTED_FRACTION,
            &Gains::is_predicted,
        ),
    ]
}

impl Cells {
    /// A row for each cell, and the verdict.
    pub fn table(&self) -> String {
        let mut text = row([
            "engine",
            "workload",
            "defaults/s",
            "advised/s",
            "measured",
            "(of the rounds)",
            "predicted",
            "within 1.5 x",
            "load",
        ]);
        for cell in &self.cells {
            let (gain, gains) = (&cell.measured_gain, Gains::of(cell));
            text += &row([
                cell.engine.describe(),
                &cell.workload.name,
                &unit::count(cell.default.measured_per_second.median),
                &unit::count(cell.advised.measured_per_second.median),
                &format!("{:.2}", gain.median),
                &format!("{:.2} to {:.2}", gain.min, gain.max),
                &format!("{:.2}", gains.predicted),
                if gains.is_predicted() { "yes" } else { "no" },
                &cell.load.map_or("–".into(), |load| format!("{load:.1}")),
            ]);
        }
        text.push('\n');
        for Verdict { aim, is_met, cells, reached, missed } in &self.verdict {
            let word = if *is_met { "met" } else { "missed" };
            text += &format!("{word}: {aim}: {reached} of {cells}");
            if !is_met {
                text += &format!("; not by {}", missed.join(", "));
            }
            text.push('\n');
        }
        self.left_out.iter().for_each(|left_out| text += &format!("{left_out}\n"));
        text + "Gains are those of the medians; load is the machine's average over the last minute of a cell.\n"
    }
}

fn row(cells: [&str; 9]) -> String {
    let [engine, workload, default, advised, measured, range, predicted, is_predicted, load] = cells;
    format!(
        "{engine:<11} {workload:<16} {default:>10} {advised:>10} {measured:>9} {range:>16} {predicted:>10} {is_predicted:>13} {load:>5}\n"
    )
}

/// Processes that want to run, as the kernel averages them over a minute.
pub(super) fn load() -> Option<f64> {
    let text = std::fs::read_to_string(Path::new("/proc/loadavg")).ok()?;
    text.split(' ').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_aim_counts_the_cells_that_reach_it_and_names_the_others() {
        let gains = [("a", 1.3, 1.9), ("b", 0.96, 1.0), ("c", 0.94, 1.5), ("d", 1.2, 1.2)];
        let gains = gains.map(|(cell, measured, predicted)| Gains { cell: cell.into(), measured, predicted });
        let [lowest, half, predicted] = verdict(&gains);
        assert_eq!((lowest.is_met, lowest.reached, lowest.missed), (false, 3, vec!["c 0.94".to_owned()]));
        assert_eq!((half.is_met, half.reached), (true, 2));
        // 1.9 over 1.3 is within the factor, 1.5 over 0.94 is not.
        assert_eq!((predicted.is_met, predicted.reached), (false, 3));
        assert!(verdict(&gains[..2]).iter().all(|verdict| verdict.is_met));
    }
}
