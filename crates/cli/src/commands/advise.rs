//! `flashgrain advise`.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::{Args, ValueEnum};
use flashgrain_advisor::engine::{EngineName, EngineVersion};
use flashgrain_advisor::observe::{Kind, observe};
use flashgrain_advisor::{Advice, Drive, Workload, workload};
use flashgrain_bench::verify::{FOREIGN, Options, verify, verify_cells};
use flashgrain_cost::budget::{Budget, DriveRates, Prices};
use flashgrain_profile::{DeviceProfile, Error, file};
use serde::Serialize;

use crate::arguments::PRICES;
use crate::exit::Usage;
use crate::output::{Context, print, print_json};
use crate::units::{count_within, parse_positive_bytes};
use crate::{results, summary};

/// The preset that advice is for unless another workload is named.
pub const DEFAULT_WORKLOAD: &str = "ycsb-a";

/// Predict storage-engine designs on a profiled drive for a workload, and the settings that follow.
///
/// Ranks designs by predicted operations per second, with intervals that follow from the profile's, and names
/// the bottleneck of each, the distance of the second and the changes that would alter the ranking. With
/// `--for` it writes the settings of an engine, each with its reason, the learned number that it follows
/// from, its predicted gain and its cost. Durability is weakened only where the workload allows it.
#[derive(Debug, Args)]
pub struct AdviseArguments {
    /// A folder of results, or a `profile.json`.
    #[arg(long, value_name = "FILE", default_value = "flashgrain-out")]
    profile: PathBuf,
    /// A workload as TOML (docs/advise.md tells the form), or one of the presets ycsb-a to ycsb-f,
    /// uniform-reads and uniform-updates; with `--verify` also `all` of these.
    #[arg(long, value_name = "FILE|PRESET", default_value = DEFAULT_WORKLOAD)]
    workload: String,
    /// Take the workload from an engine's counters: a result of `flashgrain bench --json`, a LOG of RocksDB
    /// with statistics, the output of `db_bench`, or MariaDB's SHOW GLOBAL STATUS.
    #[arg(long, value_name = "FILE", conflicts_with = "workload")]
    observe: Option<PathBuf>,
    /// Kind of that file, if it is not recognised.
    #[arg(long, value_name = "KIND", value_enum, requires = "observe")]
    observe_kind: Option<ObservedKind>,
    /// Memory that the engine may use, instead of the workload's.
    #[arg(long, value_name = "SIZE", value_parser = parse_positive_bytes)]
    memory: Option<u64>,
    /// Records, instead of the workload's.
    #[arg(long, value_name = "COUNT", value_parser = count_within::<u64>(..))]
    records: Option<u64>,
    /// Operations under way at a time, instead of the workload's.
    #[arg(long, value_name = "COUNT", value_parser = count_within::<u32>(..))]
    clients: Option<u32>,
    /// Write the settings of this engine: to `--output`, or alone to standard output.
    #[arg(long = "for", alias = "engine", value_name = "ENGINE", value_enum)]
    engine: Option<Engine>,
    /// Version of that engine, such as 11 of RocksDB, which has other defaults than 7.8; the usual one unless
    /// given.
    #[arg(long, value_name = "VERSION", requires = "engine")]
    engine_version: Option<String>,
    /// File for the settings.
    #[arg(short, long, value_name = "FILE", requires = "engine")]
    output: Option<PathBuf>,
    /// Print the workload as TOML, to be changed and given to `--workload`, and nothing else.
    #[arg(long)]
    print_workload: bool,
    /// Run the engine of `--for` with its defaults and as advised, in turns, in a scratch directory below
    /// this one, and print the predicted and the measured gain; without `--for` all engines of other projects
    /// that are installed. Nothing else in it is touched, and the scratch directory is removed, also on
    /// Ctrl-C.
    #[arg(long, value_name = "DIR", conflicts_with_all = ["output", "print_workload"])]
    verify: Option<PathBuf>,
    #[command(flatten)]
    rounds: RoundsOptions,
    /// Print, too, which servers with memory and with drives of this kind the same money buys, and how often
    /// a page must be read to be cheaper in memory. In dollars: BUDGET,SERVER,MEMORY_GB,DRIVE_TB, or the
    /// prices of the NVMe paper without a value.
    #[arg(long, value_name = "PRICES", num_args = 0..=1, require_equals = true, default_missing_value = PRICES,
        conflicts_with_all = ["verify", "engine", "print_workload"])]
    prices: Option<Prices>,
    /// Print everything as JSON, the settings of all engines or of the one that is named included.
    #[arg(long)]
    json: bool,
}

