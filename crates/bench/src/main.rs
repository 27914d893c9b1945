//! `flashgrain-bench`: benchmarks beside other key-value stores.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Context as _, ensure};
use clap::{Args, Parser, Subcommand};
use flashgrain_bench::drive::Span;
use flashgrain_bench::engine::{Durability, EngineName, Setup};
use flashgrain_bench::run::{Place, Run, RunResult};
use flashgrain_bench::suite::{Suite, Suites};
use flashgrain_bench::workload::{NAMES, Records, Workload};
use signal_hook::consts::{SIGINT, SIGTERM};

/// Benchmarks of Flashgrain beside other key-value stores.
#[derive(Debug, Parser)]
#[command(name = "flashgrain-bench", version, max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// List the engines: which are compiled in, with version and settings, and how to get the others.
    Engines {
        /// Memory that the settings are for, in MiB.
        #[arg(long, default_value_t = 1024, value_parser = clap::value_parser!(u64).range(16..))]
        cache_mib: u64,
        /// What commits promise.
        #[arg(long, value_enum, default_value_t = Durability::Buffered)]
        durability: Durability,
    },
    /// List the workloads.
    Workloads,
    /// Run one workload on one engine.
    Run(RunArguments),
    /// Run suites on several engines, each in a process of its own, in interleaved rounds; runs that the file of results has already are left out.
    Suite(SuiteArguments),
}

