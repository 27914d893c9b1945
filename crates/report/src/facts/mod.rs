//! What the profile says, as tables and sentences; the terminal and the page show the same ones.

mod costs;
mod drive;
mod headline;
mod learned;
mod models;

pub(crate) use costs::{Cost, cost_table, costs_of, other_parameters_table};
pub(crate) use drive::{budget_sentence, drive_table, experiment_table};
pub(crate) use headline::{Headline, headlines};
pub(crate) use learned::{decision_table, learned_table, verification_sentence, verification_table};
pub(crate) use models::{comparison_table, kind_name};

use flashgrain_model::Workload;

use crate::unit;

/// A workload in words: `100 % reads, 4 KiB, 100 % random, 32 in flight`.
pub(crate) fn workload_in_words(workload: &Workload) -> String {
    let mix = match workload.access() {
        Some(access) => kind_name(Some(access)).to_owned(),
        None => format!("{} reads", unit::share(workload.read_share)),
    };
    let places = if workload.random_share >= 1.0 {
        "random".to_owned()
    } else if workload.random_share <= 0.0 {
        "sequential".to_owned()
    } else {
        format!("{} random", unit::share(workload.random_share))
    };
    format!(
        "{mix}, {}, {places}, {} in flight",
        unit::bytes(workload.request_bytes),
        unit::count(workload.concurrency)
    )
}
