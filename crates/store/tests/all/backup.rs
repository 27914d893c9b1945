//! Copies of stores that are in use: consistent, complete or not to be opened, and harmless to their source.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use flashgrain::testing::trees_of;
use flashgrain::{Builder, Db, Durability, Error, ErrorKind, IndexKind, Readable, Simulated, TreeOptions};
use flashgrain_device::{Device, MemoryDevice};
use flashgrain_ssdsim::SimDevice;
use flashgrain_ssdsim::fault::{Fault, FaultKind, FlushLoss, Operation, Repeat, Trigger};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;
use tempfile::TempDir;

use super::bulk::{COSTS, drive, on, random_cut};

/// Accounts, whose sum stays the same.
const ACCOUNTS: u32 = 3000;
const EACH: u64 = 1000;

fn open_accounts(db: &Db) {
    for (name, node_bytes) in [("even", 4096), ("odd", 16384)] {
        db.tree_with(name, &TreeOptions::new().node_bytes(node_bytes)).unwrap();
    }
    let mut batch = db.batch();
    for account in 0..ACCOUNTS {
        batch.insert(&tree_of(db, account), account.to_be_bytes(), amount(EACH, account)).unwrap();
    }
    batch.commit().unwrap();
}

fn tree_of(db: &Db, account: u32) -> flashgrain::Tree {
    db.existing_tree(if account.is_multiple_of(2) { "even" } else { "odd" }).unwrap()
}

/// A value that says how much there is; some are large.
fn amount(amount: u64, account: u32) -> Vec<u8> {
    let mut value = amount.to_le_bytes().to_vec();
    value.resize(if account.is_multiple_of(500) { 9000 } else { 20 }, account as u8);
    value
}

fn transfer(db: &Db, random: &mut Pcg64) -> Result<(), Error> {
    let (from, to) = (random.random_range(0..ACCOUNTS), random.random_range(0..ACCOUNTS));
    if from == to {
        return Ok(());
    }
    let trees = [tree_of(db, from), tree_of(db, to)];
    db.transaction(|transaction| {
        transaction.set_durability(Durability::None);
        let mut amounts = [0; 2];
        for (place, account) in [from, to].into_iter().enumerate() {
            let value = transaction.get(&trees[place], account.to_be_bytes())?.unwrap();
            amounts[place] = u64::from_le_bytes(value[..8].try_into().unwrap());
        }
        let moved = amounts[0].min(7);
        transaction.insert(&trees[0], from.to_be_bytes(), amount(amounts[0] - moved, from))?;
        transaction.insert(&trees[1], to.to_be_bytes(), amount(amounts[1] + moved, to))
    })
}

/// Everything is there, of one moment; how often somebody has less or more than in the beginning.
fn audit(db: &Db) -> usize {
    let (mut sum, mut count, mut moved) = (0, 0, 0);
    let snapshot = db.snapshot().unwrap();
    for name in ["even", "odd"] {
        for record in snapshot.iter(&db.existing_tree(name).unwrap()).unwrap() {
            let (key, value) = record.unwrap();
            let account = u32::from_be_bytes(key[..].try_into().unwrap());
            let has = u64::from_le_bytes(value[..8].try_into().unwrap());
            assert_eq!(value, amount(has, account));
            (sum, count, moved) = (sum + has, count + 1, moved + usize::from(has != EACH));
        }
    }
    assert_eq!((sum, count), (u64::from(ACCOUNTS) * EACH, ACCOUNTS));
    moved
}

#[test]
fn a_copy_is_of_one_moment_while_others_write_and_drop_trees() {
    for kind in [IndexKind::BTree, IndexKind::Lsm, IndexKind::BeTree] {
        println!("{kind:?}");
        copy_while_others_write(kind);
    }
}

