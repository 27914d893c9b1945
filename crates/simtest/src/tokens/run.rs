//! Stores on which tokens are moved.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use flashgrain::testing::preempt;
use flashgrain::{CpuCosts, Db, Simulated};
use flashgrain_device::MemoryDevice;
use flashgrain_ssdsim::SimDevice;
use flashgrain_ssdsim::fault::{PowerCut, Survivors};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;

use super::leaks::{empty_pages, give_everything_back, reclaim};
use super::ledger::{Ledger, TASKS_MAX};
use super::streams::{judge, leave};
use super::work::{Habit, STEPS, Trees, Work, settle};
use crate::world::{Shape, Stop, drive, segments_for, small};

/// Keeps these random numbers apart from others.
const STREAM: u64 = 0x746f_6b65_6e73;

/// A task may lose its processor at one in this number of points.
const PREEMPTED_ONE_IN: u32 = 30;

/// CPU costs in some lives.
const COSTS: CpuCosts = CpuCosts { task_ns: 1000, request_ns: 500, ..CpuCosts::NONE };

/// One in this number of stores crashes before while values are written.
const LEAVES_ONE_IN: u32 = 3;

/// Times that a store is opened in one run.
const LIVES: u64 = 3;

/// How a life ends.
#[derive(Clone, Copy, Debug, PartialEq)]
enum End {
    /// All tasks are done; the store is closed.
    Closed,
    /// All tasks are done; the process is killed.
    Killed,
    /// The power fails while tasks work.
    PowerCut,
}

/// Segments for the records. With 64, merges of LSM-trees leave none in one of 100 lives: segments of
/// replaced tables are free after the next checkpoint.
const SEGMENTS: u64 = 96;

/// One run after the other on the same drive, as tasks in virtual time, in an order that is drawn from
/// `seed`; the store is closed and opened again, or crashes, in between.
///
/// # Errors
/// The first broken invariant.
pub fn simulated(seed: u64) -> Result<(), String> {
    let mut random = Pcg64::seed_from_u64(seed ^ STREAM);
    let shape = Shape { segments: segments_for(SEGMENTS), ..Shape::draw(&mut random) };
    let device = drive(shape.bytes(), seed);
    let _preempted = preempt(random.random(), PREEMPTED_ONE_IN);
    let ledger = Arc::new(Ledger::default());
    let mut store = Simulated::create(small(&shape, device.clone()), CpuCosts::default()).map_err(text)?;
    let filled = random.random();
    let empty = store.run(empty_pages).map_err(text)?;
    if random.random_ratio(1, LEAVES_ONE_IN) {
        let drawn = Pcg64::seed_from_u64(random.random());
        store.run(move |db| leave(db, drawn)).map_err(text)?;
        let end = [End::Killed, End::PowerCut][random.random_range(0..2)];
        store = end_and_open(store, &shape, &device, end, &mut random)?;
        store.run(judge).map_err(text)?;
    }
    let filled = store.run(move |db| {
        Trees::of(db)?.fill(&mut Pcg64::seed_from_u64(filled))?;
        Ok::<_, Stop>(db.sync()?)
    });
    filled.map_err(text)?;
    let mut has_crashed = false;
    for life in 0..LIVES {
        let end = [End::Closed, End::Killed, End::PowerCut][random.random_range(0..3)];
        // The last life ends in order, so that its remaining pages can be counted.
        let end = if life + 1 == LIVES { End::Closed } else { end };
        store.set_schedule(random.random());
        // If CPU time costs something, other tasks get far while a task is preempted for long.
        store.set_costs(if random.random() { COSTS } else { CpuCosts::default() });
        live(&mut store, &ledger, seed ^ life << 40, (end == End::PowerCut).then(|| random.random()))
            .map_err(|problem| format!("life {life}: {problem}"))?;
        if life + 1 == LIVES {
            break;
        }
        store = end_and_open(store, &shape, &device, end, &mut random)?;
        has_crashed |= end != End::Closed;
        let (own, is_cut) = (Arc::clone(&ledger), end == End::PowerCut);
        let recovered = store.run(move |db| recover(db, &own, is_cut));
        recovered.map_err(|problem| format!("life {life}, which was {end:?}: {problem}"))?;
    }
    store
        .run(move |db| {
            let trees = Trees::of(db)?;
            if has_crashed {
                // Pages of commits that were cut off may remain.
                reclaim(db)?;
            }
            give_everything_back(db, trees, empty)
        })
        .map_err(text)
}

