//! Differences between two profiles.

use flashgrain_profile::diff::{DecisionChange, Diff, FieldChange};

use super::estimate_cell;
use crate::table::{Cell, Kind, Table, Tone};
use crate::unit::{self, Unit};

/// Workloads whose rates are listed; the largest changes come first.
const RATES_MAX: usize = 20;

/// Fields that changed, before and after.
pub(crate) fn field_change_table(changes: &[FieldChange]) -> Table {
    let mut table = Table::new(&[("field", Kind::Label), ("before", Kind::Prose), ("after", Kind::Prose)]);
    for FieldChange { name, before, after } in changes {
        let text = |value: &Option<String>| Cell::new(value.as_deref().unwrap_or("–"));
        table.push([Cell::new(name.as_str()), text(before), text(after)]);
    }
    table
}

/// Settings that changed, and whether that tells anything of the drive.
pub(crate) fn decision_change_table(changes: &[DecisionChange]) -> Table {
    let mut table = Table::new(&[
        ("setting", Kind::Label),
        ("before", Kind::Prose),
        ("after", Kind::Prose),
        ("why", Kind::Label),
    ]);
    for DecisionChange { change: FieldChange { name, before, after }, hidden_by_noise } in changes {
        let text = |value: &Option<String>| Cell::new(value.as_deref().unwrap_or("–"));
        let why = if *hidden_by_noise { "noise" } else { "" };
        table.push([Cell::new(name.as_str()), text(before), text(after), Cell::toned(why, Tone::Quiet)]);
    }
    table
}

/// Learned numbers that changed.
pub(crate) fn learned_change_table(diff: &Diff) -> Table {
    let mut table =
        Table::new(&[("learned", Kind::Label), ("before", Kind::Number), ("after", Kind::Number)]);
    for change in &diff.learned {
        let unit = unit_of_key(&change.name);
        table.push([
            Cell::new(change.name.as_str()),
            estimate_cell(&change.before, unit, Tone::Plain),
            estimate_cell(&change.after, unit, Tone::Plain),
        ]);
    }
    table
}

/// Workloads that became faster or slower.
pub(crate) fn rate_change_table(diff: &Diff) -> Table {
    let columns = [
        ("experiment", Kind::Label),
        ("workload", Kind::Label),
        ("before", Kind::Number),
        ("after", Kind::Number),
        ("ratio", Kind::Number),
    ];
    let mut table = Table::new(&columns);
    for change in diff.rates.iter().take(RATES_MAX) {
        table.push([
            Cell::new(change.experiment.as_str()),
            Cell::new(change.workload.as_str()),
            Cell::new(unit::rate(change.before_bytes_per_second)),
            Cell::new(unit::rate(change.after_bytes_per_second)),
            Cell::toned(unit::three_digits(change.ratio), Tone::Strong),
        ]);
    }
    table
}

/// How many workloads changed, out of how many.
pub(crate) fn rate_change_sentence(diff: &Diff) -> String {
    let changed = diff.rates.len();
    let shown = if changed > RATES_MAX {
        format!("; the {RATES_MAX} largest changes are shown")
    } else {
        String::new()
    };
    format!(
        "{changed} of {} that both profiles have changed beyond noise{shown}.",
        unit::things(diff.compared as u64, "workload")
    )
}

/// Units are in the names of the keys.
fn unit_of_key(key: &str) -> Unit {
    if key.ends_with("_bytes_per_second") {
        Unit::Rate
    } else if key.ends_with("_bytes") {
        Unit::Bytes
    } else if key.ends_with("_drop") {
        Unit::Share
    } else {
        Unit::Count
    }
}
