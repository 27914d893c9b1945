//! Random concurrent transactions, judged afterwards: each has read the records of its snapshot, and of two
//! that wrote the same key, one began after the other had committed.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;

use super::*;

pub(super) const KEYS: u32 = 12;

/// The reads and writes of a transaction.
pub(super) struct Done {
    snapshot: Timestamp,
    read: Vec<(Vec<u8>, Option<Vec<u8>>)>,
    scanned: Option<Vec<(Vec<u8>, Vec<u8>)>>,
    wrote: Vec<(Vec<u8>, Option<Vec<u8>>)>,
    /// Nothing for one that lost.
    committed: Option<Timestamp>,
    /// Whether its reads were validated as well.
    serializable: bool,
}

fn key(number: u32) -> Vec<u8> {
    format!("key{number}").into_bytes()
}

/// One transaction.
pub(super) fn transact(transactions: &Arc<Transactions>, tree: &Tree, keys: u32, random: &mut Pcg64) -> Done {
    let snapshot = transactions.snapshot().unwrap();
    let mut done = Done {
        snapshot: snapshot.timestamp(),
        read: Vec::new(),
        scanned: None,
        wrote: Vec::new(),
        committed: None,
        serializable: random.random_range(0..4) == 0,
    };
    for _ in 0..random.random_range(0..4) {
        let key = key(random.random_range(0..keys));
        let value = get(transactions, tree, &key, Some(&snapshot));
        done.read.push((key, value));
        crate::task::yield_now();
    }
    if random.random_range(0..4) == 0 {
        done.scanned = Some(scan(tree, &snapshot));
    }
    let mut wrote = BTreeMap::new();
    for _ in 0..random.random_range(0..4) {
        let value = random.random_range(0..3).ne(&0).then(|| random.random::<u64>().to_le_bytes().to_vec());
        wrote.insert(key(random.random_range(0..keys)), value);
    }
    done.wrote = wrote.into_iter().collect();
    let write = |(key, value): &'_ (Vec<u8>, Option<Vec<u8>>)| -> (Vec<u8>, Option<Vec<u8>>) {
        (key.clone(), value.clone())
    };
    let owned: Vec<_> = done.wrote.iter().map(write).collect();
    let writes: Vec<_> = owned
        .iter()
        .map(|(key, value)| Written {
            tree,
            key,
            write: value.as_ref().map_or(Write::Remove, |value| Write::Put(value)),
        })
        .collect();
    let reads: Vec<_> = done.read.iter().map(|(key, _)| Read { tree, key }).collect();
    let reads = if done.serializable { &reads[..] } else { &[] };
    let durability = if random.random_range(0..8) == 0 { Durability::Sync } else { Durability::None };
    match transactions.commit(Some(snapshot.timestamp()), reads, &writes, durability) {
        Ok(committed) => {
            done.committed = committed;
            // Later snapshots see it.
            assert!(
                committed.is_none_or(|committed| transactions.snapshot().unwrap().timestamp() >= committed)
            );
        }
        Err(Error::Conflict) => {}
        Err(error) => panic!("{error}"),
    }
    done
}

/// All versions of each key, by the commit that wrote them.
type Versions = BTreeMap<Vec<u8>, BTreeMap<Timestamp, Option<Vec<u8>>>>;

fn at(versions: &Versions, key: &[u8], snapshot: Timestamp) -> Option<Vec<u8>> {
    versions.get(key)?.range(..=snapshot).next_back()?.1.clone()
}

/// How many lost to another one.
pub(super) fn judge(all: &[Done], seed: u64) -> usize {
    let mut versions = Versions::new();
    for done in all {
        for ((key, value), committed) in done.wrote.iter().zip(std::iter::repeat(done.committed)) {
            if let Some(committed) = committed {
                versions.entry(key.clone()).or_default().insert(committed, value.clone());
            }
        }
    }
    // Removing an absent record changes nothing.
    for versions in versions.values_mut() {
        let mut before = None;
        versions
            .retain(|_, value| std::mem::replace(&mut before, value.clone()).is_some() || value.is_some());
    }
    let newer = |key: &[u8], from: Timestamp, until: Timestamp| {
        versions
            .get(key)
            .is_some_and(|versions| versions.range(Timestamp(from.0 + 1)..until).next().is_some())
    };
    let mut lost = 0;
    for done in all {
        for (key, value) in &done.read {
            assert_eq!(
                *value,
                at(&versions, key, done.snapshot),
                "seed {seed}: {key:?} at {:?}",
                done.snapshot
            );
        }
        if let Some(scanned) = &done.scanned {
            let seen =
                versions.keys().filter_map(|key| Some((key.clone(), at(&versions, key, done.snapshot)?)));
            assert_eq!(*scanned, seen.collect::<Vec<_>>(), "seed {seed}: the scan at {:?}", done.snapshot);
        }
        let checked = done.wrote.iter().map(|(key, _)| key);
        let read = done.read.iter().map(|(key, _)| key).filter(|_| done.serializable);
        let checked: Vec<_> = checked.chain(read).collect();
        match done.committed {
            Some(committed) => {
                let lost_update = checked.iter().any(|key| newer(key, done.snapshot, committed));
                assert!(!lost_update, "seed {seed}: {committed:?} of {:?}", done.snapshot);
            }
            None if done.wrote.is_empty() => {}
            None => {
                lost += 1;
                let reason = checked.iter().any(|key| newer(key, done.snapshot, Timestamp(u64::MAX)));
                assert!(reason, "seed {seed}: a conflict with nobody");
            }
        }
    }
    lost
}

