//! Groups that are open: two logs or states of one name would not know of each other's changes.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::error::Error;
use crate::held_purge::HeldPurge;

/// Names of the groups that are open. Clones share them.
#[derive(Clone, Default)]
pub struct OpenGroups(Arc<Mutex<BTreeSet<String>>>);

impl OpenGroups {
    /// Opens the group `name`, until the last of the result is dropped.
    ///
    /// # Errors
    /// [`Error::GroupOpen`].
    pub fn open(&self, name: &str) -> Result<Arc<OpenGroup>, Error> {
        if !self.names().insert(name.to_owned()) {
            return Err(Error::GroupOpen { name: name.to_owned() });
        }
        Ok(Arc::new(OpenGroup {
            name: name.to_owned(),
            groups: self.clone(),
            held_purge: HeldPurge::default(),
        }))
    }

    fn names(&self) -> MutexGuard<'_, BTreeSet<String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// An open group.
pub struct OpenGroup {
    name: String,
    groups: OpenGroups,
    held_purge: HeldPurge,
}

impl OpenGroup {
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The purge that waits for an installation.
    pub fn held_purge(&self) -> &HeldPurge {
        &self.held_purge
    }
}

impl Drop for OpenGroup {
    fn drop(&mut self) {
        self.groups.names().remove(&self.name);
    }
}
