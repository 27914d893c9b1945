mod explored;
mod failing;
mod isolation;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use flashgrain_device::{Device, MemoryDevice};

use super::*;
use crate::index::{Direction, Piece, Tree, VERSION_BYTES, Version, Write, Written};
use crate::io_context::Devices;
use crate::log::Durability;
use crate::log::tests::{NEW, layout_of};
use crate::versioned::map::{self, Map, history};
use crate::versioned::{AllIndexes, OrderedMap};
use crate::worker::Harness;

/// Room for a few old versions; the others go to an index.
const RECENT_BYTES: u64 = 512;

/// A log in memory, and workers on this thread.
fn store(workers: usize) -> (Store, Harness) {
    store_on(Arc::new(MemoryDevice::new(8 << 20, 8 << 20).unwrap()), workers, RECENT_BYTES)
}

fn store_on(device: Arc<dyn Device>, workers: usize, recent_bytes: u64) -> (Store, Harness) {
    let devices = Devices::new(device, None);
    let harness = Harness::new(&devices, workers);
    let layout = layout_of(4 << 20);
    let poison = Poison::default();
    let log =
        Log::open(&layout, devices, harness.executor().clone(), poison.clone(), NEW, &mut |_, _, _| Ok(()));
    (Store::new(log.unwrap(), poison, harness.executor().clone(), recent_bytes), harness)
}

/// Transactions, and the indexes of all of their trees.
#[derive(Clone)]
struct Store {
    transactions: Arc<Transactions>,
    indexes: Arc<AllIndexes>,
}

impl std::ops::Deref for Store {
    type Target = Arc<Transactions>;

    fn deref(&self) -> &Arc<Transactions> {
        &self.transactions
    }
}

impl Store {
    fn new(log: Log, poison: Poison, executor: Executor, recent_bytes: u64) -> Self {
        let indexes = Arc::new(AllIndexes::new(history(&poison, recent_bytes)));
        let transactions =
            Transactions::new(log, poison, executor, Arc::clone(&indexes) as _, LsmCompression::None);
        Self { transactions: Arc::new(transactions), indexes }
    }

    /// A tree that is changed in place, and its map.
    fn tree(&self, id: u32) -> (Tree, Arc<Map>) {
        map::tree(id, self.indexes.history())
    }
}

fn put(transactions: &Transactions, tree: &Tree, key: &[u8], value: &[u8]) -> Timestamp {
    transactions.write(Written { tree, key, write: Write::Put(value) }, Durability::None).unwrap()
}

fn remove(transactions: &Transactions, tree: &Tree, key: &[u8]) -> Timestamp {
    transactions.write(Written { tree, key, write: Write::Remove }, Durability::None).unwrap()
}

fn get(transactions: &Transactions, tree: &Tree, key: &[u8], at: Option<&Snapshot>) -> Option<Vec<u8>> {
    let mut value = Vec::new();
    let found = transactions.get(tree, key, at.map(Snapshot::timestamp), &mut value).unwrap();
    found.map(|_| value)
}

fn scan(tree: &Tree, at: &Snapshot) -> Vec<(Vec<u8>, Vec<u8>)> {
    let (mut found, mut piece) = (Vec::new(), Piece::default());
    let mut steps = Arc::clone(&tree.index).scan(Direction::Forward, b"", None, 0, at.timestamp());
    while steps.step(&mut piece).unwrap() {
        found.extend(piece.iter().map(|(key, value)| (key.to_vec(), value[VERSION_BYTES..].to_vec())));
    }
    found
}

