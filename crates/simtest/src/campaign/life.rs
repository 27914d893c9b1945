//! A store's life, as its drive saw it.

use std::sync::Arc;

use flashgrain::testing::{DeviceUse, device_use, observe};
use flashgrain::{CpuCosts, JoinHandle, Simulated};
use flashgrain_device::Nanos;
use flashgrain_ssdsim::fault::{Fault, FaultKind, Operation, Repeat, Trigger};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;

use super::failure::Failure;
use super::outcomes::outcomes;
use crate::media::{Event, Recorder, Tape};
use crate::world::{Counts, Habits, Shape, Shared, Stop, Work, check, drive, look, quietly, small};

/// See the module.
pub struct Life {
    /// The seed of everything.
    pub seed: u64,
    /// Shape of the store.
    pub shape: Shape,
    /// Events on the drive and commits, in order.
    pub events: Vec<Event>,
    /// History of the commits.
    pub shared: Shared,
    /// The store's own counters.
    pub counts: Counts,
}

impl Life {
    /// Runs a store with all its workers on the calling thread, whose turns are drawn from the seed.
    ///
    /// # Errors
    /// A misbehaviour of the store without any fault.
    pub fn live(seed: u64, habits: Habits) -> Result<Self, Failure> {
        let mut random = Pcg64::seed_from_u64(seed);
        let shape = Shape::draw(&mut random);
        let shape = if random.random_bool(habits.grows) { shape.growing() } else { shape };
        let shape = match shape.grows && random.random_bool(habits.log_moves) {
            true => shape.with_growing_log(),
            false => shape,
        };
        let tape = Tape::default();
        let shared = Shared::listen(&tape);
        let drive = drive(shape.bytes(), seed);
        if random.random_bool(habits.stalls) {
            drive.inject(stalls(&mut random));
        }
        let device = Arc::new(Recorder::new(drive, shape.first_bytes(), tape.clone()));
        let work = || -> Result<Counts, String> {
            let text = |error: flashgrain::Error| error.to_string();
            let store = small(&shape, device);
            let mut simulated = Simulated::create(store, CpuCosts::default()).map_err(text)?;
            tape.note(Event::Created);
            simulated.set_schedule(random.random());
            work_on(&mut simulated, &shape, &shared, habits, seed)?;
            let checked = shared.clone();
            simulated.run(move |db| check(db, &checked)).map_err(text)?.map_or(Ok(()), Err)?;
            let counts = counts_of(&simulated);
            // The end belongs to it, too.
            drop(simulated);
            Ok(counts)
        };
        let lived = quietly(work).and_then(|result| result);
        // Later changes to copies of this store do not belong to its history.
        observe(None);
        let copied = lived.and_then(|counts| {
            quietly(|| check_copies(&shape, &shared)).and_then(|result| result).map(|copies| (counts, copies))
        });
        let (mut counts, copies) = copied.map_err(|what| Failure::new(seed, "without a crash", what))?;
        counts.add("backups", copies);
        let events = tape.take();
        let grown = events.iter().filter(|event| matches!(event, Event::Grown(_)));
        counts.add("times grown", grown.count() as u64);
        let cut = events.iter().filter(|event| matches!(event, Event::Shrunk(_)));
        counts.add("times cut", cut.count() as u64);
        let mut life = Self { seed, shape, events, shared, counts };
        life.counts.add("times the log moved", life.log_moves().len() as u64);
        Ok(life)
    }

    /// When a superblock was written that says that the log is elsewhere: numbers of events.
    pub fn log_moves(&self) -> Vec<usize> {
        let (mut moves, mut place) = (Vec::new(), None);
        for (position, event) in self.events.iter().enumerate() {
            let Some(now) = device_use_of(event).map(|device| device.log_start_bytes) else { continue };
            if place.is_some_and(|place| place != now) {
                moves.push(position);
            }
            place = Some(now);
        }
        moves
    }
}

/// The device use in a superblock, if the event writes one.
pub fn device_use_of(event: &Event) -> Option<DeviceUse> {
    match event {
        Event::Written(_, write) => device_use(&write.bytes),
        _ => None,
    }
}

/// Now and then a read takes so long that others make checkpoints meanwhile.
fn stalls(random: &mut Pcg64) -> Fault {
    let span = Nanos(random.random_range(1_000_000..100_000_000));
    Fault::new(FaultKind::Stall { span, whole_drive: false })
        .on(Operation::Read)
        .at(Trigger::Probability(0.03))
        .repeat(Repeat::Sticky)
}

/// Has tasks work on a store until all are done.
pub(super) fn work_on(
    simulated: &mut Simulated,
    shape: &Shape,
    shared: &Shared,
    habits: Habits,
    seed: u64,
) -> Result<(), String> {
    let tasks = begin(simulated, shape, shared, habits, seed);
    simulated.run_until_idle();
    // A full store is one of the things that happen.
    outcomes(tasks, |_| false).map(drop)
}

/// Gives a store tasks that work on it.
pub(super) fn begin(
    simulated: &mut Simulated,
    shape: &Shape,
    shared: &Shared,
    habits: Habits,
    seed: u64,
) -> Vec<JoinHandle<Result<(), Stop>>> {
    (0..habits.tasks)
        .map(|task| {
            let (shape, shared) = (shape.clone(), shared.clone());
            simulated.spawn(move |db| Work::new(db, &shape, &shared, habits, seed, task).run())
        })
        .collect()
}

/// Whether each backup equals a state of the store between its beginning and its end. It returns the number
/// of backups.
fn check_copies(shape: &Shape, shared: &Shared) -> Result<u64, String> {
    let copies = std::mem::take(&mut shared.get().copies);
    for (disk, mut between) in copies.iter().cloned() {
        let opened = Simulated::open(small(shape, Arc::new(disk)), CpuCosts::default());
        let mut copy = opened.map_err(|error| format!("a backup cannot be opened: {error}"))?;
        let content = copy.run(look).map_err(|error| format!("a backup cannot be read: {error}"))?;
        copy.abandon();
        let mut history = shared.get();
        if !between.any(|number| *history.content(number) == content) {
            return Err("a backup differs from the store at every point".into());
        }
    }
    Ok(copies.len() as u64)
}

fn counts_of(simulated: &Simulated) -> Counts {
    let stats = simulated.stats();
    let mut counts = Counts::default();
    counts.add("checkpoints", stats.checkpoints.completed);
    counts.add("bytes moved by the cleaner", stats.written.moved_bytes);
    counts.add("bytes logged", stats.log.written_bytes);
    counts
}
