//! `flashgrain man`.

use std::path::PathBuf;

use anyhow::Context as _;
use clap::{Args, CommandFactory};

use crate::arguments::Cli;
use crate::output::print;

/// Print the manual page, or write those of all commands into a folder.
///
/// For example: `flashgrain man | man -l -`, or `flashgrain man --out ~/.local/share/man/man1`.
#[derive(Debug, Args)]
pub struct ManArguments {
    /// Write `flashgrain.1`, `flashgrain-io.1` and so on into this folder instead.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

pub fn run(arguments: &ManArguments) -> anyhow::Result<()> {
    let command = Cli::command();
    if let Some(folder) = &arguments.out {
        std::fs::create_dir_all(folder).with_context(|| format!("make the folder {}", folder.display()))?;
        return clap_mangen::generate_to(command, folder)
            .with_context(|| format!("write manual pages into {}", folder.display()));
    }
    let mut page = Vec::new();
    clap_mangen::Man::new(command).render(&mut page)?;
    Ok(print(&String::from_utf8(page)?)?)
}
