//! Suites.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::ensure;
use clap::Args;
use flashgrain_bench::engine::EngineName;
use flashgrain_bench::suite::{Suite, Suites};

use super::{DataArguments, cores, exit_code, interrupt};

#[derive(Debug, Args)]
pub struct Arguments {
    /// The suites to run.
    #[arg(value_enum, required = true)]
    suites: Vec<Suite>,
    /// Directory for the engines' files.
    #[arg(long)]
    directory: PathBuf,
    /// File to which results are appended, a line of JSON each.
    #[arg(long, default_value = "benchmarks.jsonl")]
    results: PathBuf,
    /// On these engines; all that are compiled in and have transactions unless given.
    #[arg(long, value_enum, value_delimiter = ',')]
    engines: Vec<EngineName>,
    /// Number of rounds.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// Minutes that a run may take, filling included. Then it has failed, and the next one follows.
    #[arg(long, default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..))]
    patience: u64,
    /// Leave the engines' files at the end.
    #[arg(long)]
    keep: bool,
    #[command(flatten)]
    data: DataArguments,
}

/// Runs them; a run that fails does not keep the others from being done.
pub fn suite(arguments: Arguments) -> anyhow::Result<ExitCode> {
    ensure!(arguments.directory.is_dir(), "{}: not a directory", arguments.directory.display());
    let interrupt = interrupt()?;
    let engines = match arguments.engines.is_empty() {
        true => {
            let usable = |engine: &EngineName| engine.is_compiled_in() && engine.has_transactions();
            EngineName::all().iter().copied().filter(usable).collect()
        }
        false => arguments.engines,
    };
    let suites = Suites {
        suites: arguments.suites,
        engines,
        rounds: arguments.rounds,
        sizes: arguments.data.sizes(),
        seconds: arguments.data.seconds,
        warmup_s: arguments.data.warmup,
        directory: arguments.directory,
        results: arguments.results,
        cores: cores(None)?,
        patience: Duration::from_secs(60 * arguments.patience),
    };
    let ended = suites.run(&interrupt, &|note| eprintln!("{note}"));
    if !arguments.keep {
        suites.clear()?;
    }
    let ended = ended?;
    if ended.failures > 0 {
        eprintln!("{} runs failed; the same command tries them again", ended.failures);
    }
    if ended.is_interrupted {
        eprintln!(
            "interrupted; the same command goes on after the last run that is in {}",
            suites.results.display()
        );
    }
    Ok(exit_code(&interrupt, ended.failures == 0))
}
