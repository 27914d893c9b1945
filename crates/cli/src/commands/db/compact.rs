//! `flashgrain db compact`: a store as small as its records allow.

use std::sync::atomic::Ordering;

use flashgrain_report::unit;

use super::options::LookArguments;
use crate::output::{Context, print, print_json};

/// Compacts a store. When interrupted, it gives back the space that is free at the end by then, and leaves
/// the store whole.
pub fn compact(arguments: &LookArguments, context: &Context) -> anyhow::Result<()> {
    let interrupt = context.interrupt.watch()?;
    let db = arguments.store.open(context)?;
    let bytes = |bytes: u64| unit::bytes(bytes as f64);
    let compacted = db.compact_while(|_| !interrupt.load(Ordering::Relaxed))?;
    let live_bytes = db.stats().space.live_bytes;
    db.close()?;
    let (before, after) = (bytes(compacted.before_bytes), bytes(compacted.after_bytes));
    if context.interrupt.is_wanted() {
        context.interrupt.leaves(format!("the store is whole, and takes {after} of {before}"));
        return Err(flashgrain_profile::Error::Interrupted.into());
    }
    if arguments.json {
        return print_json(&compacted);
    }
    let live = bytes(live_bytes);
    Ok(print(&format!("The store took {before} and takes {after} now; its live pages have {live}.\n"))?)
}
