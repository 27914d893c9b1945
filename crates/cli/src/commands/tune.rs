//! `flashgrain tune`: the main job.

use std::path::PathBuf;

use clap::Args;
use flashgrain_profile::Config;

use crate::arguments::{MeasuringOptions, TargetOptions};
use crate::measure;
use crate::output::{Context, print, print_json};
use crate::results;
use crate::summary;

/// Learn the drive behind a directory: what it can do, which cost model describes it, and which settings follow.
///
/// Profiles the drive within the budget, fits and compares four cost models, learns hidden parameters, derives settings, and checks
/// the predictions against fresh workloads. Writes `profile.json`, its samples and a self-contained `report.html`.
#[derive(Debug, Args)]
pub struct TuneArguments {
    /// A directory on the drive, in which nothing is touched; or a simulated drive, sim:PRESET or sim:FILE.toml.
    #[arg(value_name = "DIR", default_value = ".")]
    directory: PathBuf,
    /// Print the profile as JSON instead of the summary.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    measuring: MeasuringOptions,
    #[command(flatten)]
    target: TargetOptions,
}

pub fn run(arguments: &TuneArguments, context: &Context) -> anyhow::Result<()> {
    let measuring = &arguments.measuring;
    let config = Config {
        budget_s: measuring.seconds,
        write_bytes: measuring.write_bytes,
        seed: measuring.seed,
        ..Config::default()
    };
    let targets = [arguments.directory.clone()];
    let (profiled, results) = measure::profile(&targets, &config, measuring, &arguments.target, context)?;
    results::write_report(&profiled.profile, &results.report())?;
    if arguments.json {
        return print_json(&profiled.profile);
    }
    let mut text = summary::profile(&profiled.profile);
    text += &format!("\nProfile: {}\n", results.profile().display());
    text += &format!("Report:  {}\n", results.report().display());
    Ok(print(&text)?)
}
