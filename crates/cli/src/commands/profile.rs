//! `flashgrain profile`: chosen experiments, and stored profiles.

use std::path::{Path, PathBuf};

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Args, Subcommand, ValueEnum};
use flashgrain_bench::exploit::Kept;
use flashgrain_profile::{Config, ExperimentName, Precondition, SustainLimits, diff, export};

use crate::arguments::{MeasuringOptions, TargetOptions};
use crate::exit::Usage;
use crate::measure::Measured;
use crate::output::{Context, print, print_json};
use crate::units::{parse_positive_bytes, parse_seconds, parse_share};
use crate::{measure, results, summary};

/// Run experiments on a drive, or look at stored profiles.
///
/// Without a subcommand it measures: `flashgrain profile /data --only order,flush`. Full-size runs are the
/// same with larger numbers; `--full` sets those of the papers.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct ProfileArguments {
    #[command(subcommand)]
    stored: Option<Stored>,
    #[command(flatten)]
    measure: MeasureArguments,
}

#[derive(Debug, Args)]
struct MeasureArguments {
    /// A directory, a file, a block device, or several of one kind for a stripe set; or sim:PRESET or
    /// sim:FILE.toml. An existing file or block device needs `--destroy-contents-of`, or `--write-bytes 0` to
    /// be only read.
    #[arg(value_name = "TARGET", default_value = ".")]
    targets: Vec<PathBuf>,
    /// Run only these experiments.
    #[arg(long, value_name = "NAME", value_delimiter = ',', value_parser = experiment_parser())]
    only: Vec<ExperimentName>,
    /// Also write until the drive is in its steady state, on top of the budget: takes long and wears the
    /// drive.
    #[arg(long)]
    sustain: bool,
    /// Most time for `sustain`.
    #[arg(long, value_name = "TIME", value_parser = parse_seconds, default_value = "60")]
    sustain_seconds: f64,
    /// Most bytes written by `sustain`.
    #[arg(long, value_name = "SIZE", value_parser = parse_positive_bytes, default_value = "8GiB")]
    sustain_write_bytes: u64,
    /// Also look for the steady states in which only these shares of the scratch region hold valid data, the
    /// rest being discarded: how garbage collection slows writes down as valid data grow. At least three,
    /// such as 30%,50%,70%,85%. Implies `--sustain`; all states share its limits.
    #[arg(long, value_name = "SHARE,...", value_delimiter = ',', value_parser = parse_share)]
    sustain_valid: Vec<f64>,
    /// Bring the scratch region to a known state first, within the write budget.
    #[arg(long, value_enum, default_value_t = RegionState::AsFound)]
    precondition: RegionState,
    /// Bytes that each stream of `order` and `parallel` moves, however long it takes; by default each trial
    /// has a slice of the time.
    #[arg(long, value_name = "SIZE", value_parser = parse_positive_bytes)]
    bytes_per_stream: Option<u64>,
    /// The papers' sizes: a 50 GB file, 1 GB per stream and per region. The budget must be given to match.
    #[arg(long, requires = "seconds", requires = "write_bytes", conflicts_with = "bytes_per_stream")]
    full: bool,
    /// Print the profile as JSON instead of the summary.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    measuring: MeasuringOptions,
    #[command(flatten)]
    target: TargetOptions,
}

#[derive(Debug, Subcommand)]
enum Stored {
    /// Print the summary of a stored profile.
    Show(ShowArguments),
    /// Print the differences between two stored profiles.
    Diff(DiffArguments),
    /// Say a stored profile in the words of other software.
    Export(ExportArguments),
}

