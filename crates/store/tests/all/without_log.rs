//! Stores whose log is not written: a power cut leaves the state after some commit in all trees, at least
//! that of the last checkpoint.

use std::sync::{Arc, Mutex};

use flashgrain::testing::{Bug, preempt};
use flashgrain::{Builder, Db, Durability, Error, IndexKind, Simulated, Tree, TreeOptions};
use flashgrain_ssdsim::SimDevice;
use flashgrain_ssdsim::fault::{Fault, FaultKind, Trigger};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;

use super::bulk::{COSTS, drive, on, random_cut};

const KINDS: [IndexKind; 3] = [IndexKind::BTree, IndexKind::Lsm, IndexKind::BeTree];

const WRITERS: usize = 4;

/// Commits of a writer in each life.
const COMMITS: u32 = 150;

/// Keys of a writer in each tree, beside the one that has the number of its last commit.
const KEYS: u32 = 40;

/// Tasks lose their processor at one of so many places where they may.
const PREEMPTED_ONE_IN: u32 = 50;

fn without_log(device: &Arc<SimDevice>) -> Builder {
    on(device).durability(Durability::None).write_log(false)
}

fn trees(db: &Db) -> Result<Vec<Tree>, Error> {
    let tree = |kind| db.tree_with(&format!("{kind:?}"), &TreeOptions::new().kind(kind));
    KINDS.into_iter().map(tree).collect()
}

/// Commits of each writer.
type Done = [u32; WRITERS];

/// What is known of the commits so far.
#[derive(Debug, Default)]
struct Known {
    /// Commits that have returned.
    returned: Done,
    /// Those that a checkpoint has for sure.
    durable: Done,
    /// By writer and commit, those that had returned before it began.
    seen: [Vec<Done>; WRITERS],
}

fn key(writer: usize, number: u32) -> Vec<u8> {
    [&[writer as u8][..], &number.to_be_bytes()].concat()
}

/// The number of a commit and of the key's kind of tree, with some bytes more.
fn value(number: u32, length: usize) -> Vec<u8> {
    let mut value = number.to_be_bytes().to_vec();
    value.resize(4 + length, number as u8);
    value
}

fn length(writer: usize, number: u32) -> usize {
    (number as usize * 37 + writer * 11) % 700
}

/// Each commit writes its number to a key of every tree, and to the writer's own; every seventh removes
/// another key.
fn write(db: &Db, writer: usize, known: &Mutex<Known>, random: &mut Pcg64) -> Result<(), Error> {
    let trees = trees(db)?;
    for _ in 0..COMMITS {
        let (number, begun) = {
            let mut known = known.lock().unwrap();
            let returned = known.returned;
            known.seen[writer].push(returned);
            (returned[writer] + 1, returned)
        };
        let is_sync = random.random_bool(0.01);
        let mut batch = db.batch().durability(if is_sync { Durability::Sync } else { Durability::None });
        for tree in &trees {
            batch.insert(tree, key(writer, number % KEYS), value(number, length(writer, number)))?;
            batch.insert(tree, key(writer, u32::MAX), number.to_be_bytes())?;
            if number.is_multiple_of(7) {
                batch.remove(tree, key(writer, (number + 3) % KEYS))?;
            }
        }
        batch.commit()?;
        let mut known = known.lock().unwrap();
        known.returned[writer] = number;
        if is_sync {
            known.durable[writer] = number;
            let durable = &mut known.durable;
            durable.iter_mut().zip(begun).for_each(|(durable, begun)| *durable = begun.max(*durable));
        }
    }
    Ok(())
}

/// Whether a tree has exactly what the first commits of each writer have left; how many these are.
fn done_in(tree: &Tree) -> Done {
    let mut done = [0; WRITERS];
    for (writer, done) in done.iter_mut().enumerate() {
        let last = tree.get(key(writer, u32::MAX)).unwrap();
        *done = last.map_or(0, |last| u32::from_be_bytes(last[..].try_into().unwrap()));
        let mut expected = vec![None; KEYS as usize];
        for number in 1..=*done {
            expected[(number % KEYS) as usize] = Some(value(number, length(writer, number)));
            if number.is_multiple_of(7) {
                expected[((number + 3) % KEYS) as usize] = None;
            }
        }
        for (number, expected) in (0..).zip(expected) {
            let got = tree.get(key(writer, number)).unwrap();
            assert_eq!(got.as_deref(), expected.as_deref(), "key {number} of writer {writer} after {done}");
        }
    }
    done
}

/// The state is that after some commit, and has all that must be there. What is not there never was.
fn check(db: &Db, known: &mut Known) {
    let trees = trees(db).unwrap();
    let done = done_in(&trees[0]);
    for tree in &trees[1..] {
        assert_eq!(done_in(tree), done, "trees of different commits");
    }
    let contains = |seen: &Done| seen.iter().zip(&done).all(|(seen, done)| seen <= done);
    assert!(contains(&known.durable), "{done:?} instead of {:?}", known.durable);
    for (writer, seen) in known.seen.iter_mut().enumerate() {
        for before in &seen[..done[writer] as usize] {
            assert!(contains(before), "{done:?} without {before:?}, which writer {writer} had seen");
        }
        seen.truncate(done[writer] as usize);
    }
    (known.returned, known.durable) = (done, done);
    db.check().unwrap();
}

