//! The `flashgrain` command: argument parsing and wiring only.
//!
//! What a command computes lives in the crates below (`device`, `model`, `profile`, `report`); this crate turns arguments into
//! their types, their results into text or JSON, and their errors into messages and exit codes: 0 for success, 1 for failure,
//! 2 for usage, 128 + the signal's number after Ctrl-C or a termination request.

mod arguments;
mod commands;
mod exit;
mod exploit;
mod interrupt;
mod learned;
mod measure;
mod output;
mod progress;
mod results;
mod summary;
mod target;
mod units;
mod workload;

use std::process::ExitCode;

use arguments::{Cli, Command};
use clap::Parser;
use interrupt::Interrupt;
use output::Context;

fn main() -> ExitCode {
    let cli = Cli::parse();
    let context = Context { verbosity: cli.verbosity(), interrupt: Interrupt::default() };
    exit::code(&dispatch(&cli.command, &context), &context)
}

fn dispatch(command: &Command, context: &Context) -> anyhow::Result<()> {
    match command {
        Command::Tune(arguments) => commands::tune::run(arguments, context),
        Command::Profile(arguments) => commands::profile::run(arguments, context),
        Command::Compare(arguments) => commands::compare::run(arguments, context),
        Command::Report(arguments) => commands::report::run(arguments, context),
        Command::Io(arguments) => commands::io::run(arguments, context),
        Command::Db(arguments) => commands::db::run(arguments, context),
        Command::Bench(arguments) => commands::bench::run(arguments, context),
        Command::Sim(arguments) => commands::sim::run(arguments, context),
        Command::Backends(arguments) => commands::backends::run(arguments),
        Command::Completions(arguments) => commands::completions::run(arguments),
        Command::Man(arguments) => commands::man::run(arguments),
    }
}
