//! Whatever one session does, it sees what a map would show it.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

use anyhow::ensure;
use flashgrain_bench::engine::{Direction, Durability, Engine, Session, Table};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestCaseError, TestRunner};

use super::{TABLES, records, setup, with_each};

/// Engines differ most where records are no longer in their pages.
const VALUE_BYTES_MAX: usize = 60_000;
const CASES: u32 = 32;

#[derive(Clone, Debug)]
enum Step {
    Get(Table, Vec<u8>),
    GetMany(Table, Vec<Vec<u8>>),
    Put(Table, Vec<u8>, Content),
    Remove(Table, Vec<u8>),
    Scan { table: Table, from: Vec<u8>, backward: bool, most: usize },
    Begin,
    BeginReading,
    Commit,
    Rollback,
}

/// A value, short to print.
#[derive(Clone, Copy, Debug)]
struct Content {
    bytes: usize,
    seed: u8,
}

impl Content {
    fn value(self) -> Vec<u8> {
        (0..self.bytes).map(|at| (at as u8).wrapping_mul(31) ^ (at >> 8) as u8 ^ self.seed).collect()
    }
}

/// Few different bytes, so that keys meet, share prefixes and are prefixes of each other.
fn key() -> impl Strategy<Value = Vec<u8>> {
    let part = vec(prop::sample::select(vec![0, 1, b'a', 0xff]), 1..5);
    (prop::sample::select(vec![0, 0, 0, 40, 300]), part).prop_map(|(prefix, part)| {
        let mut key = vec![b'p'; prefix];
        key.extend(part);
        key
    })
}

fn content() -> impl Strategy<Value = Content> {
    let bytes =
        prop_oneof![2 => Just(0), 12 => 1..200_usize, 3 => 200..5_000_usize, 1 => 5_000..=VALUE_BYTES_MAX];
    (bytes, any::<u8>()).prop_map(|(bytes, seed)| Content { bytes, seed })
}

fn step() -> impl Strategy<Value = Step> {
    let table = || 0..TABLES.len();
    prop_oneof![
        6 => (table(), key()).prop_map(|(table, key)| Step::Get(table, key)),
        2 => (table(), vec(key(), 0..100)).prop_map(|(table, keys)| Step::GetMany(table, keys)),
        12 => (table(), key(), content()).prop_map(|(table, key, content)| Step::Put(table, key, content)),
        4 => (table(), key()).prop_map(|(table, key)| Step::Remove(table, key)),
        4 => (table(), key(), any::<bool>(), 0..40_usize)
            .prop_map(|(table, from, backward, most)| Step::Scan { table, from, backward, most }),
        2 => Just(Step::Begin),
        1 => Just(Step::BeginReading),
        2 => Just(Step::Commit),
        1 => Just(Step::Rollback),
    ]
}

type Map = BTreeMap<Vec<u8>, Vec<u8>>;

#[derive(Default)]
struct Model {
    tables: [Map; 2],
    /// The content that a rollback restores, and whether the transaction may write.
    begun: Option<([Map; 2], bool)>,
}

impl Model {
    fn may_write(&self) -> bool {
        self.begun.as_ref().is_none_or(|(_, writes)| *writes)
    }

    fn scan(&self, table: Table, from: &[u8], backward: bool, most: usize) -> Vec<(Vec<u8>, Vec<u8>)> {
        let map = &self.tables[table];
        let pair = |(key, value): (&Vec<u8>, &Vec<u8>)| (key.clone(), value.clone());
        if backward {
            map.range::<[u8], _>((Bound::Unbounded, Bound::Included(from)))
                .rev()
                .take(most)
                .map(pair)
                .collect()
        } else {
            map.range::<[u8], _>((Bound::Included(from), Bound::Unbounded)).take(most).map(pair).collect()
        }
    }
}