#[test]
fn a_snapshot_sees_what_was_there() {
    let (transactions, _harness) = store(1);
    let (tree, map) = transactions.tree(1);
    put(&transactions, &tree, b"a", b"1");
    put(&transactions, &tree, b"b", b"1");
    let first = transactions.snapshot().unwrap();
    put(&transactions, &tree, b"a", b"2");
    remove(&transactions, &tree, b"b");
    put(&transactions, &tree, b"c", b"2");
    let second = transactions.snapshot().unwrap();
    remove(&transactions, &tree, b"a");
    put(&transactions, &tree, b"b", b"3");
    let now = transactions.snapshot().unwrap();
    let pairs = |pairs: &[(&str, &str)]| -> Vec<(Vec<u8>, Vec<u8>)> {
        pairs.iter().map(|(key, value)| (key.as_bytes().to_vec(), value.as_bytes().to_vec())).collect()
    };
    assert_eq!(scan(&tree, &first), pairs(&[("a", "1"), ("b", "1")]));
    assert_eq!(scan(&tree, &second), pairs(&[("a", "2"), ("c", "2")]));
    assert_eq!(scan(&tree, &now), pairs(&[("b", "3"), ("c", "2")]));
    assert_eq!(get(&transactions, &tree, b"b", Some(&first)), Some(b"1".to_vec()));
    assert_eq!(get(&transactions, &tree, b"b", Some(&second)), None);
    assert_eq!(get(&transactions, &tree, b"a", None), None);
    // Nothing is left of it when no snapshot needs it any more.
    assert!(map.len() == 3 && transactions.old_versions().records > 0);
    drop((first, second, now));
    transactions.settle().unwrap();
    assert_eq!((map.len(), transactions.old_versions()), (2, OldVersions::default()));
}

#[test]
fn a_record_that_came_and_went_between_snapshots_is_not_there_again() {
    let (transactions, _harness) = store(1);
    let (tree, _) = transactions.tree(1);
    put(&transactions, &tree, b"a", b"1");
    let old = transactions.snapshot().unwrap();
    remove(&transactions, &tree, b"a");
    let between = transactions.snapshot().unwrap();
    put(&transactions, &tree, b"a", b"3");
    assert_eq!(get(&transactions, &tree, b"a", Some(&old)), Some(b"1".to_vec()));
    assert_eq!(get(&transactions, &tree, b"a", Some(&between)), None);
    put(&transactions, &tree, b"a", b"4");
    remove(&transactions, &tree, b"a");
    assert_eq!(get(&transactions, &tree, b"a", Some(&old)), Some(b"1".to_vec()));
    assert_eq!(get(&transactions, &tree, b"a", Some(&between)), None);
}

/// A snapshot that stays while everything is overwritten again and again, and short ones come and go.
#[test]
fn a_long_snapshot_keeps_one_version_of_each_key() {
    const KEYS: u32 = 200;
    let (transactions, mut harness) = store(1);
    let (tree, _) = transactions.tree(1);
    for key in 0..KEYS {
        put(&transactions, &tree, &key.to_be_bytes(), b"old");
    }
    let long = transactions.snapshot().unwrap();
    for round in 0..500_u32 {
        let short = transactions.snapshot().unwrap();
        for key in 0..KEYS {
            put(&transactions, &tree, &key.to_be_bytes(), &round.to_le_bytes());
        }
        drop(short);
        if round % 10 == 0 {
            harness.run_until_idle();
            let records = transactions.old_versions().records;
            assert!(records < 60_000, "{records} records after {round} rounds of {KEYS} keys");
        }
    }
    for key in 0..KEYS {
        assert_eq!(get(&transactions, &tree, &key.to_be_bytes(), Some(&long)), Some(b"old".to_vec()));
    }
    drop(long);
    transactions.settle().unwrap();
    assert_eq!(transactions.old_versions(), OldVersions::default());
}

/// A snapshot that comes now sees the commits that are visible now.
#[test]
fn old_versions_stay_until_the_commit_that_replaced_them_can_be_seen() {
    let (history, snapshots) = (history(&Poison::default(), RECENT_BYTES), Snapshots::default());
    let old = [&Version::put(Timestamp(3)).bits().to_le_bytes()[..], b"old"].concat();
    history.keep(&snapshots, TreeId(1), b"k", &old, Timestamp(7)).unwrap();
    for (visible, kept) in [(3, 1), (6, 1), (7, 0)] {
        history.settle(&snapshots, Timestamp(visible), true, &|_| ()).unwrap();
        assert_eq!(history.old_versions().records, kept, "{visible} can be seen");
    }
}

/// The references of the overflow values that are given back, in their order.
fn note_what_is_gone(transactions: &Transactions) -> Arc<std::sync::Mutex<Vec<Vec<u8>>>> {
    let gone = Arc::new(std::sync::Mutex::new(Vec::new()));
    let told = Arc::clone(&gone);
    transactions
        .when_overflow_is_gone(Box::new(move |reference| told.lock().unwrap().push(reference.to_vec())));
    gone
}

