//! Commits, snapshots and locks under many schedules of threads.

use crate::log::tests::layout;
use rand::SeedableRng;
use rand_pcg::Pcg64;
use shuttle::rand::Rng;
use shuttle::thread::spawn;

use super::isolation::{judge, transact};
use super::*;
use crate::log::Logged;
use crate::sync::atomic::{AtomicU64, AtomicUsize};
use crate::sync::explored::{explore, point};
use crate::sync::{Mutex, thread};
use crate::task::Executor;
use crate::txn::locks::Stripe;

/// Transactions whose background work is never done.
fn alone() -> Store {
    let devices = Devices::new(Arc::new(MemoryDevice::new(1 << 20, 1 << 20).unwrap()), None);
    let (executor, poison) = (Executor::new(vec![Arc::default()]), Poison::default());
    let log = Log::open(&layout(), devices, executor.clone(), poison.clone(), NEW, &mut |_, _, _| Ok(()));
    Store::new(log.unwrap(), poison, executor, RECENT_BYTES)
}

/// Few keys, so that nearly everyone is in another's way.
#[test]
fn all_see_their_snapshots_and_the_first_to_commit_wins() {
    explore(4000, move || {
        let transactions = alone();
        let (tree, _) = transactions.tree(1);
        let all = Arc::new(Mutex::new(Vec::new()));
        let threads: Vec<_> = (0..3)
            .map(|_| {
                let (transactions, tree, all) = (transactions.clone(), tree.clone(), Arc::clone(&all));
                let mut random = Pcg64::seed_from_u64(shuttle::rand::thread_rng().r#gen());
                spawn(move || {
                    for _ in 0..3 {
                        let done = transact(&transactions, &tree, 3, &mut random);
                        all.lock().unwrap().push(done);
                    }
                })
            })
            .collect();
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        judge(&all.lock().unwrap(), 0);
        transactions.settle().unwrap();
        assert_eq!(transactions.old_versions().records, 0);
    });
}

/// A commit changes, or removes, both records, and two read them one after the other without a snapshot: a
/// reader that has seen it in one record sees it in the other.
#[test]
fn regression_single_reads_see_no_commit_in_part() {
    const REMOVED: u8 = 4;
    explore(4000, move || {
        let transactions = alone();
        let (tree, _) = transactions.tree(1);
        let change = |round: u8| {
            let value = [round];
            let write = if round < REMOVED { Write::Put(&value) } else { Write::Remove };
            let writes = [b"a", b"b"].map(|key| Written { tree: &tree, key, write });
            transactions.commit(None, &[], &writes, Durability::None).unwrap();
        };
        change(0);
        let readers: Vec<_> = [[b"a", b"b"], [b"b", b"a"]]
            .map(|keys| {
                let (transactions, tree) = (transactions.clone(), tree.clone());
                spawn(move || {
                    for _ in 0..2 {
                        let state =
                            |key: &[u8; 1]| get(&transactions, &tree, key, None).map(|value| value[0]);
                        let [one, other] = keys.map(|key| state(key).unwrap_or(REMOVED));
                        assert!(one <= other, "{one} and then {other}");
                    }
                })
            })
            .into();
        (1..=REMOVED).for_each(change);
        readers.into_iter().for_each(|reader| reader.join().unwrap());
    });
}

/// Commits without a snapshot of their own keep the versions that a snapshot sees that comes while they are
/// under way, or it waits for them.
#[test]
fn a_snapshot_that_comes_during_a_commit_sees_all_of_it_or_nothing() {
    explore(4000, move || {
        let transactions = alone();
        let (tree, _) = transactions.tree(1);
        let change = |round: u8| {
            let value = [round];
            let writes = [b"a", b"b"].map(|key| Written { tree: &tree, key, write: Write::Put(&value) });
            transactions.commit(None, &[], &writes, Durability::None).unwrap();
        };
        change(0);
        let reader = {
            let (transactions, tree) = (transactions.clone(), tree.clone());
            spawn(move || {
                let mut before = 0;
                for _ in 0..3 {
                    let snapshot = transactions.snapshot().unwrap();
                    let states =
                        [b"a", b"b", b"a"].map(|key| get(&transactions, &tree, key, Some(&snapshot)));
                    let [first, second, again] = states.map(|value| value.expect("both are always there")[0]);
                    assert!(first == second && first == again && first >= before, "{first} {second} {again}");
                    before = first;
                }
            })
        };
        (1..=4).for_each(change);
        reader.join().unwrap();
    });
}

/// Waiters for a stripe come and go; one of them parks for another reason as well.
#[test]
fn whoever_has_a_lock_has_it_alone_and_nobody_waits_for_ever() {
    explore(10_000, || {
        let locks = Arc::new(Locks::new());
        let holders = Arc::new([const { AtomicUsize::new(0) }; 2]);
        let threads: Vec<_> = [[0, 0], [0, 1], [1, 0], [1, 1]]
            .map(|wanted| {
                let (locks, holders) = (Arc::clone(&locks), Arc::clone(&holders));
                spawn(move || {
                    for round in 0..2 {
                        if wanted[round] == 1 {
                            // A wake-up left over from something else.
                            crate::task::waker().wake();
                        }
                        let stripes = wanted.map(|stripe| Stripe::nth(stripe as u32));
                        let _held = locks.lock_many(stripes.to_vec());
                        let own = thread::number().unwrap();
                        for stripe in wanted {
                            holders[stripe].store(own, Ordering::Relaxed);
                        }
                        point();
                        for stripe in wanted {
                            assert_eq!(holders[stripe].load(Ordering::Relaxed), own);
                        }
                    }
                })
            })
            .into();
        threads.into_iter().for_each(|thread| thread.join().unwrap());
    });
}

/// Commits are applied in any order; a visible commit has been applied as a whole, and each waiter learns of
/// it.
#[test]
fn commits_become_visible_in_order_whoever_is_applied_first() {
    const COMMITS: u64 = 4;
    explore(10_000, || {
        let visible = Arc::new(Visible::new(Timestamp(0)));
        let applied = Arc::new(AtomicU64::new(0));
        for number in 1..=COMMITS {
            let (start, timestamp) = (Lsn(number * 100), Timestamp(number));
            visible.begin(Logged { start, end: Lsn(number * 100 + 100), timestamp });
        }
        let threads: Vec<_> = (1..=COMMITS)
            .map(|number| {
                let (visible, applied) = (Arc::clone(&visible), Arc::clone(&applied));
                spawn(move || {
                    applied.fetch_or(1 << number, Ordering::Relaxed);
                    visible.applied(Timestamp(number));
                    let seen = visible.get().0;
                    let all = applied.load(Ordering::Relaxed);
                    assert!((1..=seen).all(|number| all >> number & 1 == 1), "{seen} of {all:b}");
                    visible.wait(Timestamp(number), &Poison::default()).unwrap();
                    assert!(visible.get().0 >= number);
                })
            })
            .collect();
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        assert_eq!(visible.get(), Timestamp(COMMITS));
    });
}
