//! The state of a key before its change.

use super::{LeafHint, Newest, Version};
use crate::log::Timestamp;

/// Results of [`Index::prepare`](super::Index::prepare) for [`Index::apply`](super::Index::apply). It stays
/// empty for an index that reads nothing before it writes.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Prior {
    /// The newest version; `Some(None)` if the key has none; `None` if the index has not looked.
    pub newest: Option<Option<Version>>,
    /// Range of the newest value, with its version, in the buffer of values that were appended.
    pub value: Option<(usize, usize)>,
    /// The leaf where the key was found.
    pub hint: Option<LeafHint>,
}

impl Prior {
    /// Whether the key was committed after `since`, if the index has looked.
    pub fn newest_since(&self, since: Timestamp) -> Option<Newest> {
        let newest =
            self.newest?.filter(|version| !(version.is_tombstone() && planted!(RemovalNotValidated)));
        Some(Newest::of(newest.map(Version::timestamp), since))
    }
}
