//! Clients that work for a while, and what is counted meanwhile.
//!
//! In a closed loop each begins its next operation when the last one has ended. In an open loop operations begin at random times of a given rate, and their latency counts from the moment at which they
//! should have begun: a store that stalls cannot hide the operations that would have come meanwhile ("coordinated omission").

mod pace;
mod tally;

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use flashgrain_device::{Nanos, clock, process_cpu};

pub use pace::Pace;
pub use tally::{Second, Tally};

use crate::engine::{Engine, Session};
use crate::measure::{BlockCounters, BlockDevice, space_bytes};

/// How long, and how fast.
#[derive(Clone, Debug, PartialEq)]
pub struct Span {
    /// Clients at a time.
    pub clients: usize,
    /// Before anything is counted.
    pub warmup: Duration,
    /// What is counted.
    pub length: Duration,
    /// Operations per second of an open loop; a closed loop if there is none.
    pub rate_per_s: Option<f64>,
    /// Of everything random.
    pub seed: u64,
}

/// What a client does, again and again; which kind of operation it was, and how many it counts for.
pub type Step<'a> = Box<dyn FnMut(&mut dyn Session) -> anyhow::Result<(&'static str, u64)> + Send + 'a>;

/// Makes what the client of this number does, and when it works if not always.
pub type MakeStep = Arc<dyn Fn(usize) -> (Step<'static>, Option<crate::workload::Burst>) + Send + Sync>;

/// What was counted.
#[derive(Debug, Default)]
pub struct Driven {
    /// The counted span.
    pub elapsed: Duration,
    /// Operations and their latencies.
    pub tally: Tally,
    /// Processor time of this process, user and system.
    pub cpu: Duration,
    /// What reached the block device.
    pub block: Option<BlockCounters>,
    /// Bytes on the disk, second by second.
    pub space: Vec<u64>,
    /// It was ended early.
    pub is_interrupted: bool,
}

/// Between two looks at whether it is to end early.
const TICK: Duration = Duration::from_millis(100);

/// What the clients share.
struct Shared {
    begin: Nanos,
    end: Nanos,
    stop: AtomicBool,
    tally: Mutex<Tally>,
}

/// Runs the clients; `directory` is where the engine keeps its files.
///
/// # Errors
/// The first that a client has met.
pub fn drive(
    engine: &dyn Engine,
    span: &Span,
    make: MakeStep,
    directory: &Path,
    interrupt: &AtomicBool,
) -> anyhow::Result<Driven> {
    let now = clock::now();
    let begin = now + Nanos::from(span.warmup);
    let end = begin + Nanos::from(span.length);
    let shared = Arc::new(Shared { begin, end, stop: AtomicBool::new(false), tally: Mutex::default() });
    let (own, pacing) = (Arc::clone(&shared), span.clone());
    let job = Arc::new(move |client: usize, session: &mut dyn Session| {
        let (mut step, burst) = make(client);
        let mut pace = Pace::new(&pacing, burst, now, client);
        let tally = work(&own, &mut pace, &mut step, session);
        if tally.is_err() {
            // Nobody works on for a run that is lost.
            own.stop.store(true, Ordering::Relaxed);
        }
        let mut sum = own.tally.lock().unwrap_or_else(PoisonError::into_inner);
        sum.add(&tally?);
        Ok(())
    });
    std::thread::scope(|scope| {
        let clients = scope.spawn(|| engine.run(span.clients, job));
        let mut driven = watch(&shared, directory, interrupt);
        let result = clients.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        result?;
        driven.tally = std::mem::take(&mut shared.tally.lock().unwrap_or_else(PoisonError::into_inner));
        Ok(driven)
    })
}

/// One client until the end.
fn work(
    shared: &Shared,
    pace: &mut Pace,
    step: &mut Step<'_>,
    session: &mut dyn Session,
) -> anyhow::Result<Tally> {
    let mut tally = Tally::new(shared.begin);
    while !shared.stop.load(Ordering::Relaxed) {
        let wanted = pace.next_start();
        if wanted > clock::now() {
            if wanted >= shared.end {
                break;
            }
            session.wait_until(wanted.into())?;
        }
        let began = if pace.is_open() { wanted } else { clock::now() };
        let (operation, count) = step(session)?;
        let ended = clock::now();
        if ended >= shared.end {
            break;
        }
        if began >= shared.begin {
            tally.count(operation, count, began, ended);
        }
    }
    Ok(tally)
}

/// Looks at the machine at the beginning and the end of what is counted.
fn watch(shared: &Shared, directory: &Path, interrupt: &AtomicBool) -> Driven {
    let block = BlockDevice::below(directory);
    let counters = || block.as_ref().and_then(BlockDevice::read);
    let is_over = || interrupt.load(Ordering::Relaxed) || shared.stop.load(Ordering::Relaxed);
    let wait = |until: Nanos| {
        while clock::now() < until && !is_over() {
            clock::sleep_until(until.min(clock::now() + Nanos::from(TICK)));
        }
    };
    wait(shared.begin);
    let (began, cpu, before) = (clock::now(), process_cpu(), counters());
    let mut space = Vec::new();
    let mut next = shared.begin;
    while next < shared.end && !is_over() {
        space.push(space_bytes(directory).unwrap_or(0));
        next += Nanos::from(Duration::from_secs(1));
        wait(next.min(shared.end));
    }
    let is_interrupted = is_over();
    shared.stop.store(true, Ordering::Relaxed);
    Driven {
        elapsed: clock::now().since(began).into(),
        tally: Tally::default(),
        cpu: process_cpu().since(cpu).into(),
        block: counters().zip(before).map(|(after, before)| after.since(&before)),
        space,
        is_interrupted,
    }
}
