//! `flashgrain bench size`.

use std::path::PathBuf;

use clap::Args;
use flashgrain_bench::experiment::{Experiment, size};
use flashgrain_profile::file;

use super::options::BenchOptions;
use super::recover::updates;
use crate::commands::study::write_report;
use crate::exit::Usage;
use crate::output::{Context, print, print_json};
use crate::units::parse_positive_bytes;

/// Cost over size: memory, opening, look-ups, updates, checkpoints and recovery of stores of ever more
/// records.
///
/// Each store is filled, closed, opened, read for `--seconds`, updated for `--seconds`, killed with SIGKILL
/// in the middle of updates, opened once more, and removed.
#[derive(Debug, Args)]
#[command(mut_arg("records", |argument| argument.hide(true)))]
#[command(mut_arg("cache", |argument| argument.default_value("1%")))]
#[command(mut_arg("durability", |argument| argument.default_value("buffered")))]
pub struct SizeArguments {
    /// Bytes of the records, each a store of its own.
    #[arg(
        long,
        value_name = "SIZES",
        value_delimiter = ',',
        value_parser = parse_positive_bytes,
        default_value = "256MiB,512MiB,1GiB,2GiB"
    )]
    sizes: Vec<u64>,
    /// Write a page with charts, too.
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    #[command(flatten)]
    options: BenchOptions,
}

pub fn run(arguments: &SizeArguments, context: &Context) -> anyhow::Result<()> {
    let interrupt = context.interrupt.watch()?;
    let record_bytes = u64::from(arguments.options.key_bytes + arguments.options.value_bytes);
    if !arguments.options.target.is_dir() {
        return Err(Usage("the store is killed in a process of its own: name a directory".into()).into());
    }
    let mut experiments = Vec::new();
    for bytes in &arguments.sizes {
        let records = bytes / record_bytes;
        if records == 0 {
            return Err(Usage(format!("--sizes {bytes}: a record alone has {record_bytes} bytes")).into());
        }
        // The store stays between its measurements.
        let typed = BenchOptions { records, keep: true, ..arguments.options.clone() };
        let options = typed.options()?;
        let updates = updates(&typed, &options)?;
        experiments.push((Experiment { options, listener: context, interrupt }, updates));
    }
    if let Some(path) = &arguments.report {
        file::check_writable(path)?;
    }
    let result = size(experiments)?;
    if let Some(path) = &arguments.report {
        write_report(path, result.sheet(), context)?;
    }
    if arguments.options.json { print_json(&result) } else { Ok(print(&result.table())?) }
}
