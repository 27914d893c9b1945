//! Counters that many transactions raise together: an update that is lost, or seen in part, shows in the sum.

use flashgrain::{CpuCosts, Db, Error, ErrorKind, Readable, Simulated, Tree};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;

use super::failure::Failure;
use super::run::Campaign;
use crate::world::{CASES, Counts, Habits, Shape, drive, quietly, small};

/// See the module.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counting;

/// Keeps these random numbers apart from others.
const STREAM: u64 = 0x0063_6f75_6e74;

/// Counters that all transactions raise: enough that a commit does not apply them at once, and few enough to
/// fit into the smallest log.
const COUNTERS: u32 = 72;

/// Conflicts in a row that only a store without progress causes: far more than there are commits.
const TRIES: u32 = 10_000;

/// Bytes of a counter's value, so that their leaves do not all fit into memory.
const VALUE_BYTES: usize = 120;

impl Campaign for Counting {
    fn name(&self) -> &'static str {
        "counting"
    }

    fn habits(&self, _seed: u64) -> Habits {
        Habits { tasks: 6, steps: 6, ..Habits::default() }
    }

    fn with_habits(&self, _habits: Habits) -> Box<dyn Campaign> {
        Box::new(*self)
    }

    fn play(&self, seed: u64, _goes_on: &dyn Fn() -> bool) -> Result<Counts, Failure> {
        let mut counts = Counts::default();
        counts.add(CASES, 1);
        let counted = quietly(|| count(seed, self.habits(seed))).and_then(|result| result);
        counted.map_err(|what| Failure::new(seed, "without a crash", what))?;
        Ok(counts)
    }
}

fn count(seed: u64, habits: Habits) -> Result<(), String> {
    let text = |error: Error| error.to_string();
    let mut random = Pcg64::seed_from_u64(seed ^ STREAM);
    let shape = Shape::draw(&mut random);
    let store = small(&shape, drive(shape.bytes(), seed));
    let mut simulated = Simulated::create(store, CpuCosts::default()).map_err(text)?;
    simulated.set_schedule(random.random());
    let tasks: Vec<_> = (0..habits.tasks)
        .map(|task| {
            let seed = seed << 8 ^ task;
            simulated.spawn(move |db| {
                if task % 2 == 0 { raise(db, habits.steps) } else { watch(db, habits.steps, seed) }
            })
        })
        .collect();
    simulated.run_until_idle();
    for task in tasks {
        if !task.is_finished() {
            return Err("tasks wait for each other".into());
        }
        task.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
    }
    let raised = habits.tasks.div_ceil(2) * u64::from(habits.steps);
    let found = simulated.run(move |db| -> Result<u64, String> {
        let snapshot = db.snapshot().map_err(text)?;
        same(&snapshot, &db.tree("counters").map_err(text)?)
    })?;
    if found == raised {
        look_back(&mut simulated, raised + 1)
    } else {
        Err(format!("lost updates: raised {raised} times, the counters say {found}"))
    }
}

/// A snapshot sees the same content later, also after a moment in which nothing else happens.
fn look_back(simulated: &mut Simulated, raised: u64) -> Result<(), String> {
    let text = |error: Error| error.to_string();
    // The snapshot is of the very commit that made its content, and alone, so that all older versions are
    // given up.
    simulated.run(|db| raise(db, 1))?;
    let snapshot = simulated.run(|db| db.snapshot()).map_err(text)?;
    rest(simulated)?;
    simulated.run(|db| raise(db, 1))?;
    rest(simulated)?;
    let found = simulated.run(move |db| same(&snapshot, &db.tree("counters").map_err(text)?))?;
    match found == raised {
        true => Ok(()),
        false => Err(format!("a snapshot of {raised} says {found} after a moment")),
    }
}

/// A short commit, after which the store soon finds itself idle: long ones are not done by then.
fn rest(simulated: &mut Simulated) -> Result<(), String> {
    let text = |error: Error| error.to_string();
    simulated.run(|db| db.tree("other")?.insert(key(0), [])).map_err(text)?;
    simulated.run_until_idle();
    Ok(())
}

fn key(counter: u32) -> [u8; 4] {
    counter.to_be_bytes()
}

fn value(count: u64) -> Vec<u8> {
    let mut value = vec![count as u8; VALUE_BYTES];
    value[..8].copy_from_slice(&count.to_le_bytes());
    value
}

fn count_in(value: Option<&[u8]>) -> u64 {
    value.and_then(|value| value.first_chunk()).map_or(0, |bytes| u64::from_le_bytes(*bytes))
}

/// Raises all counters by one, `times` times.
fn raise(db: &Db, times: u32) -> Result<(), String> {
    let text = |error: Error| error.to_string();
    let tree = db.tree("counters").map_err(text)?;
    for _ in 0..times {
        let mut tries = 0..TRIES;
        while !try_to_raise(db, &tree)? {
            tries.next().ok_or("the same transaction conflicts again and again")?;
        }
    }
    Ok(())
}

/// `false` if another transaction was faster.
fn try_to_raise(db: &Db, tree: &Tree) -> Result<bool, String> {
    let text = |error: Error| error.to_string();
    let mut transaction = db.begin().map_err(text)?;
    let count = same(&transaction, tree)?;
    for counter in 0..COUNTERS {
        transaction.insert(tree, key(counter), value(count + 1)).map_err(text)?;
    }
    match transaction.commit() {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == ErrorKind::Conflict => Ok(false),
        Err(error) => Err(text(error)),
    }
}

/// The count that all counters show in this view; it must be the same.
fn same(view: &impl Readable, tree: &Tree) -> Result<u64, String> {
    let text = |error: Error| error.to_string();
    let mut counts = (0..COUNTERS)
        .map(|counter| view.get(tree, key(counter)).map(|value| count_in(value.as_deref())).map_err(text));
    let first = counts.next().unwrap_or(Ok(0))?;
    for (counter, count) in (1..).zip(counts) {
        let count = count?;
        if count != first {
            return Err(format!("in one snapshot counter 0 is {first} and counter {counter} is {count}"));
        }
    }
    Ok(first)
}

/// Looks at all counters again and again, and at other pages, so that those of the counters leave memory.
fn watch(db: &Db, times: u32, seed: u64) -> Result<(), String> {
    let text = |error: Error| error.to_string();
    let mut random = Pcg64::seed_from_u64(seed);
    let (tree, other) = (db.tree("counters").map_err(text)?, db.tree("other").map_err(text)?);
    let mut before = 0;
    for _ in 0..times * 4 {
        let snapshot = db.snapshot().map_err(text)?;
        let count = same(&snapshot, &tree)?;
        if count < before {
            return Err(format!("the counters went back from {before} to {count}"));
        }
        before = count;
        let filling = vec![7; random.random_range(1..900)];
        other.insert(key(random.random_range(0..60)), filling).map_err(text)?;
    }
    Ok(())
}
