//! Many records at a time: removing ranges, beside others and when the power fails.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use flashgrain::{
    Builder, CpuCosts, Db, Durability, Error, ErrorKind, IndexKind, Readable, Simulated, Tree, TreeOptions,
};
use flashgrain_device::Device;
use flashgrain_ssdsim::fault::{Fault, FaultKind, PowerCut, Survivors, Tear, Trigger};
use flashgrain_ssdsim::{SimConfig, SimDevice};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;

/// Records that [`Tree::remove_range`] says it removes as one.
const AS_ONE: u32 = 1024;

fn fill(db: &Db, tree: &Tree, keys: std::ops::Range<u32>, value: &[u8]) -> Result<(), Error> {
    for start in keys.clone().step_by(500) {
        let mut batch = db.batch().durability(Durability::Buffered);
        for key in start..keys.end.min(start + 500) {
            batch.insert(tree, key.to_be_bytes(), value)?;
        }
        batch.commit()?;
    }
    db.sync()
}

fn keys(tree: &Tree) -> Vec<u32> {
    tree.iter().unwrap().map(|record| u32::from_be_bytes(record.unwrap().0[..].try_into().unwrap())).collect()
}

#[test]
fn a_range_of_any_size_goes_and_nothing_beside_it() {
    let db = Db::in_memory(64 << 20).unwrap();
    let tree = db.tree("t").unwrap();
    fill(&db, &tree, 0..20_000, b"value").unwrap();
    let before = db.snapshot().unwrap();
    let key = |number: u32| number.to_be_bytes();
    assert_eq!(tree.remove_range(key(5)..key(15)).unwrap(), 10);
    assert_eq!(tree.remove_range(key(5)..=key(15)).unwrap(), 1);
    assert_eq!(tree.remove_range(key(30)..key(20)).unwrap(), 0);
    assert_eq!(tree.remove_range(key(100)..key(19_000)).unwrap(), 18_900);
    assert_eq!(keys(&tree), (0..5).chain(16..100).chain(19_000..20_000).collect::<Vec<_>>());
    assert_eq!(tree.remove_range::<&[u8]>(..).unwrap(), 1089);
    assert_eq!(tree.iter().unwrap().count(), 0);
    assert_eq!(before.iter(&tree).unwrap().count(), 20_000);
    db.drop_tree("t").unwrap();
    assert_eq!(tree.remove_range::<&[u8]>(..).unwrap_err().kind(), ErrorKind::Dropped);
}

/// Commits that a removal of so many records takes, with keys of this length.
fn commits_of_a_removal(kind: IndexKind, log_bytes: Option<u64>, records: u32, key_bytes: usize) -> u64 {
    let device = Arc::new(flashgrain_device::MemoryDevice::new(256 << 20, 0).unwrap());
    let builder = Db::builder().device(device).durability(Durability::None);
    let db = log_bytes.into_iter().fold(builder, Builder::log_bytes).create().unwrap();
    let tree = db.tree_with("t", &TreeOptions::new().kind(kind)).unwrap();
    for number in 0..records {
        let mut key = number.to_be_bytes().to_vec();
        key.resize(key_bytes, 1);
        tree.insert(&key, "value").unwrap();
    }
    let commits = || {
        // Commits are counted as the log writes them.
        db.sync().unwrap();
        db.stats().log.records
    };
    let before = commits();
    assert_eq!(tree.remove_range::<&[u8]>(..).unwrap(), u64::from(records));
    commits() - before
}

#[test]
fn a_range_that_the_log_may_take_as_one_is_one_commit() {
    for kind in [IndexKind::BTree, IndexKind::Lsm, IndexKind::BeTree] {
        assert_eq!(commits_of_a_removal(kind, None, AS_ONE, 256), 1, "{kind:?}");
        assert_eq!(commits_of_a_removal(kind, None, AS_ONE + 1, 256), 2, "{kind:?}");
        // Almost an eighth of a log of 256 KiB is for one commit; a removal takes 33 bytes of it.
        assert_eq!(commits_of_a_removal(kind, Some(256 << 10), 600, 30), 1, "{kind:?}");
        assert_eq!(commits_of_a_removal(kind, Some(256 << 10), 1000, 30), 2, "{kind:?}");
    }
}

