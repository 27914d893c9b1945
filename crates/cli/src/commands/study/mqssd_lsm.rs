//! `flashgrain study mqssd-lsm`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use flashgrain::LsmMetadata;
use flashgrain_bench::processor::ProcessorCosts;
use flashgrain_bench::study::mqssd_lsm::{MqssdResult, Options, mqssd_lsm};

use super::distinct::distinct;
use super::output::OutputOptions;
use crate::output::Context;
use crate::units::{count_within, parse_positive_bytes, parse_share};

/// Queries, scans and compactions over fanout and concurrency, and a single level against RocksDB's
/// configuration for flash: section 5 of the MQSSD paper.
///
/// A store is filled for each layout, by one client in random order.
#[derive(Debug, Args)]
pub struct MqssdLsmArguments {
    /// A simulated drive, sim:PRESET or sim:FILE.toml, or a directory on a real one.
    #[arg(value_name = "TARGET", default_value = "sim:990pro")]
    target: PathBuf,
    /// Records of 2,064 bytes; the paper has 64 million.
    #[arg(long, value_parser = count_within::<u64>(1000..=1 << 40), default_value_t = 131_072)]
    records: u64,
    /// Bytes of a table and of a memtable, 64 MiB in the paper: a power of two.
    #[arg(long, value_name = "SIZE", value_parser = parse_table_bytes, default_value = "256KiB")]
    table_bytes: u64,
    /// Memory as a share of the records' bytes.
    #[arg(long, value_name = "SHARE", value_parser = parse_share, default_value = "5%")]
    cache: f64,
    /// Fanouts in addition to the single level.
    #[arg(
        long,
        value_name = "F,...",
        value_delimiter = ',',
        value_parser = count_within::<u32>(2..=1000),
        default_value = "2,4,8,16,32"
    )]
    fanouts: Vec<u32>,
    /// Numbers of clients at a time.
    #[arg(
        long,
        value_name = "K,...",
        value_delimiter = ',',
        value_parser = count_within::<u32>(1..=1024),
        default_value = "1,2,4,8,16,32"
    )]
    concurrency: Vec<u32>,
    /// Bits of filters for each key; the paper's RocksDB has no filters.
    #[arg(long, default_value_t = 0.0)]
    filter_bits: f64,
    /// Where fence pointers and filters are: in memory, as the paper's, or cached as other blocks.
    #[arg(long, value_enum, default_value = "pinned")]
    metadata: Metadata,
    /// Queries of each measurement; a quarter as many scans.
    #[arg(long, value_parser = count_within::<u64>(1..), default_value_t = 4096)]
    queries: u64,
    /// Times that simulated processors take, in nanoseconds: LOOKUP,WRITE,WAIT,REQUEST, and if they are
    /// given SEARCH for each table that a look-up searches and KIB for each KiB that is merged.
    #[arg(long, value_name = "TIMES", default_value = "2000,4000,500,1500")]
    cpu_costs: ProcessorCosts,
    /// Seed of everything random.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    #[command(flatten)]
    output: OutputOptions,
}

/// The place of fence pointers and filters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Metadata {
    Pinned,
    Cached,
}

/// Smallest table: a segment of four write units.
const TABLE_BYTES_MIN: u64 = 256 << 10;

fn parse_table_bytes(text: &str) -> Result<u64, String> {
    match parse_positive_bytes(text)? {
        bytes if bytes.is_power_of_two() && bytes >= TABLE_BYTES_MIN => Ok(bytes),
        _ => Err("expected a power of two from 256KiB on".into()),
    }
}

pub fn run(arguments: &MqssdLsmArguments, context: &Context) -> anyhow::Result<()> {
    arguments.output.check()?;
    let result = measure(arguments, context)?;
    arguments.output.show(&result, result.sheet(), context)
}

pub fn measure(arguments: &MqssdLsmArguments, context: &Context) -> anyhow::Result<MqssdResult> {
    let interrupt = context.interrupt.watch()?;
    let options = Options {
        target: arguments.target.clone(),
        records: arguments.records,
        table_bytes: arguments.table_bytes,
        cache_share: arguments.cache,
        fanouts: distinct(&arguments.fanouts),
        concurrency: distinct(&arguments.concurrency),
        filter_bits: arguments.filter_bits,
        metadata: match arguments.metadata {
            Metadata::Pinned => LsmMetadata::Pinned,
            Metadata::Cached => LsmMetadata::Cached,
        },
        queries: arguments.queries,
        costs: arguments.cpu_costs,
        seed: arguments.seed,
    };
    mqssd_lsm(&options, context, interrupt)
}
