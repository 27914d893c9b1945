//! The four models side by side.

use flashgrain_model::{Access, Comparison, ComparisonRow};

use crate::table::{Cell, Kind, Table, Tone};
use crate::unit;

/// `reads`, `writes`, `mixed`.
pub(crate) fn kind_name(access: Option<Access>) -> &'static str {
    match access {
        Some(Access::Read) => "reads",
        Some(Access::Write) => "writes",
        None => "mixed",
    }
}

const KINDS: [Option<Access>; 3] = [Some(Access::Read), Some(Access::Write), None];

/// The row with the lowest median error among those of one kind.
fn best_row(comparison: &Comparison, access: Option<Access>) -> Option<&ComparisonRow> {
    comparison
        .rows
        .iter()
        .filter(|row| row.access == access && row.median_relative_error.is_finite())
        .min_by(|a, b| a.median_relative_error.total_cmp(&b.median_relative_error))
}

/// Why the first is first, as a sentence.
pub(crate) fn ranking_sentence(comparison: &Comparison, is_trusted: bool) -> String {
    match is_trusted {
        false => "No model is the best, for the reason at the top.".to_owned(),
        true => format!("{}.", comparison.ranking_reason.trim_end_matches('.')),
    }
}

/// Explains each model, in a sentence.
pub(crate) const MODELS: &str = "DAM: every block costs the same. PDAM: up to P blocks are moved in a step, and each step costs the same. \
    Affine: a request costs a setup and its length times a transfer cost. MQSSD: as affine, with costs of reads and writes of their own that \
    depend on the number of concurrent streams k.";

/// Errors on held-out points, by kind; the noise floor closes each kind.
pub(crate) fn comparison_table(comparison: &Comparison) -> Table {
    let mut table = Table::new(&[
        ("kind", Kind::Label),
        ("model", Kind::Label),
        ("R²", Kind::Number),
        ("adjusted R²", Kind::Number),
        ("median error", Kind::Number),
        ("worst error", Kind::Number),
        ("held-out points", Kind::Number),
        ("constants", Kind::Number),
    ]);
    for access in KINDS {
        let best = best_row(comparison, access).map(|row| row.model);
        for row in comparison.rows.iter().filter(|row| row.access == access) {
            let tone = if Some(row.model) == best { Tone::Strong } else { Tone::Plain };
            table.push([
                Cell::toned(kind_name(access), Tone::Quiet),
                Cell::toned(row.model.to_string(), tone),
                determination(row.r_squared, tone),
                determination(row.adjusted_r_squared, tone),
                Cell::toned(unit::share(row.median_relative_error), tone),
                Cell::toned(unit::share(row.worst_relative_error), tone),
                Cell::toned(row.points.to_string(), Tone::Quiet),
                Cell::toned(row.constants.to_string(), Tone::Quiet),
            ]);
        }
        for floor in comparison.noise_floor.iter().filter(|floor| floor.access == access) {
            table.push([
                Cell::toned(kind_name(access), Tone::Quiet),
                Cell::toned("noise floor", Tone::Quiet),
                "".into(),
                "".into(),
                Cell::toned(unit::share(floor.median_relative_error), Tone::Quiet),
                "".into(),
                Cell::toned(floor.points.to_string(), Tone::Quiet),
                "".into(),
            ]);
        }
    }
    table
}

/// Kinds and models without a row, and the number of splits, in sentences.
pub(crate) fn comparison_notes(comparison: &Comparison) -> Vec<String> {
    let mut notes = Vec::new();
    if comparison.splits > 1 {
        notes.push(format!(
            "One split leaves few points: the held-out points of {} are pooled, each predicted by fits that did not see it.",
            comparison.splits
        ));
    }
    notes.extend(comparison.without_row.iter().map(|missing| {
        let kind = kind_name(missing.access);
        match missing.model {
            Some(model) => format!("No row of {model} for {kind}: {}.", missing.why),
            None => format!("No rows for {kind}: {}.", missing.why),
        }
    }));
    notes
}

/// R² to three decimals; far below zero its digits say nothing more.
pub(super) fn determination(r_squared: Option<f64>, tone: Tone) -> Cell {
    match r_squared {
        None => Cell::toned("too few points", Tone::Quiet),
        Some(number) if !number.is_finite() => Cell::toned("–", Tone::Quiet),
        Some(number) if number < -10.0 => Cell::toned("< −10", tone),
        Some(number) => Cell::toned(format!("{number:.3}").replace('-', "−"), tone),
    }
}
