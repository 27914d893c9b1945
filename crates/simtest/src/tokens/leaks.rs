//! Space after everything is removed equals space before.

use std::time::Duration;

use flashgrain::{Db, Durability, Error, Tree};

use super::work::Trees;
use crate::world::Stop;

/// Checks before the store counts as one that never gives back its pages.
const LOOKS: u32 = 200;

/// Between two looks.
const WAIT: Duration = Duration::from_millis(2);

/// Records that trees are filled with before, so that they have several leaves.
const FILLING_RECORDS: u32 = 100;
const FILLING_BYTES: usize = 200;

/// A value in pages of its own.
const LATE_BYTES: usize = 20_000;

/// Pages of an empty store, after trees and values came and went.
///
/// # Errors
/// The store's; or it does not come to rest.
pub fn empty_pages(db: &Db) -> Result<u64, Stop> {
    Trees::of(db)?;
    drop_all(db)?;
    let mut before = None;
    for _ in 0..LOOKS {
        let pages = settled_pages(db)?;
        if before == Some(pages) && reclaim(db)? == 0 {
            return Ok(pages);
        }
        before = Some(pages);
        db.sleep_until(db.now() + WAIT)?;
    }
    Err(Stop::Wrong("an empty store does not come to rest".into()))
}

/// Removes everything, and then waits for the pages to be given back.
///
/// # Errors
/// The store's; pages without an owner, or pages that never are given back.
pub fn give_everything_back(db: &Db, trees: Trees, empty_pages: u64) -> Result<(), Stop> {
    for tree in trees.all() {
        if_room(fill(tree))?;
    }
    // Records in buffers reach leaves only then, as removals do.
    db.compact()?;
    no_orphans(db, "while everything is there")?;
    for tree in trees.all() {
        tree.remove_range::<&[u8]>(..)?;
    }
    no_orphans(db, "after everything was removed")?;
    db.compact()?;
    // Trees are dropped with their changes in memory.
    for tree in trees.all() {
        if_room(tree.insert("late", [7; LATE_BYTES]))?;
    }
    // A dropped tree is there as long as a handle of it exists.
    drop(trees);
    drop_all(db)?;
    no_orphans(db, "after all trees were dropped")?;
    let mut pages = 0;
    for _ in 0..LOOKS {
        pages = settled_pages(db)?;
        if pages == empty_pages {
            return Ok(());
        }
        db.sleep_until(db.now() + WAIT)?;
    }
    Err(Stop::Wrong(format!("{pages} pages are left of an empty store, which has {empty_pages}")))
}

/// Less is there where the store has no room.
fn if_room(done: Result<(), Error>) -> Result<(), Error> {
    done.or_else(|error| if let Error::Full { .. } = error { Ok(()) } else { Err(error) })
}

fn fill(tree: &Tree) -> Result<(), Error> {
    (0..FILLING_RECORDS).try_for_each(|number| tree.insert(number.to_be_bytes(), [7; FILLING_BYTES]))
}

/// Frees the pages without an owner; how many. It waits for old versions and dropped trees to be given back
/// before.
///
/// # Errors
/// The store's; or they never are.
pub fn reclaim(db: &Db) -> Result<u64, Stop> {
    for _ in 0..LOOKS {
        if let Some(pages) = db.reclaim()? {
            return Ok(pages);
        }
        settled_pages(db)?;
        db.sleep_until(db.now() + WAIT)?;
    }
    Err(Stop::Wrong("old versions or dropped trees are never given back".into()))
}

/// Checks that every page of an overflow value has a reference to it.
///
/// # Errors
/// Errors of the store; the number of pages without a reference.
pub fn no_orphans(db: &Db, when: &str) -> Result<(), Stop> {
    match reclaim(db)? {
        0 => Ok(()),
        pages => Err(Stop::Wrong(format!("{pages} pages have no owner {when}"))),
    }
}

fn drop_all(db: &Db) -> Result<(), Error> {
    db.tree_names().iter().try_for_each(|name| db.drop_tree(name))
}

/// Pages there are after a checkpoint. A commit comes before it, as commits give old versions up.
fn settled_pages(db: &Db) -> Result<u64, Stop> {
    let mut batch = db.batch().durability(Durability::None);
    if let Some(name) = db.tree_names().first() {
        batch.remove(&db.existing_tree(name)?, "nothing")?;
    }
    batch.commit()?;
    db.checkpoint()?;
    Ok(db.stats().cache.pages)
}
