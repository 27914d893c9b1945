//! A change of a record first puts the version that it replaces into the history, if a snapshot may see it,
//! and then the new version into the map. So a reader that finds a version newer than its snapshot in the map
//! finds the older one in the history.
//!
//! Synchronization: [`InPlace::apply`](crate::index::Index::apply) changes a record while its commit has the
//! key's lock, and [`InPlace::reapply`](crate::index::Index::reapply) during recovery. Tombstones that have
//! not been replaced meanwhile are removed by the collector of old versions, and those of earlier runs by
//! scans that find them.

mod all;
mod btree;
mod history;
mod in_place;
mod long_records;
#[cfg(test)]
pub(crate) mod map;
mod ordered_map;
mod recent;
mod scan;
#[cfg(test)]
mod tests;

pub(crate) use all::AllIndexes;
pub(crate) use history::History;
pub(crate) use in_place::InPlace;
#[cfg(test)]
pub(crate) use ordered_map::OrderedMap;
