//! Which store something belongs to.

/// Tells stores apart: drawn at random when a store is created.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StoreId(pub [u8; 16]);
