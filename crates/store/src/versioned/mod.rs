//! Trees whose records are changed in place: an ordered map with the newest version of each key, and the
//! older versions that snapshots see beside it.
//!
//! - The [map](ordered_map::OrderedMap) has one value per key, which begins with its
//!   [version](crate::index::Version).
//! - The [history](History) has what was replaced while a snapshot may still see it. All trees of a store
//!   share one.
//! - A record that is removed while there are snapshots leaves a *tombstone* in the map, a version without a
//!   value, which leads readers to the history. It is taken out when no snapshot is older than the removal.
//!
//! Only [`InPlace::apply`](crate::index::Index::apply) and [`InPlace::reapply`](crate::index::Index::reapply)
//! change records; what gives up old versions takes out tombstones that nobody has replaced meanwhile.

mod all;
#[cfg(feature = "testing")]
mod append_only;
mod btree;
mod history;
mod in_place;
#[cfg(test)]
pub(crate) mod map;
mod ordered_map;
mod recent;
mod scan;
#[cfg(test)]
mod tests;

pub(crate) use all::AllIndexes;
#[cfg(feature = "testing")]
pub(crate) use append_only::AppendOnly;
pub(crate) use history::History;
pub(crate) use in_place::InPlace;
#[cfg(test)]
pub(crate) use ordered_map::OrderedMap;
