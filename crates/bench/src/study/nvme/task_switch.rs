//! Switches between tasks, and between threads of the kernel: section 3.2.

use std::hint::black_box;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use anyhow::Context as _;
use corosensei::{Coroutine, CoroutineResult};
use flashgrain_device::{Nanos, pin_thread, process_cpu, thread_cpu};
use flashgrain_report::page::{Cell, Kind, Table};
use flashgrain_report::unit;
use serde::Serialize;

use super::{Study, paper};
use crate::measure::processor_hz;
use crate::study::comparison::{Comparison, Measure};
use crate::study::sheet::Part;

/// Switches of tasks, and of threads, in each round; the shortest of the rounds counts.
const TASK_SWITCHES: u64 = 2_000_000;
const THREAD_SWITCHES: u64 = 20_000;
const ROUNDS: usize = 5;

/// See the module.
#[derive(Debug, Serialize)]
pub(super) struct Found {
    /// Processor time from one task to the next.
    task_ns: f64,
    /// The same between two threads on one processor: one wakes the other and sleeps.
    thread_ns: f64,
    processor_hz: Option<f64>,
}

pub(super) fn ask(study: &Study<'_>) -> anyhow::Result<Found> {
    study.note("switches of tasks and of threads, on this machine");
    let shortest = |round: fn() -> anyhow::Result<f64>| {
        let mut found = f64::INFINITY;
        for _ in 0..ROUNDS {
            found = found.min(round()?);
        }
        anyhow::Ok(found)
    };
    Ok(Found {
        task_ns: shortest(|| Ok(tasks()))?,
        thread_ns: shortest(threads)?,
        processor_hz: processor_hz(),
    })
}

/// The switch of the store's own tasks: to a coroutine of the same library, and back.
fn tasks() -> f64 {
    let mut coroutine = Coroutine::<(), (), ()>::new(|yielder, ()| {
        loop {
            yielder.suspend(());
            if black_box(false) {
                break;
            }
        }
    });
    let began = thread_cpu();
    for _ in 0..TASK_SWITCHES / 2 {
        if let CoroutineResult::Return(()) = coroutine.resume(()) {
            break;
        }
    }
    ns_each(thread_cpu().since(began), TASK_SWITCHES)
}

/// Two threads hand a token to each other, on one processor.
fn threads() -> anyhow::Result<f64> {
    let (to_other, from_first) = sync_channel(1);
    let (to_first, from_other) = sync_channel(1);
    // The receiver outlives its thread: the last token has no reader.
    let pass = |from: Receiver<()>, to: SyncSender<()>| {
        pin_thread(0).context("keep a thread on a processor")?;
        for _ in 0..THREAD_SWITCHES / 2 {
            from.recv()?;
            // The last token may find no reader.
            if to.send(()).is_err() {
                break;
            }
        }
        anyhow::Ok(from)
    };
    to_other.send(())?;
    let began = process_cpu();
    std::thread::scope(|scope| {
        let other = scope.spawn(move || pass(from_first, to_first));
        let first = scope.spawn(move || pass(from_other, to_other));
        let join = |thread: std::thread::ScopedJoinHandle<'_, anyhow::Result<Receiver<()>>>| {
            thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        };
        let results = [join(other), join(first)];
        results.into_iter().collect::<anyhow::Result<Vec<_>>>()
    })?;
    Ok(ns_each(process_cpu().since(began), THREAD_SWITCHES))
}

fn ns_each(time: Nanos, count: u64) -> f64 {
    time.0 as f64 / count as f64
}

impl Found {
    /// The paper's number and ours.
    pub fn numbers(found: Option<&Self>) -> Vec<Comparison> {
        let cycles = found.and_then(|found| Some(found.task_ns * 1e-9 * found.processor_hz?));
        let number =
            Comparison::new("§3.2", "cycles of a switch", Measure::Count, paper::SWITCH_CYCLES, cycles);
        vec![number.apart("it is measured on this machine's processor")]
    }

    pub fn part(&self) -> Part {
        let mut table = Table::new(&[
            ("switch", Kind::Label),
            ("time", Kind::Number),
            ("cycles", Kind::Number),
            ("the paper's cycles", Kind::Number),
        ]);
        let cycles = |ns: f64| {
            self.processor_hz.map_or_else(|| "–".into(), |hz| unit::count((ns * 1e-9 * hz).round()))
        };
        let row = |name: &str, ns: f64, papers: &str| {
            [name.to_owned(), unit::seconds(ns * 1e-9), cycles(ns), papers.to_owned()].map(Cell::from)
        };
        let papers = format!("about {}", paper::SWITCH_CYCLES);
        table.push(row("to a task, or back", self.task_ns, &papers));
        table.push(row("to another thread, which is woken", self.thread_ns, "several thousand"));
        let hz = self.processor_hz.map_or_else(
            || "The kernel does not say how fast the processor runs.".to_owned(),
            |hz| format!("Cycles at {:.2} GHz, the processor's rate at the moment.", hz * 1e-9),
        );
        Part {
            id: "task-switch",
            title: "Switches of tasks (section 3.2)".into(),
            text: vec![
                format!("Measured on this machine's processor, for any target; these figures are not virtual, and vary. {hz}"),
                "A task's switch is that of the coroutines that the store's tasks are, without its scheduler's queues; the paper's is Boost's fcontext.".into(),
            ],
            tables: vec![("Processor time, shortest of five rounds".into(), table)],
            figures: Vec::new(),
        }
    }
}
