//! `flashgrain study hidden-parameters`.

use clap::Args;
use flashgrain_bench::study::hidden_parameters::{
    HiddenResult, Options, ServerCosts, SqliteCosts, Technique, hidden_parameters,
};

use super::output::OutputOptions;
use crate::output::Context;
use crate::units::{count_within, parse_share};

/// SQLite and MariaDB in layouts that follow a drive: hot locations, aligned stripes and records within flash
/// pages, as in the paper on hidden parameters of SSDs.
///
/// A database is made for each point of its figures, on a simulated drive in virtual time.
#[derive(Debug, Args)]
pub struct HiddenParametersArguments {
    /// Only these of the techniques.
    #[arg(long, value_name = "TECHNIQUE,...", value_enum, value_delimiter = ',')]
    only: Vec<Technique>,
    /// The simulated drive with hot locations.
    #[arg(long, value_name = "DRIVE", default_value = "sim:960evo")]
    hot_drive: String,
    /// The simulated drive for the log.
    #[arg(long, value_name = "DRIVE", default_value = "sim:xg5")]
    log_drive: String,
    /// Divides the paper's 10 million pairs, and its 50,000 inserts and selects an iteration.
    #[arg(long, value_parser = count_within::<u64>(1..=50_000), default_value_t = 50)]
    divisor: u64,
    /// Iterations of each measurement; the paper has 100, and 20 for the log.
    #[arg(long, value_parser = count_within::<u32>(1..=1000), default_value_t = 10)]
    iterations: u32,
    /// SQLite's cache as a share of the initial database.
    #[arg(long, value_name = "SHARE", value_parser = parse_share, default_value = "10%")]
    cache: f64,
    /// Inserts in a transaction; no more than an iteration has.
    #[arg(
        long,
        value_name = "N,...",
        value_delimiter = ',',
        value_parser = count_within::<u64>(1..=50_000),
        default_value = "1,50,500,50000"
    )]
    transactions: Vec<u64>,
    /// Times that simulated processors take, in nanoseconds: SELECT,INSERT,PAGE.
    // SQLite 3.53 on the machine on which this was written: 200,000 pairs in its cache, and with a cache of a
    // tenth and all pages in the system's.
    #[arg(long, value_name = "TIMES", default_value = "2900,2700,13900")]
    cpu_costs: SqliteCosts,
    /// Times that simulated processors take with MariaDB, in nanoseconds: SELECT,CHANGE,PAGE.
    // MariaDB 10.11 and sysbench on the machine on which this was written, one client, a socket, pages of 64
    // KiB: a table in its pool, and one of three times the pool in a file system in memory.
    #[arg(long, value_name = "TIMES", default_value = "22000,50000,39000")]
    server_costs: ServerCosts,
    /// Seed of everything random.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    #[command(flatten)]
    output: OutputOptions,
}

pub fn run(arguments: &HiddenParametersArguments, context: &Context) -> anyhow::Result<()> {
    arguments.output.check()?;
    let result = measure(arguments, context)?;
    arguments.output.show(&result, result.sheet(), context)
}

pub fn measure(arguments: &HiddenParametersArguments, context: &Context) -> anyhow::Result<HiddenResult> {
    let interrupt = context.interrupt.watch()?;
    let options = Options {
        techniques: arguments.only.clone(),
        hot_target: arguments.hot_drive.clone(),
        log_target: arguments.log_drive.clone(),
        divisor: arguments.divisor,
        iterations: arguments.iterations,
        cache_share: arguments.cache,
        inserts_per_transaction: arguments.transactions.clone(),
        costs: arguments.cpu_costs,
        server_costs: arguments.server_costs,
        seed: arguments.seed,
    };
    hidden_parameters(&options, context, interrupt)
}