#[derive(Debug, Args)]
struct RecordArguments {
    /// Records at the beginning.
    #[arg(long, default_value_t = 1_000_000, value_parser = clap::value_parser!(u64).range(1..))]
    records: u64,
    /// Bytes of a key.
    #[arg(long, default_value_t = 8, value_parser = clap::value_parser!(u32).range(8..=511))]
    key_bytes: u32,
    /// Bytes of a value.
    #[arg(long, default_value_t = 120, value_parser = clap::value_parser!(u32).range(8..=65536))]
    value_bytes: u32,
    /// Counted seconds of each run.
    #[arg(long, default_value_t = 20.0)]
    seconds: f64,
    /// Seconds before anything is counted.
    #[arg(long, default_value_t = 5.0)]
    warmup: f64,
    /// Of everything random.
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

#[derive(Debug, Args)]
struct RunArguments {
    /// On which engine.
    #[arg(value_enum)]
    engine: EngineName,
    /// Which workload: see `workloads`.
    workload: String,
    /// Directory for the engine's files, which are put into a folder named after the engine.
    directory: PathBuf,
    #[command(flatten)]
    records: RecordArguments,
    /// Bytes for the engine's cache and buffers; a tenth of the records' unless given.
    #[arg(long)]
    cache: Option<u64>,
    /// What commits promise.
    #[arg(long, value_enum, default_value_t = Durability::None)]
    durability: Durability,
    /// Clients at a time.
    #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..=65536))]
    clients: u32,
    /// Processors; all unless given. With 1, the process stays on the first.
    #[arg(long)]
    cores: Option<usize>,
    /// Operations per second of an open loop; without it, each client begins its next operation when the last one has ended.
    #[arg(long)]
    rate: Option<f64>,
    /// Noted in the result: which share of the engine's rate in a closed loop `--rate` is.
    #[arg(long)]
    load: Option<f64>,
    /// Noted in the result.
    #[arg(long, default_value_t = 0)]
    round: u32,
    /// Leave the engine's files for the next run.
    #[arg(long)]
    keep: bool,
    /// The result as a line of JSON on standard output.
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
struct SuiteArguments {
    /// Which suites.
    #[arg(value_enum, required = true)]
    suites: Vec<Suite>,
    /// Directory for the engines' files.
    #[arg(long)]
    directory: PathBuf,
    /// Where results are appended, a line of JSON each.
    #[arg(long, default_value = "benchmarks.jsonl")]
    results: PathBuf,
    /// On these engines; all that are compiled in unless given.
    #[arg(long, value_enum, value_delimiter = ',')]
    engines: Vec<EngineName>,
    /// How often.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    #[command(flatten)]
    records: RecordArguments,
}

fn main() -> anyhow::Result<ExitCode> {
    match Cli::parse().command {
        Command::Engines { cache_mib, durability } => engines(cache_mib, durability)?,
        Command::Workloads => NAMES.iter().for_each(|(name, what)| println!("{name:<22} {what}")),
        Command::Run(arguments) => return run(&arguments),
        Command::Suite(arguments) => return suite(arguments),
    }
    Ok(ExitCode::SUCCESS)
}

/// Set by Ctrl-C; a second one ends the process at once.
fn interrupt() -> anyhow::Result<Arc<AtomicBool>> {
    let flag = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        signal_hook::flag::register_conditional_shutdown(signal, 128 + signal, Arc::clone(&flag))?;
        signal_hook::flag::register(signal, Arc::clone(&flag))?;
    }
    Ok(flag)
}

fn exit_code(interrupt: &AtomicBool) -> ExitCode {
    if interrupt.load(Ordering::Relaxed) { ExitCode::from(130) } else { ExitCode::SUCCESS }
}

fn cores(given: Option<usize>) -> anyhow::Result<usize> {
    Ok(given.unwrap_or(std::thread::available_parallelism()?.get()).max(1))
}

impl RecordArguments {
    fn records(&self) -> Records {
        let Self { records, key_bytes, value_bytes, .. } = *self;
        Records { count: records, key_bytes: key_bytes as usize, value_bytes: value_bytes as usize }
    }
}

fn seconds(seconds: f64) -> anyhow::Result<Duration> {
    Duration::try_from_secs_f64(seconds).with_context(|| format!("{seconds} is no number of seconds"))
}

fn run(arguments: &RunArguments) -> anyhow::Result<ExitCode> {
    let workload = Workload::named(&arguments.workload)
        .with_context(|| format!("there is no workload {:?}: see `workloads`", arguments.workload))?;
    ensure!(arguments.directory.is_dir(), "{}: not a directory", arguments.directory.display());
    ensure!(arguments.rate.is_none_or(|rate| rate > 0.0), "--rate must be above 0");
    let interrupt = interrupt()?;
    let records = arguments.records.records();
    let data_bytes = records.count * (records.key_bytes + records.value_bytes) as u64;
    let run = Run {
        engine: arguments.engine,
        workload,
        records,
        cache_bytes: arguments.cache.unwrap_or(data_bytes / 10),
        durability: arguments.durability,
        span: Span {
            clients: arguments.clients as usize,
            warmup: seconds(arguments.records.warmup)?,
            length: seconds(arguments.records.seconds)?,
            rate_per_s: arguments.rate,
            seed: arguments.records.seed,
        },
        cores: cores(arguments.cores)?,
        load: arguments.load,
        round: arguments.round,
    };
    let place = Place::new(&arguments.directory, &arguments.engine.to_string());
    let result = run.run(&place, &interrupt, &|note| eprintln!("{note}"));
    if !arguments.keep {
        place.clear()?;
    }
    let result = result?;
    match arguments.json {
        true => println!("{}", serde_json::to_string(&result)?),
        false => show(&result),
    }
    Ok(exit_code(&interrupt))
}

fn show(result: &RunResult) {
    println!(
        "{:.0} operations/s, {:.1} us of CPU each",
        result.operations_per_s, result.cpu_us_per_operation
    );
    for (name, kind) in &result.kinds {
        let latency = &kind.latency;
        println!(
            "{name:<8} {:>10.0}/s  p50 {:.0} us  p99 {:.0} us  p99.9 {:.0} us  p99.99 {:.0} us",
            kind.operations_per_s, latency.p50_us, latency.p99_us, latency.p99_9_us, latency.p99_99_us
        );
    }
    let shown = |amount: Option<f64>| amount.map_or("-".into(), |amount| format!("{amount:.2}"));
    println!(
        "device reads {} and writes {} per operation; amplification: reads {}, writes {}, space {:.2}; {} MiB of memory",
        shown(result.device_reads_per_operation),
        shown(result.device_writes_per_operation),
        shown(result.read_amplification),
        shown(result.write_amplification),
        result.space_amplification,
        result.peak_memory_bytes >> 20,
    );
}

fn suite(arguments: SuiteArguments) -> anyhow::Result<ExitCode> {
    ensure!(arguments.directory.is_dir(), "{}: not a directory", arguments.directory.display());
    let interrupt = interrupt()?;
    let engines = match arguments.engines.is_empty() {
        true => EngineName::all().iter().copied().filter(|engine| engine.is_compiled_in()).collect(),
        false => arguments.engines,
    };
    let suites = Suites {
        suites: arguments.suites,
        engines,
        rounds: arguments.rounds,
        records: arguments.records.records(),
        seconds: arguments.records.seconds,
        warmup_s: arguments.records.warmup,
        seed: arguments.records.seed,
        directory: arguments.directory,
        results: arguments.results,
        cores: cores(None)?,
    };
    suites.run(&interrupt, &|note| eprintln!("{note}"))?;
    Ok(exit_code(&interrupt))
}

/// Opens each for a moment: only then is known what it is told.
fn engines(cache_mib: u64, durability: Durability) -> anyhow::Result<()> {
    let dir = tempfile::tempdir()?;
    for name in EngineName::all() {
        if !name.is_compiled_in() {
            println!("{name}: not compiled in; {}\n", name.how_to_get());
            continue;
        }
        let setup = Setup {
            dir: dir.path().join(name.to_string()),
            cache_bytes: cache_mib << 20,
            durability,
            clients_max: 128,
            cores: std::thread::available_parallelism()?.get(),
            tables: &["table"],
        };
        let engine = name.open(&setup)?;
        println!("{name}, {:?}", name.caching());
        for (setting, value) in engine.settings() {
            println!("    {setting}: {value}");
        }
        println!();
        engine.close()?;
    }
    Ok(())
}
