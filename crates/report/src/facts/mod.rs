//! Content of the profile, as tables and sentences; the terminal and the page show the same ones.

mod costs;
mod diff;
mod drive;
mod headline;
mod learned;
mod models;
mod one_thread;
mod store;

pub(crate) use costs::{
    CURVES, Cost, cost_table, costs_of, curve_table, other_parameters_table, regression_table,
    undetermined_costs,
};
pub(crate) use diff::{
    decision_change_table, field_change_table, learned_change_table, rate_change_sentence, rate_change_table,
};
pub(crate) use drive::{
    budget_sentence, contention_sentence, distrust_sentence, drive_table, experiment_table,
};
pub use headline::Headline;
pub(crate) use headline::headlines;
pub(crate) use learned::{
    Detail, NOTHING_LEARNED, decision_table, learned_table, verification_sentence, verification_table,
    worst_verifications,
};
pub(crate) use models::{MODELS, comparison_notes, comparison_table, kind_name, ranking_sentence};
pub(crate) use one_thread::{ONE_THREAD, one_thread_table};
pub(crate) use store::{
    STORE_LIMITS, layout_table, no_store, operation_name, operation_table, share_of_raw, shares_left_out,
    store_sentence,
};

use flashgrain_model::Estimate;

use crate::table::{Cell, Tone};
use crate::unit::Unit;

/// `5.4 (5.1 – 5.7)`, or that it is undetermined.
fn estimate_cell(estimate: &Estimate, unit: Unit, tone: Tone) -> Cell {
    match estimate {
        Estimate::Determined { value, low, high } => {
            Cell::toned(unit.show_interval(*value, *low, *high), tone)
        }
        Estimate::Undetermined { .. } => Cell::toned("undetermined", Tone::Warning),
    }
}
