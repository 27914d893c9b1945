//! What an index has found under a key before it is changed.

use super::{LeafHint, Newest, Version};
use crate::log::Timestamp;

/// What [`Index::prepare`](super::Index::prepare) remembers until [`Index::apply`](super::Index::apply). An
/// index that reads nothing before it writes leaves it empty.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Prior {
    /// The newest version, or that there is none; `None` if the index has not looked.
    pub newest: Option<Option<Version>>,
    /// Where the newest value begins and ends, with its version, among the values that were appended.
    pub value: Option<(usize, usize)>,
    /// Where the key was found.
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
