//! `flashgrain bench commit`.

use clap::Args;
use flashgrain_bench::experiment::{Experiment, commit};

use super::options::BenchOptions;
use crate::output::{Context, print, print_json};
use crate::units::count_within;

/// Durable commits of one update each: by one committer, then by many, with raw durable writes of a log block
/// before, between and after.
#[derive(Debug, Args)]
#[command(mut_arg("records", |argument| argument.default_value("100000")))]
#[command(mut_arg("cache", |argument| argument.default_value("300%")))]
#[command(mut_arg("durability", |argument| argument.default_value("sync")))]
#[command(mut_arg("seconds", |argument| argument.default_value("5")))]
#[command(mut_arg("warmup", |argument| argument.default_value("0.5")))]
pub struct CommitArguments {
    /// Committers at a time, in addition to a run with one.
    #[arg(long, value_parser = count_within::<u32>(2..=65_536), default_value_t = 64)]
    committers: u32,
    #[command(flatten)]
    options: BenchOptions,
}

pub fn run(arguments: &CommitArguments, context: &Context) -> anyhow::Result<()> {
    let options = BenchOptions { tasks: arguments.committers, ..arguments.options.clone() };
    let interrupt = context.interrupt.watch()?;
    let result = commit(&Experiment { options: options.options()?, listener: context, interrupt })?;
    if options.json { print_json(&result) } else { Ok(print(&result.table())?) }
}