fn copy_while_others_write(kind: IndexKind) {
    let _kind = trees_of(kind);
    let folder = TempDir::new_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let db = Db::builder().path(folder.path().join("source")).cache_bytes(4 << 20).create().unwrap();
    open_accounts(&db);
    db.tree("goes").unwrap().load((0..20_000_u32).map(|key| (key.to_be_bytes(), [0; 8]))).unwrap();
    let ended = AtomicBool::new(false);
    let small = || Db::builder().cache_bytes(2 << 20).workers(1);
    std::thread::scope(|scope| {
        let (db, ended) = (&db, &ended);
        scope.spawn(move || {
            let mut random = Pcg64::seed_from_u64(1);
            while !ended.load(Ordering::Relaxed) {
                transfer(db, &mut random).unwrap();
            }
        });
        scope.spawn(move || {
            let _kind = trees_of(kind);
            for round in 0_u32.. {
                if ended.load(Ordering::Relaxed) {
                    break;
                }
                db.drop_tree("goes").unwrap();
                let tree = db.tree("goes").unwrap();
                tree.load((0..20_000_u32).map(|key| (key.to_be_bytes(), round.to_le_bytes()))).unwrap();
            }
        });
        for copy in 0..4 {
            let path = folder.path().join(format!("copy {copy}"));
            let copied = db.backup(small().path(&path));
            ended.fetch_or(copied.is_err() || copy == 3, Ordering::Relaxed);
            copied.unwrap();
            let error = db.backup(small().path(&path)).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Exists, "{error}");
            let opened = small().path(&path).open().unwrap();
            assert!(opened.stats().recovery.was_closed);
            let moved = audit(&opened);
            println!("copy {copy}: {moved} accounts had changed");
            if let Ok(tree) = opened.existing_tree("goes") {
                // As a load left it, or in the middle of one, after a whole step.
                let values: Vec<_> = tree.iter().unwrap().map(|record| record.unwrap().1).collect();
                assert!(values.iter().all(|value| value == &values[0]));
                assert!(values.len() == 20_000 || values.len().is_multiple_of(1024), "{}", values.len());
            }
            opened.check().unwrap();
            assert_eq!(opened.existing_tree("odd").unwrap().options().size_of_nodes(), Some(16384));
            // It is a store to be written to like any other.
            transfer(&opened, &mut Pcg64::seed_from_u64(2)).unwrap();
            opened.close().unwrap();
        }
    });
    audit(&db);
    db.check().unwrap();
}

#[test]
fn a_copy_for_which_there_is_no_room_is_removed() {
    let folder = TempDir::new_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let db = Db::in_memory(8 << 20).unwrap();
    let tree = db.tree("t").unwrap();
    for key in 0..40_u32 {
        tree.insert(key.to_be_bytes(), vec![1; 1 << 20]).unwrap();
    }
    let path = folder.path().join("copy");
    let small = Db::builder().path(&path).cache_bytes(2 << 20).workers(1).size_bytes_max(24 << 20);
    let error = db.backup(small).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Full, "{error}");
    assert!(!path.exists());
    assert_eq!(db.backup(Db::builder().path(&path).cache_bytes(2 << 20).workers(1)).unwrap().records, 40);
}

/// A store on a simulated drive, on which tasks move money while another one copies it to a second drive.
fn copy_in_virtual_time(source: &Arc<SimDevice>, target: &Arc<SimDevice>) -> (Simulated, Result<u64, Error>) {
    let mut simulated = Simulated::create(on(source), COSTS).unwrap();
    simulated.run(open_accounts);
    let ended = Arc::new(AtomicBool::new(false));
    let tasks: Vec<_> = (0..3)
        .map(|task| {
            let ended = Arc::clone(&ended);
            simulated.spawn(move |db| {
                let mut random = Pcg64::seed_from_u64(task);
                let mut rounds = 0;
                while !ended.load(Ordering::Relaxed) || rounds < 100 {
                    transfer(db, &mut random).unwrap();
                    rounds += 1;
                }
            })
        })
        .collect();
    let builder = on(target);
    let copied = simulated.run(move |db| {
        let copied = db.backup(builder);
        ended.store(true, Ordering::Relaxed);
        copied.map(|copied| copied.records)
    });
    simulated.run_until_idle();
    for task in tasks {
        assert!(task.is_finished());
        task.join().unwrap();
    }
    (simulated, copied)
}

