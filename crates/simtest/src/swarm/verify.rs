//! Invariants of a store without work in progress.

use flashgrain::Db;
use flashgrain::testing::last_commit;
use rand_pcg::Pcg64;

use super::reads::{Reads, Records};
use super::slots::{Slots, names_of};
use crate::tokens::no_orphans;
use crate::world::{Content, Shared, Stop};

/// Reads everything in all ways, has the store check itself, and counts pages without an owner if there must
/// be none.
///
/// # Errors
/// The store's; the first difference.
pub fn verify(
    db: &Db,
    shared: &Shared,
    slots: &Slots,
    random: &mut Pcg64,
    has_crashed: bool,
) -> Result<(), Stop> {
    let content = shared.get().content(last_commit(db));
    same(db, &content, slots, random)?;
    db.check()?;
    if !has_crashed {
        no_orphans(db, "after a life")?;
    }
    Ok(())
}

/// Whether a store has exactly this content.
///
/// # Errors
/// The store's; the first difference.
pub fn same(db: &Db, content: &Content, slots: &Slots, random: &mut Pcg64) -> Result<(), Stop> {
    let names = names_of(content);
    let mut found = db.tree_names();
    found.sort_unstable();
    if !found.iter().eq(names.iter().map(|(name, _)| name)) {
        return Err(Stop::Wrong(format!("there are the trees {found:?}, not {names:?}")));
    }
    let none = Records::new();
    for (name, identity) in &names {
        let tree = db.existing_tree(name)?;
        let expected = content.get(identity).unwrap_or(&none);
        let Some(data) = slots.data(identity) else {
            // It was being made when the store crashed.
            if tree.first_key_value()?.is_some() || !expected.is_empty() {
                return Err(Stop::Wrong(format!("{name} has a record, and was just made")));
            }
            continue;
        };
        let reads = Reads { source: db, tree: &tree, keys: &data.keys, expected };
        reads.all(random).map_err(|stop| match stop {
            Stop::Wrong(what) => Stop::Wrong(format!("{name} ({:?}), {what}", tree.options().index_kind())),
            stop => stop,
        })?;
    }
    Ok(())
}