/// A reader that finds a reference looks at its record once more if the pages are gone: then that must be
/// another one.
#[test]
fn an_overflow_value_is_given_back_after_its_record_was_replaced() {
    let (transactions, _harness) = store(1);
    let (tree, map) = transactions.tree(1);
    let given_back = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&given_back);
    transactions.when_overflow_is_gone(Box::new(move |reference| {
        counted.fetch_add(1, Ordering::Relaxed);
        let mut record = Vec::new();
        map.get(b"k", &mut record, &mut None).unwrap();
        assert!(!record.ends_with(reference), "{reference:?} is still referred to");
    }));
    let write = |write| {
        transactions.write(Written { tree: &tree, key: b"k", write }, Durability::None).unwrap();
    };
    for reference in [b"first".as_slice(), b"second"] {
        write(Write::PutOverflow { reference, logged: b"pages" });
    }
    write(Write::Put(b"small"));
    write(Write::PutOverflow { reference: b"third", logged: b"pages" });
    write(Write::Remove);
    assert_eq!(given_back.load(Ordering::Relaxed), 3);
}

#[test]
fn an_overflow_value_is_given_back_when_nobody_sees_it() {
    let (transactions, _harness) = store(1);
    let (tree, _) = transactions.tree(1);
    let gone = note_what_is_gone(&transactions);
    let put_overflow = |key: &[u8], reference: &[u8]| {
        let written = Written { tree: &tree, key, write: Write::PutOverflow { reference, logged: b"pages" } };
        transactions.write(written, Durability::None).unwrap()
    };
    put_overflow(b"a", b"first");
    put_overflow(b"a", b"second");
    assert_eq!(*gone.lock().unwrap(), [b"first".to_vec()]);
    let snapshot = transactions.snapshot().unwrap();
    remove(&transactions, &tree, b"a");
    put_overflow(b"a", b"third");
    put(&transactions, &tree, b"a", b"small");
    transactions.settle().unwrap();
    assert_eq!(*gone.lock().unwrap(), [b"first".to_vec(), b"third".to_vec()]);
    assert_eq!(get(&transactions, &tree, b"a", Some(&snapshot)), Some(b"second".to_vec()));
    drop(snapshot);
    transactions.settle().unwrap();
    assert_eq!(*gone.lock().unwrap(), [b"first".to_vec(), b"third".to_vec(), b"second".to_vec()]);
}

#[test]
fn regression_a_commit_that_waits_for_room_keeps_an_old_version_once() {
    let (transactions, _harness) = store(1);
    let (tree, _) = transactions.tree(1);
    let gone = note_what_is_gone(&transactions);
    let overflow = Write::PutOverflow { reference: b"large", logged: b"pages" };
    transactions.write(Written { tree: &tree, key: b"a", write: overflow }, Durability::None).unwrap();
    let snapshot = transactions.snapshot().unwrap();
    // The record's version and its value are looked at before it is replaced.
    map::be_full_at(3);
    put(&transactions, &tree, b"a", b"small");
    assert!(map::has_failed());
    assert_eq!(transactions.old_versions().records, 1);
    assert_eq!(get(&transactions, &tree, b"a", Some(&snapshot)), Some(b"large".to_vec()));
    drop(snapshot);
    transactions.settle().unwrap();
    assert_eq!(*gone.lock().unwrap(), [b"large".to_vec()]);
}

/// History and snapshots end with the store; the tombstones that led to them are in its pages.
#[test]
fn tombstones_of_an_earlier_run_are_swept() {
    let (transactions, _harness) = store(1);
    let (tree, map) = transactions.tree(1);
    let leftover = Version::tombstone(Timestamp(0)).bits().to_le_bytes();
    map.update(b"a", &mut |_| crate::btree::Change::Put(&leftover)).unwrap();
    put(&transactions, &tree, b"b", b"1");
    let snapshot = transactions.snapshot().unwrap();
    remove(&transactions, &tree, b"b");
    assert_eq!(map.len(), 2);
    assert_eq!(scan(&tree, &snapshot), [(b"b".to_vec(), b"1".to_vec())]);
    assert_eq!(map.len(), 1, "only what no snapshot needs");
}

