//! All sessions see a commit of one session from then on, except transactions that have begun before.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use anyhow::ensure;
use flashgrain_bench::engine::{Durability, Session};

use super::{setup, wait, with_each};

const KEY: &[u8] = b"key";

#[derive(Default)]
struct Turns {
    read: AtomicBool,
    written: AtomicBool,
}

impl Turns {
    /// Waits for the other client; where readers keep writers waiting, in vain.
    fn wait_for(session: &mut dyn Session, turn: &AtomicBool, patience: u32) -> anyhow::Result<bool> {
        for _ in 0..patience {
            if turn.load(Ordering::SeqCst) {
                return Ok(true);
            }
            wait(session, Duration::from_millis(1))?;
        }
        Ok(false)
    }
}

fn seen(session: &mut dyn Session) -> anyhow::Result<Option<Vec<u8>>> {
    let mut value = Vec::new();
    Ok(session.get(0, KEY, &mut value)?.then_some(value))
}

fn reads_alone(session: &mut dyn Session, turns: &Turns) -> anyhow::Result<()> {
    ensure!(seen(session)?.is_none(), "nobody has written");
    turns.read.store(true, Ordering::SeqCst);
    ensure!(Turns::wait_for(session, &turns.written, u32::MAX)?);
    ensure!(seen(session)?.as_deref() == Some(b"new"), "a single look-up sees what was there before");
    session.begin_reading()?;
    ensure!(seen(session)?.as_deref() == Some(b"new"), "a transaction sees what was there before");
    Ok(session.commit()?)
}

fn reads_in_a_transaction(session: &mut dyn Session, turns: &Turns) -> anyhow::Result<()> {
    session.begin_reading()?;
    ensure!(seen(session)?.is_none(), "nobody has written");
    turns.read.store(true, Ordering::SeqCst);
    Turns::wait_for(session, &turns.written, 50)?;
    ensure!(seen(session)?.is_none(), "a transaction sees what was committed after it had begun");
    session.commit()?;
    ensure!(Turns::wait_for(session, &turns.written, u32::MAX)?);
    ensure!(
        seen(session)?.as_deref() == Some(b"new"),
        "after its end, the session sees what was there before"
    );
    Ok(())
}

fn while_another_writes(read: fn(&mut dyn Session, &Turns) -> anyhow::Result<()>) {
    with_each(|name, dir| {
        let engine = name.open(&setup(dir, Durability::Buffered)).unwrap();
        let turns = Turns::default();
        let work = move |client: usize, session: &mut dyn Session| {
            if client == 0 {
                return read(session, &turns);
            }
            ensure!(Turns::wait_for(session, &turns.read, u32::MAX)?);
            session.put(0, KEY, b"new")?;
            turns.written.store(true, Ordering::SeqCst);
            Ok(())
        };
        engine.run(2, Arc::new(work)).unwrap();
        engine.close().unwrap();
    });
}

#[test]
fn what_is_committed_is_seen_by_all() {
    while_another_writes(reads_alone);
}

const NUMBERS: u32 = 300;

fn counts(session: &mut dyn Session, committed: &AtomicU32) -> anyhow::Result<()> {
    for number in 1..=NUMBERS {
        session.put(0, KEY, &number.to_be_bytes())?;
        committed.store(number, Ordering::SeqCst);
        if number % 8 == 0 {
            wait(session, Duration::from_micros(50))?;
        }
    }
    Ok(())
}

fn follows(session: &mut dyn Session, committed: &AtomicU32) -> anyhow::Result<()> {
    for look in 0_u32.. {
        let least = committed.load(Ordering::SeqCst);
        let value = seen(session)?.unwrap_or_default();
        let number = <[u8; 4]>::try_from(value).map_or(0, u32::from_be_bytes);
        ensure!(number >= least, "{least} was committed before {number} was seen");
        if least == NUMBERS {
            break;
        }
        if look % 100 == 99 {
            wait(session, Duration::from_micros(50))?;
        }
    }
    Ok(())
}

#[test]
fn single_look_ups_are_never_behind() {
    with_each(|name, dir| {
        let engine = name.open(&setup(dir, Durability::Buffered)).unwrap();
        let committed = AtomicU32::new(0);
        let work = move |client: usize, session: &mut dyn Session| {
            let role = if client == 0 { counts } else { follows };
            role(session, &committed)
        };
        engine.run(3, Arc::new(work)).unwrap();
        engine.close().unwrap();
    });
}

#[test]
fn a_transaction_sees_one_state() {
    while_another_writes(reads_in_a_transaction);
}
