//! The `flashgrain` command: argument parsing and wiring only.
//!
//! Commands compute nothing: that is done in the crates below (`device`, `model`, `profile`, `report`,
//! `bench`); this crate turns arguments into their types, their results into text or JSON, and their errors
//! into messages and exit codes: 0 for success, 1 for failure, 2 for usage, 128 + the signal's number after
//! Ctrl-C or a termination request.

mod arguments;
mod commands;
mod exit;
mod interrupt;
mod learned;
mod listener;
mod measure;
mod output;
mod progress;
mod results;
mod summary;
mod target;
mod units;
mod workload;

use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};

use commands::{
    advise, backends, bench, compare, completions, db, io, man, profile, report, sim, study, trace, tune,
    unpack, vfs,
};
use interrupt::Interrupt;
use output::{Context, Verbosity};

/// Learns the abilities of a drive, predicts the cost of I/O on it, and shows why.
///
/// Point it at a directory on the drive: `flashgrain tune /data`. Nothing in the directory is touched;
/// measurements go to an unnamed scratch file that the kernel frees when the command ends, however it ends.
#[derive(Debug, Parser)]
#[command(name = "flashgrain", version, max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    command: Command,
    /// Say nothing but results and errors.
    #[arg(short, long, global = true, conflicts_with = "verbose")]
    quiet: bool,
    /// Say more: the plan of a measurement, stage by stage.
    #[arg(short, long, global = true)]
    verbose: bool,
}

impl Cli {
    fn verbosity(&self) -> Verbosity {
        match (self.quiet, self.verbose) {
            (true, _) => Verbosity::Quiet,
            (false, true) => Verbosity::Verbose,
            (false, false) => Verbosity::Normal,
        }
    }
}

// The order is that of the help text: the main job first, then its parts, then the tools.
#[derive(Debug, Subcommand)]
enum Command {
    Tune(tune::TuneArguments),
    Profile(profile::ProfileArguments),
    Compare(compare::CompareArguments),
    Advise(advise::AdviseArguments),
    Report(report::ReportArguments),
    Io(io::IoArguments),
    Db(db::DbArguments),
    Bench(bench::BenchArguments),
    Study(study::StudyArguments),
    Trace(trace::TraceArguments),
    Sim(sim::SimArguments),
    Vfs(vfs::VfsArguments),
    Unpack(unpack::UnpackArguments),
    Backends(backends::BackendsArguments),
    Completions(completions::CompletionsArguments),
    Man(man::ManArguments),
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    let context = Context { verbosity: cli.verbosity(), interrupt: Interrupt::default() };
    exit::code(&dispatch(&cli.command, &context), &context)
}

fn dispatch(command: &Command, context: &Context) -> anyhow::Result<()> {
    match command {
        Command::Tune(arguments) => tune::run(arguments, context),
        Command::Profile(arguments) => profile::run(arguments, context),
        Command::Compare(arguments) => compare::run(arguments, context),
        Command::Advise(arguments) => advise::run(arguments, context),
        Command::Report(arguments) => report::run(arguments, context),
        Command::Io(arguments) => io::run(arguments, context),
        Command::Db(arguments) => db::run(arguments, context),
        Command::Bench(arguments) => bench::run(arguments, context),
        Command::Study(arguments) => study::run(arguments, context),
        Command::Trace(arguments) => trace::run(arguments, context),
        Command::Sim(arguments) => sim::run(arguments, context),
        Command::Vfs(arguments) => vfs::run(arguments, context),
        Command::Unpack(arguments) => unpack::run(arguments, context),
        Command::Backends(arguments) => backends::run(arguments),
        Command::Completions(arguments) => completions::run(arguments, Cli::command()),
        Command::Man(arguments) => man::run(arguments, Cli::command()),
    }
}

#[cfg(test)]
#[path = "../tests/documentation/parsed.rs"]
mod documented;

#[cfg(test)]
mod tests {
    use super::{Cli, documented};
    use clap::{CommandFactory, Parser};

    #[test]
    fn the_definition_is_consistent() {
        Cli::command().debug_assert();
    }
    #[test]
    fn documented_commands_are_understood() {
        let refused = documented::refused("flashgrain", Cli::try_parse_from);
        assert!(refused.is_empty(), "{}", refused.join("\n"));
    }
}
