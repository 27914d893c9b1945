//! Time between checkpoints' cuts.

/// Counts checkpoints' cuts. A page's changes belong to the epoch of their time. From 1 on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Epoch(pub u32);