#[test]
fn what_a_tree_does_not_take_is_refused_before_anything_happens() {
    let (transactions, _harness) = store(1);
    let (tree, map) = transactions.tree(1);
    let write = |key: &[u8], value: &[u8]| {
        let written = Written { tree: &tree, key, write: Write::Put(value) };
        let good = Written { tree: &tree, key: b"good", write: Write::Put(b"1") };
        transactions.commit(None, &[], &[good, written], Durability::None).unwrap_err()
    };
    assert!(matches!(write(b"", b""), Error::KeyLength { .. }));
    let long = vec![1; tree.index.limits().key_bytes + 1];
    assert!(matches!(write(&long, b""), Error::KeyLength { .. }));
    assert!(matches!(write(b"a", &vec![1; tree.index.limits().value_bytes + 1]), Error::ValueLength { .. }));
    assert_eq!((map.len(), transactions.log.last()), (0, Timestamp(0)));
}

/// It has replaced some records and kept nothing of them, as there was no snapshot: their earlier values are
/// lost.
#[test]
fn regression_after_a_commit_that_failed_in_the_middle_nobody_reads_half_of_it() {
    for is_kept in [false, true] {
        // All that is noted is in indexes, and may fail.
        let device = MemoryDevice::new(8 << 20, 8 << 20).unwrap();
        let (transactions, _harness) = store_on(Arc::new(device), 1, 0);
        let (tree, _) = transactions.tree(1);
        put(&transactions, &tree, b"b", b"1");
        let before = transactions.snapshot().unwrap();
        put(&transactions, &tree, b"b", b"2");
        put(&transactions, &tree, b"a", b"1");
        let newer = is_kept.then(|| transactions.snapshot().unwrap());
        let write = |key, write| Written { tree: &tree, key, write };
        let writes = [write(b"a", Write::Remove), write(b"c", Write::Put(b"1"))];
        // Both are looked at before the locks and, as this index never says that they are still so, with
        // them; the tombstone is noted, and kept versions stay.
        map::fail_at(if is_kept { 8 } else { 7 });
        let failed = transactions.commit(None, &[], &writes, Durability::None).unwrap_err();
        assert!(map::has_failed() && failed.kind() == crate::ErrorKind::Io);
        let poisoned = |result: Result<Option<Version>, Error>| matches!(result, Err(Error::Poisoned { .. }));
        let read = |key: &[u8]| transactions.get(&tree, key, None, &mut Vec::new());
        assert!(transactions.log.last() > transactions.visible.get());
        match transactions.snapshot() {
            Ok(now) => assert!(is_kept && get(&transactions, &tree, b"a", Some(&now)) == Some(b"1".to_vec())),
            Err(error) => assert!(!is_kept && matches!(error, Error::Poisoned { .. })),
        }
        assert!(poisoned(read(b"a")) && poisoned(read(b"c")));
        // Records that it cannot have changed are there, also for earlier snapshots.
        assert!(read(b"b").unwrap().is_some());
        assert_eq!(get(&transactions, &tree, b"b", Some(&before)), Some(b"1".to_vec()));
        drop(newer);
    }
}

/// An earlier commit is slow: the winner is applied, but is not visible before it.
#[test]
fn who_has_lost_sees_the_winner_when_he_begins_again() {
    let (transactions, mut harness) = store(1);
    let (tree, _) = transactions.tree(1);
    let old = transactions.snapshot().unwrap();
    let slow = transactions.log.append_noting(b"", |logged| transactions.visible.begin(logged)).unwrap();
    let own = (Arc::clone(&transactions), tree.clone());
    let winner = harness.spawn(0, move || put(&own.0, &own.1, b"a", b"1"));
    let own = (Arc::clone(&transactions), tree.clone());
    let loser = harness.spawn(0, move || {
        let written = Written { tree: &own.1, key: b"a", write: Write::Put(b"2") };
        let lost = own.0.commit(Some(old.timestamp()), &[], &[written], Durability::None);
        assert!(matches!(lost, Err(Error::Conflict)));
        own.0.snapshot().unwrap().timestamp()
    });
    harness.run_until_idle();
    assert!(!winner.is_finished() && !loser.is_finished());
    transactions.visible.applied(slow.timestamp);
    harness.run_until_idle();
    assert!(loser.join().unwrap() >= winner.join().unwrap());
}
