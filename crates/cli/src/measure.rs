//! A profile run from the command line: the shared part of `tune` and `profile`.

use std::path::PathBuf;

use flashgrain_bench::exploit::Kept;
use flashgrain_device::{Device, calendar_seconds, free_bytes};
use flashgrain_profile::{Config, Error, Plan, Profiled};
use flashgrain_report::unit;

use crate::arguments::{MeasuringOptions, TargetOptions};
use crate::exit::Usage;
use crate::output::Context;
use crate::progress::Reporter;
use crate::results::ResultsFolder;
use crate::target::{self, Access, Kind, Opened, ScratchSize};

/// Result of a profile run, for its caller.
pub struct Measured {
    pub profiled: Profiled,
    /// Folder of its results.
    pub results: ResultsFolder,
    /// The measured target, still open.
    pub opened: Opened,
}

/// Announces a profile run and performs it. The caller may use the part of the budget that is `kept`.
pub fn profile(
    targets: &[PathBuf],
    config: &Config,
    kept: Kept,
    measuring: &MeasuringOptions,
    options: &TargetOptions,
    context: &Context,
) -> anyhow::Result<Measured> {
    let interrupt = context.interrupt.watch()?;
    let kind = Kind::of(targets)?;
    let opened = open(kind, targets, config, measuring.file_size, options, context)?;
    let device = opened.device();
    let results = ResultsFolder::prepare(&measuring.out)?;
    let target = opened.target();
    let config = &kept.rest_of(&within(&opened, config, measuring.file_size)?);
    let plan = Plan::new(&target, config)?;
    context.note(&announcement(kind, targets, device, &plan, config, kept, &results));
    context.detail(&plan.to_string());
    let began_s = calendar_seconds();
    if kind == Kind::Existing && config.write_bytes > 0 {
        context.interrupt.leaves(target::overwritten(targets));
    }
    let mut reporter = Reporter::new(context.verbosity, kind == Kind::Simulated);
    let profiled = flashgrain_profile::run(&target, config, &mut reporter, interrupt)?;
    drop(reporter);
    target::note_shortages(device, context);
    if kind == Kind::Simulated {
        let took_s = calendar_seconds().saturating_sub(began_s);
        let virtual_s = unit::seconds(profiled.profile.budget.used_s);
        context.note(&format!("{virtual_s} of virtual time took {took_s} s"));
    }
    drop(target);
    Ok(Measured { profiled, results, opened })
}

/// After the results were stored: fails if the user wanted an end, and the results are incomplete.
pub fn end_if_interrupted(
    measuring: &MeasuringOptions,
    results: &ResultsFolder,
    context: &Context,
) -> Result<(), Error> {
    if !measuring.keep_interrupted || !context.interrupt.is_wanted() {
        return Ok(());
    }
    context.interrupt.leaves(format!("the measurements until then are in {}", results.path().display()));
    Err(Error::Interrupted)
}

fn open(
    kind: Kind,
    targets: &[PathBuf],
    config: &Config,
    file_bytes: Option<u64>,
    options: &TargetOptions,
    context: &Context,
) -> anyhow::Result<Opened> {
    let mut size = ScratchSize { asked: file_bytes, default: 0 };
    match kind {
        Kind::Scratch => {
            let free = targets.iter().map(|target| free_bytes(target)).collect::<Result<Vec<_>, _>>()?;
            let free = free.into_iter().min().unwrap_or(0).saturating_mul(targets.len() as u64);
            size.default = config.default_file_bytes(free);
            check_write_budget(file_bytes, config)?;
        }
        Kind::Existing if file_bytes.is_some() => {
            return Err(Usage(
                "--file-size is the size of a scratch file: name a directory to get one".into(),
            )
            .into());
        }
        Kind::Existing | Kind::Simulated => {}
    }
    let access = if config.write_bytes > 0 { Access::Write } else { Access::Read };
    target::open(targets, size, access, config.seed, options, context)
}

/// How much of a simulated drive is used: all of it if it holds data already, otherwise as much as would go
/// into a scratch file.
fn within(opened: &Opened, config: &Config, file_bytes: Option<u64>) -> Result<Config, Usage> {
    let Opened::Simulated { device, holds_data } = opened else { return Ok(config.clone()) };
    let capacity_bytes = device.geometry().capacity_bytes;
    if file_bytes.is_some_and(|bytes| bytes > capacity_bytes) {
        return Err(Usage(format!(
            "--file-size is the part of a simulated drive that is used: this one has {}",
            unit::bytes(capacity_bytes as f64)
        )));
    }
    let whole = *holds_data || config.write_bytes < Plan::WRITE_BYTES_MIN;
    let default = if whole { capacity_bytes } else { config.default_file_bytes(4 * capacity_bytes) };
    let region_bytes = Some(file_bytes.unwrap_or(default));
    Ok(Config { region_bytes, holds_data: *holds_data, ..config.clone() })
}

/// A scratch file must be written before it can be read.
fn check_write_budget(file_bytes: Option<u64>, config: &Config) -> Result<(), Usage> {
    let bytes = file_bytes.unwrap_or(0).max(Plan::WRITE_BYTES_MIN);
    if config.write_bytes >= bytes {
        return Ok(());
    }
    Err(Usage(format!(
        "the scratch file has to be written once before it can be read: give --write-bytes at least {}, a smaller \
         --file-size, or the name of an existing file or block device to read only",
        unit::bytes(bytes as f64)
    )))
}

/// Describes a run before it begins.
fn announcement(
    kind: Kind,
    targets: &[PathBuf],
    device: &dyn Device,
    plan: &Plan,
    config: &Config,
    kept: Kept,
    results: &ResultsFolder,
) -> String {
    let names: Vec<_> = targets.iter().map(|target| target.display().to_string()).collect();
    let names = names.join(", ");
    let identity = device.identity();
    let place = match kind {
        Kind::Scratch => {
            let bytes = unit::bytes(device.geometry().capacity_bytes as f64);
            format!(
                "scratch file  {bytes} in {names}, without a name: it vanishes when this ends, however it ends"
            )
        }
        Kind::Existing => format!("target        {names}"),
        Kind::Simulated => format!(
            "target        {names}, simulated: {} of it; nothing on any disk is measured, and nothing written but the results",
            unit::bytes(plan.site.bytes() as f64)
        ),
    };
    let time = if kind == Kind::Simulated { " of virtual time" } else { "" };
    let mut text = format!(
        "budget        {}{time} at most, writing {} at most\n{place}\n",
        unit::seconds(plan.seconds() + kept.seconds),
        unit::bytes((plan.write_bytes() + kept.write_bytes) as f64)
    );
    text += &format!("backend       {}: {}\n", identity.backend, identity.backend_reason);
    text += &format!("seed          {}\n", config.seed);
    text += &format!("results       {}", results.path().display());
    text
}
