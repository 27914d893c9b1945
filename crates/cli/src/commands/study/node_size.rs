//! `flashgrain study node-size`.

use std::path::PathBuf;

use clap::Args;
use flashgrain_bench::processor::ProcessorCosts;
use flashgrain_bench::study::node_size::{
    B_EPSILON_NODE_BYTES, B_PLUS_NODE_BYTES, NodeSizeResult, Options, node_size,
};

use super::distinct::distinct;
use super::output::OutputOptions;
use crate::output::Context;
use crate::units::{count_within, parse_positive_bytes, parse_share};

/// B+-trees and Bε-trees over the size of their nodes, under random look-ups and random inserts of one
/// client: section 7 of the dictionaries paper.
///
/// B+-trees have nodes up to 64KiB, Bε-trees from 32KiB on.
#[derive(Debug, Args)]
pub struct NodeSizeArguments {
    /// Simulated drives, sim:PRESET or sim:FILE.toml, or directories on real ones.
    #[arg(value_name = "TARGET", default_value = "sim:wd-black-1tb-2011")]
    targets: Vec<PathBuf>,
    /// B: sizes of nodes, powers of two from 4KiB to 4MiB.
    #[arg(
        long,
        value_name = "SIZE,...",
        value_delimiter = ',',
        value_parser = parse_node_bytes,
        default_value = "4KiB,8KiB,16KiB,32KiB,64KiB,128KiB,256KiB,512KiB,1MiB,2MiB,4MiB"
    )]
    node_bytes: Vec<u64>,
    /// F: children of a node of the Bε-trees, a power of two.
    #[arg(long, value_name = "F", value_parser = parse_fanout, default_value = "16")]
    fanout: u32,
    /// Basement nodes of the Bε-trees have B/F divided by this, from 4KiB to 64KiB. With less than 4, parts
    /// have more than B/F, as they have at least four basement nodes.
    #[arg(long, value_name = "N", value_parser = parse_basement_divisor, default_value = "4")]
    basement_divisor: u32,
    /// Records of 116 bytes.
    #[arg(long, value_parser = count_within::<u64>(1000..=1 << 40), default_value_t = 1_000_000)]
    records: u64,
    /// Memory as a share of the records' bytes.
    #[arg(long, value_name = "SHARE", value_parser = parse_share, default_value = "25%")]
    cache: f64,
    /// Look-ups of each measurement.
    #[arg(long, value_parser = count_within::<u64>(2..), default_value_t = 100_000)]
    look_ups: u64,
    /// Inserts of each measurement.
    #[arg(long, value_parser = count_within::<u64>(2..), default_value_t = 200_000)]
    inserts: u64,
    /// Times that simulated processors take, in nanoseconds: LOOKUP,WRITE,WAIT,REQUEST.
    #[arg(long, value_name = "TIMES", default_value = "2000,4000,500,1500")]
    cpu_costs: ProcessorCosts,
    /// Seed of everything random.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    #[command(flatten)]
    output: OutputOptions,
}

fn parse_node_bytes(text: &str) -> Result<u64, String> {
    let bytes = parse_positive_bytes(text)?;
    let (least, most) = (B_PLUS_NODE_BYTES.0, B_EPSILON_NODE_BYTES.1);
    if bytes.is_power_of_two() && (least..=most).contains(&bytes) {
        Ok(bytes)
    } else {
        Err("expected powers of two from 4KiB to 4MiB".into())
    }
}

fn parse_fanout(text: &str) -> Result<u32, String> {
    match text.parse() {
        Ok(fanout) if u32::is_power_of_two(fanout) && (2..=64).contains(&fanout) => Ok(fanout),
        _ => Err("expected 2, 4, 8, 16, 32 or 64".into()),
    }
}

fn parse_basement_divisor(text: &str) -> Result<u32, String> {
    match text.parse() {
        Ok(divisor) if u32::is_power_of_two(divisor) && divisor <= 64 => Ok(divisor),
        _ => Err("expected 1, 2, 4, 8, 16, 32 or 64".into()),
    }
}

pub fn run(arguments: &NodeSizeArguments, context: &Context) -> anyhow::Result<()> {
    arguments.output.check()?;
    let result = measure(arguments, context)?;
    arguments.output.show(&result, result.sheet(), context)
}

pub fn measure(arguments: &NodeSizeArguments, context: &Context) -> anyhow::Result<NodeSizeResult> {
    let interrupt = context.interrupt.watch()?;
    let options = Options {
        targets: distinct(&arguments.targets),
        node_bytes: distinct(&arguments.node_bytes),
        fanout: arguments.fanout,
        basement_divisor: arguments.basement_divisor,
        records: arguments.records,
        cache_share: arguments.cache,
        look_ups: arguments.look_ups,
        inserts: arguments.inserts,
        costs: arguments.cpu_costs,
        seed: arguments.seed,
    };
    node_size(&options, context, interrupt)
}
