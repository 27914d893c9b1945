//! `flashgrain completions`.

use clap::{Args, CommandFactory};
use clap_complete::Shell;

use crate::arguments::Cli;
use crate::output::print;

/// Print the completion script of a shell.
///
/// For example: `flashgrain completions bash > ~/.local/share/bash-completion/completions/flashgrain`.
#[derive(Debug, Args)]
pub struct CompletionsArguments {
    /// The shell.
    #[arg(value_enum)]
    shell: Shell,
}

pub fn run(arguments: &CompletionsArguments) -> anyhow::Result<()> {
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut Cli::command(), "flashgrain", &mut script);
    Ok(print(&String::from_utf8(script)?)?)
}
