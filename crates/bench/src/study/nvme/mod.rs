//! "What Modern NVMe Storage Can Do, And How To Exploit It" (Haas, Leis; VLDB 2023): the rates of drives,
//! their price in processor time, and a store on them.
//!
//! Each [`Question`] is a figure of the paper, or a number in its text, and has a file of its own, which
//! measures (`ask`) and shows (`Found::part`).

mod ablation;
mod backends;
mod data_size;
mod drives;
mod engine;
mod interface;
mod interfaces;
mod io_models;
mod memory_or_ssd;
mod outstanding;
mod page_size;
mod paper;
mod processor_time;
mod raw;
mod shown;
mod task_switch;
mod tpcc;

use std::cell::OnceCell;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::atomic::AtomicBool;

use clap::ValueEnum;
use flashgrain_cost::budget::Prices;
use flashgrain_profile::Error;
use flashgrain_report::unit;
use flashgrain_ssdsim::SimConfig;
use serde::Serialize;

use super::Sheet;
use super::comparison::{Comparison, on_drive};
use super::sheet::Part;
use crate::listener::Listener;
use crate::measure::RawFile;
use crate::processor::ProcessorCosts;

pub use interface::InterfaceCosts;
pub use paper::ABOUT;

/// Bytes of a request unless its size is the question.
const PAGE_BYTES: f64 = 4096.0;

/// Each operation under way is followed by some others that count, or rates say nothing.
const OPERATIONS_EACH_MIN: u64 = 16;

/// Questions of the paper.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Question {
    /// Requests per second over drives, and by the share of writes: Figure 2.
    Drives,
    /// Requests per second, bandwidth and latency over page sizes: Figure 3.
    PageSize,
    /// Requests per second over requests in flight: Figure 4.
    Outstanding,
    /// Interfaces and threads, and the cycles of a request: Figures 5 and 6.
    Interfaces,
    /// Models of I/O, from threads to drives: Figures 10 and 11.
    IoModels,
    /// The store by switches: Figure 13.
    Ablation,
    /// Data from in memory to forty times the memory: Figure 14.
    DataSize,
    /// Interfaces in the store: Figure 15.
    Backends,
    /// Processor time by component: Figure 16.
    Processor,
    /// Cycles of a switch between tasks, on this machine: section 3.2.
    TaskSwitch,
    /// TPC-C and look-ups in memory, on a processor of this machine: section 4.4.
    Tpcc,
    /// Memory or drives for the same money: section 1.
    MemoryOrSsd,
}

/// Questions and settings.
#[derive(Clone, Debug)]
pub struct Options {
    /// Simulated drives, or a directory.
    pub target: PathBuf,
    /// The questions, or all of them if there are none.
    pub questions: Vec<Question>,
    /// Requests to simulated drives for each point, those included that do not count.
    pub requests: u64,
    /// Requests in flight on all drives.
    pub in_flight: u32,
    /// Time for each point on a directory.
    pub seconds: f64,
    /// Size of the file in a directory.
    pub file_bytes: u64,
    /// Memory of stores.
    pub cache_bytes: u64,
    /// Operations of stores that count for each point.
    pub operations: u64,
    /// Operations of a store under way.
    pub tasks: u32,
    /// Workers of a store, unless they are the question.
    pub workers: u32,
    /// Processor time of simulated workers; requests take the time of their interface.
    pub costs: ProcessorCosts,
    /// Processor time of simulated requests.
    pub interfaces: InterfaceCosts,
    /// Processor time of sending a message to another thread, in nanoseconds.
    pub message_ns: u64,
    /// Processor time of a switch between threads by the kernel, in nanoseconds.
    pub switch_ns: u64,
    /// For memory or drives.
    pub prices: Prices,
    /// Seed of everything random.
    pub seed: u64,
}

impl Options {
    /// The simulated drives, if the target is one.
    fn simulated(&self) -> anyhow::Result<Option<SimConfig>> {
        let name = self.target.to_str().filter(|name| SimConfig::is_name(name));
        Ok(name.map(SimConfig::named).transpose()?)
    }

    /// Requests in flight on each drive of a set of eight, as the paper's.
    fn in_flight_each(&self) -> u32 {
        const DRIVES: u32 = 8;
        (self.in_flight / DRIVES).max(1)
    }
}

