//! `flashgrain study pdam-btree`.

use std::path::PathBuf;

use clap::Args;
use flashgrain_bench::processor::ProcessorCosts;
use flashgrain_bench::study::pdam_btree::{Options, PdamResult, pdam_btree};

use super::distinct::distinct;
use super::output::OutputOptions;
use crate::output::Context;
use crate::units::{count_within, parse_positive_bytes, parse_share};

/// B+-trees with nodes of B, of P·B, and of P·B in van Emde Boas order of blocks of B, under one client to
/// twice P: section 8 of the dictionaries paper.
///
/// So little memory is given that inner levels are not in it.
#[derive(Debug, Args)]
pub struct PdamBtreeArguments {
    /// Simulated drives, sim:PRESET or sim:FILE.toml, or directories on real ones.
    #[arg(value_name = "TARGET", default_value = "sim:980pro")]
    targets: Vec<PathBuf>,
    /// P: blocks of a node, a power of two.
    #[arg(long, value_name = "P", value_parser = parse_blocks, default_value = "4")]
    blocks: u32,
    /// B: bytes of a block, a power of two.
    #[arg(long, value_name = "SIZE", value_parser = parse_block_bytes, default_value = "4KiB")]
    block_bytes: u32,
    /// Records of 776 bytes.
    #[arg(long, value_parser = count_within::<u64>(1000..=1 << 40), default_value_t = 1_000_000)]
    records: u64,
    /// Memory as a share of the records' bytes.
    #[arg(long, value_name = "SHARE", value_parser = parse_share, default_value = "0.25%")]
    cache: f64,
    /// Numbers of clients at a time; one to twice P by default.
    #[arg(
        long,
        value_name = "K,...",
        value_delimiter = ',',
        value_parser = count_within::<u32>(1..=1024)
    )]
    clients: Vec<u32>,
    /// Look-ups of each measurement.
    #[arg(long, value_parser = count_within::<u64>(1..), default_value_t = 20_000)]
    look_ups: u64,
    /// Times that simulated processors take, in nanoseconds: LOOKUP,WRITE,WAIT,REQUEST.
    #[arg(long, value_name = "TIMES", default_value = "2000,4000,500,1500")]
    cpu_costs: ProcessorCosts,
    /// Seed of everything random.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    #[command(flatten)]
    output: OutputOptions,
}

fn parse_blocks(text: &str) -> Result<u32, String> {
    match text.parse() {
        Ok(blocks) if u32::is_power_of_two(blocks) && (2..=16).contains(&blocks) => Ok(blocks),
        _ => Err("expected 2, 4, 8 or 16".into()),
    }
}

fn parse_block_bytes(text: &str) -> Result<u32, String> {
    match parse_positive_bytes(text)? {
        bytes @ (4096 | 8192 | 16_384 | 32_768) => Ok(bytes as u32),
        _ => Err("expected 4KiB, 8KiB, 16KiB or 32KiB".into()),
    }
}

pub fn run(arguments: &PdamBtreeArguments, context: &Context) -> anyhow::Result<()> {
    arguments.output.check()?;
    let result = measure(arguments, context)?;
    arguments.output.show(&result, result.sheet(), context)
}

pub fn measure(arguments: &PdamBtreeArguments, context: &Context) -> anyhow::Result<PdamResult> {
    let interrupt = context.interrupt.watch()?;
    let options = Options {
        targets: distinct(&arguments.targets),
        blocks: arguments.blocks,
        block_bytes: arguments.block_bytes,
        records: arguments.records,
        cache_share: arguments.cache,
        clients: distinct(&arguments.clients),
        look_ups: arguments.look_ups,
        costs: arguments.cpu_costs,
        seed: arguments.seed,
    };
    pdam_btree(&options, context, interrupt)
}
