//! Time between checkpoints' cuts.

/// Counts checkpoints' cuts. A page's changes belong to the epoch in which they were made. From 1 on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Epoch(pub u32);
