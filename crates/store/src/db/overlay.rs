//! A transaction's own writes.

use std::collections::BTreeMap;

use smallvec::SmallVec;

use super::content::Content;

/// A key; a short one needs no memory of its own.
pub type Key = SmallVec<[u8; 24]>;

/// Writes of a transaction to one tree; `None` removes.
pub type Overlay = BTreeMap<Key, Option<Content>>;
