//! One run.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use clap::Args;
use flashgrain_bench::drive::Span;
use flashgrain_bench::engine::{Durability, EngineName};
use flashgrain_bench::run::{EngineDirectory, Run, RunResult};

use super::{DataArguments, cores, exit_code, interrupt};

#[derive(Debug, Args)]
pub struct Arguments {
    /// Name of the engine.
    #[arg(value_enum)]
    engine: EngineName,
    /// Name of the workload: see `workloads`.
    workload: String,
    /// Directory for the engine's files, which are put into a folder named after the engine.
    directory: PathBuf,
    #[command(flatten)]
    data: DataArguments,
    /// Bytes for the engine's cache and buffers; a tenth of the data's unless given.
    #[arg(long)]
    cache: Option<u64>,
    /// Promise of each commit.
    #[arg(long, value_enum, default_value_t = Durability::None)]
    durability: Durability,
    /// Clients at a time.
    #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..=65536))]
    clients: u32,
    /// Bytes of WiredTiger's leaves, a multiple of 4096; 4096 unless given. Its own default is 32768.
    #[arg(long, value_parser = clap::value_parser!(u32).range(4096..=512 << 20))]
    page_bytes: Option<u32>,
    /// Processors; all unless given. With 1, the process stays on the first.
    #[arg(long)]
    cores: Option<usize>,
    /// Operations per second of an open loop; without it, each client begins its next operation when the last
    /// one has ended.
    #[arg(long)]
    rate: Option<f64>,
    /// Noted in the result: which share of the engine's rate in a closed loop `--rate` is.
    #[arg(long)]
    load: Option<f64>,
    /// Noted in the result.
    #[arg(long, default_value_t = 0)]
    round: u32,
    /// Once the clients have ended, let the engine do its deferred work, and measure that too.
    #[arg(long)]
    drain: bool,
    /// Leave the engine's files for the next run.
    #[arg(long)]
    keep: bool,
    /// The result as a line of JSON on standard output.
    #[arg(long)]
    json: bool,
}

fn seconds(seconds: f64) -> anyhow::Result<Duration> {
    Duration::try_from_secs_f64(seconds).with_context(|| format!("{seconds} is no number of seconds"))
}

/// Runs it, and fails if the check of the result fails.
pub fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let benchmark = arguments.data.sizes().benchmark(&arguments.workload)?;
    ensure!(arguments.directory.is_dir(), "{}: not a directory", arguments.directory.display());
    ensure!(arguments.rate.is_none_or(|rate| rate > 0.0), "--rate must be above 0");
    let interrupt = interrupt()?;
    let run = Run {
        engine: arguments.engine,
        cache_bytes: arguments.cache.unwrap_or(benchmark.data_bytes() / 10),
        benchmark,
        durability: arguments.durability,
        span: Span {
            clients: arguments.clients as usize,
            warmup: seconds(arguments.data.warmup)?,
            length: seconds(arguments.data.seconds)?,
            operations_max: None,
            written_bytes_max: None,
            rate_per_s: arguments.rate,
            sample_every: 1,
            seed: arguments.data.seed,
        },
        page_bytes: arguments.page_bytes,
        cores: cores(arguments.cores)?,
        load: arguments.load,
        round: arguments.round,
        drains: arguments.drain,
    };
    let engine = arguments.engine;
    // A table that is there keeps the pages that it was made with.
    let folder = arguments.page_bytes.map_or(engine.to_string(), |bytes| format!("{engine}-{bytes}"));
    let place = EngineDirectory::new(&arguments.directory, &folder);
    let result = run.run(&place, &interrupt, &|note| eprintln!("    {note}"));
    if !arguments.keep {
        place.clear()?;
    }
    let result = result?;
    match arguments.json {
        true => println!("{}", serde_json::to_string(&result)?),
        false => show(&result),
    }
    Ok(exit_code(&interrupt, result.is_sound()))
}

fn show(result: &RunResult) {
    println!(
        "{:.0} operations/s, {:.1} us of CPU each",
        result.operations_per_s, result.cpu_us_per_operation
    );
    for (name, kind) in &result.kinds {
        let latency = &kind.latency;
        println!(
            "{name:<21} {:>10.0}/s  p50 {:.0} us  p99 {:.0} us  p99.9 {:.0} us  p99.99 {:.0} us",
            kind.operations_per_s, latency.p50_us, latency.p99_us, latency.p99_9_us, latency.p99_99_us
        );
    }
    let shown = |amount: Option<f64>| amount.map_or("-".into(), |amount| format!("{amount:.2}"));
    println!(
        "device reads {} and writes {} per operation; amplification: reads {}, writes {}, space {}; {} MiB on disk, {} MiB of memory",
        shown(result.device.map(|device| device.reads)),
        shown(result.device.map(|device| device.writes)),
        shown(result.read_amplification),
        shown(result.write_amplification),
        shown(result.space_amplification),
        result.space_bytes >> 20,
        result.peak_memory_bytes >> 20,
    );
    if let Some(drained) = &result.drained {
        println!(
            "drained in {:.1} s: {:.0} operations/s until then, writes {}",
            drained.seconds,
            drained.operations_per_s,
            shown(drained.write_amplification),
        );
    }
    if let Some(check) = &result.check {
        println!("{} conditions checked, {} violations", check.conditions, check.violations.len());
    }
}
