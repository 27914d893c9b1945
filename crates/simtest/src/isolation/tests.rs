//! Made-up histories with known anomalies.

use super::*;
use Operation::{Append, Read};

/// Transactions of sessions of their own, from `begun` to `ended`.
fn history(transactions: &[(u64, u64, &[Operation])]) -> History {
    let transaction =
        |(session, (begun, ended, operations)): (usize, &(u64, u64, &[Operation]))| Transaction {
            session,
            begun: *begun,
            ended: *ended,
            operations: operations.to_vec(),
            outcome: Outcome::Committed,
        };
    History { transactions: transactions.iter().enumerate().map(transaction).collect() }
}

fn read(key: Key, list: &[u64]) -> Operation {
    Read(key, list.to_vec())
}

fn kinds(history: &History) -> Vec<Kind> {
    Judgement::of(history).kinds().into_iter().collect()
}

#[test]
fn a_serial_history_is_all_right() {
    let history = history(&[
        (0, 1, &[read(1, &[]), Append(1, 10), read(1, &[10]), Append(1, 11), read(1, &[10, 11])]),
        (2, 3, &[read(1, &[10, 11]), Append(1, 12), read(2, &[]), Append(2, 20)]),
        (4, 5, &[read(1, &[10, 11, 12]), read(2, &[20])]),
    ]);
    let judgement = Judgement::of(&history);
    assert!(judgement.anomalies.is_empty(), "{:?}", judgement.anomalies);
    assert_eq!((judgement.committed, judgement.dependencies), (3, 4));
}

#[test]
fn write_skew_is_found_and_allowed() {
    let history = history(&[
        (0, 9, &[read(1, &[]), read(2, &[]), Append(1, 10)]),
        (0, 9, &[read(1, &[]), read(2, &[]), Append(2, 20)]),
        (10, 11, &[read(1, &[10]), read(2, &[20])]),
    ]);
    let judgement = Judgement::of(&history);
    assert_eq!(kinds(&history), [Kind::WriteSkew]);
    assert_eq!(judgement.violations().count(), 0);
}

/// Fekete, O'Neil and O'Neil, "A Read-Only Transaction Anomaly Under Snapshot Isolation", 2004.
#[test]
fn a_reader_that_makes_a_history_unserializable_is_allowed() {
    let history = history(&[
        (0, 20, &[read(1, &[]), read(2, &[]), Append(1, 10)]),
        (1, 2, &[read(2, &[]), Append(2, 20)]),
        (3, 4, &[read(1, &[]), read(2, &[20])]),
        (30, 31, &[read(1, &[10]), read(2, &[20])]),
    ]);
    assert_eq!(kinds(&history), [Kind::WriteSkew]);
}

#[test]
fn a_lost_update_is_found() {
    let both = history(&[
        (0, 9, &[read(1, &[]), Append(1, 10)]),
        (0, 9, &[read(1, &[]), Append(1, 11)]),
        (10, 11, &[read(1, &[11])]),
    ]);
    assert_eq!(kinds(&both), [Kind::LostWrite, Kind::LostUpdate]);
    // No other transaction saw it happen.
    let unseen = history(&[(0, 9, &[read(1, &[]), Append(1, 10)]), (0, 9, &[read(1, &[]), Append(1, 11)])]);
    assert_eq!(kinds(&unseen), [Kind::LostUpdate]);
}

#[test]
fn a_read_skew_is_found() {
    let history = history(&[
        (0, 9, &[read(1, &[]), Append(1, 10), read(2, &[]), Append(2, 20)]),
        (0, 9, &[read(1, &[]), read(2, &[20])]),
        (10, 11, &[read(1, &[10]), read(2, &[20])]),
    ]);
    assert_eq!(kinds(&history), [Kind::ReadSkew]);
}

#[test]
fn a_long_fork_is_found() {
    let history = history(&[
        (0, 9, &[read(1, &[]), Append(1, 10)]),
        (0, 9, &[read(2, &[]), Append(2, 20)]),
        (0, 9, &[read(1, &[10]), read(2, &[])]),
        (0, 9, &[read(1, &[]), read(2, &[20])]),
        (10, 11, &[read(1, &[10]), read(2, &[20])]),
    ]);
    assert!(kinds(&history).contains(&Kind::LongFork), "{:?}", kinds(&history));
}

#[test]
fn dirty_writes_and_circles_are_found() {
    let dirty = history(&[
        (0, 9, &[Append(1, 10), Append(2, 20)]),
        (0, 9, &[Append(1, 11), Append(2, 21)]),
        (10, 11, &[read(1, &[10, 11]), read(2, &[21, 20])]),
    ]);
    assert_eq!(kinds(&dirty), [Kind::DirtyWrite]);
    let circle = history(&[
        (0, 9, &[read(2, &[20]), read(1, &[]), Append(1, 10)]),
        (0, 9, &[read(1, &[10]), read(2, &[]), Append(2, 20)]),
    ]);
    assert!(kinds(&circle).contains(&Kind::CircularFlow), "{:?}", kinds(&circle));
}

