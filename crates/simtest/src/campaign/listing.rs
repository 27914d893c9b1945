//! Backups that begin while trees are made: a backup that has a record has the tree that was made before it.

use std::sync::Arc;

use flashgrain::testing::{Small, preempt};
use flashgrain::{CpuCosts, Db, Durability, Error, Simulated};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;

use super::failure::Failure;
use super::run::Campaign;
use crate::media::Disk;
use crate::world::{CASES, Counts, Habits, Shape, drive, quietly, segments_for, small};

/// See the module. In each case, a store makes some backups.
#[derive(Clone, Copy, Debug, Default)]
pub struct Listing;

/// Keeps these random numbers apart from others.
const STREAM: u64 = 0x6c69_7374;

/// A task may lose its processor at one in this number of points.
const PREEMPTED_ONE_IN: u32 = 5;

/// Backups of a store.
const BACKUPS: u32 = 4;

/// Trees that are made meanwhile.
const TREES: u32 = 12;

/// Operations of long commits: taking a snapshot waits for them, the longer the more there are.
const LONG: u32 = 100;

impl Campaign for Listing {
    fn name(&self) -> &'static str {
        "listing"
    }

    fn habits(&self, _seed: u64) -> Habits {
        Habits::default()
    }

    fn with_habits(&self, _habits: Habits) -> Box<dyn Campaign> {
        Box::new(*self)
    }

    fn play(&self, seed: u64, _goes_on: &dyn Fn() -> bool) -> Result<Counts, Failure> {
        let played = quietly(|| play(seed)).and_then(|result| result);
        played.map_err(|what| Failure::new(seed, "backups while trees are made", what))?;
        let mut counts = Counts::default();
        counts.add(CASES, 1);
        Ok(counts)
    }
}

fn play(seed: u64) -> Result<(), String> {
    let text = |error: Error| error.to_string();
    let mut random = Pcg64::seed_from_u64(seed ^ STREAM);
    let shape = Shape { segments: segments_for(40), ..Shape::draw(&mut random) };
    let store = small(&shape, drive(shape.bytes(), seed));
    let mut simulated = Simulated::create(store, CpuCosts::default()).map_err(text)?;
    simulated.run(|db| db.tree("made")).map_err(text)?;
    simulated.set_schedule(random.random());
    simulated.set_costs(CpuCosts { task_ns: 1000, request_ns: 500, ..CpuCosts::NONE });
    let _preempted = preempt(random.random(), PREEMPTED_ONE_IN);
    let others = [simulated.spawn(make_trees), simulated.spawn(commit_much)];
    let own = shape.clone();
    let backups = simulated.spawn(move |db| back_up(db, &own));
    simulated.run_until_idle();
    for other in others {
        other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)).map_err(text)?;
    }
    let copies = backups.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)).map_err(text)?;
    drop(simulated);
    for copy in copies {
        let opened = Simulated::open(small(&shape, Arc::new(copy)), CpuCosts::default());
        let mut opened = opened.map_err(|error| format!("a backup cannot be opened: {error}"))?;
        opened.run(judge)?;
        opened.abandon();
    }
    Ok(())
}

/// Makes trees, and notes each in another one as soon as it is there.
fn make_trees(db: &Db) -> Result<(), Error> {
    for number in 0..TREES {
        db.tree(&number.to_string())?;
        db.tree("made")?.insert(number.to_be_bytes(), [])?;
    }
    Ok(())
}

/// Commits that a snapshot has to wait for.
fn commit_much(db: &Db) -> Result<(), Error> {
    let tree = db.tree("much")?;
    for round in 0..BACKUPS * 4 {
        let mut batch = db.batch().durability(Durability::None);
        for number in 0..LONG {
            batch.insert(&tree, number.to_be_bytes(), [round as u8; 16])?;
        }
        batch.commit()?;
    }
    Ok(())
}

fn back_up(db: &Db, shape: &Shape) -> Result<Vec<Disk>, Error> {
    let back_up = |_| {
        let (copy, device) = shape.copy();
        let small_copy = Small { id: [6; 16], ..shape.small.clone() };
        db.backup(small(&Shape { small: small_copy, ..shape.clone() }, device))?;
        Ok(copy)
    };
    (0..BACKUPS).map(back_up).collect()
}

fn judge(db: &Db) -> Result<(), String> {
    let text = |error: Error| error.to_string();
    for record in db.existing_tree("made").map_err(text)?.iter().map_err(text)? {
        let (key, _) = record.map_err(text)?;
        let name = key.first_chunk().map_or(0, |key| u32::from_be_bytes(*key)).to_string();
        if db.existing_tree(&name).is_err() {
            return Err(format!("a backup knows that tree {name} was made, and does not have it"));
        }
    }
    Ok(())
}