/// The study as it goes on.
struct Study<'a> {
    options: &'a Options,
    listener: &'a dyn Listener,
    interrupt: &'a AtomicBool,
    /// The file of requests without a store, which the first question on a directory makes.
    file: OnceCell<Rc<RawFile>>,
}

impl Study<'_> {
    /// A file on the drive of the directory that is the target.
    fn file(&self) -> Result<Rc<RawFile>, Error> {
        if let Some(file) = self.file.get() {
            return Ok(Rc::clone(file));
        }
        let file = Rc::new(RawFile::new(&self.options.target, self.options.file_bytes, self.interrupt)?);
        Ok(Rc::clone(self.file.get_or_init(|| file)))
    }

    fn note(&self, text: &str) {
        self.listener.note(text);
    }
}

/// The answer to a question.
#[derive(Debug, Serialize)]
#[serde(tag = "question", rename_all = "kebab-case")]
enum Answer {
    Drives(drives::Found),
    PageSize(page_size::Found),
    Outstanding(outstanding::Found),
    Interfaces(interfaces::Found),
    IoModels(io_models::Found),
    Ablation(ablation::Found),
    DataSize(data_size::Found),
    Backends(backends::Found),
    Processor(processor_time::Found),
    TaskSwitch(task_switch::Found),
    Tpcc(tpcc::Found),
    MemoryOrSsd(memory_or_ssd::Found),
}

impl Answer {
    fn to(question: Question, study: &Study<'_>) -> anyhow::Result<Self> {
        Ok(match question {
            Question::Drives => Self::Drives(drives::ask(study)?),
            Question::PageSize => Self::PageSize(page_size::ask(study)?),
            Question::Outstanding => Self::Outstanding(outstanding::ask(study)?),
            Question::Interfaces => Self::Interfaces(interfaces::ask(study)?),
            Question::IoModels => Self::IoModels(io_models::ask(study)?),
            Question::Ablation => Self::Ablation(ablation::ask(study)?),
            Question::DataSize => Self::DataSize(data_size::ask(study)?),
            Question::Backends => Self::Backends(backends::ask(study)?),
            Question::Processor => Self::Processor(processor_time::ask(study)?),
            Question::TaskSwitch => Self::TaskSwitch(task_switch::ask(study)?),
            Question::Tpcc => Self::Tpcc(tpcc::ask(study)?),
            Question::MemoryOrSsd => Self::MemoryOrSsd(memory_or_ssd::ask(study)?),
        })
    }

    fn part(&self) -> Part {
        match self {
            Self::Drives(found) => found.part(),
            Self::PageSize(found) => found.part(),
            Self::Outstanding(found) => found.part(),
            Self::Interfaces(found) => found.part(),
            Self::IoModels(found) => found.part(),
            Self::Ablation(found) => found.part(),
            Self::DataSize(found) => found.part(),
            Self::Backends(found) => found.part(),
            Self::Processor(found) => found.part(),
            Self::TaskSwitch(found) => found.part(),
            Self::Tpcc(found) => found.part(),
            Self::MemoryOrSsd(found) => found.part(),
        }
    }
}

/// The answer of a kind among all of them.
macro_rules! found {
    ($answers:expr, $kind:ident) => {
        $answers.iter().find_map(|answer| match answer {
            Answer::$kind(found) => Some(found),
            _ => None,
        })
    };
}

/// The paper's numbers and those of these answers.
fn numbers(answers: &[Answer]) -> Vec<Comparison> {
    [
        drives::Found::numbers(found!(answers, Drives)),
        page_size::Found::numbers(found!(answers, PageSize)),
        outstanding::Found::numbers(found!(answers, Outstanding)),
        interfaces::Found::numbers(found!(answers, Interfaces)),
        ablation::Found::numbers(found!(answers, Ablation)),
        data_size::Found::numbers(found!(answers, DataSize)),
        task_switch::Found::numbers(found!(answers, TaskSwitch)),
        tpcc::Found::numbers(found!(answers, Tpcc)),
        memory_or_ssd::Found::numbers(found!(answers, MemoryOrSsd)),
    ]
    .concat()
}

/// The paper's numbers alone.
pub fn published() -> Vec<Comparison> {
    numbers(&[])
}

