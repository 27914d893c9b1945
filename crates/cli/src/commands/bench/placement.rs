//! `flashgrain bench placement`.

use clap::Args;
use flashgrain_bench::experiment::{Experiment, placement};

use super::options::BenchOptions;
use crate::output::{Context, print, print_json};

/// Random updates of a store that keeps each page at its place, then of one that writes pages out of place,
/// each on a drive of the same size and state.
///
/// A simulated drive is shrunk so that pages, each counted whole, take the share of it that `--space-use`
/// says, begins in the steady state of random writes over that share, and as many pages are updated as it has
/// before anything is counted.
#[derive(Debug, Args)]
#[command(mut_arg("space_use", |argument| argument.default_value("80%")))]
#[command(mut_arg("records", |argument| argument.default_value("2000000")))]
#[command(mut_arg("fill_order", |argument| argument.default_value("stretches")))]
#[command(mut_arg("value_bytes", |argument| argument.default_value("240")))]
#[command(mut_arg("operations", |argument| argument.default_value("200000")))]
#[command(mut_arg("tasks", |argument| argument.default_value("256")))]
pub struct PlacementArguments {
    #[command(flatten)]
    options: BenchOptions,
}

pub fn run(arguments: &PlacementArguments, context: &Context) -> anyhow::Result<()> {
    let options = arguments.options.options()?;
    let interrupt = context.interrupt.watch()?;
    let result = placement(Experiment { options, listener: context, interrupt })?;
    if arguments.options.json { print_json(&result) } else { Ok(print(&result.table())?) }
}
