//! The identity of a store.

/// Identity of a store, drawn at random when it is created. Superblocks and labels contain it, so that files
/// of different stores cannot be mixed up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StoreId(pub [u8; 16]);
