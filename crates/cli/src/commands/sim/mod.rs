//! `flashgrain sim`: drives that are simulated.

mod export;
mod list;
mod result;
mod run;
mod show;

use clap::{Args, Subcommand};

use crate::output::Context;

/// List, show, run and export simulated drives.
///
/// A simulated drive has a preset's name or is described in a TOML file, and runs in virtual time: the same
/// seed gives the same events whatever machine it runs on. Everywhere else in Flashgrain it is a target
/// called sim:PRESET or sim:FILE.toml. docs/simulated-drive.md documents their files and their behaviour.
#[derive(Debug, Args)]
pub struct SimArguments {
    #[command(subcommand)]
    command: SimCommand,
}

#[derive(Debug, Subcommand)]
enum SimCommand {
    List(list::ListArguments),
    Show(show::ShowArguments),
    Run(run::RunArguments),
    Export(export::ExportArguments),
}

pub fn run(arguments: &SimArguments, context: &Context) -> anyhow::Result<()> {
    match &arguments.command {
        SimCommand::List(arguments) => list::run(arguments),
        SimCommand::Show(arguments) => show::run(arguments),
        SimCommand::Run(arguments) => run::run(arguments, context),
        SimCommand::Export(arguments) => export::run(arguments, context),
    }
}
