//! `flashgrain bench nodes`.

use clap::Args;
use flashgrain_bench::experiment::{Experiment, nodes};
use flashgrain_profile::Error;

use super::options::BenchOptions;
use crate::output::{Context, print, print_json};
use crate::units::parse_positive_bytes;

/// Look-ups and range queries over sizes of nodes, next to the profile's predictions for them.
///
/// A store is filled for each size, in stretches unless it is said otherwise, which leaves a third of each
/// node empty, as random inserts do. The profile is of the same drive: `flashgrain profile TARGET` makes one.
#[derive(Debug, Args)]
#[command(mut_arg("profile", |argument| argument.required(true)))]
#[command(mut_arg("fill_order", |argument| argument.default_value("stretches")))]
#[command(mut_arg("node_size", |argument| argument.hide(true)))]
#[command(mut_arg("raw_seconds", |argument| argument.hide(true)))]
pub struct NodesArguments {
    /// Sizes of nodes.
    #[arg(
        long,
        value_name = "SIZE,...",
        value_delimiter = ',',
        value_parser = parse_positive_bytes,
        default_value = "4KiB,8KiB,16KiB,32KiB,64KiB"
    )]
    sizes: Vec<u64>,
    /// Bytes of records that a range query yields.
    #[arg(long, value_name = "SIZE", value_parser = parse_positive_bytes, default_value = "16KiB")]
    range_bytes: u64,
    #[command(flatten)]
    options: BenchOptions,
}

pub fn run(arguments: &NodesArguments, context: &Context) -> anyhow::Result<()> {
    let options = arguments.options.options()?;
    let interrupt = context.interrupt.watch()?;
    let experiment = Experiment { options, listener: context, interrupt };
    let result = nodes(experiment, &arguments.sizes, arguments.range_bytes)?;
    if arguments.options.json {
        print_json(&result)?;
    } else {
        print(&result.table())?;
    }
    if result.interrupted { Err(Error::Interrupted.into()) } else { Ok(()) }
}