#[derive(Debug, Args)]
struct ShowArguments {
    /// A folder of results, or a `profile.json`.
    #[arg(value_name = "FILE")]
    profile: PathBuf,
    /// Print the profile as JSON.
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
struct DiffArguments {
    /// The folder of results, or the `profile.json`, of before.
    #[arg(value_name = "BEFORE")]
    before: PathBuf,
    /// The folder of results, or the `profile.json`, of after.
    #[arg(value_name = "AFTER")]
    after: PathBuf,
    /// Print the differences as JSON.
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
struct ExportArguments {
    /// A folder of results, or a `profile.json`.
    #[arg(value_name = "FILE")]
    profile: PathBuf,
    /// The format of the export.
    #[arg(long, value_enum)]
    format: ExportFormat,
    /// For iotune: where the drive is mounted; by default the profiled target.
    #[arg(long, value_name = "DIR")]
    mount_point: Option<String>,
    /// For iocost: the drive's device number; by default that of the drive of the same name on this machine.
    #[arg(long, value_name = "MAJOR:MINOR")]
    device_number: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum ExportFormat {
    /// The YAML file that Seastar's I/O scheduler reads, as its `iotune` writes it.
    Iotune,
    /// The line for `io.cost.model` of the kernel's I/O controller.
    Iocost,
}

/// The state of the scratch region before measuring.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum RegionState {
    /// Written once.
    AsFound,
    /// Written sequentially twice.
    Sequential,
    /// Written sequentially, then twice its size at random places.
    Random,
}

fn experiment_parser() -> impl TypedValueParser<Value = ExperimentName> {
    let values = ExperimentName::ALL.map(|name| PossibleValue::new(name.as_str()).help(name.describe()));
    PossibleValuesParser::new(values).try_map(|name| name.parse::<ExperimentName>())
}

pub fn run(arguments: &ProfileArguments, context: &Context) -> anyhow::Result<()> {
    match &arguments.stored {
        None => measure(&arguments.measure, context),
        Some(Stored::Show(arguments)) => show(arguments),
        Some(Stored::Diff(arguments)) => show_differences(arguments),
        Some(Stored::Export(arguments)) => Ok(print(&exported(arguments, context)?)?),
    }
}

fn measure(arguments: &MeasureArguments, context: &Context) -> anyhow::Result<()> {
    let mut measuring = arguments.measuring.clone();
    if arguments.full {
        measuring.file_size = measuring.file_size.or(Some(FULL_FILE_BYTES));
    }
    let config = arguments.config(&measuring);
    let nothing = Kept::default();
    let Measured { profiled, results, .. } =
        measure::profile(&arguments.targets, &config, nothing, &measuring, &arguments.target, context)?;
    results.store(&profiled)?;
    measure::end_if_interrupted(&measuring, &results, context)?;
    if arguments.json {
        return print_json(&profiled.profile);
    }
    let text = summary::profile(&profiled.profile);
    Ok(print(&(text + &format!("\nProfile: {}\n", results.profile().display())))?)
}

/// The MQSSD paper's file (§3.3.1), and the bytes that each of its threads, and each region of the
/// hidden-parameters paper's Experiment 1, moves.
const FULL_FILE_BYTES: u64 = 50_000_000_000;
const FULL_STREAM_BYTES: u64 = 1 << 30;

impl MeasureArguments {
    fn config(&self, measuring: &MeasuringOptions) -> Config {
        let mut experiments =
            if self.only.is_empty() { ExperimentName::default_set() } else { self.only.clone() };
        let is_sustain_wanted = self.sustain || !self.sustain_valid.is_empty();
        if is_sustain_wanted && !experiments.contains(&ExperimentName::Sustain) {
            experiments.push(ExperimentName::Sustain);
        }
        Config {
            budget_s: measuring.seconds,
            write_bytes: measuring.write_bytes,
            experiments,
            bytes_per_stream: if self.full { Some(FULL_STREAM_BYTES) } else { self.bytes_per_stream },
            request_size_region_bytes: self.full.then_some(FULL_STREAM_BYTES),
            sustain: SustainLimits {
                seconds: self.sustain_seconds,
                write_bytes: self.sustain_write_bytes,
                ..SustainLimits::default()
            },
            sustain_valid_shares: self.sustain_valid.clone(),
            precondition: match self.precondition {
                RegionState::AsFound => Precondition::None,
                RegionState::Sequential => Precondition::Sequential,
                RegionState::Random => Precondition::Random,
            },
            seed: measuring.seed,
            keep_interrupted: measuring.keep_interrupted,
            ..Config::default()
        }
    }
}

fn show(arguments: &ShowArguments) -> anyhow::Result<()> {
    let profile = results::read_profile(&arguments.profile)?;
    if arguments.json { print_json(&profile) } else { Ok(print(&summary::profile(&profile))?) }
}

fn show_differences(arguments: &DiffArguments) -> anyhow::Result<()> {
    let diff =
        diff::diff(&results::read_profile(&arguments.before)?, &results::read_profile(&arguments.after)?)?;
    if arguments.json { print_json(&diff) } else { Ok(print(&summary::diff(&diff))?) }
}

fn exported(arguments: &ExportArguments, context: &Context) -> anyhow::Result<String> {
    let profile = results::read_profile(&arguments.profile)?;
    let identity = &profile.provenance.identity;
    match arguments.format {
        ExportFormat::Iotune => {
            let mount_point = arguments.mount_point.as_deref().unwrap_or(&identity.target);
            Ok(export::iotune_yaml(&profile, mount_point)?)
        }
        ExportFormat::Iocost => {
            let on_this_machine = || device_number(identity.block_device.as_deref()?);
            let Some(number) = arguments.device_number.clone().or_else(on_this_machine) else {
                let problem =
                    "this machine has no such drive: give its number with --device-number (see lsblk)";
                return Err(Usage(format!("{}: {problem}", arguments.profile.display())).into());
            };
            let line = export::iocost_line(&profile, &number)? + "\n";
            // The kernel takes no comments.
            context.note(&export::write_regime(&profile));
            Ok(line)
        }
    }
}

/// The number, such as `259:0`, of the block device with this name.
fn device_number(name: &str) -> Option<String> {
    let number = std::fs::read_to_string(Path::new("/sys/class/block").join(name).join("dev")).ok()?;
    Some(number.trim().to_owned())
}