/// The copy, if it can be opened.
fn open_copy(target: &Arc<SimDevice>) -> Result<usize, Error> {
    target.disarm_faults();
    target.power_on();
    let mut simulated = Simulated::open(on(target), COSTS)?;
    Ok(simulated.run(|db| {
        db.check().unwrap();
        audit(db)
    }))
}

fn check_source(mut simulated: Simulated) {
    simulated.run(|db| {
        db.sync().unwrap();
        db.checkpoint().unwrap();
        db.check().unwrap();
        audit(db);
    });
}

#[test]
fn a_task_copies_its_store_in_virtual_time_the_same_every_time() {
    let play = || {
        let (source, target) = (drive(1), drive(2));
        let (simulated, copied) = copy_in_virtual_time(&source, &target);
        assert_eq!(copied.unwrap(), u64::from(ACCOUNTS));
        let now = simulated.now();
        check_source(simulated);
        (now, target.events(), open_copy(&target).unwrap())
    };
    let first = play();
    assert!(first.2 > 0, "nobody wrote meanwhile");
    assert_eq!(first, play());
}

/// Whatever happens to the target: the copy is complete and acknowledged, or cannot be opened, and the source
/// goes on.
fn copy_with(fault: impl Fn(&mut Pcg64, u64) -> Fault, seeds: std::ops::Range<u64>) {
    let (clean_source, clean) = (drive(1), drive(2));
    let (simulated, copied) = copy_in_virtual_time(&clean_source, &clean);
    copied.unwrap();
    drop(simulated);
    let mut failed = 0;
    for seed in seeds.clone() {
        println!("seed {seed}");
        let mut random = Pcg64::seed_from_u64(seed);
        let (source, target) = (drive(1), drive(2));
        target.inject(fault(&mut random, clean.events()));
        let (simulated, copied) = copy_in_virtual_time(&source, &target);
        check_source(simulated);
        match (copied, open_copy(&target)) {
            (Ok(_), opened) => drop(opened.unwrap()),
            (Err(error), Err(refused)) => {
                assert_eq!(refused.kind(), ErrorKind::NotFound, "{refused}");
                assert!(
                    matches!(error.kind(), ErrorKind::Io | ErrorKind::Poisoned | ErrorKind::Full),
                    "{error}"
                );
                failed += 1;
            }
            // The power failed between its last step and its answer.
            (Err(_), Ok(_)) => failed += 1,
        }
    }
    assert!(failed > 0, "no fault came in the way");
}

#[test]
fn a_power_cut_at_the_target_leaves_a_copy_or_what_cannot_be_opened() {
    let fault = |random: &mut Pcg64, events: u64| {
        let event = random.random_range(0..events + events / 20);
        Fault::new(FaultKind::PowerCut(random_cut(random))).at(Trigger::Event(event))
    };
    copy_with(fault, 0..12);
}

#[test]
fn errors_of_the_target_end_the_copy_and_leave_the_source_alone() {
    let fault = |random: &mut Pcg64, _: u64| {
        let (kind, operation, most) = match random.random_range(0..4) {
            0 => (FaultKind::WriteError { done_bytes: 0 }, Operation::Write, 40),
            1 => (FaultKind::NoSpace, Operation::Write, 40),
            2 => (FaultKind::FlushError { data: FlushLoss::Dropped }, Operation::Flush, 12),
            _ => (FaultKind::DeviceGone, Operation::Write, 40),
        };
        Fault::new(kind).at(Trigger::Nth(random.random_range(1..most))).on(operation)
    };
    copy_with(fault, 0..16);
}

