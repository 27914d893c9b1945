//! `flashgrain study nvme`.

use std::path::PathBuf;

use clap::Args;
use flashgrain_bench::processor::ProcessorCosts;
use flashgrain_bench::study::nvme::{InterfaceCosts, NvmeResult, Options, Question, nvme};
use flashgrain_cost::budget::Prices;

use super::distinct::distinct;
use super::output::OutputOptions;
use crate::arguments::PRICES;
use crate::output::Context;
use crate::units::{count_within, parse_positive_bytes, parse_seconds, size_within};

/// Rates of arrays of NVMe drives, their price in processor time, and the store on them: the paper of Haas
/// and Leis.
///
/// On a directory the study has the questions that one drive can answer.
#[derive(Debug, Args)]
pub struct NvmeArguments {
    /// Simulated drives, sim:PRESET or sim:FILE.toml, or a directory on a real one.
    #[arg(value_name = "TARGET", default_value = "sim:8xpm1733")]
    target: PathBuf,
    /// Only these of the questions.
    #[arg(long, value_name = "QUESTION,...", value_enum, value_delimiter = ',')]
    only: Vec<Question>,
    /// Requests to simulated drives for each point without a store; half of them do not count.
    #[arg(long, value_parser = count_within::<u64>(100..=1 << 40), default_value_t = 100_000)]
    requests: u64,
    /// Requests in flight, on all drives together.
    #[arg(long, value_parser = count_within::<u32>(8..=30_000), default_value_t = 3000)]
    in_flight: u32,
    /// Time for each point on a directory.
    #[arg(long, value_name = "TIME", value_parser = parse_seconds, default_value = "0.5")]
    seconds: f64,
    /// Size of the file in a directory.
    #[arg(long, value_name = "SIZE", value_parser = parse_positive_bytes, default_value = "256MiB")]
    file_size: u64,
    /// Memory of stores; their data are ten times as much, and up to forty times a quarter of it. 32 MiB on
    /// simulated drives, 8 MiB on directories.
    #[arg(long, value_name = "SIZE", value_parser = size_within::<u64>(CACHE_BYTES_MIN..=1 << 40))]
    cache: Option<u64>,
    /// Operations of a store that count for each point: 50,000 on simulated drives, 20,000 on directories.
    #[arg(long, value_parser = count_within::<u64>(10..=1 << 40))]
    operations: Option<u64>,
    /// Operations of a store under way: 1,024 on simulated drives, 256 on directories.
    #[arg(long, value_parser = count_within::<u32>(2..=65_536))]
    tasks: Option<u32>,
    /// Workers of a store, unless their number is the question: 16 on simulated drives, one for each core on
    /// directories.
    #[arg(long, value_parser = count_within::<u32>(1..=1024))]
    workers: Option<u32>,
    /// Times that simulated processors take, in nanoseconds: LOOKUP,WRITE,WAIT.
    #[arg(long, value_name = "TIMES", value_parser = parse_costs, default_value = "700,2300,600")]
    cpu_costs: ProcessorCosts,
    /// Times of a simulated request by each interface, in nanoseconds: PREAD,LIBAIO,IO_URING,POLLED,BYPASS.
    #[arg(long, value_name = "TIMES", default_value_t)]
    interface_costs: InterfaceCosts,
    /// Time of sending a message to another thread, and as much for receiving it, in nanoseconds.
    #[arg(long, value_name = "TIME", default_value_t = 100)]
    message_ns: u64,
    /// Time of a switch between threads by the kernel, in nanoseconds.
    #[arg(long, value_name = "TIME", default_value_t = 2000)]
    switch_ns: u64,
    /// Prices in dollars, for memory or drives: BUDGET,SERVER,MEMORY_GB,DRIVE_TB.
    #[arg(long, value_name = "PRICES", default_value = PRICES)]
    prices: Prices,
    /// Seed of everything random.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    #[command(flatten)]
    output: OutputOptions,
}

/// Smallest memory that a store works in, and four times that.
const CACHE_BYTES_MIN: u64 = 4 << 20;

/// Size of the questions to stores.
struct Size {
    workers: u32,
    cache_bytes: u64,
    operations: u64,
    tasks: u32,
}

impl Size {
    /// Workers are few enough for processors to be the limit at times.
    const SIMULATED: Self = Self { workers: 16, cache_bytes: 32 << 20, operations: 50_000, tasks: 1024 };

    /// All questions end within two minutes on a solid-state drive.
    fn of_directory() -> Self {
        let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get() as u32);
        Self { workers: cores, cache_bytes: 8 << 20, operations: 20_000, tasks: 256 }
    }
}

fn parse_costs(text: &str) -> Result<ProcessorCosts, String> {
    let numbers: Result<Vec<u64>, _> = text.split(',').map(|part| part.trim().parse()).collect();
    match numbers.as_deref() {
        Ok(&[look_up_ns, write_ns, wait_ns]) => {
            Ok(ProcessorCosts { look_up_ns, write_ns, wait_ns, ..ProcessorCosts::NONE })
        }
        _ => Err("expected times in nanoseconds: LOOKUP,WRITE,WAIT".into()),
    }
}

pub fn run(arguments: &NvmeArguments, context: &Context) -> anyhow::Result<()> {
    arguments.output.check()?;
    let result = measure(arguments, context)?;
    arguments.output.show(&result, result.sheet(), context)
}

pub fn measure(arguments: &NvmeArguments, context: &Context) -> anyhow::Result<NvmeResult> {
    let interrupt = context.interrupt.watch()?;
    let size = if arguments.target.is_dir() { Size::of_directory() } else { Size::SIMULATED };
    let options = Options {
        target: arguments.target.clone(),
        questions: distinct(&arguments.only),
        requests: arguments.requests,
        in_flight: arguments.in_flight,
        seconds: arguments.seconds,
        file_bytes: arguments.file_size,
        cache_bytes: arguments.cache.unwrap_or(size.cache_bytes),
        operations: arguments.operations.unwrap_or(size.operations),
        tasks: arguments.tasks.unwrap_or(size.tasks),
        workers: arguments.workers.unwrap_or(size.workers),
        costs: arguments.cpu_costs,
        interfaces: arguments.interface_costs,
        message_ns: arguments.message_ns,
        switch_ns: arguments.switch_ns,
        prices: arguments.prices,
        seed: arguments.seed,
    };
    nvme(&options, context, interrupt)
}
