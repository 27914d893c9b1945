//! `flashgrain man`.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::{Args, Command};

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

/// Last section of every manual page.
const EXIT_STATUS: &str = r#".SH "EXIT STATUS"
.TP
.B 0
The command succeeded, or the reader of its output has seen enough.
.TP
.B 1
Something failed; standard error names the failure and a remedy. Also if a store or a report that was checked is not sound.
.TP
.B 2
The command line makes no sense; standard error says how to mend it. Nothing was done.
.TP
.B 130\fR, \fB143
Ended by Ctrl\-C or SIGTERM; standard error says where results remain.
"#;

/// Makes the pages of `command`, the whole program's definition.
pub fn run(arguments: &ManArguments, mut command: Command) -> anyhow::Result<()> {
    command.build();
    let Some(folder) = &arguments.out else {
        return Ok(print(&String::from_utf8(page(&command)?)?)?);
    };
    std::fs::create_dir_all(folder).with_context(|| format!("make the folder {}", folder.display()))?;
    write_pages(&command, folder)
}

fn page(command: &Command) -> std::io::Result<Vec<u8>> {
    let mut page = Vec::new();
    clap_mangen::Man::new(command.clone()).render(&mut page)?;
    page.extend_from_slice(EXIT_STATUS.as_bytes());
    Ok(page)
}

/// The page of a command and those of its subcommands.
fn write_pages(command: &Command, folder: &Path) -> anyhow::Result<()> {
    let path = folder.join(clap_mangen::Man::new(command.clone()).get_filename());
    let doing = || format!("write the manual page {}", path.display());
    std::fs::write(&path, page(command).with_context(doing)?).with_context(doing)?;
    let is_shown = |command: &&Command| !command.is_hide_set() && command.get_name() != "help";
    command.get_subcommands().filter(is_shown).try_for_each(|command| write_pages(command, folder))
}
