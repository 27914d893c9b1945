//! `flashgrain study xpoint`.

use std::path::PathBuf;

use clap::Args;
use flashgrain_bench::processor::ProcessorCosts;
use flashgrain_bench::study::xpoint::{Options, Question, XpointResult, xpoint};

use super::distinct::distinct;
use super::output::OutputOptions;
use crate::output::Context;
use crate::units::{count_within, parse_seconds};

/// Throttling, level 0, parallelism and the log on flash and on 3D XPoint: the paper on RocksDB and 3D
/// XPoint.
///
/// A store is filled for each point of its figures. The paper's changes to RocksDB are measured on the last
/// target only.
#[derive(Debug, Args)]
pub struct XpointArguments {
    /// Simulated drives, sim:PRESET or sim:FILE.toml, or directories on real ones.
    #[arg(value_name = "TARGET", default_values = ["sim:intel-530", "sim:intel-750", "sim:900p"])]
    targets: Vec<PathBuf>,
    /// Only these of the questions.
    #[arg(long, value_name = "QUESTION,...", value_enum, value_delimiter = ',')]
    only: Vec<Question>,
    /// Records of 1,016 bytes.
    #[arg(long, value_parser = count_within::<u64>(1000..=1 << 40), default_value_t = 131_072)]
    records: u64,
    /// Time that counts for each point; 1/256 of it passes.
    #[arg(long, value_name = "TIME", value_parser = parse_seconds, default_value = "150")]
    seconds: f64,
    /// Times that simulated processors take, in nanoseconds: LOOKUP,WRITE,WAIT,REQUEST, and if they are
    /// given SEARCH for each table that a look-up searches, KIB for each KiB that is merged and NODE for each
    /// node of a memtable that a write is compared with.
    // The first two of these are RocksDB 7.8's on the machine on which this was written: look-ups over ten
    // files of level 0 against two, and a compaction of the ten; 16 + 1,000 bytes, Snappy, files in the page
    // cache.
    #[arg(long, value_name = "TIMES", default_value = "4000,8000,500,3000,4650,2100")]
    cpu_costs: ProcessorCosts,
    /// Seed of everything random.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    #[command(flatten)]
    output: OutputOptions,
}

pub fn run(arguments: &XpointArguments, context: &Context) -> anyhow::Result<()> {
    arguments.output.check()?;
    let result = measure(arguments, context)?;
    arguments.output.show(&result, result.sheet(), context)
}

pub fn measure(arguments: &XpointArguments, context: &Context) -> anyhow::Result<XpointResult> {
    let interrupt = context.interrupt.watch()?;
    let options = Options {
        targets: distinct(&arguments.targets),
        questions: distinct(&arguments.only),
        records: arguments.records,
        seconds: arguments.seconds,
        costs: arguments.cpu_costs,
        seed: arguments.seed,
    };
    xpoint(&options, context, interrupt)
}
