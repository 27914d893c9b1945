//! Couples: a record that says whether there is another one next to it.
//!
//! A couple is absent, alone or whole. Alone or whole, its first record has a number and says which; whole,
//! the second record has the same number. Batches make couples alone or whole, bulk removals remove ranges of
//! them. A removal that looked at a couple while it was alone and removes it after another task has made it
//! whole would leave the second record. So would a transaction that writes the second record because of the
//! first one that it has read, if it is committed after a removal of both.

use std::time::Duration;

use flashgrain::{Db, Error, ErrorKind, Readable, Tree};
use rand::RngExt;
use rand_pcg::Pcg64;

use super::durability::durability;
use crate::world::Stop;

/// Couples there are: few, so that batches and removals meet.
const COUPLES: u8 = 40;

/// Couples that are removed at once, at most.
const REMOVED: u8 = 20;

/// Bytes of a first record: long enough that a removal looks at several leaves, and waits for some of them in
/// between.
const FIRST_BYTES: usize = 700;

/// The same for a record that needs pages of its own.
const LARGE_BYTES: usize = 3000;

/// Wait of a transaction between its reads and its writes.
const PAUSE: Duration = Duration::from_millis(1);

/// The tree of all couples.
#[derive(Clone, Debug)]
pub struct Couples {
    tree: Tree,
}

impl Couples {
    /// The trees of a store.
    ///
    /// # Errors
    /// As [`Db::tree`].
    pub fn of(db: &Db) -> Result<Self, Error> {
        Ok(Self { tree: db.tree("couples")? })
    }

    /// The tree.
    pub fn tree(&self) -> &Tree {
        &self.tree
    }

    /// Makes a couple alone or whole, or removes some.
    ///
    /// # Errors
    /// The store's.
    pub fn change(&self, db: &Db, random: &mut Pcg64) -> Result<(), Error> {
        let couple = random.random_range(0..COUPLES);
        if random.random_ratio(1, 3) {
            let last = couple.saturating_add(random.random_range(1..=REMOVED));
            let range = [couple, 0]..[last, 0];
            return match couple % 2 {
                0 => self.tree.clear_range(range),
                _ => self.tree.remove_range(range).map(drop),
            };
        }
        if couple % 4 == 3 && random.random_ratio(1, 2) {
            return self.touch(db, couple);
        }
        let (number, is_whole): (u64, bool) = (random.random(), random.random());
        let mut first = [&[u8::from(is_whole)][..], &number.to_le_bytes()].concat();
        first.resize(if random.random_ratio(1, 10) { LARGE_BYTES } else { FIRST_BYTES }, 0);
        let mut batch = db.batch().durability(durability(random));
        batch.insert(&self.tree, [couple, 0], first)?;
        match is_whole {
            true => batch.insert(&self.tree, [couple, 1], number.to_le_bytes())?,
            false => batch.remove(&self.tree, [couple, 1])?,
        }
        batch.commit()
    }

    /// Writes the second of a whole couple once more, as the first says: without that it would be alone.
    fn touch(&self, db: &Db, couple: u8) -> Result<(), Error> {
        let mut transaction = db.begin()?;
        let first = transaction.get(&self.tree, [couple, 0])?;
        let Some([1, rest @ ..]) = first.as_deref() else { return Ok(()) };
        let number = rest.get(..size_of::<u64>()).unwrap_or_default().to_vec();
        db.sleep_until(db.now() + PAUSE)?;
        transaction.insert(&self.tree, [couple, 1], number)?;
        match transaction.commit() {
            Err(error) if error.kind() == ErrorKind::Conflict => Ok(()),
            ended => ended,
        }
    }

    /// Whether all couples are as one moment can show them.
    ///
    /// # Errors
    /// The store's; a couple that is not.
    pub fn judge(&self, db: &Db, random: &mut Pcg64) -> Result<(), Stop> {
        let snapshot = db.snapshot()?;
        for couple in 0..COUPLES {
            let [first, second] = if random.random() {
                [snapshot.get(&self.tree, [couple, 0])?, snapshot.get(&self.tree, [couple, 1])?]
            } else {
                let mut values = snapshot.get_many(&self.tree, [[couple, 0], [couple, 1]])?;
                let second = values.pop().flatten();
                [values.pop().flatten(), second]
            };
            let (first, second) = (first.as_deref(), second.as_deref());
            let is_right = match (first.and_then(<[u8]>::split_first), second) {
                (None, None) => first.is_none(),
                (Some((1, first)), Some(second)) => first.get(..8) == Some(second),
                (Some((0, _)), None) => true,
                _ => false,
            };
            if !is_right {
                let short =
                    |value: Option<&[u8]>| value.map(|value| value.get(..9).unwrap_or(value).to_vec());
                let (first, second) = (short(first), short(second));
                return Err(Stop::Wrong(format!("couple {couple} has {first:?} and {second:?}")));
            }
        }
        Ok(())
    }
}