#[test]
fn tasks_of_several_workers_see_their_snapshots_and_the_first_to_commit_wins() {
    let seeds = std::env::var("FLASHGRAIN_SEEDS").ok().and_then(|seeds| seeds.parse().ok()).unwrap_or(20);
    for seed in 0..seeds {
        let (transactions, mut harness) = store(3);
        let (tree, map) = transactions.tree(1);
        let all = Arc::new(Mutex::new(Vec::new()));
        for task in 0..12 {
            let (transactions, tree, all) = (transactions.clone(), tree.clone(), Arc::clone(&all));
            let _goes_on = harness.spawn(task % 3, move || {
                let mut random = Pcg64::seed_from_u64(seed << 8 | task as u64);
                for _ in 0..60 {
                    let done = transact(&transactions, &tree, KEYS, &mut random);
                    all.lock().unwrap().push(done);
                }
            });
        }
        harness.run_until_idle();
        let all = std::mem::take(&mut *all.lock().unwrap());
        assert_eq!(all.len(), 12 * 60, "seed {seed}: somebody got stuck or panicked");
        assert!(judge(&all, seed) > 0, "seed {seed}: nobody was in another's way");
        transactions.settle().unwrap();
        let left = transactions.snapshot().unwrap();
        assert_eq!(map.len(), scan(&tree, &left).len(), "seed {seed}");
        drop(left);
        assert_eq!(transactions.old_versions().records, 0, "seed {seed}");
    }
}

#[test]
fn threads_see_their_snapshots_and_the_first_to_commit_wins() {
    let (transactions, _harness) = store(1);
    let (tree, _) = transactions.tree(1);
    let all = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let (transactions, tree, all) = (&transactions, &tree, &all);
            scope.spawn(move || {
                let mut random = Pcg64::seed_from_u64(thread);
                for _ in 0..800 {
                    let done = transact(transactions, tree, KEYS, &mut random);
                    all.lock().unwrap().push(done);
                }
            });
        }
    });
    assert!(judge(&all.into_inner().unwrap(), 0) > 0, "nobody was in another's way");
    transactions.settle().unwrap();
    assert_eq!(transactions.old_versions().records, 0);
}

/// Writers that give all keys the same value in one commit, and readers that come now and then: a snapshot
/// sees the values of one commit, however often it looks.
#[test]
fn a_snapshot_sees_whole_commits_and_does_not_change() {
    for seed in 0..40 {
        let (transactions, mut harness) = store(2);
        let (tree, _) = transactions.tree(1);
        let seen = Arc::new(Mutex::new(0));
        let keys: Vec<_> = (0..4).map(key).collect();
        for task in 0..3_u64 {
            let (transactions, tree, keys) = (transactions.clone(), tree.clone(), keys.clone());
            drop(harness.spawn(task as usize % 2, move || {
                for round in 0..40 {
                    let value = (seed << 32 | task << 16 | round).to_le_bytes();
                    let put = |key| Written { tree: &tree, key, write: Write::Put(&value) };
                    let writes: Vec<_> = keys.iter().map(|key| put(key)).collect();
                    transactions.commit(None, &[], &writes, Durability::None).unwrap();
                    crate::task::yield_now();
                }
            }));
        }
        let (own, count) = (transactions.clone(), Arc::clone(&seen));
        let handle = harness.spawn(0, move || {
            let mut random = Pcg64::seed_from_u64(seed);
            for _ in 0..30 {
                (0..random.random_range(0..9)).for_each(|_| crate::task::yield_now());
                let snapshot = own.snapshot().unwrap();
                let first = scan(&tree, &snapshot);
                let [one, .., last] = first.as_slice() else { continue };
                assert!(first.len() == 4 && one.1 == last.1, "seed {seed}: {first:?}");
                (0..random.random_range(0..9)).for_each(|_| crate::task::yield_now());
                for (key, value) in &first {
                    assert_eq!(get(&own, &tree, key, Some(&snapshot)).as_ref(), Some(value), "seed {seed}");
                }
                *count.lock().unwrap() += 1;
            }
        });
        harness.run_until_idle();
        assert!(handle.is_finished() && handle.join().is_ok(), "seed {seed}");
        assert!(*seen.lock().unwrap() > 10, "seed {seed}: a reader saw nothing");
    }
}

/// The index tells a commit of another key of the same group from a commit of the key itself.
#[test]
fn nobody_loses_to_a_commit_of_another_key() {
    let (transactions, _harness) = store(1);
    let (tree, _) = transactions.tree(1);
    let snapshot = transactions.snapshot().unwrap();
    for key in 0..200_000_u32 {
        put(&transactions, &tree, &key.to_be_bytes(), b"");
    }
    for key in 200_000..200_300_u32 {
        let key = key.to_be_bytes();
        let written = Written { tree: &tree, key: &key, write: Write::Put(b"own") };
        let since = Some(snapshot.timestamp());
        transactions.commit(since, &[], &[written], Durability::None).unwrap();
    }
    let stats = transactions.conflict_stats();
    assert!(stats.asked > 200 && stats.refused_unsure == 0, "{stats:?}");
}
