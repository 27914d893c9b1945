//! How the results of studies are shown.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use clap::Args;
use flashgrain_bench::study::Sheet;
use flashgrain_profile::file;
use serde::Serialize;

use crate::output::{Context, print, print_json};

/// Where the result goes.
#[derive(Clone, Debug, Args)]
pub struct OutputOptions {
    /// Print the result as JSON.
    #[arg(long)]
    json: bool,
    /// Write the result as one HTML page with charts, too.
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
}

impl OutputOptions {
    /// Refuses a report that cannot be written, before anything is measured.
    pub fn check(&self) -> anyhow::Result<()> {
        Ok(self.report.iter().try_for_each(|path| file::check_writable(path))?)
    }

    /// Shows a result; `sheet` is its form for people.
    pub fn show(&self, result: &impl Serialize, sheet: Sheet, context: &Context) -> anyhow::Result<()> {
        if self.json {
            print_json(result)?;
        } else {
            print(&sheet.markdown())?;
        }
        if let Some(path) = &self.report {
            write_report(path, sheet, context)?;
        }
        Ok(())
    }
}

/// Writes a result as a page that names this command as its source.
pub fn write_report(path: &Path, sheet: Sheet, context: &Context) -> anyhow::Result<()> {
    let command: Vec<String> =
        std::env::args_os().skip(1).map(|part| part.to_string_lossy().into_owned()).collect();
    let page = sheet.html(&format!("flashgrain {}", command.join(" ")))?;
    file::write_atomically(path, |writer| writer.write_all(page.as_bytes()))?;
    context.note(&format!("the report is in {}", path.display()));
    Ok(())
}
