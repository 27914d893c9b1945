//! Whether a history of a register can be put into one order, after J. M. Wing and C. Gong, "Testing and
//! Verifying Concurrent Objects" (1993), with the states that led nowhere remembered, after G. Lowe, "Testing
//! for Linearizability" (2017).

use std::collections::HashSet;

/// An operation on a register that is missing at first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Write(u64),
    Read(Option<u64>),
}

/// Its times are numbers of a counter that all clients share.
#[derive(Clone, Copy, Debug)]
pub struct Operation {
    pub kind: Kind,
    pub called: u64,
    /// `None`: no reply, so that it may take effect at any time after the call, or never.
    pub returned: Option<u64>,
}

pub const OPERATIONS_MAX: usize = 128;

/// Whether there is an order in which each read has the value of the last write before it, and no operation
/// is before one that had returned when it was called.
pub fn is_linearizable(history: &[Operation]) -> bool {
    let history = without_unseen(history);
    assert!(history.len() <= OPERATIONS_MAX, "a set of operations is 128 bits");
    let has_returned = |&place: &usize| history[place].returned.is_some();
    let needed = (0..history.len()).filter(has_returned).fold(0_u128, |set, place| set | 1 << place);
    let mut seen = HashSet::new();
    let mut open = vec![(0_u128, None)];
    while let Some((done, value)) = open.pop() {
        if done & needed == needed {
            return true;
        }
        if !seen.insert((done, value)) {
            continue;
        }
        let left = || (0..history.len()).filter(|place| done & 1 << place == 0);
        let first_return = left().filter_map(|place| history[place].returned).min().unwrap_or(u64::MAX);
        for place in left().filter(|&place| history[place].called < first_return) {
            let next = match history[place].kind {
                Kind::Write(written) => Some(written),
                Kind::Read(read) if read == value => value,
                Kind::Read(_) => continue,
            };
            open.push((done | 1 << place, next));
        }
    }
    false
}

/// Without writes that have no answer and no reader: an order that has one is as good without it. A long
/// outage makes many of them, and each would double the states.
fn without_unseen(history: &[Operation]) -> Vec<Operation> {
    let is_read = |value| history.iter().any(|other| other.kind == Kind::Read(Some(value)));
    let is_seen = |operation: &&Operation| match operation.kind {
        Kind::Write(value) => operation.returned.is_some() || is_read(value),
        Kind::Read(_) => true,
    };
    history.iter().filter(is_seen).copied().collect()
}

fn write(value: u64, called: u64, returned: u64) -> Operation {
    Operation { kind: Kind::Write(value), called, returned: Some(returned) }
}

fn read(value: Option<u64>, called: u64, returned: u64) -> Operation {
    Operation { kind: Kind::Read(value), called, returned: Some(returned) }
}

#[test]
fn histories_are_judged() {
    let lost = Operation { kind: Kind::Write(9), called: 1, returned: None };
    let right: [&[Operation]; 5] = [
        &[read(None, 0, 1), write(1, 2, 3), read(Some(1), 4, 5)],
        // Overlapping: either order.
        &[write(1, 0, 5), read(None, 1, 2), read(Some(1), 3, 4)],
        &[write(1, 0, 9), write(2, 0, 9), read(Some(2), 1, 2), read(Some(1), 3, 4)],
        // Unanswered: late, or never.
        &[lost, write(1, 2, 3), read(Some(1), 4, 5), read(Some(9), 6, 7)],
        &[lost, write(1, 2, 3), read(Some(1), 4, 5)],
    ];
    assert!(right.into_iter().all(is_linearizable));
    let wrong: [&[Operation]; 5] = [
        &[write(1, 0, 1), write(2, 2, 3), read(Some(1), 4, 5)],
        &[write(1, 0, 1), read(None, 2, 3)],
        &[write(1, 0, 5), read(Some(1), 1, 2), read(None, 3, 4)],
        &[read(Some(9), 0, 1)],
        &[lost, read(Some(9), 2, 3), read(None, 4, 5)],
    ];
    assert!(!wrong.into_iter().any(is_linearizable));
    // An outage: all the writes of a while have no answer.
    let mut outage: Vec<Operation> = (10..100)
        .map(|value| Operation { kind: Kind::Write(value), called: value, returned: None })
        .collect();
    outage.extend([read(Some(42), 200, 201), read(Some(17), 202, 203)]);
    assert!(is_linearizable(&outage));
    outage.push(read(Some(42), 204, 205));
    assert!(!is_linearizable(&outage));
}
