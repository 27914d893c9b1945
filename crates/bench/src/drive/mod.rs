//! The one driver: clients that work for a while, with counters.
//!
//! In a closed loop each client begins its next operation when the last one has ended. In an open loop
//! operations begin at random times of a given rate, and their latency counts from the scheduled begin: a
//! store that stalls cannot hide the operations that would have come meanwhile ("coordinated omission").
//!
//! 1. The [`Host`] starts the clients, as tasks or threads, in the system's time or in a simulation's.
//! 2. [`drive`] lets the warm-up pass, takes the first counters, lets the counted span pass and takes the
//!    last ones.
//! 3. An operation counts if it ends in the span. Every one is counted; of every [`Span::sample_every`]-th
//!    the latency is taken.
//! 4. Clients end by themselves when the span is over, at a limit of operations or bytes, after an interrupt
//!    or when one of them has failed.

mod host;
mod pace;
mod tally;

use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use flashgrain_device::Nanos;

pub(crate) use host::pass_while;
pub use host::{EngineHost, Host};
use pace::Pace;
use tally::Timing;
pub(crate) use tally::record;
pub use tally::{Kind, Second, Tally, histogram};

use crate::engine::{Failure, Job, Session};

/// Number of clients, length, rate and sampling of a counted span.
#[derive(Clone, Debug, PartialEq)]
pub struct Span {
    /// Clients at a time.
    pub clients: usize,
    /// Time before anything is counted.
    pub warmup: Duration,
    /// The counted span, at most.
    pub length: Duration,
    /// It ends after this number of operations if that is earlier; so does the warm-up after a quarter as
    /// many.
    pub operations_max: Option<u64>,
    /// It ends after this number of bytes written if that is earlier.
    pub written_bytes_max: Option<u64>,
    /// Operations per second of an open loop; a closed loop if there is none.
    pub rate_per_s: Option<f64>,
    /// Of each client's operations, one in this number has its latency taken. With 1, all have, also second
    /// by second; in open loops all have in any case.
    pub sample_every: u32,
    /// Seed of everything random.
    pub seed: u64,
}

/// An operation that has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Done {
    /// Its name in results.
    pub kind: &'static str,
    /// How many it counts for: look-ups of a batch are many.
    pub count: u64,
    /// Records that were read or written by it, where that is known.
    pub records: u64,
    /// How often it lost to another one and was tried again.
    pub conflicts: u64,
    /// Bytes that its user has asked for and has written.
    pub user: UserBytes,
}

/// Bytes of keys and values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UserBytes {
    /// Bytes of the records that a user got.
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

/// A client, which does one operation after another with its session.
pub trait Client {
    /// Does the next operation.
    ///
    /// # Errors
    /// Those of the engine, and results that cannot be.
    fn step(&mut self) -> anyhow::Result<Done>;

    /// As [`Session::wait_until`].
    ///
    /// # Errors
    /// Errors of the engine.
    fn wait_until(&mut self, until: Duration) -> Result<(), Failure>;

    /// As [`Session::now`].
    fn now(&self) -> Nanos;
}

/// Makes the client of this number.
pub type MakeClient =
    Arc<dyn for<'s> Fn(usize, &'s mut dyn Session) -> anyhow::Result<Box<dyn Client + 's>> + Send + Sync>;

/// When clients work, if not always: at the beginning of each period.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Burst {
    /// From the beginning of one to that of the next.
    pub period: Duration,
    /// Length of a burst.
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

/// Counts of a run.
#[derive(Debug)]
pub struct Driven<C> {
    /// The counted span.
    pub elapsed: Duration,
    /// Operations and their latencies.
    pub tally: Tally,
    /// Processor time of the host.
    pub cpu: Duration,
    /// The host's counters at the beginning of the span.
    pub before: C,
    /// Counters at its end.
    pub after: C,
    /// Bytes on the disk, second by second, where the host watches them.
    pub space: Vec<u64>,
    /// It was ended early.
    pub is_interrupted: bool,
}

/// When the number of operations is limited, the warm-up has at most this part as many.
const WARMUP_DIVISOR: u64 = 4;

/// Between two looks at how much was written.
const WRITES_TICK: Duration = Duration::from_millis(1);

// Phases of a run.
const WARMING_UP: u8 = 0;
const COUNTING: u8 = 1;
const OVER: u8 = 2;

/// The state that the clients share.
struct Shared {
    phase: AtomicU8,
    /// Of the counted span; set before its phase begins.
    began: AtomicU64,
    /// Nothing begins later, whatever the phase.
    end_max: Nanos,
    /// Operations of each client, warm-up included.
    done: Vec<Counter>,
    /// A client has failed: the other clients end, because the run is lost.
    failed: AtomicBool,
    tally: Mutex<Tally>,
}

/// A counter on a cache line of its own.
#[derive(Default)]
#[repr(align(128))]
struct Counter(AtomicU64);

impl Shared {
    fn new(span: &Span, now: Nanos) -> Arc<Self> {
        Arc::new(Self {
            phase: AtomicU8::new(WARMING_UP),
            began: AtomicU64::new(0),
            end_max: now + Nanos::from(span.warmup) + Nanos::from(span.length),
            done: (0..span.clients).map(|_| Counter::default()).collect(),
            failed: AtomicBool::new(false),
            tally: Mutex::default(),
        })
    }