/// Has tasks work until all are done, or for a while.
fn live(store: &mut Simulated, ledger: &Arc<Ledger>, seed: u64, cut: Option<u64>) -> Result<(), String> {
    let trees = store.run(Trees::of).map_err(text)?;
    let mut random = Pcg64::seed_from_u64(seed ^ STREAM);
    let habit = [Habit::All, Habit::Blind][random.random_range(0..2)];
    let tasks: Vec<_> = (0..random.random_range(2..=TASKS_MAX / 2))
        .map(|task| {
            let (trees, ledger) = (trees.clone(), Arc::clone(ledger));
            store.spawn(move |db| Work::new(db, &trees, &ledger, seed, task).run(habit, STEPS))
        })
        .collect();
    if let Some(random) = cut {
        store.run_for(Duration::from_micros(random % 60_000));
    } else {
        store.run_until_idle();
    }
    for task in tasks {
        if task.is_finished() {
            task.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)).map_err(text)?;
        } else if cut.is_none() {
            return Err("tasks wait for each other".into());
        }
    }
    if cut.is_some() {
        return Ok(());
    }
    let ledger = Arc::clone(ledger);
    store.run(move |db| settle(db, &trees, &ledger, &mut random)).map_err(text)
}

fn end_and_open(
    store: Simulated,
    shape: &Shape,
    device: &Arc<SimDevice>,
    end: End,
    random: &mut Pcg64,
) -> Result<Simulated, String> {
    match end {
        End::Closed => drop(store),
        End::Killed => store.abandon(),
        End::PowerCut => {
            let survivors =
                [Survivors::None, Survivors::Random, Survivors::All][random.random_range(0..3)].clone();
            let cut = PowerCut { survivors, seed: random.random(), ..PowerCut::default() };
            let image = device.image().after(&cut);
            store.abandon();
            device.restore(&image).map_err(text)?;
        }
    }
    Simulated::open(small(shape, device.clone()), CpuCosts::default()).map_err(text)
}

/// Adapts the ledger to the state of the store after it was opened, and checks that state.
fn recover(db: &Db, ledger: &Ledger, is_cut: bool) -> Result<(), String> {
    let trees = Trees::of(db).map_err(text)?;
    for pair in 0..TASKS_MAX {
        ledger.pairs[pair].recover(trees.pairs.number(pair).map_err(text)?)?;
    }
    if is_cut {
        // It is unknown which of these had been committed.
        let left = trees.ashes.iter().map_err(text)?.count() as u64;
        let inserted = ledger.inserted.load(Ordering::SeqCst);
        ledger.removed.store(inserted - left.min(inserted), Ordering::SeqCst);
    }
    settle(db, &trees, ledger, &mut Pcg64::seed_from_u64(STREAM)).map_err(text)
}

/// Tasks half as those of workers and half on ordinary threads, all at the same time, each of `steps` steps.
/// The interleaving differs from run to run.
///
/// # Errors
/// The first broken invariant.
pub fn threads(seed: u64, steps: u32) -> Result<(), String> {
    let device = Arc::new(MemoryDevice::new(256 << 20, 0).map_err(text)?);
    let db = Db::builder().device(device).workers(2).cache_bytes(1 << 20).create().map_err(text)?;
    let ledger = Arc::new(Ledger::default());
    let empty = empty_pages(&db).map_err(text)?;
    let trees = Trees::of(&db).map_err(text)?;
    let mut random = Pcg64::seed_from_u64(seed ^ STREAM);
    trees.fill(&mut random).map_err(text)?;
    let work = |task| Work::new(&db, &trees, &ledger, seed, task);
    let results: Vec<Result<(), Stop>> = std::thread::scope(|scope| {
        let threads: Vec<_> =
            (0..4).map(|task| scope.spawn(move || work(task).run(Habit::All, steps))).collect();
        let tasks: Vec<_> = (4..8)
            .map(|task| {
                let work = work(task);
                db.spawn(move || work.run(Habit::All, steps))
            })
            .collect();
        let panicked = |_| Err(Stop::Wrong("a task has panicked".into()));
        let threads = threads.into_iter().map(|thread| thread.join().unwrap_or_else(panicked));
        let threads: Vec<_> = threads.collect();
        let tasks = tasks.into_iter().map(|task| task.join().unwrap_or_else(panicked));
        threads.into_iter().chain(tasks).collect()
    });
    results.into_iter().collect::<Result<Vec<()>, _>>().map_err(text)?;
    settle(&db, &trees, &ledger, &mut random).map_err(text)?;
    give_everything_back(&db, trees, empty).map_err(text)?;
    db.close().map_err(text)
}

fn text(what: impl std::fmt::Display) -> String {
    what.to_string()
}
