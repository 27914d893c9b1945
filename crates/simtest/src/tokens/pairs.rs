//! Records that move between two keys, and readers of both keys without a snapshot.
//!
//! The number of a pair goes up by one with each move; its record is at the first key while the number is
//! even, at the second one while it is odd, and has the number in it. So each read of a key says something of
//! the pair's number:
//!
//! 1. a record says the number;
//! 2. no record says that the number is of the other kind.
//!
//! Reads in a row must be possible in real time: a later read must not show a number that an earlier read, or
//! the return of a commit, excludes, and none may show a number whose commit has not begun. A read that
//! returns a commit too early is found, because the next read of the other key shows the record that the
//! commit is about to move.

use flashgrain::{Db, Durability, Error, Tree};
use rand::RngExt;
use rand_pcg::Pcg64;

use super::durability::durability;
use super::ledger::{Ledger, Numbers, TASKS_MAX};
use crate::world::Stop;

/// Records between the keys of pairs, so that those are in different leaves.
const BETWEEN: u32 = 3;

/// Bytes of one of these.
const BETWEEN_BYTES: usize = 900;

/// Records that a long commit has in addition to those of its pair.
const MIDDLE: u8 = 80;

/// Reads of a pair in a row.
const READS: usize = 4;

/// The tree of all pairs.
#[derive(Clone, Debug)]
pub struct Pairs {
    tree: Tree,
}

fn key(pair: usize, number: u64) -> [u8; 3] {
    [b'a' + (number % 2) as u8, pair as u8, 0]
}

fn value(number: u64, random: &mut Pcg64) -> Vec<u8> {
    let length = if random.random_ratio(1, 8) { 3000 } else { random.random_range(8..300) };
    let mut value = vec![number as u8; length];
    value[..8].copy_from_slice(&number.to_le_bytes());
    value
}

/// The number in a value; `None` if no task wrote the value.
fn number_in(value: &[u8]) -> Option<u64> {
    let (number, rest) =
        value.split_first_chunk().map(|(number, rest)| (u64::from_le_bytes(*number), rest))?;
    rest.iter().all(|byte| *byte == number as u8).then_some(number)
}

impl Pairs {
    /// The trees of a store.
    ///
    /// # Errors
    /// As [`Db::tree`].
    pub fn of(db: &Db) -> Result<Self, Error> {
        Ok(Self { tree: db.tree("pairs")? })
    }

    /// The tree.
    pub fn tree(&self) -> &Tree {
        &self.tree
    }

    /// Puts all pairs of a new store at 0.
    ///
    /// # Errors
    /// As [`Tree::insert`].
    pub fn fill(&self, random: &mut Pcg64) -> Result<(), Error> {
        for pair in 0..TASKS_MAX {
            for number in 0..2 {
                for between in 1..=BETWEEN {
                    let [side, pair, _] = key(pair, number);
                    self.tree.insert([side, pair, between as u8], [between as u8; BETWEEN_BYTES])?;
                }
            }
            self.tree.insert(key(pair, 0), value(0, random))?;
        }
        Ok(())
    }

    /// Moves the record of a task's own pair.
    ///
    /// # Errors
    /// As [`Batch::commit`](flashgrain::Batch::commit).
    pub fn move_on(&self, db: &Db, ledger: &Ledger, pair: usize, random: &mut Pcg64) -> Result<(), Error> {
        let numbers = &ledger.pairs[pair];
        let number = numbers.begun() + 1;
        let durability = durability(random);
        let mut batch = db.batch().durability(durability);
        batch.remove(&self.tree, key(pair, number - 1))?;
        batch.insert(&self.tree, key(pair, number), value(number, random))?;
        if random.random() {
            // Keys between both, enough to stop the commit between its removal and its insert, where it may
            // be seen in part.
            for between in 0..MIDDLE {
                batch.insert(&self.tree, [b'a', u8::MAX, between], [number as u8; 8])?;
            }
        }
        numbers.begin(number);
        batch.commit()?;
        numbers.end(number, durability == Durability::Sync);
        Ok(())
    }

    /// Reads the keys of a pair, without a snapshot.
    ///
    /// # Errors
    /// Errors of the store, and impossible values.
    pub fn read(&self, ledger: &Ledger, pair: usize, random: &mut Pcg64) -> Result<(), Stop> {
        let numbers = &ledger.pairs[pair];
        let mut least = numbers.returned();
        let mut side = random.random_range(0..2);
        for _ in 0..READS {
            let read = match random.random_range(0..3) {
                0 => self.tree.get_many([key(pair, side)])?.pop().flatten(),
                _ => self.tree.get(key(pair, side))?,
            };
            least = judge(numbers, least, side, read.as_deref()).map_err(|problem| {
                Stop::Wrong(format!("pair {pair}, side {side}, at {least} or later: {problem}"))
            })?;
            side = 1 - side;
        }
        Ok(())
    }

    /// The number of a pair, read while no task moves it.
    ///
    /// # Errors
    /// Errors of the store; a pair that is at both keys or at neither.
    pub fn number(&self, pair: usize) -> Result<u64, Stop> {
        let at = |side| Ok::<_, Error>(self.tree.get(key(pair, side))?.as_deref().map(number_in));
        match (at(0)?, at(1)?) {
            (Some(Some(number)), None) if number % 2 == 0 => Ok(number),
            (None, Some(Some(number))) if number % 2 == 1 => Ok(number),
            (one, other) => Err(Stop::Wrong(format!("pair {pair} has {one:?} and {other:?}"))),
        }
    }
}

/// The least number that the pair can have after a read of the key of `side`.
fn judge(numbers: &Numbers, least: u64, side: u64, read: Option<&[u8]>) -> Result<u64, String> {
    let shown = match read.map(number_in) {
        Some(None) => return Err("a value that was never written".into()),
        Some(Some(number)) if number % 2 != side => return Err(format!("{number} at the wrong key")),
        Some(Some(number)) if number < least => return Err(format!("{number} is of the past")),
        Some(Some(number)) => number,
        // No record: the number is of the other kind.
        None => least + u64::from(least % 2 == side),
    };
    let begun = numbers.begun();
    if shown > begun {
        return Err(format!("it is at {shown} at least, but only {begun} have begun"));
    }
    Ok(shown)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_that_cannot_be_in_real_time_are_found() {
        let numbers = Numbers::default();
        (1..=5).for_each(|number| {
            numbers.begin(number);
            numbers.end(number, true);
        });
        numbers.begin(6);
        let value = |number: u64| [&number.to_le_bytes()[..], &[number as u8; 2]].concat();
        let judge = |least, side, read: Option<u64>| judge(&numbers, least, side, read.map(value).as_deref());
        assert_eq!(judge(5, 1, Some(5)), Ok(5));
        assert_eq!(judge(5, 0, None), Ok(5));
        assert_eq!(judge(5, 1, None), Ok(6));
        assert_eq!(judge(5, 0, Some(6)), Ok(6));
        // Not yet there, over, at the wrong key, and gone from both keys.
        assert!(judge(6, 0, None).is_err());
        assert!(judge(5, 0, Some(4)).is_err());
        assert!(judge(5, 0, Some(5)).is_err());
        assert!(judge(6, 1, Some(7)).is_err());
    }
}
