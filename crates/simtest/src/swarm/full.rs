//! A store whose device is kept between almost full and full.
//!
//! Inserts go on until the store is full; then records are removed, single ones or ranges, and inserts go on.
//! Records stay readable throughout, removals are taken in the end, and after them so are inserts. Between
//! rounds the store is closed and opened.

use flashgrain::{Db, Durability, Error, IndexKind};
use rand::RngExt;
use rand_pcg::Pcg64;
use std::ops::Bound;
use std::time::Duration;

use super::draw::log_uniform;
use super::slots::Slot;
use crate::world::{Change, KeyRange, Shared, Stop};

/// Looks at a store that takes nothing, before it counts as one that never will again.
const TRIES: u32 = 400;

/// Virtual time between two looks.
const WAIT: Duration = Duration::from_millis(5);

/// Records of a round, at most.
const RECORDS_MAX: u32 = 8_000;

/// Fills a tree, and makes room in it.
pub struct Filling {
    pub db: Db,
    pub shared: Shared,
    pub slot: Slot,
    pub random: Pcg64,
    /// Bytes of a value, at most.
    pub value_bytes: u64,
}

/// The counts of a round.
#[derive(Clone, Copy, Debug, Default)]
pub struct Round {
    pub inserted: u64,
    pub removed: u64,
    pub was_full: bool,
}

impl Filling {
    /// Inserts until the store is full, and then removes some records.
    ///
    /// # Errors
    /// Failures of the store.
    pub fn round(mut self) -> Result<Round, Stop> {
        let mut round = Round::default();
        for number in 0..RECORDS_MAX {
            match self.insert() {
                Err(Error::Full { .. }) if number == 0 => {
                    // There was room before, or something was removed.
                    self.wait_until_taken(Self::insert)?;
                }
                Err(Error::Full { .. }) => {
                    round.was_full = true;
                    break;
                }
                ended => ended?,
            }
            round.inserted += 1;
        }
        let share = self.random.random_range(0.02..0.4);
        let mut left = (self.count() as f64 * share) as u64 + 1;
        let clears = self.random.random_bool(0.3);
        while left > 0 {
            let removed = if clears { self.clear(left)? } else { self.remove()? };
            round.removed += removed;
            left = left.saturating_sub(removed.max(1));
        }
        Ok(round)
    }

    fn records(&self) -> std::sync::Arc<crate::world::Content> {
        let mut history = self.shared.get();
        let newest = history.newest();
        history.content(newest)
    }

    fn count(&self) -> usize {
        self.records().get(&self.slot.identity).map_or(0, |records| records.len())
    }

    fn insert(&mut self) -> Result<(), Error> {
        // Scattered, so that leaves are split everywhere.
        let mut key = self.random.random::<u32>().to_be_bytes().to_vec();
        let longest = (self.slot.tree.key_bytes_max() as u64).min(200);
        key.resize(log_uniform(&mut self.random, 4, longest) as usize, 7);
        let value = vec![7; log_uniform(&mut self.random, 1, self.value_bytes) as usize];
        let change = Change::Write(self.slot.identity.clone(), key.clone(), Some(value.clone()));
        self.shared.commit(vec![change], false, || {
            let mut batch = self.db.batch().durability(Durability::None);
            batch.insert(&self.slot.tree, &key, value)?;
            batch.commit()
        })
    }

    /// Does something that a store with room takes.
    fn wait_until_taken<T>(&mut self, act: impl Fn(&mut Self) -> Result<T, Error>) -> Result<T, Stop> {
        for _ in 0..TRIES {
            match act(self) {
                Err(Error::Full { .. }) => self.db.sleep_until(self.db.now() + WAIT)?,
                ended => return Ok(ended?),
            }
        }
        Err(Stop::Wrong("the store stays full, whatever is removed".into()))
    }

    fn some_key(&mut self) -> Option<Vec<u8>> {
        let content = self.records();
        let records = content.get(&self.slot.identity)?;
        let start = self.random.random::<u32>().to_be_bytes().to_vec();
        let next = records.range(start..).next().or_else(|| records.iter().next());
        next.map(|(key, _)| key.clone())
    }

    fn remove(&mut self) -> Result<u64, Stop> {
        let Some(key) = self.some_key() else { return Ok(0) };
        self.wait_until_taken(|own| {
            let change = Change::Write(own.slot.identity.clone(), key.clone(), None);
            own.shared.commit(vec![change], false, || {
                let mut batch = own.db.batch().durability(Durability::None);
                batch.remove(&own.slot.tree, &key)?;
                batch.commit()
            })
        })?;
        Ok(1)
    }

    /// Removes a range of at most `most` records, where that is one commit.
    fn clear(&mut self, most: u64) -> Result<u64, Stop> {
        if !matches!(self.slot.tree.options().index_kind(), IndexKind::Lsm | IndexKind::BeTree) {
            return self.remove();
        }
        let Some(first) = self.some_key() else { return Ok(0) };
        let content = self.records();
        let Some(records) = content.get(&self.slot.identity) else { return Ok(0) };
        let within: Vec<&Vec<u8>> =
            records.range(first.clone()..).map(|(key, _)| key).take(most as usize).collect();
        let last = within.last().map_or(first.clone(), |key| (*key).clone());
        let range: KeyRange = (Bound::Included(first), Bound::Included(last));
        self.wait_until_taken(|own| {
            let change = Change::Clear(own.slot.identity.clone(), range.clone());
            own.shared.commit(vec![change], true, || own.slot.tree.clear_range(range.clone()))
        })?;
        Ok(within.len() as u64)
    }
}