#[test]
fn overflow_values_in_a_range_are_freed() {
    let db = Db::in_memory(64 << 20).unwrap();
    let tree = db.tree("t").unwrap();
    fill(&db, &tree, 0..40, &vec![7; 100_000]).unwrap();
    db.checkpoint().unwrap();
    let full_bytes = db.stats().space.live_bytes;
    assert_eq!(tree.remove_range::<&[u8]>(..).unwrap(), 40);
    let left_behind = loop {
        if let Some(pages) = db.reclaim().unwrap() {
            break pages;
        }
        std::thread::yield_now();
    };
    db.checkpoint().unwrap();
    let remaining_bytes = db.stats().space.live_bytes;
    assert!(
        left_behind == 0 && full_bytes > 4_000_000 && remaining_bytes < 1_000_000,
        "{full_bytes}, {remaining_bytes}"
    );
}

#[test]
fn a_transaction_removes_a_range_with_its_own_writes_or_says_that_it_is_too_long() {
    let db = Db::builder()
        .device(Arc::new(flashgrain_device::MemoryDevice::new(64 << 20, 0).unwrap()))
        .log_bytes(1 << 20)
        .create()
        .unwrap();
    let tree = db.tree("t").unwrap();
    fill(&db, &tree, 0..20_000, b"").unwrap();
    let mut transaction = db.begin().unwrap();
    transaction.insert(&tree, 20_000_u32.to_be_bytes(), "own").unwrap();
    transaction.remove(&tree, 19_999_u32.to_be_bytes()).unwrap();
    assert_eq!(transaction.remove_range::<&[u8]>(&tree, ..).unwrap_err().kind(), ErrorKind::Argument);
    assert_eq!(transaction.remove_range(&tree, 18_000_u32.to_be_bytes()..).unwrap(), 2_000);
    assert_eq!(transaction.iter(&tree).unwrap().count(), 18_000);
    assert_eq!(tree.iter().unwrap().count(), 20_000);
    transaction.commit().unwrap();
    assert_eq!(keys(&tree), (0..18_000).collect::<Vec<_>>());
}

/// Ends those who work beside a test, however that ends.
struct Ends<'a>(&'a AtomicBool);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Who adds a record always renews another one with it: a removal of both as one never takes only one of the
/// two.
#[test]
fn a_removal_is_before_or_after_each_commit_beside_it() {
    const WRITERS: u8 = 2;
    let db = Db::in_memory(16 << 20).unwrap();
    let tree = db.tree("t").unwrap();
    let ended = AtomicBool::new(false);
    let (mut removed, mut seen) = (0, 0);
    std::thread::scope(|scope| {
        for writer in 0..WRITERS {
            let (db, tree, ended) = (&db, &tree, &ended);
            scope.spawn(move || {
                let mut round = 0_u64;
                while !ended.load(Ordering::Relaxed) {
                    round += 1;
                    let mut batch = db.batch().durability(Durability::None);
                    for place in [0, 1 + (round % 200) as u8] {
                        batch.insert(tree, [writer, place], round.to_be_bytes()).unwrap();
                    }
                    batch.commit().unwrap();
                }
            });
        }
        let _ends = Ends(&ended);
        while removed < 5000 {
            removed += tree.remove_range::<&[u8]>(..).unwrap();
            let snapshot = db.snapshot().unwrap();
            for writer in 0..WRITERS {
                let renewed = snapshot.get(&tree, [writer, 0]).unwrap();
                let added = snapshot.range(&tree, [writer, 1]..[writer + 1, 0]).unwrap();
                let newest = added.map(|record| record.unwrap().1).max();
                assert_eq!(renewed, newest, "writer {writer}");
                seen += u32::from(newest.is_some());
            }
        }
    });
    assert!(seen > 0, "they did not meet");
}

pub fn drive(seed: u64) -> Arc<SimDevice> {
    let config = SimConfig { capacity_bytes: 64 << 20, ..SimConfig::named("905p").unwrap() };
    Arc::new(SimDevice::new(&config, "sim:905p", seed).unwrap())
}

pub fn on(drive: &Arc<SimDevice>) -> Builder {
    let device: Arc<dyn Device> = Arc::clone(drive) as _;
    Db::builder().device(device).workers(2).cache_bytes(1 << 20).recovery_log_bytes(1 << 20)
}

pub const COSTS: CpuCosts = CpuCosts { task_ns: 500, request_ns: 500, ..CpuCosts::NONE };