/// Writers work until all is done, or the power fails at an event. Returns the drive's events by then.
fn live(simulated: &mut Simulated, device: &SimDevice, known: &Arc<Mutex<Known>>, seed: u64) -> u64 {
    let writer = |writer: usize| {
        let known = Arc::clone(known);
        simulated.spawn(move |db| {
            let mut random = Pcg64::seed_from_u64(seed << 8 | writer as u64);
            write(db, writer, &known, &mut random)
        })
    };
    let writers: Vec<_> = (0..WRITERS).map(writer).collect();
    simulated.run_until_idle();
    for writer in writers {
        let written = writer.join().unwrap();
        assert!(written.is_ok() || !device.answers(), "{written:?}");
    }
    device.events()
}

/// Lives of a store that end by power cuts, some of them with a log. Returns the checkpoints that were made
/// without one.
fn lives(seed: u64) -> u64 {
    let mut random = Pcg64::seed_from_u64(seed);
    let _preempted = preempt(seed, PREEMPTED_ONE_IN);
    let (device, known) = (drive(seed), Arc::new(Mutex::new(Known::default())));
    let mut simulated = Simulated::create(without_log(&device), COSTS).unwrap();
    simulated.run(|db| trees(db).map(drop)).unwrap();
    let (mut events, mut checkpoints) = (2_000, 0);
    for life in 0..4 {
        let before = device.events();
        let event = before + random.random_range(0..events);
        device.inject(Fault::new(FaultKind::PowerCut(random_cut(&mut random))).at(Trigger::Event(event)));
        events = live(&mut simulated, &device, &known, seed << 4 | life) - before;
        checkpoints += simulated.stats().checkpoints.completed;
        simulated.abandon();
        device.disarm_faults();
        device.power_on();
        let builder = if random.random_bool(0.3) { on(&device) } else { without_log(&device) };
        simulated = Simulated::open(builder, COSTS).unwrap();
        let own = Arc::clone(&known);
        simulated.run(move |db| check(db, &mut own.lock().unwrap()));
        // What was closed is there as a whole.
        if random.random_bool(0.3) {
            live(&mut simulated, &device, &known, seed << 4 | life | 8);
            simulated.run(|db| db.clone().close()).unwrap();
            simulated.abandon();
            {
                let mut known = known.lock().unwrap();
                known.durable = known.returned;
            }
            simulated = Simulated::open(without_log(&device), COSTS).unwrap();
            let own = Arc::clone(&known);
            simulated.run(move |db| check(db, &mut own.lock().unwrap()));
        }
    }
    simulated.abandon();
    checkpoints
}

#[test]
fn after_a_power_cut_all_trees_have_the_state_after_one_commit() {
    let seeds = std::env::var("FLASHGRAIN_SEEDS").map_or(6, |seeds| seeds.parse().unwrap());
    let checkpoints: u64 = (0..seeds).map(lives).sum();
    assert!(checkpoints > 4 * seeds, "{checkpoints} checkpoints show little");
}

#[test]
fn a_commit_is_durable_with_the_checkpoint_that_it_waits_for() {
    let device = drive(1);
    let mut simulated = Simulated::create(without_log(&device), COSTS).unwrap();
    let written = simulated.run(|db| {
        let tree = db.tree_with("t", &TreeOptions::new().kind(IndexKind::Lsm))?;
        tree.insert("kept", "before")?;
        let before = db.stats();
        let mut batch = db.batch().durability(Durability::Sync);
        batch.insert(&tree, "other", "with it")?;
        batch.commit()?;
        tree.insert("kept", "after")?;
        assert_eq!(tree.get("kept")?.as_deref(), Some(&b"after"[..]));
        let after = db.stats();
        assert_eq!(after.checkpoints.completed, before.checkpoints.completed + 1);
        Ok::<_, Error>(after.log.written_bytes)
    });
    assert_eq!(written.unwrap(), 0);
    simulated.abandon();
    let mut simulated = Simulated::open(without_log(&device), COSTS).unwrap();
    let kept = simulated.run(|db| {
        let tree = db.existing_tree("t")?;
        assert_eq!(tree.get("other")?.as_deref(), Some(&b"with it"[..]));
        tree.get("kept")
    });
    assert_eq!(kept.unwrap().as_deref(), Some(&b"before"[..]));
}

#[test]
fn a_cut_amid_commits_or_without_memtables_is_found() {
    for bug in [Bug::CutAmidCommits, Bug::CutWithoutMemtables] {
        let planted = bug.plant();
        let found = (0..20).any(|seed| std::panic::catch_unwind(|| lives(seed)).is_err());
        assert!(found && planted.strikes() > 0, "{bug:?} was not found");
    }
}
