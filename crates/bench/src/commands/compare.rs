//! Results side by side.

use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, ensure};
use clap::Args;
use flashgrain_bench::compare;
use flashgrain_bench::run::RunResult;
use flashgrain_bench::suite::read_results;

#[derive(Debug, Args)]
pub struct Arguments {
    /// Lines of JSON that `suite` or `run --json` has written.
    #[arg(required = true)]
    results: Vec<PathBuf>,
    /// File for a page with charts.
    #[arg(long)]
    out: Option<PathBuf>,
}

/// Prints tables, and writes the page.
pub fn compare(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let mut results = Vec::new();
    for path in &arguments.results {
        results.extend(read(path)?);
    }
    ensure!(!results.is_empty(), "there are no results in these files");
    print!("{}", compare::markdown(&results));
    if let Some(out) = &arguments.out {
        let names: Vec<String> = arguments
            .results
            .iter()
            .filter_map(|path| path.file_name())
            .map(|name| name.to_string_lossy().into())
            .collect();
        std::fs::write(out, compare::page(&results, &names.join(", "))?)
            .with_context(|| format!("write {}", out.display()))?;
        eprintln!("The page with charts is {}", out.display());
    }
    Ok(ExitCode::SUCCESS)
}

fn read(path: &Path) -> anyhow::Result<Vec<RunResult>> {
    let name = path.display().to_string();
    let file = File::open(path).with_context(|| format!("open {name}"))?;
    read_results(BufReader::new(file), &name)
}