/// The rounds of `--verify`.
#[derive(Debug, Args)]
struct RoundsOptions {
    /// Runs of each side.
    #[arg(long, value_name = "COUNT", requires = "verify", default_value_t = 4,
        value_parser = count_within::<u32>(1..=1000))]
    rounds: u32,
    /// Measured time of each run, in whole seconds; it warms up for as long before that.
    #[arg(long, value_name = "SECONDS", requires = "verify", default_value_t = 10,
        value_parser = count_within::<u32>(1..=86_400))]
    seconds: u32,
    /// Seed of the keys.
    #[arg(long, requires = "verify", default_value_t = 1)]
    seed: u64,
}

/// Kinds of observations as the user names them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum ObservedKind {
    /// A result of `flashgrain bench --json` or `flashgrain-bench`.
    Bench,
    /// A LOG of RocksDB with statistics.
    RocksdbLog,
    /// The output of `db_bench`.
    DbBench,
    /// MariaDB's SHOW GLOBAL STATUS.
    MariadbStatus,
}

impl ObservedKind {
    fn kind(self) -> Kind {
        match self {
            Self::Bench => Kind::Bench,
            Self::RocksdbLog => Kind::RocksdbLog,
            Self::DbBench => Kind::DbBench,
            Self::MariadbStatus => Kind::MariadbStatus,
        }
    }
}

/// The engines as the user names them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Engine {
    /// An OPTIONS file.
    Rocksdb,
    /// PRAGMAs.
    Sqlite,
    /// A fragment of `my.cnf`.
    Mariadb,
    /// WiredTiger.config, and the string for tables.
    Wiredtiger,
    /// The command that makes a store.
    Flashgrain,
}

impl Engine {
    fn name(self) -> EngineName {
        match self {
            Self::Rocksdb => EngineName::Rocksdb,
            Self::Sqlite => EngineName::Sqlite,
            Self::Mariadb => EngineName::Mariadb,
            Self::Wiredtiger => EngineName::Wiredtiger,
            Self::Flashgrain => EngineName::Flashgrain,
        }
    }
}

impl AdviseArguments {
    /// The engine of `--for`, in the version that is asked for.
    fn engine(&self) -> Result<Option<EngineVersion>, Usage> {
        let Some(engine) = self.engine.map(Engine::name) else { return Ok(None) };
        match &self.engine_version {
            None => Ok(Some(engine.into())),
            Some(given) => {
                EngineVersion::of(engine, given).map(Some).map_err(|error| Usage(error.to_string()))
            }
        }
    }
}

pub fn run(arguments: &AdviseArguments, context: &Context) -> anyhow::Result<()> {
    let engine = arguments.engine()?;
    if let Some(directory) = &arguments.verify {
        return verify_in(directory, engine, arguments, context);
    }
    let workload = workload(arguments, &arguments.workload)?;
    if arguments.print_workload {
        return Ok(print(&workload::print(&workload))?);
    }
    let profile = profile(arguments, context)?;
    let engines: Vec<EngineVersion> = match engine {
        Some(engine) => vec![engine],
        None if arguments.json => EngineName::ALL.map(EngineVersion::from).to_vec(),
        None => Vec::new(),
    };
    let advice = Advice::for_versions(&workload, &profile, &engines);
    let budget = arguments.prices.map(|prices| {
        let drive = Drive::of(&profile);
        Budget::new(prices, DriveRates::of(drive.costs()))
    });
    let settings = engine.and(advice.engines.first());
    if let (Some(settings), Some(output)) = (settings, &arguments.output) {
        file::write_atomically(output, |writer| writer.write_all(settings.file.as_bytes()))?;
        context.note(&format!("wrote {}", output.display()));
    }
    match settings {
        _ if arguments.json => print_json(&WithBudget { advice: &advice, memory_or_drives: budget }),
        Some(settings) if arguments.output.is_none() => {
            settings.notes.iter().for_each(|note| context.note(&format!("note: {note}")));
            Ok(print(&settings.file)?)
        }
        Some(settings) => Ok(print(&summary::engine(settings))?),
        None => {
            let budget = budget.map_or_else(String::new, |budget| format!("\n{}", summary::budget(&budget)));
            Ok(print(&(summary::advice(&advice) + &budget))?)
        }
    }
}

