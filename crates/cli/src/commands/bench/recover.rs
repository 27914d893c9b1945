//! `flashgrain bench recover`.

use std::process::Command;

use anyhow::Context as _;
use clap::Args;
use flashgrain_bench::experiment::{Experiment, recover};
use flashgrain_bench::store::Options;

use super::options::BenchOptions;
use crate::output::{Context, print, print_json};

/// Kills a store with SIGKILL in the middle of random updates, opens it, which replays its log, closes it and
/// opens it again.
///
/// The updates run in a process of their own for `--seconds`. The cache is large, so that it is the log that
/// brings checkpoints about, and much of it is there to replay.
#[derive(Debug, Args)]
#[command(mut_arg("durability", |argument| argument.default_value("buffered")))]
#[command(mut_arg("cache", |argument| argument.default_value("400%")))]
pub struct RecoverArguments {
    #[command(flatten)]
    options: BenchOptions,
}

pub fn run(arguments: &RecoverArguments, context: &Context) -> anyhow::Result<()> {
    let options = arguments.options.options()?;
    let interrupt = context.interrupt.watch()?;
    let updates = updates(&arguments.options, &options)?;
    let result = recover(&Experiment { options, listener: context, interrupt }, updates)?;
    if arguments.options.json { print_json(&result) } else { Ok(print(&result.table())?) }
}

/// This program, told to update the same store until it is killed.
pub fn updates(arguments: &BenchOptions, options: &Options) -> anyhow::Result<Command> {
    const LONG_S: &str = "86400";
    let program = std::env::current_exe().context("find the program itself")?;
    let mut command = Command::new(program);
    command.args(["bench", "update", "--keep"]).arg(&options.target);
    let mut give = |name: &str, value: String| {
        command.arg(format!("--{name}")).arg(value);
    };
    give("records", arguments.records.to_string());
    give("key-bytes", arguments.key_bytes.to_string());
    give("value-bytes", arguments.value_bytes.to_string());
    give("cache", options.store.cache_bytes.to_string());
    give("workers", options.store.workers.to_string());
    give("tasks", arguments.tasks.to_string());
    give("distribution", arguments.distribution.to_string());
    give("durability", arguments.durability.name().to_owned());
    give("seed", arguments.seed.to_string());
    give("seconds", LONG_S.to_owned());
    give("raw-seconds", "0s".to_owned());
    let mut perhaps = |name: &str, value: Option<String>| {
        value.into_iter().for_each(|value| give(name, value));
    };
    perhaps("space-use", arguments.space_use.map(|share| share.to_string()));
    perhaps("log-size", arguments.log_size.map(|bytes| bytes.to_string()));
    perhaps("recovery-log", arguments.recovery_log.map(|bytes| bytes.to_string()));
    perhaps("node-size", arguments.node_size.map(|bytes| bytes.to_string()));
    perhaps("profile", arguments.profile.as_ref().map(|path| path.display().to_string()));
    perhaps("log", arguments.log.as_ref().map(|path| path.display().to_string()));
    Ok(command)
}
