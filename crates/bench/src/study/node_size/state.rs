//! When a tree is asked.

/// See the module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// Loaded in the order of its keys, so that its leaves are full.
    Loaded,
    /// Grown by random inserts.
    Grown,
}