#[test]
fn damage_in_the_source_is_not_copied() {
    let damage = [FaultKind::FlipInFlight { bit: None }, FaultKind::ReadError { done_bytes: 0 }];
    for (seed, kind) in (0..).zip(damage) {
        let (source, target) = (drive(seed), drive(2));
        let mut simulated = Simulated::create(on(&source), COSTS).unwrap();
        let records = || (0..40_000_u32).map(|key| (key.to_be_bytes(), [7; 100]));
        simulated.run(move |db| db.tree("t").unwrap().load(records()).unwrap());
        drop(simulated);
        let mut simulated = Simulated::open(on(&source), COSTS).unwrap();
        let fault = Fault::new(kind).at(Trigger::Nth(20)).on(Operation::Read);
        source.inject(fault.repeat(Repeat::Sticky));
        let builder = on(&target);
        let error = simulated.run(|db| db.backup(builder)).unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::Corrupt | ErrorKind::Io), "{error}");
        assert_eq!(Simulated::open(on(&target), COSTS).err().unwrap().kind(), ErrorKind::NotFound);
        // It was on the way only: the next attempt is complete.
        source.disarm_faults();
        let builder = on(&target);
        assert_eq!(simulated.run(|db| db.backup(builder)).unwrap().records, 40_000);
        let mut copy = Simulated::open(on(&target), COSTS).unwrap();
        let count = copy.run(|db| {
            let tree = db.existing_tree("t").unwrap();
            tree.iter().unwrap().filter(|record| record.as_ref().unwrap().1 == [7; 100]).count()
        });
        assert_eq!(count, 40_000);
    }
}

/// A task may use any store, not only that of its worker.
#[test]
fn regression_a_task_of_one_store_writes_to_another_one_on_that_ones_device() {
    let memory = || -> Arc<dyn Device> { Arc::new(MemoryDevice::new(64 << 20, 0).unwrap()) };
    let devices = [memory(), memory()];
    let builder = |place: usize| -> Builder {
        Db::builder().device(Arc::clone(&devices[place])).cache_bytes(1 << 20).workers(1)
    };
    let stores = [0, 1].map(|place| builder(place).create().unwrap());
    let trees = stores.each_ref().map(|db| db.tree("t").unwrap());
    let tasks: Vec<_> = (0..20_u32)
        .map(|task| {
            let tree = trees[1].clone();
            stores[0].spawn(move || {
                (0..100).try_for_each(|number| tree.insert((task * 100 + number).to_be_bytes(), [7; 900]))
            })
        })
        .collect();
    tasks.into_iter().for_each(|task| task.join().unwrap().unwrap());
    trees[0].insert("own", "value").unwrap();
    drop((stores, trees));
    for (place, expected) in [(0, 1), (1, 2000)] {
        let db = builder(place).open().unwrap();
        db.check().unwrap();
        assert_eq!(db.existing_tree("t").unwrap().iter().unwrap().count(), expected);
    }
}

/// Otherwise keys and values that the source takes would be too long, or in pages of their own.
#[test]
fn trees_of_a_copy_have_nodes_as_large_as_in_the_source() {
    let (source, target) = (drive(1), drive(2));
    let mut simulated = Simulated::create(on(&source).node_bytes(4096), COSTS).unwrap();
    let copied = Arc::clone(&target);
    simulated.run(move |db| {
        for class in 0..3 {
            let options = TreeOptions::new().node_bytes(4096 << class);
            let tree = db.tree_with(&format!("{class}"), &options).unwrap();
            tree.insert(vec![7; tree.key_bytes_max()], vec![8; 900]).unwrap();
        }
        db.backup(on(&copied)).unwrap();
    });
    let mut copy = Simulated::open(on(&target), COSTS).unwrap();
    copy.run(|db| {
        for class in 0..3 {
            let tree = db.existing_tree(&format!("{class}")).unwrap();
            assert_eq!(tree.key_bytes_max(), 1024 << class);
            assert_eq!(tree.get(vec![7; tree.key_bytes_max()]).unwrap().unwrap(), [8; 900]);
        }
    });
}
