//! A profile run from the command line: what `tune` and `profile` share.

use std::path::PathBuf;

use flashgrain_device::{BackendKind, Device, FileDevice, free_bytes};
use flashgrain_profile::{Backend, Config, Plan, Profiled, Target};
use flashgrain_report::unit;

use crate::arguments::{MeasuringOptions, TargetOptions};
use crate::exit::Usage;
use crate::output::Context;
use crate::progress::Reporter;
use crate::results::ResultsFolder;
use crate::target::{self, Access, ScratchSize};

/// Says what will be done, does it, and stores the profile and its samples in the results folder.
pub fn profile(
    targets: &[PathBuf],
    config: &Config,
    measuring: &MeasuringOptions,
    options: &TargetOptions,
    context: &Context,
) -> anyhow::Result<(Profiled, ResultsFolder)> {
    let interrupt = context.interrupt.watch()?;
    let device = open(targets, config, measuring.file_size, options, context)?;
    let results = ResultsFolder::prepare(&measuring.out)?;
    let target = Target { device: &device, backends: backends(&device) };
    let plan = Plan::new(&target, config)?;
    context.note(&announcement(targets, &device, &plan, config, &results));
    context.detail(&plan.to_string());
    let mut reporter = Reporter::new(context.verbosity);
    let profiled = flashgrain_profile::run(&target, config, &mut reporter, interrupt)?;
    drop(reporter);
    results.store(&profiled)?;
    Ok((profiled, results))
}

fn open(
    targets: &[PathBuf],
    config: &Config,
    file_bytes: Option<u64>,
    options: &TargetOptions,
    context: &Context,
) -> anyhow::Result<FileDevice> {
    let scratch = target::is_scratch(targets);
    let mut size = ScratchSize { asked: file_bytes, default: 0 };
    if scratch {
        let free = targets.iter().map(|target| free_bytes(target)).collect::<Result<Vec<_>, _>>()?;
        let free = free.into_iter().min().unwrap_or(0).saturating_mul(targets.len() as u64);
        size.default = config.default_file_bytes(free);
        check_write_budget(file_bytes, config)?;
    } else if file_bytes.is_some() {
        return Err(
            Usage("--file-size is the size of a scratch file: name a directory to get one".into()).into()
        );
    }
    let access = if config.write_bytes > 0 { Access::Write } else { Access::Read };
    target::open(targets, size, access, options, context)
}

/// A scratch file must be written before it can be read.
fn check_write_budget(file_bytes: Option<u64>, config: &Config) -> Result<(), Usage> {
    let bytes = file_bytes.unwrap_or(0).max(Plan::LEAST_WRITE_BYTES);
    if config.write_bytes >= bytes {
        return Ok(());
    }
    Err(Usage(format!(
        "the scratch file has to be written once before it can be read: give --write-bytes at least {}, a smaller \
         --file-size, or the name of an existing file or block device to read only",
        unit::bytes(bytes as f64)
    )))
}

/// The same storage through each kernel interface.
fn backends(device: &FileDevice) -> Vec<Backend<'static>> {
    let through = |kind: BackendKind| match device.with_backend(kind) {
        Ok(device) => Ok(Box::new(device) as Box<dyn Device>),
        Err(error) => Err(error.to_string()),
    };
    BackendKind::ALL
        .into_iter()
        .map(|kind| Backend { name: kind.name().to_owned(), device: through(kind) })
        .collect()
}

/// What will be done, before it is done.
fn announcement(
    targets: &[PathBuf],
    device: &FileDevice,
    plan: &Plan,
    config: &Config,
    results: &ResultsFolder,
) -> String {
    let names: Vec<_> = targets.iter().map(|target| target.display().to_string()).collect();
    let names = names.join(", ");
    let place = if target::is_scratch(targets) {
        let bytes = unit::bytes(device.geometry().capacity_bytes as f64);
        format!(
            "scratch file  {bytes} in {names}, without a name: it vanishes when this ends, however it ends"
        )
    } else {
        format!("target        {names}")
    };
    let identity = device.identity();
    let mut text = format!(
        "budget        {} at most, writing {} at most\n{place}\n",
        unit::seconds(plan.seconds()),
        unit::bytes(plan.write_bytes() as f64)
    );
    text += &format!("backend       {}: {}\n", identity.backend, identity.backend_reason);
    text += &format!("seed          {}\n", config.seed);
    text += &format!("results       {}", results.path().display());
    text
}