/// The advice, for programs.
#[derive(Serialize)]
struct WithBudget<'a> {
    #[serde(flatten)]
    advice: &'a Advice,
    #[serde(skip_serializing_if = "Option::is_none")]
    memory_or_drives: Option<Budget>,
}

fn profile(arguments: &AdviseArguments, context: &Context) -> anyhow::Result<DeviceProfile> {
    let profile = results::read_profile(&arguments.profile)?;
    if let Some(why) = &profile.distrust {
        context.note(&format!("note: {why}"));
    }
    Ok(profile)
}

/// Stands for all presets.
const ALL: &str = "all";

/// Runs both sides of each engine and workload below a directory, and prints the measurements.
fn verify_in(
    directory: &Path,
    engine: Option<EngineVersion>,
    arguments: &AdviseArguments,
    context: &Context,
) -> anyhow::Result<()> {
    let workloads = match arguments.workload.as_str() {
        ALL => workload::PRESETS.map(|(name, _)| workload(arguments, name)).into_iter().collect(),
        given => workload(arguments, given).map(|one| vec![one]),
    }?;
    let profile = &profile(arguments, context)?;
    let RoundsOptions { rounds, seconds, seed } = arguments.rounds;
    let options = &Options { directory: directory.to_owned(), rounds, seconds, seed };
    context.interrupt.watch()?;
    let interrupt = &context.interrupt.flag();
    if let (Some(engine), [workload]) = (engine, workloads.as_slice()) {
        let verification = verify(engine, workload, profile, options, context, interrupt)?;
        return if arguments.json { print_json(&verification) } else { Ok(print(&verification.table())?) };
    }
    let engines = engine.map_or(FOREIGN.map(EngineVersion::from).to_vec(), |engine| vec![engine]);
    let cells = verify_cells(&engines, &workloads, profile, options, context, interrupt)?;
    if arguments.json {
        print_json(&cells)?;
    } else {
        print(&cells.table())?;
    }
    if cells.interrupted { Err(Error::Interrupted.into()) } else { Ok(()) }
}

fn workload(arguments: &AdviseArguments, given: &str) -> anyhow::Result<Workload> {
    let mut workload = if let Some(observed) = &arguments.observe {
        let path = observed.display();
        let text = fs::read(observed).with_context(|| format!("read {path}"))?;
        let kind = arguments.observe_kind.map(ObservedKind::kind);
        observe(&String::from_utf8_lossy(&text), kind).map_err(|error| Usage(format!("{path}: {error}")))?
    } else {
        named(given)?
    };
    workload.memory_bytes = arguments.memory.unwrap_or(workload.memory_bytes);
    workload.records.count = arguments.records.unwrap_or(workload.records.count);
    workload.clients = arguments.clients.unwrap_or(workload.clients);
    Ok(workload::checked(workload).map_err(|error| Usage(error.to_string()))?)
}

/// The workload of a file, or of a preset.
pub fn named(given: &str) -> anyhow::Result<Workload> {
    let path = PathBuf::from(given);
    if path.exists() || given.contains(['/', '.']) {
        let text = fs::read_to_string(&path).with_context(|| format!("read {given}"))?;
        return Ok(workload::parse(&text).map_err(|error| Usage(format!("{given}: {error}")))?);
    }
    Ok(workload::preset(given).map_err(|error| Usage(error.to_string()))?)
}
