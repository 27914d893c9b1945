//! `flashgrain tune`: the main job.

use std::path::PathBuf;

use clap::Args;
use flashgrain_advisor::engine::EngineName;
use flashgrain_advisor::{Advice, workload};
use flashgrain_bench::exploit::{Exploit, Kept};
use flashgrain_profile::{Config, DeviceProfile, Error};
use flashgrain_report::unit;

use crate::arguments::{MeasuringOptions, TargetOptions};
use crate::commands::advise::DEFAULT_WORKLOAD;
use crate::measure::{self, Measured};
use crate::output::{Context, print, print_json};
use crate::results;
use crate::summary;
use crate::target::Opened;

/// Learn the drive of a directory: its performance, the cost model that describes it, and the settings
/// that follow.
///
/// Profiles the drive within the budget, fits and compares four cost models, learns hidden parameters,
/// derives settings, and checks the predictions against fresh workloads. Then it builds a store with the
/// layout that follows, several times as large as its cache where the budget allows, and compares it with the
/// predictions and the raw device. It ends with advice for a default mix (see `advise`). It writes
/// `profile.json`, its samples and a self-contained `report.html`.
#[derive(Debug, Args)]
pub struct TuneArguments {
    /// A directory on the drive whose files are not touched; or a simulated drive, sim:PRESET or
    /// sim:FILE.toml.
    #[arg(value_name = "DIR", default_value = ".")]
    directory: PathBuf,
    /// Leave the store out.
    #[arg(long)]
    no_store: bool,
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
        keep_interrupted: measuring.keep_interrupted,
        ..Config::default()
    };
    let targets = [arguments.directory.clone()];
    let kept = if arguments.no_store {
        Err("left out on request".to_owned())
    } else {
        Kept::of(&config, measuring.file_size)
    };
    match &kept {
        Ok(Kept { seconds, write_bytes }) => context.note(&format!(
            "store         at the end, where the drive is measured, with {} and {} of the budget",
            unit::seconds(*seconds),
            unit::bytes(*write_bytes as f64)
        )),
        Err(why) => context.note(&format!("no store      {why}")),
    }
    let of_budget = kept.clone().unwrap_or_default();
    let measured = measure::profile(&targets, &config, of_budget, measuring, &arguments.target, context)?;
    let Measured { mut profiled, results, opened } = measured;
    let kept = match measuring.keep_interrupted && context.interrupt.is_wanted() {
        true => Err("interrupted".to_owned()),
        false => kept,
    };
    match add_store(&mut profiled.profile, kept, &opened, context) {
        Err(error) if measuring.keep_interrupted && is_interrupt(&error) => {
            profiled.profile.budget.left_out.push("store: interrupted".to_owned());
        }
        added => added?,
    }
    results.store(&profiled)?;
    results::write_report(&profiled.profile, &results.report())?;
    measure::end_if_interrupted(measuring, &results, context)?;
    if arguments.json {
        return print_json(&profiled.profile);
    }
    let mut text = summary::profile(&profiled.profile);
    if profiled.profile.distrust.is_none() {
        let workload = workload::preset(DEFAULT_WORKLOAD)?;
        let advice = Advice::new(&workload, &profiled.profile, &EngineName::ALL);
        text += &format!("\n{}", summary::brief_advice(&advice));
    } else {
        text +=
            "\nNo advice: the profile is not trusted, for the reason above. Measure again in a quiet hour.\n";
    }
    text += &format!("\nProfile: {}\n", results.profile().display());
    text += &format!("Report:  {}\n", results.report().display());
    Ok(print(&text)?)
}

fn is_interrupt(error: &anyhow::Error) -> bool {
    matches!(error.downcast_ref(), Some(Error::Interrupted))
}

/// Builds and measures a store with the part of the budget that was `kept` for it, or notes why there is
/// none. A profile is worth having without one.
fn add_store(
    profile: &mut DeviceProfile,
    kept: Result<Kept, String>,
    opened: &Opened,
    context: &Context,
) -> anyhow::Result<()> {
    let has_budget = kept.is_ok();
    let run = kept.map_err(anyhow::Error::msg).and_then(|kept| {
        let interrupt = &context.interrupt.flag();
        let device = opened.shared();
        let run = Exploit { profile, device, kept, listener: context, interrupt }.run()?;
        profile.budget.limit_s += kept.seconds;
        profile.budget.limit_write_bytes += kept.write_bytes;
        profile.budget.used_s += run.used_s;
        profile.budget.used_write_bytes += run.used_write_bytes;
        Ok(run)
    });
    match run {
        Ok(run) => profile.store = Some(run),
        Err(error) if is_interrupt(&error) => return Err(error),
        Err(why) => {
            if has_budget {
                context.note(&format!("no store      {why:#}"));
            }
            profile.budget.left_out.push(format!("store: {why:#}"));
        }
    }
    Ok(())
}
