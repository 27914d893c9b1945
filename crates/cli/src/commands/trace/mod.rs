//! `flashgrain trace`: I/O requests, recorded, judged and replayed.

mod check;
mod record;
mod replay;

use clap::{Args, Subcommand};

use crate::output::Context;

/// Record the I/O of any program, judge it for a drive, and replay it on another one.
///
/// docs/trace.md tells the formats, the rules and the figures.
#[derive(Debug, Args)]
pub struct TraceArguments {
    #[command(subcommand)]
    command: TraceCommand,
}

#[derive(Debug, Subcommand)]
enum TraceCommand {
    Record(record::RecordArguments),
    Check(check::CheckArguments),
    Replay(replay::ReplayArguments),
}

pub fn run(arguments: &TraceArguments, context: &Context) -> anyhow::Result<()> {
    match &arguments.command {
        TraceCommand::Record(arguments) => record::run(arguments, context),
        TraceCommand::Check(arguments) => check::run(arguments, context),
        TraceCommand::Replay(arguments) => replay::run(arguments, context),
    }
}