fn empty(session: &mut dyn Session) -> anyhow::Result<()> {
    for table in 0..TABLES.len() {
        for (key, _) in records(session, table, &[0], Direction::Forward, usize::MAX)? {
            session.remove(table, &key)?;
        }
    }
    Ok(())
}

fn play(session: &mut dyn Session, script: &[Step]) -> anyhow::Result<()> {
    empty(session)?;
    let mut model = Model::default();
    for (number, step) in script.iter().enumerate() {
        take(session, &mut model, step).map_err(|error| error.context(format!("step {number}: {step:?}")))?;
    }
    if let Some((before, _)) = model.begun.take() {
        session.rollback();
        model.tables = before;
    }
    for table in 0..TABLES.len() {
        let found = records(session, table, &[0], Direction::Forward, usize::MAX)?;
        ensure!(found == model.scan(table, &[0], false, usize::MAX), "table {table} at the end");
    }
    Ok(())
}

fn take(session: &mut dyn Session, model: &mut Model, step: &Step) -> anyhow::Result<()> {
    match step {
        Step::Get(table, key) => {
            let mut value = b"left over".to_vec();
            let found = session.get(*table, key, &mut value)?;
            let expected = model.tables[*table].get(key);
            ensure!(
                found == expected.is_some() && value == *expected.unwrap_or(&Vec::new()),
                "got {value:?}"
            );
        }
        Step::GetMany(table, keys) => {
            let borrowed: Vec<&[u8]> = keys.iter().map(Vec::as_slice).collect();
            let mut found = vec![None; keys.len()];
            let mut twice = false;
            session.get_many(*table, &borrowed, &mut |place, value| {
                twice |= found[place].replace(value.to_vec()).is_some();
            })?;
            let expected: Vec<_> = keys.iter().map(|key| model.tables[*table].get(key).cloned()).collect();
            ensure!(!twice && found == expected, "got {found:?}");
        }
        Step::Put(table, key, content) if model.may_write() => {
            session.put(*table, key, &content.value())?;
            model.tables[*table].insert(key.clone(), content.value());
        }
        Step::Remove(table, key) if model.may_write() => {
            session.remove(*table, key)?;
            model.tables[*table].remove(key);
        }
        Step::Scan { table, from, backward, most } => {
            let direction = if *backward { Direction::Backward } else { Direction::Forward };
            let found = records(session, *table, from, direction, *most)?;
            let keys: Vec<_> = found.iter().map(|(key, value)| (key, value.len())).collect();
            ensure!(found == model.scan(*table, from, *backward, *most), "found {keys:?}");
        }
        Step::Begin if model.begun.is_none() => {
            session.begin()?;
            model.begun = Some((model.tables.clone(), true));
        }
        Step::BeginReading if model.begun.is_none() => {
            session.begin_reading()?;
            model.begun = Some((model.tables.clone(), false));
        }
        Step::Commit if model.begun.is_some() => {
            session.commit()?;
            model.begun = None;
        }
        Step::Rollback => {
            session.rollback();
            if let Some((before, _)) = model.begun.take() {
                model.tables = before;
            }
        }
        // Not what a session may be asked now.
        Step::Put(..) | Step::Remove(..) | Step::Begin | Step::BeginReading | Step::Commit => {}
    }
    Ok(())
}

fn matches_a_map(engine: &dyn Engine) {
    let cases = std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(CASES);
    let mut runner = TestRunner::new(Config { cases, failure_persistence: None, ..Config::default() });
    let outcome = runner.run(&vec(step(), 1..120), |script| {
        let script = Arc::new(script);
        engine
            .run(1, Arc::new(move |_, session| play(session, &script)))
            .map_err(|error| TestCaseError::fail(format!("{error:#}")))
    });
    if let Err(error) = outcome {
        panic!("{error}");
    }
}

#[test]
fn a_session_sees_what_a_map_would_show() {
    with_each(|name, dir| {
        let engine = name.open(&setup(dir, Durability::Buffered)).unwrap();
        matches_a_map(&*engine);
        engine.close().unwrap();
    });
}
