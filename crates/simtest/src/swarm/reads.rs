//! Reads a tree in all ways, and compares with the expected content.

use std::collections::BTreeMap;
use std::ops::{Bound, RangeBounds};

use flashgrain::{Error, Readable, Tree, Value};
use rand::RngExt;
use rand_pcg::Pcg64;

use super::keys::Keys;
use crate::world::{KeyRange, Stop};

/// Records of a tree.
pub type Records = BTreeMap<Vec<u8>, Vec<u8>>;

/// Key by key at most this number of times in one look during other tasks' work.
const LOOKS: usize = 12;

/// Records at the begin of a scan that are compared.
const FIRST_RECORDS: usize = 3;

/// A key as people can read it.
pub fn shown(key: &[u8]) -> String {
    let text: String =
        key.iter().take(24).flat_map(|byte| std::ascii::escape_default(*byte)).map(char::from).collect();
    format!("{text} ({} bytes)", key.len())
}

fn shown_range(range: &KeyRange) -> String {
    let one = |bound: &Bound<Vec<u8>>| match bound {
        Bound::Included(key) => format!("including {}", shown(key)),
        Bound::Excluded(key) => format!("excluding {}", shown(key)),
        Bound::Unbounded => "the end".to_owned(),
    };
    format!("from {} to {}", one(&range.0), one(&range.1))
}

/// The records of a range, whichever bounds it has.
pub fn within<'a>(
    records: &'a Records,
    range: &'a KeyRange,
) -> impl DoubleEndedIterator<Item = (&'a Vec<u8>, &'a Vec<u8>)> {
    records.iter().filter(|(key, _)| range.contains(*key))
}

/// A record that was found where another one was expected, or none.
///
/// # Errors
/// They differ.
pub fn compare(
    how: &str,
    found: Option<(&[u8], &[u8])>,
    expected: Option<(&[u8], &[u8])>,
) -> Result<(), Stop> {
    if found == expected {
        return Ok(());
    }
    let text = |record: Option<(&[u8], &[u8])>| match record {
        Some((key, value)) => format!("{} = {}", shown(key), shown(value)),
        None => "nothing".to_owned(),
    };
    Err(Stop::Wrong(format!("{how}: found {}, not {}", text(found), text(expected))))
}

fn record((key, value): &(Value, Value)) -> (&[u8], &[u8]) {
    (key, value)
}

fn slices<'a>((key, value): (&'a Vec<u8>, &'a Vec<u8>)) -> (&'a [u8], &'a [u8]) {
    (key, value)
}

/// Reads of one source of records.
pub struct Reads<'a, S> {
    /// The source: the store, or a snapshot.
    pub source: &'a S,
    /// Its tree.
    pub tree: &'a Tree,
    /// The tree's keys.
    pub keys: &'a Keys,
    /// The records that the tree has.
    pub expected: &'a Records,
}

