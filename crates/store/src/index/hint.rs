//! Where a key was found.

use crate::pool::PageVersion;

/// A leaf as it was, and where in it a key was. While nothing has changed there, whoever comes back to the
/// key need not begin at the root.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LeafHint {
    pub page_version: PageVersion,
    pub slot: KeySlot,
}

/// What is known of a key's slot in a leaf.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum KeySlot {
    /// Nobody has looked yet.
    Unknown,
    At(u16),
    /// The key is not there; this is where it would go.
    Before(u16),
}

impl LeafHint {
    /// Whether another one is of the same leaf, as it was at the same time.
    pub fn is_beside(self, other: Self) -> bool {
        self.page_version == other.page_version
    }

    /// The same leaf, for a key that may be elsewhere in it.
    pub fn of_another_key(self) -> Self {
        Self { slot: KeySlot::Unknown, ..self }
    }
}
