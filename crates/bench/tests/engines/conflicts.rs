//! Transactions at the same time end as if they had come one after the other, or are told to try again.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use anyhow::ensure;
use flashgrain_bench::engine::{Direction, Durability, Failure, Session, Table};
use rand::{RngExt as _, SeedableRng as _};
use rand_pcg::Pcg64Mcg;

use super::{ask, records, setup, wait, with_each};

const KEY: &[u8] = b"counter";

fn counter(session: &mut dyn Session, table: Table, key: &[u8]) -> Result<u64, Failure> {
    let mut value = Vec::new();
    if !session.get(table, key, &mut value)? {
        return Ok(0);
    }
    let bytes = value.try_into().map_err(|value| anyhow::anyhow!("{value:?} is no counter"))?;
    Ok(u64::from_be_bytes(bytes))
}

/// Events that two clients wait for in each other.
#[derive(Default)]
struct Meeting {
    first_has_read: AtomicBool,
    second_has_read: AtomicBool,
    /// Both had read before either wrote.
    overlapped: AtomicBool,
    committed: AtomicU64,
}

fn add_one(
    session: &mut dyn Session,
    between: impl Fn(&mut dyn Session) -> Result<(), Failure>,
) -> Result<(), Failure> {
    session.begin()?;
    let seen = counter(session, 0, KEY)?;
    between(session)?;
    session.put(0, KEY, &(seen + 1).to_be_bytes())?;
    session.commit()
}

fn meet(client: usize, session: &mut dyn Session, meeting: &Meeting) -> anyhow::Result<()> {
    let tick = Duration::from_millis(1);
    let outcome = if client == 0 {
        add_one(session, |session| {
            meeting.first_has_read.store(true, Ordering::SeqCst);
            // The second cannot come where there is a single writer: it waits for us.
            for _ in 0..100 {
                if meeting.second_has_read.load(Ordering::SeqCst) {
                    meeting.overlapped.store(true, Ordering::SeqCst);
                    break;
                }
                wait(session, tick)?;
            }
            Ok(())
        })
    } else {
        while !meeting.first_has_read.load(Ordering::SeqCst) {
            wait(session, tick)?;
        }
        add_one(session, |_| {
            meeting.second_has_read.store(true, Ordering::SeqCst);
            Ok(())
        })
    };
    match outcome {
        Ok(()) => meeting.committed.fetch_add(1, Ordering::SeqCst),
        Err(Failure::Conflict) => {
            // The transaction has ended already.
            session.rollback();
            0
        }
        Err(Failure::Broken(error)) => return Err(error),
    };
    Ok(())
}

#[test]
fn of_two_that_raise_the_same_counter_one_wins_or_the_other_waits() {
    with_each(|name, dir| {
        let engine = name.open(&setup(dir, Durability::Buffered)).unwrap();
        let mut sum = 0;
        for _ in 0..4 {
            let meeting = Arc::new(Meeting::default());
            let met = Arc::clone(&meeting);
            engine.run(2, Arc::new(move |client, session| meet(client, session, &met))).unwrap();
            let committed = meeting.committed.load(Ordering::SeqCst);
            let expected = if meeting.overlapped.load(Ordering::SeqCst) { 1 } else { 2 };
            assert_eq!(committed, expected, "{name}: commits of two");
            sum += committed;
            assert_eq!(
                ask(&*engine, |session| Ok(counter(session, 0, KEY)?)).unwrap(),
                sum,
                "{name}: the counter"
            );
        }
        engine.close().unwrap();
    });
}

const CLIENTS: u64 = 8;
const COUNTERS: u8 = 5;
const RAISES_PER_CLIENT: u64 = 40;

fn sum(session: &mut dyn Session, table: Table) -> Result<u64, Failure> {
    let mut sum = 0;
    for (_, value) in records(session, table, &[0], Direction::Forward, usize::MAX)? {
        let bytes = value.try_into().map_err(|value| anyhow::anyhow!("{value:?} is no counter"))?;
        sum += u64::from_be_bytes(bytes);
    }
    Ok(sum)
}

/// Raises one counter in each table.
fn raise(session: &mut dyn Session, keys: [u8; 2]) -> Result<(), Failure> {
    session.begin()?;
    for (table, key) in keys.iter().enumerate() {
        let seen = counter(session, table, &[*key])?;
        // Else clients that are started one after the other would hardly meet.
        wait(session, Duration::from_micros(50))?;
        session.put(table, &[*key], &(seen + 1).to_be_bytes())?;
    }
    session.commit()
}

/// Both tables are raised by the same transactions, so that no snapshot may tell them apart.
fn compare(session: &mut dyn Session) -> Result<[u64; 2], Failure> {
    session.begin_reading()?;
    let first = sum(session, 0)?;
    wait(session, Duration::from_micros(50))?;
    let sums = [first, sum(session, 1)?];
    session.commit()?;
    Ok(sums)
}

/// Tries again after a conflict, until it is done.
fn persist<T>(
    session: &mut dyn Session,
    mut attempt: impl FnMut(&mut dyn Session) -> Result<T, Failure>,
) -> anyhow::Result<T> {
    loop {
        match attempt(session) {
            Ok(done) => return Ok(done),
            Err(Failure::Conflict) => session.rollback(),
            Err(Failure::Broken(error)) => return Err(error),
        }
    }
}

#[test]
fn counters_add_up_whoever_raises_them() {
    with_each(|name, dir| {
        let engine = name.open(&setup(dir, Durability::Buffered)).unwrap();
        let work = move |client: usize, session: &mut dyn Session| {
            let mut random = Pcg64Mcg::seed_from_u64(client as u64);
            for _ in 0..RAISES_PER_CLIENT {
                let keys = [random.random_range(0..COUNTERS), random.random_range(0..COUNTERS)];
                persist(session, |session| raise(session, keys))?;
                if random.random_ratio(1, 4) {
                    let [first, second] = persist(session, compare)?;
                    ensure!(first == second, "a snapshot shows {first} and {second}");
                }
            }
            Ok(())
        };
        engine.run(CLIENTS as usize, Arc::new(work)).unwrap();
        let sums = ask(&*engine, |session| persist(session, compare)).unwrap();
        assert_eq!(sums, [CLIENTS * RAISES_PER_CLIENT; 2], "{name}");
        engine.close().unwrap();
    });
}

#[test]
fn single_operations_never_meet_a_conflict() {
    with_each(|name, dir| {
        let engine = name.open(&setup(dir, Durability::Buffered)).unwrap();
        let work = |client: usize, session: &mut dyn Session| {
            let mut random = Pcg64Mcg::seed_from_u64(client as u64);
            for number in 0..100_u32 {
                let key = [random.random_range(0..COUNTERS)];
                match random.random_range(0..4) {
                    0 => session.remove(0, &key)?,
                    1 => drop(records(session, 0, &key, Direction::Forward, 3)?),
                    _ => session.put(0, &key, &number.to_be_bytes())?,
                }
            }
            Ok(())
        };
        engine.run(CLIENTS as usize, Arc::new(work)).unwrap();
        engine.close().unwrap();
    });
}
