//! `flashgrain completions`.

use clap::{Args, Command};
use clap_complete::Shell;

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

/// Makes the script for `command`, the whole program's definition.
pub fn run(arguments: &CompletionsArguments, mut command: Command) -> anyhow::Result<()> {
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut command, "flashgrain", &mut script);
    Ok(print(&String::from_utf8(script)?)?)
}
