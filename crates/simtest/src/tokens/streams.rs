//! Values that come piece by piece, from sources that take their time.

use std::io::{self, Read};
use std::time::Duration;

use flashgrain::{Db, Durability, Transaction, Tree};
use rand::RngExt;
use rand_pcg::Pcg64;

use super::leaks::no_orphans;
use crate::world::Stop;

/// Bytes of a value that is given up: several pages of most stores.
const GIVEN_UP_BYTES: u64 = 40_000;

/// Checkpoints during which a value that is never committed is written.
const CHECKPOINTS_MAX: u32 = 3;

/// Gives some bytes at a time, and lets others get on in between.
struct Slow<'a> {
    db: &'a Db,
    random: &'a mut Pcg64,
    bytes: &'a [u8],
}

impl Read for Slow<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let pause = Duration::from_micros(self.random.random_range(0..200));
        self.db.sleep_until(self.db.now() + pause)?;
        let most = self.random.random_range(1..5000);
        (&mut self.bytes).take(most).read(into)
    }
}

/// Gives a key a value, at once or piece by piece.
///
/// # Errors
/// The store's.
pub fn insert(
    db: &Db,
    transaction: &mut Transaction,
    (tree, key): (&Tree, Vec<u8>),
    value: &[u8],
    random: &mut Pcg64,
) -> Result<(), Stop> {
    if random.random_ratio(2, 3) {
        return Ok(transaction.insert(tree, key, value)?);
    }
    transaction.insert_from(tree, key, Slow { db, random, bytes: value })?;
    Ok(())
}

/// Writes a value, and does not commit it.
///
/// # Errors
/// The store's.
pub fn give_up(db: &Db, tree: &Tree, random: &mut Pcg64) -> Result<(), Stop> {
    let mut batch = db.batch();
    batch.insert_from(tree, "given up", io::repeat(7).take(random.random_range(0..GIVEN_UP_BYTES)))?;
    if random.random() {
        db.checkpoint()?;
    }
    drop(batch);
    Ok(())
}

/// Leaves a store in the middle of writing values.
///
/// # Errors
/// The store's.
pub fn leave(db: &Db, mut random: Pcg64) -> Result<(), Stop> {
    let tree = db.tree("streams")?;
    let mut batch = db.batch().durability(Durability::None);
    for key in 0..random.random_range(1..=CHECKPOINTS_MAX) {
        let bytes = random.random_range(0..GIVEN_UP_BYTES);
        batch.insert_from(&tree, key.to_be_bytes(), io::repeat(7).take(bytes))?;
        db.checkpoint()?;
    }
    std::mem::forget(batch);
    Ok(())
}

/// Checks that nothing of these values is there after a crash.
///
/// # Errors
/// The remains of a value.
pub fn judge(db: &Db) -> Result<(), Stop> {
    no_orphans(db, "after a crash while values were written")?;
    Ok(db.drop_tree("streams")?)
}