impl<S: Readable> Reads<'_, S> {
    /// Everything, in every way.
    ///
    /// # Errors
    /// The store's; a difference.
    pub fn all(&self, random: &mut Pcg64) -> Result<(), Stop> {
        let everything = (Bound::Unbounded, Bound::Unbounded);
        self.forwards(&everything)?;
        self.backwards(&everything)?;
        for key in self.keys.all() {
            self.get(key)?;
        }
        self.get_many(self.keys.all())?;
        for _ in 0..4 {
            let range = self.keys.range(random);
            self.forwards(&range)?;
            self.backwards(&range)?;
            self.in_both_ways(&range, random)?;
        }
        self.at_remembered_bounds()?;
        self.by_cursor(random)
    }

    /// Scans begin where removals of ranges began and ended, in both directions.
    fn at_remembered_bounds(&self) -> Result<(), Stop> {
        for key in self.keys.remembered() {
            for bound in [Bound::Included(key.clone()), Bound::Excluded(key)] {
                for range in [(bound.clone(), Bound::Unbounded), (Bound::Unbounded, bound)] {
                    self.begins(&range, FIRST_RECORDS)?;
                }
            }
        }
        Ok(())
    }

    /// The first records of a range, from both ends.
    fn begins(&self, range: &KeyRange, count: usize) -> Result<(), Stop> {
        let how = |way: &str| format!("the begin of a scan {way} {}", shown_range(range));
        let mut found = self.source.range(self.tree, range.clone())?;
        let mut expected = within(self.expected, range);
        for _ in 0..count {
            let (found, expected) = (found.next().transpose()?, expected.next());
            compare(&how("forwards"), found.as_ref().map(record), expected.map(slices))?;
        }
        let mut found = self.source.range(self.tree, range.clone())?;
        let mut expected = within(self.expected, range);
        for _ in 0..count {
            let (found, expected) = (found.next_back().transpose()?, expected.next_back());
            compare(&how("backwards"), found.as_ref().map(record), expected.map(slices))?;
        }
        Ok(())
    }

    /// In one of the ways.
    ///
    /// # Errors
    /// As [`Reads::all`].
    pub fn some(&self, random: &mut Pcg64) -> Result<(), Stop> {
        let range = self.keys.range(random);
        match random.random_range(0..7) {
            0 => self.forwards(&range),
            1 => self.backwards(&range),
            2 => self.in_both_ways(&range, random),
            3 => self.by_cursor(random),
            4 => self.get_many(self.keys.run(random, LOOKS as u64)),
            _ => {
                let count = random.random_range(1..LOOKS);
                (0..count).try_for_each(|_| self.get(&self.keys.any(random)))
            }
        }
    }

    fn forwards(&self, range: &KeyRange) -> Result<(), Stop> {
        let how = || format!("a scan {}", shown_range(range));
        let mut found = self.source.range(self.tree, range.clone())?;
        let mut expected = within(self.expected, range);
        loop {
            let (found, expected) = (found.next().transpose()?, expected.next());
            compare(&how(), found.as_ref().map(record), expected.map(slices))?;
            if found.is_none() {
                return Ok(());
            }
        }
    }

    fn backwards(&self, range: &KeyRange) -> Result<(), Stop> {
        let how = || format!("a scan backwards {}", shown_range(range));
        let mut found = self.source.range(self.tree, range.clone())?;
        let mut expected = within(self.expected, range);
        loop {
            let (found, expected) = (found.next_back().transpose()?, expected.next_back());
            compare(&how(), found.as_ref().map(record), expected.map(slices))?;
            if found.is_none() {
                return Ok(());
            }
        }
    }

    fn in_both_ways(&self, range: &KeyRange, random: &mut Pcg64) -> Result<(), Stop> {
        let how = || format!("a scan from both ends {}", shown_range(range));
        let mut found = self.source.range(self.tree, range.clone())?;
        let mut expected = within(self.expected, range);
        loop {
            let (found, expected) = match random.random() {
                true => (found.next().transpose()?, expected.next()),
                false => (found.next_back().transpose()?, expected.next_back()),
            };
            compare(&how(), found.as_ref().map(record), expected.map(slices))?;
            if found.is_none() {
                return Ok(());
            }
        }
    }

    fn get(&self, key: &[u8]) -> Result<(), Stop> {
        let found = self.source.get(self.tree, key)?;
        let expected = self.expected.get(key).map(|value| (key, value.as_slice()));
        compare("a look-up", found.as_ref().map(|value| (key, value.as_slice())), expected)?;
        let is_there = self.source.contains_key(self.tree, key)?;
        let says = |is_there: bool| is_there.then_some((key, &[][..]));
        compare("whether there is a key", says(is_there), says(expected.is_some()))
    }

    fn get_many(&self, keys: &[Vec<u8>]) -> Result<(), Stop> {
        let found = self.source.get_many(self.tree, keys)?;
        for (key, found) in keys.iter().zip(found) {
            let expected = self.expected.get(key).map(|value| (key.as_slice(), value.as_slice()));
            compare(
                "a look-up of many",
                found.as_ref().map(|value| (key.as_slice(), value.as_slice())),
                expected,
            )?;
        }
        Ok(())
    }

    fn by_cursor(&self, random: &mut Pcg64) -> Result<(), Stop> {
        let mut cursor = self.source.cursor(self.tree)?;
        let key = match self.keys.range(random).0 {
            Bound::Included(key) | Bound::Excluded(key) => key,
            Bound::Unbounded => Vec::new(),
        };
        cursor.seek(&key);
        let mut behind = self.expected.range(key.clone()..);
        for _ in 0..random.random_range(1..5) {
            let (found, expected) = (cursor.next()?, behind.next());
            compare("a cursor", found.as_ref().map(record), expected.map(slices))?;
        }
        cursor.seek(&key);
        let mut before = self.expected.range(..key);
        for _ in 0..random.random_range(1..5) {
            let (found, expected) = (cursor.prev()?, before.next_back());
            compare("a cursor backwards", found.as_ref().map(record), expected.map(slices))?;
        }
        Ok(())
    }
}

/// Errors that a run has in addition to those that any store may have.
#[derive(Clone, Copy, Debug)]
pub struct Expected {
    /// Those of a merge operator.
    pub of_operator: bool,
    /// Those of trees that have no room for the versions that snapshots keep.
    pub of_snapshots: bool,
    /// Any, as reads fail.
    pub any: bool,
}

/// Of an error that a store may have at any time in a run, nothing.
///
/// # Errors
/// Any other.
pub fn forgive<T>(done: Result<T, Stop>, expected: Expected) -> Result<Option<T>, Stop> {
    match done {
        Ok(done) => Ok(Some(done)),
        Err(Stop::Error(_)) if expected.any => Ok(None),
        Err(Stop::Error(
            Error::Conflict
            | Error::Full { .. }
            | Error::NotDurable { .. }
            | Error::BatchLength { .. }
            | Error::TreeDropped { .. }
            | Error::NoTree { .. },
        )) => Ok(None),
        Err(Stop::Error(Error::OperatorFailed { .. })) if expected.of_operator => Ok(None),
        Err(Stop::Error(Error::TreeFailed { .. })) if expected.of_snapshots => Ok(None),
        Err(stop) => Err(stop),
    }
}