/// All answers.
#[derive(Debug, Serialize)]
pub struct NvmeResult {
    flashgrain_version: &'static str,
    target: String,
    requests: u64,
    in_flight: u32,
    seconds: f64,
    file_bytes: u64,
    cache_bytes: u64,
    operations: u64,
    tasks: u32,
    workers: u32,
    costs: ProcessorCosts,
    interfaces: InterfaceCosts,
    message_ns: u64,
    switch_ns: u64,
    seed: u64,
    is_simulated: bool,
    answers: Vec<Answer>,
}

/// Asks all questions.
///
/// # Errors
/// Those of the target and of stores on it; [`flashgrain_profile::Error::Interrupted`].
pub fn nvme(
    options: &Options,
    listener: &dyn Listener,
    interrupt: &AtomicBool,
) -> anyhow::Result<NvmeResult> {
    let is_simulated = options.simulated()?.is_some();
    if !is_simulated && !options.target.is_dir() {
        let target = options.target.display();
        let wanted = "name one on the drive, or simulated drives such as sim:8xpm1733";
        return Err(Error::Argument(format!("{target}: not a directory: {wanted}")).into());
    }
    let study = Study { options, listener, interrupt, file: OnceCell::new() };
    let all = Question::value_variants();
    let questions = if options.questions.is_empty() { all } else { &options.questions };
    let answers =
        questions.iter().map(|question| Answer::to(*question, &study)).collect::<anyhow::Result<_>>()?;
    Ok(NvmeResult {
        flashgrain_version: env!("CARGO_PKG_VERSION"),
        target: options.target.display().to_string(),
        requests: options.requests,
        in_flight: options.in_flight,
        seconds: options.seconds,
        file_bytes: options.file_bytes,
        cache_bytes: options.cache_bytes,
        operations: options.operations,
        tasks: options.tasks,
        workers: options.workers,
        costs: options.costs,
        interfaces: options.interfaces,
        message_ns: options.message_ns,
        switch_ns: options.switch_ns,
        seed: options.seed,
        is_simulated,
        answers,
    })
}

impl NvmeResult {
    /// The result for people.
    pub fn sheet(&self) -> Sheet {
        Sheet {
            title: "NVMe drives, and a store on them".into(),
            conditions: self.conditions(),
            parts: self.answers.iter().map(Answer::part).collect(),
            comparisons: self.comparisons(),
        }
    }

    fn comparisons(&self) -> Vec<Comparison> {
        if !self.is_simulated {
            return Vec::new();
        }
        on_drive(numbers(&self.answers), &self.target, paper::DRIVES)
    }

    fn conditions(&self) -> Vec<String> {
        let mut conditions = vec![format!("On {}; seed {}.", self.target, self.seed)];
        if self.is_simulated {
            let ProcessorCosts { look_up_ns, write_ns, wait_ns, .. } = self.costs;
            conditions.push(format!(
                "Times are virtual; {} requests for each point without a store, half of them before those that count.",
                unit::count(self.requests as f64)
            ));
            conditions.push(format!(
                "Simulated processors: a look-up in memory takes {look_up_ns} ns, a write {write_ns} ns, each wait {wait_ns} ns more (--cpu-costs); a request by pread, libaio, io_uring, io_uring polled, kernel bypass {} ns (--interface-costs, from one thread's rates in the paper); a switch between threads by the kernel {} ns (--switch-ns, 5,000 of the paper's cycles: it says several thousand).",
                self.interfaces, self.switch_ns
            ));
        } else {
            conditions.push(format!(
                "Times are measured, through the file system: {} for each point without a store, on a file of {}. The paper's numbers are of eight drives, and are not compared.",
                unit::seconds(self.seconds),
                unit::bytes(self.file_bytes as f64)
            ));
        }
        conditions.push(format!(
            "Stores: a B+-tree of records of 776 bytes, nodes of 4 KiB, {} of memory, data of ten times that unless it is the question; {} workers, {} operations under way, nothing waits for the log; {} operations for each point, after half as many. The paper has 16 GB of memory, 160 GB of data, records of 128 bytes and no log at all.",
            unit::bytes(self.cache_bytes as f64),
            self.workers,
            self.tasks,
            unit::count(self.operations as f64)
        ));
        if self.operations < OPERATIONS_EACH_MIN * u64::from(self.tasks) {
            conditions.push(format!(
                "Too small to show rates of stores: {} operations for {} under way (more --operations).",
                self.operations, self.tasks
            ));
        }
        conditions.push(
            "The paper's figures stand in brackets, with ours over the paper's, where its text has them."
                .into(),
        );
        conditions
    }
}