    fn operations(&self) -> u64 {
        self.done.iter().map(|counter| counter.0.load(Ordering::Relaxed)).sum()
    }
}

/// Notes, when dropped, that a client has failed or panicked; a client that ends well forgets it.
struct FailsUnlessEnded<'a>(&'a Shared);

impl Drop for FailsUnlessEnded<'_> {
    fn drop(&mut self) {
        self.0.failed.store(true, Ordering::Relaxed);
    }
}

/// Runs the clients.
///
/// # Errors
/// The first that a client has met.
pub fn drive<H: Host>(
    host: &mut H,
    span: &Span,
    clients: Clients,
    interrupt: &AtomicBool,
) -> anyhow::Result<Driven<H::Counters>> {
    let started = host.now();
    let shared = Shared::new(span, started);
    host.start(span.clients, job(&shared, span, clients, started))?;
    let counted = count(host, &shared, span, interrupt);
    shared.phase.store(OVER, Ordering::Relaxed);
    let is_interrupted = interrupt.load(Ordering::Relaxed);
    host.join()?;
    let tally = std::mem::take(&mut *shared.tally.lock().unwrap_or_else(PoisonError::into_inner));
    Ok(Driven { tally, is_interrupted, ..counted })
}

/// The job of each client.
fn job(shared: &Arc<Shared>, span: &Span, clients: Clients, started: Nanos) -> Job {
    let (shared, span) = (Arc::clone(shared), span.clone());
    Arc::new(move |number: usize, session: &mut dyn Session| {
        let unless_ended = FailsUnlessEnded(&shared);
        let mut client = (clients.make)(number, session)?;
        let mut pace = Pace::new(&span, (clients.burst)(number), started, number);
        let tally = work(&shared, &mut pace, (number, span.sample_every), &mut *client)?;
        std::mem::forget(unless_ended);
        shared.tally.lock().unwrap_or_else(PoisonError::into_inner).add(&tally);
        Ok(())
    })
}

/// One client until the end. In a closed loop that takes all latencies, the clock is read once an operation,
/// and otherwise only around sampled ones: with data in memory, more readings would show.
fn work(
    shared: &Shared,
    pace: &mut Pace,
    (number, sample_every): (usize, u32),
    client: &mut dyn Client,
) -> anyhow::Result<Tally> {
    let takes_all = sample_every == 1 || !pace.is_closed();
    let (mut tally, mut operations) = (Tally::default(), 0);
    let (mut now, mut to_sample) = (client.now(), 0);
    while shared.phase.load(Ordering::Relaxed) != OVER {
        let is_timed = takes_all || to_sample == 0;
        to_sample = if is_timed { sample_every.max(1) - 1 } else { to_sample - 1 };
        if is_timed && !takes_all {
            now = client.now();
        }
        let wanted = pace.next_start(now);
        if wanted >= shared.end_max {
            break;
        }
        if wanted > now {
            client.wait_until(wanted.into())?;
        }
        let done = client.step()?;
        if is_timed {
            now = client.now();
        }
        operations += done.count;
        if let Some(counter) = shared.done.get(number) {
            counter.0.store(operations, Ordering::Relaxed);
        }
        if shared.phase.load(Ordering::Acquire) == COUNTING {
            let second = || now.since(Nanos(shared.began.load(Ordering::Relaxed))).0 / 1_000_000_000;
            let latency = now.since(wanted);
            let timing = is_timed.then(|| Timing { latency, second: takes_all.then(|| second() as usize) });
            tally.count(done, timing);
        }
    }
    Ok(tally)
}

/// Lets the warm-up and the counted span pass, and looks at the host before and after the latter.
fn count<H: Host>(host: &mut H, shared: &Shared, span: &Span, interrupt: &AtomicBool) -> Driven<H::Counters> {
    let may_go_on = || !interrupt.load(Ordering::Relaxed) && !shared.failed.load(Ordering::Relaxed);
    let operations_max = span.operations_max.unwrap_or(u64::MAX);
    let tick = if span.written_bytes_max.is_some() { WRITES_TICK.min(host.tick()) } else { host.tick() };
    let warm = host.now() + Nanos::from(span.warmup);
    let few = |_: &H| may_go_on() && shared.operations() < operations_max / WARMUP_DIVISOR;
    pass_while(host, warm, tick, few);
    let operations = shared.operations();
    let (before, cpu, began) = (host.counters(), host.cpu(), host.now());
    shared.began.store(began.0, Ordering::Relaxed);
    shared.phase.store(COUNTING, Ordering::Release);
    let written_max = span.written_bytes_max.map(|bytes| H::written_bytes(&before).saturating_add(bytes));
    let (mut space, mut next) = (Vec::new(), began);
    pass_while(host, began + Nanos::from(span.length), tick, |host| {
        if host.now() >= next {
            space.extend(host.space_bytes());
            next += Nanos::from(Duration::from_secs(1));
        }
        may_go_on()
            && shared.operations() - operations < operations_max
            && written_max.is_none_or(|most| H::written_bytes(&host.counters()) < most)
    });
    shared.phase.store(OVER, Ordering::Relaxed);
    Driven {
        elapsed: host.now().since(began).into(),
        tally: Tally::default(),
        cpu: host.cpu() - cpu,
        before,
        after: host.counters(),
        space,
        is_interrupted: false,
    }
}
