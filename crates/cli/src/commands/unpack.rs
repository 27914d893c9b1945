//! `flashgrain unpack`: files of records become plain files.

use std::path::PathBuf;

use anyhow::Context as _;
use clap::Args;
use flashgrain_report::unit;

use crate::output::{Context, print};

/// Make plain files of files of records, for programs without the preloaded library.
///
/// The programs that write them must have ended. A plain file stays as it is, so all files of a kind can be
/// named: /var/lib/mysql/host-bin.[0-9]*. After a crash, or an error, the command is given again.
/// docs/binary-log.md tells more.
#[derive(Debug, Args)]
pub struct UnpackArguments {
    /// Files of records, such as binary logs.
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
}

pub fn run(arguments: &UnpackArguments, context: &Context) -> anyhow::Result<()> {
    for file in &arguments.files {
        let name = file.display();
        match flashgrain_record_files::unpack(file).with_context(|| name.to_string())? {
            Some(bytes) => {
                print(&format!("{name}: {bytes} {} of records, now plain\n", unit::plural(bytes, "byte")))?
            }
            None => context.note(&format!("{name}: plain already")),
        }
    }
    Ok(())
}
