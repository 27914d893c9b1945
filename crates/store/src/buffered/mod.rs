//! Versions that are gathered in memory and merged with older ones later, for LSM-trees and Bε-trees.
//!
//! ```text
//! memtable   versions in memory                       cursor     versions of several sources in order
//! ranges     removals of ranges of keys               interval   keys from one on to another
//! live_ranges  those of a memtable                     hidden     removals of all sources of a scan
//! dead       ranges without records for a scan         staged     those of a commit with many writes
//! retention  which versions stay when they are merged folding    operands become values in merges
//! chain      operands down to their base              versions   those of one key
//! semaphore  counting semaphores for tasks             shared     parts of the store that trees share
//! room       limits for a tree's options               memtables  the active one, and frozen ones
//! replay     versions that the log has, and the tree    cuts       which of them a checkpoint has flushed
//! trouble    failures of background work are the tree's
//! ```

mod chain;
mod cursor;
mod cuts;
mod dead;
mod flush_room;
mod folding;
mod hidden;
mod interval;
mod live_ranges;
mod memtable;
mod memtables;
mod ranges;
mod replay;
mod retention;
mod room;
mod semaphore;
mod shared;
mod staged;
mod trouble;
mod versions;

pub(crate) use chain::{Chain, unreadable};
pub(crate) use cursor::{Cursor, MemtableCursor, Merged, SeenCursor, Start, order, place_of};
pub(crate) use cuts::Cuts;
pub(crate) use dead::{DEAD_RUN, Dead, Met, Watch};
pub(crate) use folding::Folding;
pub(crate) use hidden::Hidden;
pub(crate) use interval::KeyInterval;
pub(crate) use memtable::{Full, Join, Memtable};
pub(crate) use memtables::Memtables;
#[cfg(test)]
pub(crate) use ranges::testing as range_testing;
pub(crate) use ranges::{Fragment, RangeTombstones, Removals, Removed, hidden_by};
pub(crate) use replay::made_before;
pub(crate) use retention::Retention;
pub(crate) use room::Room;
pub(crate) use semaphore::{Permits, Semaphore};
pub(crate) use shared::TreeResources;
pub(crate) use staged::StagedMemtables;
pub(crate) use trouble::Trouble;
pub(crate) use versions::{Held, KeyVersions};
