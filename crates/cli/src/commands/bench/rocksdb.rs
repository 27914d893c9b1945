//! `flashgrain bench rocksdb`.

use std::path::PathBuf;

use clap::Args;
use flashgrain_bench::verify::{GridOptions, grid};
use flashgrain_profile::Error;

use crate::output::{Context, print, print_json};
use crate::results;
use crate::units::{count_within, parse_positive_bytes, size_within};

/// Point queries and scans of RocksDB over fanouts, block sizes and threads, next to the profile's
/// predictions for them.
///
/// Each tree is filled in random order by db_bench, without compression, and comes to rest before it is read,
/// past the page cache, in rounds over all trees. The profile is of the same directory: `flashgrain profile
/// DIR` makes one.
#[derive(Debug, Args)]
pub struct RocksdbArguments {
    /// The trees are made in a scratch directory below this one.
    directory: PathBuf,
    /// A folder of results, or a `profile.json`.
    #[arg(long, value_name = "FILE", default_value = "flashgrain-out")]
    profile: PathBuf,
    /// Fanouts.
    #[arg(long, value_name = "COUNT,...", value_delimiter = ',', default_value = "2,4,10,32",
        value_parser = count_within::<u32>(2..=1000))]
    fanouts: Vec<u32>,
    /// Sizes of blocks.
    #[arg(long, value_name = "SIZE,...", value_delimiter = ',', value_parser = parse_positive_bytes,
        default_value = "4KiB,16KiB,64KiB")]
    block_sizes: Vec<u64>,
    /// Numbers of threads.
    #[arg(long, value_name = "COUNT,...", value_delimiter = ',', default_value = "1,4,16",
        value_parser = count_within::<u32>(1..=1024))]
    threads: Vec<u32>,
    /// Records in a tree.
    #[arg(long, value_name = "COUNT", default_value_t = 1_600_000,
        value_parser = count_within::<u64>(1..))]
    records: u64,
    /// Bytes of a key.
    #[arg(long, value_name = "BYTES", default_value_t = 16, value_parser = size_within::<u64>(8..=1024))]
    key_bytes: u64,
    /// Bytes of a value.
    #[arg(long, value_name = "BYTES", default_value_t = 400, value_parser = size_within::<u64>(1..=1_048_576))]
    value_bytes: u64,
    /// Block cache.
    #[arg(long, value_name = "SIZE", value_parser = parse_positive_bytes, default_value = "64MiB")]
    cache: u64,
    /// Files and memtables.
    #[arg(long, value_name = "SIZE", value_parser = parse_positive_bytes, default_value = "8MiB")]
    file_size: u64,
    /// Bytes of records that a scan yields.
    #[arg(long, value_name = "SIZE", value_parser = parse_positive_bytes, default_value = "16KiB")]
    scan_bytes: u64,
    /// Rounds over all trees; the medians count.
    #[arg(long, value_name = "COUNT", default_value_t = 3, value_parser = count_within::<u32>(1..=1000))]
    rounds: u32,
    /// Measured time of each run, in whole seconds; it warms up for as long before that.
    #[arg(long, value_name = "SECONDS", default_value_t = 3, value_parser = count_within::<u32>(1..=86_400))]
    seconds: u32,
    /// Seed of the keys.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Print everything as JSON.
    #[arg(long)]
    json: bool,
}

pub fn run(arguments: &RocksdbArguments, context: &Context) -> anyhow::Result<()> {
    let profile = results::read_profile(&arguments.profile)?;
    let options = GridOptions {
        directory: arguments.directory.clone(),
        fanouts: arguments.fanouts.clone(),
        block_bytes: arguments.block_sizes.clone(),
        threads: arguments.threads.clone(),
        records: arguments.records,
        key_bytes: arguments.key_bytes,
        value_bytes: arguments.value_bytes,
        cache_bytes: arguments.cache,
        file_bytes: arguments.file_size,
        scan_bytes: arguments.scan_bytes,
        rounds: arguments.rounds,
        seconds: arguments.seconds,
        seed: arguments.seed,
    };
    let result = grid(&options, &profile, context, context.interrupt.watch()?)?;
    if arguments.json {
        print_json(&result)?;
    } else {
        print(&result.table())?;
    }
    if result.interrupted { Err(Error::Interrupted.into()) } else { Ok(()) }
}
