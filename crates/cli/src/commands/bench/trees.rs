//! `flashgrain bench trees`.

use clap::Args;
use flashgrain::{BeTreeOptions, NodeBlocks};
use flashgrain_bench::experiment::{Experiment, Structure, TreesOptions, trees};
use flashgrain_profile::Error;

use super::options::BenchOptions;
use crate::output::{Context, print, print_json};
use crate::units::{count_within, parse_positive_bytes};

/// Look-ups, range queries and updates on each structure of trees, next to the profile's predictions.
///
/// A store is filled for each, at random unless it is said otherwise, and compared are requests, bytes and
/// rates. The profile is of the same drive: `flashgrain profile TARGET` makes one.
#[derive(Debug, Args)]
#[command(mut_arg("profile", |argument| argument.required(true)))]
#[command(mut_arg("fill_order", |argument| argument.default_value("random")))]
#[command(mut_arg("raw_seconds", |argument| argument.hide(true)))]
#[command(mut_arg("keep", |argument| argument.hide(true)))]
pub struct TreesArguments {
    /// Structures.
    #[arg(
        long,
        value_name = "STRUCTURE,...",
        value_delimiter = ',',
        value_enum,
        default_value = "btree,blocks,be-tree,lsm"
    )]
    structures: Vec<Structure>,
    /// Bytes of records that a range query yields; without it there are none.
    #[arg(long, value_name = "SIZE", value_parser = parse_positive_bytes)]
    range_bytes: Option<u64>,
    /// Updates before those that are measured; as many as there are records unless given.
    #[arg(long, value_name = "COUNT", value_parser = count_within::<u64>(..))]
    settling: Option<u64>,
    /// Size of a Bε-tree's nodes; by default as the store decides.
    #[arg(long, value_name = "SIZE", value_parser = parse_positive_bytes)]
    buffered_node_size: Option<u64>,
    /// Children of a Bε-tree's nodes; by default as the store decides.
    #[arg(long, value_name = "COUNT", value_parser = count_within::<u32>(..))]
    fanout: Option<u32>,
    /// Blocks of a node; by default as many as the drive serves at a time.
    #[arg(long, value_name = "COUNT", value_parser = count_within::<u32>(..))]
    node_blocks: Option<u32>,
    #[command(flatten)]
    options: BenchOptions,
}

pub fn run(arguments: &TreesArguments, context: &Context) -> anyhow::Result<()> {
    let options = arguments.options.options()?;
    let interrupt = context.interrupt.watch()?;
    let be_tree = BeTreeOptions::new();
    let be_tree = arguments.fanout.map_or(be_tree, |fanout| be_tree.fanout(fanout));
    let asked = TreesOptions {
        structures: arguments.structures.clone(),
        range_bytes: arguments.range_bytes,
        settling: arguments.settling.unwrap_or(options.records.count),
        be_tree: arguments.buffered_node_size.map_or(be_tree, |bytes| be_tree.node_bytes(bytes)),
        blocks: arguments.node_blocks.map_or(NodeBlocks::OfDrive, NodeBlocks::Of),
    };
    let result = trees(Experiment { options, listener: context, interrupt }, &asked)?;
    if arguments.options.json {
        print_json(&result)?;
    } else {
        print(&result.table())?;
    }
    if result.interrupted { Err(Error::Interrupted.into()) } else { Ok(()) }
}