#[test]
fn what_was_committed_before_must_be_seen() {
    let stale = history(&[
        (0, 1, &[read(1, &[]), Append(1, 10)]),
        (2, 3, &[read(1, &[])]),
        (4, 5, &[read(1, &[10])]),
    ]);
    assert_eq!(kinds(&stale), [Kind::Stale]);
    // At the same time it may miss it.
    let aside = history(&[
        (0, 3, &[read(1, &[]), Append(1, 10)]),
        (2, 3, &[read(1, &[])]),
        (4, 5, &[read(1, &[10])]),
    ]);
    assert_eq!(kinds(&aside), []);
    // A later reader sees everything that an earlier one has seen.
    let back = history(&[
        (0, 9, &[read(1, &[]), Append(1, 10)]),
        (1, 2, &[read(1, &[10])]),
        (3, 4, &[read(1, &[])]),
        (10, 11, &[read(1, &[10])]),
    ]);
    assert_eq!(kinds(&back), [Kind::Stale]);
}

#[test]
fn reads_of_what_never_was_are_found() {
    let mut aborted = history(&[(0, 1, &[read(1, &[]), Append(1, 10)]), (2, 3, &[read(1, &[10])])]);
    aborted.transactions[0].outcome = Outcome::Aborted;
    assert_eq!(kinds(&aborted), [Kind::AbortedRead]);
    let between =
        history(&[(0, 9, &[read(1, &[]), Append(1, 10), Append(1, 11)]), (0, 9, &[read(1, &[10])])]);
    assert!(kinds(&between).contains(&Kind::IntermediateRead));
    assert!(kinds(&history(&[(0, 1, &[read(1, &[7])])])).contains(&Kind::Garbage));
    let twice = history(&[(0, 1, &[read(1, &[]), Append(1, 10)]), (2, 3, &[read(1, &[10, 10])])]);
    assert!(kinds(&twice).contains(&Kind::Garbage));
    let other_order = history(&[
        (0, 9, &[read(1, &[]), Append(1, 10)]),
        (0, 9, &[read(1, &[10]), Append(1, 11)]),
        (10, 11, &[read(1, &[10, 11])]),
        (12, 13, &[read(1, &[11, 10])]),
    ]);
    assert!(kinds(&other_order).contains(&Kind::IncompatibleOrder));
}

#[test]
fn a_transaction_sees_its_own_writes_and_nobody_elses() {
    let own = history(&[(0, 1, &[read(1, &[]), Append(1, 10), read(1, &[])])]);
    assert!(kinds(&own).contains(&Kind::InternalRead));
    let others = history(&[
        (0, 9, &[read(1, &[]), read(1, &[10])]),
        (0, 9, &[read(1, &[]), Append(1, 10)]),
        (10, 11, &[read(1, &[10])]),
    ]);
    assert!(kinds(&others).contains(&Kind::InternalRead));
}

/// An acknowledged commit must be there after a crash; a commit under way may be; transactions that read it
/// before it was durable are left out.
#[test]
fn a_crash_takes_only_what_was_not_acknowledged() {
    let mut crash = history(&[
        (0, 1, &[read(1, &[]), Append(1, 10)]),
        (2, u64::MAX, &[read(1, &[10]), Append(1, 11)]),
        (3, 4, &[read(1, &[10, 11])]),
        (5, 6, &[read(1, &[10]), Append(1, 12)]),
        (7, 8, &[read(1, &[10, 12])]),
    ]);
    crash.transactions[1].outcome = Outcome::Unknown;
    let judgement = Judgement::of(&crash);
    assert_eq!((judgement.anomalies.len(), judgement.read_too_early), (0, 1), "{:?}", judgement.anomalies);
    // Survived, though the commit was not acknowledged.
    crash.transactions[3].operations = vec![read(1, &[10, 11]), Append(1, 12)];
    crash.transactions[4].operations = vec![read(1, &[10, 11, 12])];
    assert_eq!((kinds(&crash), Judgement::of(&crash).committed), (vec![], 5));
    // Lost, though the commit was acknowledged.
    crash.transactions[1].outcome = Outcome::Committed;
    crash.transactions[3].operations = vec![read(1, &[10]), Append(1, 12)];
    crash.transactions[4].operations = vec![read(1, &[10, 12])];
    assert!(kinds(&crash).contains(&Kind::LostWrite));
}
