//! Fields: each task has one, sows it, and clears it by ranges. No other task writes to it, so that nothing
//! is there from then on until the task sows again, whatever snapshots and merges come meanwhile.

use flashgrain::{Db, Error, Tree};
use rand::RngExt;
use rand_pcg::Pcg64;

use super::durability::durability;
use crate::world::Stop;

/// Places of a field.
const PLACES: u16 = 200;

/// The most places that are sown at once.
const SOWN: u16 = 60;

const VALUE_BYTES: usize = 40;

/// The field of a task.
pub struct Field {
    tree: Tree,
    task: usize,
    /// The places, from the first up to but without the second, where nothing may be.
    cleared: Option<[u16; 2]>,
}

impl Field {
    /// The tree of all fields.
    ///
    /// # Errors
    /// As [`Db::tree`].
    pub fn tree_of(db: &Db) -> Result<Tree, Error> {
        db.tree("fields")
    }

    /// The field of a task, with unknown content.
    pub fn new(tree: &Tree, task: usize) -> Self {
        Self { tree: tree.clone(), task, cleared: None }
    }

    fn key(&self, place: u16) -> [u8; 3] {
        let [high, low] = place.to_be_bytes();
        [self.task as u8, high, low]
    }

    /// Checks that the cleared part is still empty, sows a part of the field, and clears that part and more.
    ///
    /// # Errors
    /// The store's; a record that was removed is there.
    pub fn work(&mut self, db: &Db, random: &mut Pcg64) -> Result<(), Stop> {
        self.look()?;
        self.cleared = None;
        let from = random.random_range(0..PLACES);
        let to = from + random.random_range(1..=SOWN);
        let mut batch = db.batch().durability(durability(random));
        for place in from..to {
            batch.insert(&self.tree, self.key(place), [place as u8; VALUE_BYTES])?;
        }
        batch.commit()?;
        let cleared = [from.saturating_sub(random.random_range(0..SOWN)), to + random.random_range(0..SOWN)];
        self.tree.clear_range(self.key(cleared[0])..self.key(cleared[1]))?;
        self.cleared = Some(cleared);
        if random.random() {
            db.checkpoint()?;
        }
        self.look()
    }

    fn look(&self) -> Result<(), Stop> {
        let Some([from, to]) = self.cleared else { return Ok(()) };
        match self.tree.range(self.key(from)..self.key(to))?.next().transpose()? {
            None => Ok(()),
            Some((key, _)) => Err(Stop::Wrong(format!("{key:?} is there, and was removed by a range"))),
        }
    }
}
