//! The leaf hint: a remembered position of a key.

use crate::pool::PageVersion;

/// A version of a leaf, and a key's slot in it. As long as the leaf has that version, finding the key again
/// takes no descent from the root.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LeafHint {
    pub page_version: PageVersion,
    pub slot: KeySlot,
}

/// A key's slot in a leaf, as far as it is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum KeySlot {
    /// Not looked up yet.
    Unknown,
    At(u16),
    /// The key is absent; its slot would be this one.
    Before(u16),
}

impl LeafHint {
    /// Whether another hint is of the same version of the same leaf.
    pub fn is_beside(self, other: Self) -> bool {
        self.page_version == other.page_version
    }

    /// The same leaf, for a key that may be elsewhere in it.
    pub fn of_another_key(self) -> Self {
        Self { slot: KeySlot::Unknown, ..self }
    }
}
