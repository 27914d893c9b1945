//! Learned values, decisions, and their verification.

use flashgrain_model::{Access, Estimate};
use flashgrain_profile::describe_workload;
use flashgrain_profile::schema::{Learned, LearnedValue, Verification};
use flashgrain_profile::settings::drive::{Decision, Setting};

use super::{estimate_cell, kind_name};
use crate::table::{Cell, Kind, Table, Tone};
use crate::unit::{self, Unit};

/// All learned numbers with their names and units, in the order of the report.
fn values(learned: &Learned) -> [(&'static str, &LearnedValue, Unit); 13] {
    [
        ("desirable write size", &learned.desirable_write_bytes, Unit::Bytes),
        ("stripe size", &learned.stripe_bytes, Unit::Bytes),
        ("chunk size", &learned.chunk_bytes, Unit::Bytes),
        ("hot offset in the chunk", &learned.hot_offset_bytes, Unit::Bytes),
        ("latency drop there", &learned.hot_latency_drop, Unit::Share),
        ("flash page", &learned.flash_page_bytes, Unit::Bytes),
        ("best page for reads/s", &learned.best_page_iops_bytes, Unit::Bytes),
        ("best page for latency", &learned.best_page_latency_bytes, Unit::Bytes),
        ("depth for 90 %", &learned.depth_90, Unit::Count),
        ("depth for 99 %", &learned.depth_99, Unit::Count),
        ("parallelism P", &learned.parallelism, Unit::Count),
        ("saturation", &learned.saturation_bytes_per_second, Unit::Rate),
        ("half-bandwidth size", &learned.half_bandwidth_bytes, Unit::Bytes),
    ]
}

/// How much to say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Detail {
    /// Only the reason of undetermined values.
    Brief,
    /// The evidence, too.
    Full,
}

/// Value, interval, confidence and evidence of each hidden parameter and working point.
pub(crate) fn learned_table(learned: &Learned, detail: Detail) -> Table {
    let mut table = Table::new(&[
        ("learned", Kind::Label),
        ("value (95 % interval)", Kind::Number),
        ("confidence", Kind::Number),
        ("evidence", Kind::Prose),
    ]);
    if let Some(cap) = &learned.cap {
        let value = Cell::toned(cap.describe(), Tone::Warning);
        table.push(["before the drive".into(), value, "".into(), cap.evidence.as_str().into()]);
    }
    for (name, value, unit) in values(learned) {
        let (confidence, evidence) = match &value.estimate {
            Estimate::Determined { .. } => (unit::share(value.confidence), value.evidence.clone()),
            Estimate::Undetermined { why } => {
                let says_more = detail == Detail::Full && !value.evidence.is_empty();
                (String::new(), if says_more { format!("{why}; {}", value.evidence) } else { why.clone() })
            }
        };
        let shown = estimate_cell(&value.estimate, unit, Tone::Strong);
        table.push([name.into(), shown, confidence.into(), evidence.into()]);
    }
    table
}

/// Stands for the numbers of a run that cannot be trusted; the report's first line says why.
pub(crate) const NOTHING_LEARNED: &str = "Nothing, for the reason at the top.";

/// The reason of a decision. All of a run that cannot be trusted have the same one, which the top says.
pub(super) fn because(because: &str, is_trusted: bool) -> &str {
    if is_trusted { because } else { "" }
}

/// Settings and the numbers that they follow from.
pub(crate) fn decision_table(decisions: &[Decision], is_trusted: bool) -> Table {
    let mut table = Table::new(&[
        ("setting", Kind::Label),
        ("value", Kind::Number),
        ("", Kind::Label),
        ("because", Kind::Prose),
    ]);
    for decision in decisions {
        table.push([
            decision.setting.name().into(),
            Cell::toned(decision.setting.value(), Tone::Strong),
            match decision.setting {
                // Nothing takes it.
                Setting::Unknown(_) => Cell::toned("unknown", Tone::Warning),
                _ if decision.from_default => Cell::toned("default", Tone::Warning),
                _ => Cell::toned("learned", Tone::Quiet),
            },
            because(&decision.because, is_trusted).into(),
        ]);
    }
    table
}

/// The fresh workloads with the largest errors, largest first.
pub(crate) fn worst_verifications(verifications: &[Verification], count: usize) -> Vec<Verification> {
    let mut worst = verifications.to_vec();
    worst.sort_by(|a, b| b.relative_error.total_cmp(&a.relative_error));
    worst.truncate(count);
    worst
}

/// Fresh workloads, predicted and measured.
pub(crate) fn verification_table(verifications: &[Verification]) -> Table {
    let mut table = Table::new(&[
        ("fresh workload", Kind::Label),
        ("predicted", Kind::Number),
        ("measured (min – max)", Kind::Number),
        ("error", Kind::Number),
    ]);
    for verification in verifications {
        let measured = Unit::Rate.show_interval(
            verification.measured_bytes_per_second,
            verification.measured_min_bytes_per_second,
            verification.measured_max_bytes_per_second,
        );
        table.push([
            describe_workload(&verification.workload).into(),
            unit::rate(verification.predicted_bytes_per_second).into(),
            measured.into(),
            Cell::toned(
                unit::share(verification.relative_error),
                if verification.relative_error > 0.25 { Tone::Warning } else { Tone::Strong },
            ),
        ]);
    }
    table
}

/// The verdict over all fresh workloads.
pub(crate) fn verification_sentence(verifications: &[Verification]) -> Option<String> {
    let errors = rising_errors(verifications);
    let worst = errors.last()?;
    let median = median_of_sorted(&errors)?;
    let by_kind: Vec<String> = [Some(Access::Read), Some(Access::Write), None]
        .into_iter()
        .filter_map(|access| {
            let of_kind =
                verifications.iter().filter(|verification| verification.workload.access() == access);
            let median = median_of_sorted(&rising_errors(of_kind))?;
            Some(format!("{} {}", kind_name(access), unit::share(median)))
        })
        .collect();
    Some(format!(
        "MQSSD missed {} by {} in the median ({}) and by {} at worst.",
        unit::things(verifications.len() as u64, "fresh workload"),
        unit::share(median),
        by_kind.join(", "),
        unit::share(*worst)
    ))
}

fn rising_errors<'a>(verifications: impl IntoIterator<Item = &'a Verification>) -> Vec<f64> {
    let errors = verifications.into_iter().map(|verification| verification.relative_error);
    let mut errors: Vec<f64> = errors.filter(|error| error.is_finite()).collect();
    errors.sort_by(f64::total_cmp);
    errors
}

/// Median of rising numbers.
fn median_of_sorted(rising: &[f64]) -> Option<f64> {
    let upper = *rising.get(rising.len() / 2)?;
    if rising.len() % 2 == 1 {
        return Some(upper);
    }
    let lower = *rising.get(rising.len() / 2 - 1)?;
    Some((lower + upper) / 2.0)
}