pub fn random_cut(random: &mut Pcg64) -> PowerCut {
    let survivors = match random.random_range(0..4) {
        0 => Survivors::None,
        1 => Survivors::All,
        _ => Survivors::Random,
    };
    let tear = match random.random_range(0..2) {
        0 => Tear::Whole,
        _ => Tear::Shorn { unit_bytes: 512 },
    };
    PowerCut { survivors, tear, in_flight: random.random_bool(0.7), seed: random.random() }
}

/// Prepares a store and does something to it while the power fails; then `look` sees what is left, and
/// whether the deed had been acknowledged.
fn cut_during(
    seeds: std::ops::Range<u64>,
    prepare: impl Fn(&Db) + Send + Clone + 'static,
    deed: impl Fn(&Db) -> Result<(), Error> + Send + Clone + 'static,
    look: impl Fn(&Db, bool) + Send + Clone + 'static,
) {
    for seed in seeds {
        println!("seed {seed}");
        let mut random = Pcg64::seed_from_u64(seed);
        let mut ends = [0; 2];
        // First without a fault, to know when it happens.
        for is_cut in [false, true] {
            let drive = drive(seed);
            let mut simulated = Simulated::create(on(&drive), COSTS).unwrap();
            simulated.run(prepare.clone());
            if is_cut {
                let event = random.random_range(ends[0]..ends[1] + ends[1] / 50);
                let cut = FaultKind::PowerCut(random_cut(&mut random));
                drive.inject(Fault::new(cut).at(Trigger::Event(event)));
            } else {
                ends[0] = drive.events();
            }
            let done = simulated.run(deed.clone());
            ends[1] = drive.events();
            simulated.abandon();
            drive.disarm_faults();
            drive.power_on();
            assert!(is_cut || done.is_ok(), "{done:?}");
            let mut simulated = Simulated::open(on(&drive), COSTS).unwrap();
            let look = look.clone();
            simulated.run(move |db| {
                look(db, done.is_ok());
                db.check().unwrap();
            });
        }
    }
}

#[test]
fn of_a_removal_a_power_cut_leaves_whole_steps_in_key_order() {
    let partial = Arc::new(AtomicBool::new(false));
    let seen = Arc::clone(&partial);
    const ALL: u32 = 50_000;
    cut_during(
        0..12,
        |db| fill(db, &db.tree("t").unwrap(), 0..ALL, &[1; 20]).unwrap(),
        |db| db.tree("t")?.remove_range::<&[u8]>(..).map(drop),
        move |db, is_done| {
            let left = keys(&db.tree("t").unwrap());
            let removed = ALL - left.len() as u32;
            assert_eq!(left, (removed..ALL).collect::<Vec<_>>());
            assert!(removed.is_multiple_of(AS_ONE) || removed == ALL, "{removed} is not a whole step");
            assert!(!is_done || removed == ALL, "{removed} of what was acknowledged");
            seen.fetch_or(removed > 0 && removed < ALL, Ordering::Relaxed);
        },
    );
    assert!(partial.load(Ordering::Relaxed), "it was never cut in the middle");
}

fn records(numbers: std::ops::Range<u32>) -> impl Iterator<Item = ([u8; 4], [u8; 60])> {
    numbers.map(|number| (number.to_be_bytes(), [number as u8; 60]))
}

