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

use pace::Pace;
pub use tally::{Kind, Second, Tally};

use crate::engine::{Engine, Failure, Session};
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

/// An operation that has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Done {
    /// What it was.
    pub kind: &'static str,
    /// How many it counts for: look-ups of a batch are many.
    pub count: u64,
    /// Records that were read or written by it, where that is known.
    pub records: u64,
    /// How often it lost to another one and was tried again.
    pub conflicts: u64,
    /// What its user has asked for and has written.
    pub user: UserBytes,
}

/// Bytes of keys and values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UserBytes {
    /// Of the records that a user got.
    pub read: u64,
    /// Of those that he wrote, and keys that he removed.
    pub written: u64,
}

impl std::ops::AddAssign for UserBytes {
    fn add_assign(&mut self, other: Self) {
        self.read += other.read;
        self.written += other.written;
    }
}

/// What one client does, again and again, with its session.
pub trait Client {
    /// Does the next operation.
    ///
    /// # Errors
    /// Those of the engine, and results that cannot be.
    fn step(&mut self) -> anyhow::Result<Done>;

    /// As [`Session::wait_until`].
    ///
    /// # Errors
    /// Those of the engine.
    fn wait_until(&mut self, until: Duration) -> Result<(), Failure>;
}

/// Makes the client of this number.
pub type MakeClient =
    Arc<dyn for<'s> Fn(usize, &'s mut dyn Session) -> anyhow::Result<Box<dyn Client + 's>> + Send + Sync>;

/// When clients work, if not always: at the beginning of each period.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Burst {
    /// From the beginning of one to that of the next.
    pub period: Duration,
    /// How long it lasts.
    pub length: Duration,
}

/// Clients, and when they work.
#[derive(Clone)]
pub struct Clients {
    /// Makes each.
    pub make: MakeClient,
    /// The bursts of the client of this number; `None`: it works all the time.
    pub burst: Arc<dyn Fn(usize) -> Option<Burst> + Send + Sync>,
}

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
    clients: Clients,
    directory: &Path,
    interrupt: &AtomicBool,
) -> anyhow::Result<Driven> {
    let now = clock::now();
    let begin = now + Nanos::from(span.warmup);
    let end = begin + Nanos::from(span.length);
    let shared = Arc::new(Shared { begin, end, stop: AtomicBool::new(false), tally: Mutex::default() });
    let (own, pacing) = (Arc::clone(&shared), span.clone());
    let job = Arc::new(move |number: usize, session: &mut dyn Session| {
        let mut pace = Pace::new(&pacing, (clients.burst)(number), now, number);
        let tally =
            (clients.make)(number, session).and_then(|mut client| work(&own, &mut pace, &mut *client));
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

/// One client until the end. In a closed loop the clock is read once an operation: with data in memory more would show.
fn work(shared: &Shared, pace: &mut Pace, client: &mut dyn Client) -> anyhow::Result<Tally> {
    let mut tally = Tally::new(shared.begin);
    let mut now = clock::now();
    while !shared.stop.load(Ordering::Relaxed) {
        let wanted = pace.next_start(now);
        if wanted >= shared.end {
            break;
        }
        if wanted > now {
            client.wait_until(wanted.into())?;
        }
        let done = client.step()?;
        now = clock::now();
        if now >= shared.end {
            break;
        }
        if wanted >= shared.begin {
            tally.count(done, wanted, now);
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
