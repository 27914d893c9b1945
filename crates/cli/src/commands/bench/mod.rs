//! `flashgrain bench`: workloads on a store and on the raw device in the same run.

mod commit;
mod nodes;
mod options;
mod placement;
mod recover;
mod rocksdb;
mod scale;
mod size;
mod trees;

use clap::{Args, Subcommand};
use flashgrain_bench::experiment::{Experiment, Operation, Work};
use flashgrain_bench::fill::Order;
use flashgrain_profile::Error;

use crate::output::{Context, print, print_json};
use crate::units::parse_share;
use options::BenchOptions;

/// Measure the store: throughput, latency, CPU, and the requests that reach the device, next to the raw
/// device in the same run.
///
/// Each builds a store first, in a folder of its own in the directory, and removes it afterwards unless
/// `--keep` is given.
#[derive(Debug, Args)]
pub struct BenchArguments {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Random point look-ups.
    Lookup(BenchOptions),
    /// Filling an empty store.
    Fill(FillArguments),
    /// Random updates of records that are there.
    Update(BenchOptions),
    /// Look-ups and updates.
    Mixed(MixedArguments),
    Scale(scale::ScaleArguments),
    Placement(placement::PlacementArguments),
    Commit(commit::CommitArguments),
    Nodes(nodes::NodesArguments),
    Recover(recover::RecoverArguments),
    Size(size::SizeArguments),
    Rocksdb(rocksdb::RocksdbArguments),
    Trees(trees::TreesArguments),
}

#[derive(Debug, Args)]
struct FillArguments {
    /// In key order by batches of 100, one by one in random order, or by batches in stretches.
    #[arg(long, value_enum, default_value_t = Order::Sequential)]
    order: Order,
    #[command(flatten)]
    options: BenchOptions,
}

#[derive(Debug, Args)]
struct MixedArguments {
    /// Share of the operations that are look-ups.
    #[arg(long, value_name = "SHARE", value_parser = parse_share, default_value = "50%")]
    read_share: f64,
    #[command(flatten)]
    options: BenchOptions,
}

pub fn run(arguments: &BenchArguments, context: &Context) -> anyhow::Result<()> {
    let (name, options, work) = match &arguments.what {
        What::Lookup(options) => ("lookups", options, Work::Operate(Operation::Lookup)),
        What::Update(options) => ("updates", options, Work::Operate(Operation::Update)),
        What::Mixed(mixed) => ("mixed", &mixed.options, Work::Operate(Operation::Mixed(mixed.read_share))),
        What::Fill(fill) => ("inserts", &fill.options, Work::Fill(fill.order)),
        What::Scale(arguments) => return scale::run(arguments, context),
        What::Placement(arguments) => return placement::run(arguments, context),
        What::Nodes(arguments) => return nodes::run(arguments, context),
        What::Commit(arguments) => return commit::run(arguments, context),
        What::Recover(arguments) => return recover::run(arguments, context),
        What::Size(arguments) => return size::run(arguments, context),
        What::Rocksdb(arguments) => return rocksdb::run(arguments, context),
        What::Trees(arguments) => return trees::run(arguments, context),
    };
    let interrupt = context.interrupt.watch()?;
    let experiment = Experiment { options: options.options()?, listener: context, interrupt };
    let result = experiment.run(name, work)?;
    if options.json {
        print_json(&result)?;
    } else {
        print(&result.table())?;
    }
    if result.interrupted { Err(Error::Interrupted.into()) } else { Ok(()) }
}