#[test]
fn a_load_leaves_full_leaves_and_says_which_record_is_not_in_order() {
    let db = Db::in_memory(64 << 20).unwrap();
    let tree = db.tree("t").unwrap();
    assert_eq!(tree.load(records(0..50_000)).unwrap(), 50_000);
    assert_eq!(tree.load(records(0..0)).unwrap(), 0);
    let check = db.check().unwrap();
    let used = check.used_bytes as f64 / check.node_bytes as f64;
    assert!(check.records == 50_000 && used > 0.95, "{used}");
    // Over records that are there, and between them.
    let twice =
        (49_000..60_000_u32).map(|number| (number.to_be_bytes(), vec![2; 2000 * (number % 2) as usize]));
    assert_eq!(tree.load(twice).unwrap(), 11_000);
    assert_eq!(keys(&tree), (0..60_000).collect::<Vec<_>>());
    assert_eq!(tree.get(49_001_u32.to_be_bytes()).unwrap().unwrap(), vec![2; 2000]);
    for (keys, expected) in [(vec!["b", "a"], 1), (vec!["a", "a"], 1), (vec!["a", "b", "c", "bb", "d"], 3)] {
        match tree.load(keys.iter().map(|key| (key, ""))) {
            Err(Error::Order { record }) => assert_eq!(record, expected),
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(tree.load([("", "")]).unwrap_err().kind(), ErrorKind::Argument);
}

#[test]
fn of_a_load_a_power_cut_leaves_whole_steps_in_key_order() {
    let partial = Arc::new(AtomicBool::new(false));
    let seen = Arc::clone(&partial);
    const ALL: u32 = 30_000;
    cut_during(
        20..32,
        |db| drop(db.tree("t").unwrap()),
        |db| db.tree("t")?.load(records(0..ALL)).map(drop),
        move |db, is_done| {
            let tree = db.tree("t").unwrap();
            let loaded = keys(&tree);
            let count = loaded.len() as u32;
            assert_eq!(loaded, (0..count).collect::<Vec<_>>());
            let is_whole = tree
                .iter()
                .unwrap()
                .zip(records(0..count))
                .all(|(found, (_, value))| found.unwrap().1 == value);
            assert!(
                is_whole && (count.is_multiple_of(AS_ONE) || count == ALL),
                "{count} is not a whole step"
            );
            assert!(!is_done || count == ALL, "{count} of what was acknowledged");
            seen.fetch_or(count > 0 && count < ALL, Ordering::Relaxed);
        },
    );
    assert!(partial.load(Ordering::Relaxed), "it was never cut in the middle");
}

/// Records a second, and bytes written to the drive for each byte of keys and values: a load, single inserts,
/// and inserts that do not wait for the drive.
#[test]
#[ignore = "a measurement: cargo test --release -p flashgrain --test all bulk::speed -- --ignored --nocapture"]
fn speed_of_loading() {
    let folder = tempfile::TempDir::new_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    for (how, count) in [("load", 2_000_000), ("single, sync", 20_000), ("single, no wait", 2_000_000)] {
        let durability = if how == "single, no wait" { Durability::None } else { Durability::Sync };
        let db = Db::builder().path(folder.path().join(how)).durability(durability).create().unwrap();
        let tree = db.tree("t").unwrap();
        let (before, begun) = (db.stats().device.written_bytes, db.now());
        match how {
            "load" => assert_eq!(tree.load(records(0..count)).unwrap(), u64::from(count)),
            _ => records(0..count).for_each(|(key, value)| tree.insert(key, value).unwrap()),
        }
        db.sync().unwrap();
        let seconds = (db.now() - begun).as_secs_f64();
        db.checkpoint().unwrap();
        let written = (db.stats().device.written_bytes - before) as f64 / (f64::from(count) * 64.0);
        println!("{how}: {:.0} records/s, {written:.2} bytes written per byte", f64::from(count) / seconds);
    }
}

#[test]
fn the_first_record_of_a_step_must_follow_the_last_one_of_the_step_before() {
    let db = Db::in_memory(64 << 20).unwrap();
    let tree = db.tree("t").unwrap();
    let step = AS_ONE as usize;
    for place in [step - 1, step, step + 1, 2 * step] {
        let mut all: Vec<_> = records(1..3 * AS_ONE).collect();
        all.insert(place, all[place - 1]);
        match tree.load(all) {
            Err(Error::Order { record }) => assert_eq!(record, place as u64),
            other => panic!("{place}: {other:?}"),
        }
    }
}

/// Fewer records than a step has are waited for as more are.
#[test]
fn a_range_that_was_removed_stays_away_after_a_power_cut_however_short_it_is() {
    for removed in [1, 10, 3000_u32] {
        let drive = drive(removed.into());
        let mut simulated = Simulated::create(on(&drive), COSTS).unwrap();
        let looked = Arc::clone(&drive);
        let image = simulated.run(move |db| {
            let tree = db.tree("t").unwrap();
            fill(db, &tree, 0..5000, &[1; 20]).unwrap();
            let found = tree.remove_range(..removed.to_be_bytes()).unwrap();
            assert_eq!(found, u64::from(removed));
            looked.image()
        });
        simulated.abandon();
        let cut = PowerCut { survivors: Survivors::None, ..PowerCut::default() };
        drive.restore(&image.after(&cut)).unwrap();
        let mut simulated = Simulated::open(on(&drive), COSTS).unwrap();
        let left = simulated.run(|db| keys(&db.tree("t").unwrap()));
        assert_eq!(left, (removed..5000).collect::<Vec<_>>());
    }
}
