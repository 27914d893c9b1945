//! `flashgrain report`.

use std::path::PathBuf;

use clap::Args;
use flashgrain_profile::file;

use crate::output::Context;
use crate::results;

/// Make the HTML report of a stored profile.
#[derive(Debug, Args)]
pub struct ReportArguments {
    /// A folder of results, or a `profile.json`.
    #[arg(value_name = "FILE")]
    profile: PathBuf,
    /// File for the page; by default `report.html` next to the profile.
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

pub fn run(arguments: &ReportArguments, context: &Context) -> anyhow::Result<()> {
    let path = results::profile_at(&arguments.profile);
    let profile = file::read(&path)?;
    let output = arguments.output.clone().unwrap_or_else(|| path.with_file_name("report.html"));
    results::write_report(&profile, &output)?;
    context.note(&format!("wrote {}", output.display()));
    Ok(())
}
