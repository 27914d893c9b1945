//! All indexes of a store together: the history of trees that are changed in place, and those that keep their
//! versions themselves.

use crate::Error;
use crate::index::{Index, Indexes, May, OldVersions, Snapshots, TreeId};
use crate::log::{LogRecord, Timestamp};
use crate::sync::{Arc, Mutex, PoisonError, Weak};

use super::History;

/// See the module.
pub(crate) struct AllIndexes {
    history: Arc<History>,
    /// Indexes that keep their versions themselves.
    own_versions: Mutex<Vec<(TreeId, Weak<dyn Index>)>>,
}

impl AllIndexes {
    pub fn new(history: Arc<History>) -> Self {
        Self { history, own_versions: Mutex::default() }
    }

    /// The old versions of all trees that are changed in place.
    pub fn history(&self) -> &Arc<History> {
        &self.history
    }

    /// An index that keeps its versions itself was opened.
    pub fn add(&self, id: TreeId, index: &Arc<dyn Index>) {
        let mut all = self.own_versions.lock().unwrap_or_else(PoisonError::into_inner);
        all.push((id, Arc::downgrade(index)));
    }

    /// Indexes that keep their versions themselves and are open.
    fn with_own_versions(&self) -> Vec<Arc<dyn Index>> {
        let mut all = self.own_versions.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|(_, index)| index.strong_count() > 0);
        all.iter().filter_map(|(_, index)| index.upgrade()).collect()
    }
}

impl Indexes for AllIndexes {
    fn is_due(&self, snapshots: &Snapshots, visible: Timestamp) -> bool {
        self.history.is_due(snapshots, visible)
    }

    fn settle(
        &self,
        snapshots: &Snapshots,
        visible: Timestamp,
        idle: bool,
        overflow_is_gone: &dyn Fn(&[u8]),
    ) -> Result<(), Error> {
        self.history.settle(snapshots, visible, idle, overflow_is_gone)?;
        if !idle {
            return Ok(());
        }
        let all = self.with_own_versions();
        all.iter().try_for_each(|index| index.settle(snapshots, visible, overflow_is_gone))
    }

    fn forget(&self, tree: TreeId) {
        self.history.forget(tree);
        let mut all = self.own_versions.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|(id, _)| *id != tree);
    }

    fn old_versions(&self) -> OldVersions {
        self.history.old_versions()
    }

    fn replay_from(&self) -> Option<LogRecord> {
        self.with_own_versions().iter().filter_map(|index| index.replay_from()).min()
    }

    fn before_cut(&self, may: May) -> Result<(), Error> {
        // One that fails keeps no other from writing. The store's poison is told before the trouble of a
        // tree.
        let tried: Vec<_> = self.with_own_versions().iter().map(|index| index.before_cut(may)).collect();
        let is_poison = |done: &Result<(), Error>| matches!(done, Err(Error::Poisoned { .. }));
        let (poisoned, others): (Vec<_>, Vec<_>) = tried.into_iter().partition(is_poison);
        poisoned.into_iter().chain(others).collect()
    }

    fn make_room(&self) {
        self.with_own_versions().iter().for_each(|index| index.make_room());
    }

    fn withdraw(&self, end_bytes: u64) -> Result<(), Error> {
        let withdraw = |index: &Arc<dyn Index>| match index.withdraw(end_bytes) {
            // Its tree was dropped meanwhile.
            Err(Error::Closed) => Ok(()),
            ended => ended,
        };
        // The trouble of one keeps no other from it.
        let tried: Vec<_> = self.with_own_versions().iter().map(withdraw).collect();
        tried.into_iter().collect()
    }

    fn stop(&self) -> Result<(), Error> {
        let tried: Vec<_> = self.with_own_versions().iter().map(|index| index.stop()).collect();
        tried.into_iter().collect()
    }

    fn in_memory_bytes(&self) -> u64 {
        self.with_own_versions().iter().map(|index| index.in_memory_bytes()).sum()
    }

    fn debt(&self) -> f64 {
        self.with_own_versions().iter().map(|index| index.debt()).fold(0.0, f64::max)
    }
}
