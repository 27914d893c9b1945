//! `flashgrain trace`: recorded I/O requests, judged for a drive.

mod check;

use clap::{Args, Subcommand};

use crate::output::Context;

/// Judge I/O traces of any program for a drive.
///
/// docs/trace.md tells the formats, the rules and the figures.
#[derive(Debug, Args)]
pub struct TraceArguments {
    #[command(subcommand)]
    command: TraceCommand,
}

#[derive(Debug, Subcommand)]
enum TraceCommand {
    Check(check::CheckArguments),
}

pub fn run(arguments: &TraceArguments, context: &Context) -> anyhow::Result<()> {
    match &arguments.command {
        TraceCommand::Check(arguments) => check::run(arguments, context),
    }
}
