//! A failure of a tree's background work is the tree's own: it takes no writes, its reads go on, and the rest
//! of the store is not affected. Versions that were not written into pages or tables stay in memory and in
//! the log.
//!
//! A tree is *set aside* if pages of it cannot be read while the log is replayed: the store opens without it.
//! As it may lack records of the log, it is neither read nor written, and the log is kept for the next
//! opening. It can be dropped.

use crate::Error;
use crate::index::{Reapplied, TreeId};
use crate::log::LogRecord;
use crate::sync::atomic::{AtomicBool, Ordering};
use crate::sync::{Mutex, OnceLock, PoisonError};

/// See the module.
#[derive(Default)]
pub(crate) struct Trouble {
    /// The error of the last background work, if it failed.
    last: Mutex<Option<Error>>,
    /// Whether `last` has an error: each write asks.
    has_failed: AtomicBool,
    /// Why the tree was set aside.
    set_aside: OnceLock<Error>,
    /// The first commit that it may lack.
    lacks_from: Mutex<Option<LogRecord>>,
}

impl Trouble {
    /// Whether a commit of the log is in the tree already; `look` finds that out. If it cannot read the tree,
    /// the tree is set aside, also for all later commits.
    ///
    /// # Errors
    /// Errors that are not of the tree's pages.
    pub fn replayed(
        &self,
        record: LogRecord,
        look: impl FnOnce() -> Result<Option<Reapplied>, Error>,
    ) -> Result<Option<Reapplied>, Error> {
        if self.set_aside.get().is_none() {
            match look() {
                Err(error @ (Error::Corrupt { .. } | Error::Io { .. })) => drop(self.set_aside.set(error)),
                // By another task, meanwhile.
                Err(Error::TreeFailed { .. }) if self.set_aside.get().is_some() => {}
                looked => return looked,
            }
        }
        let mut first = self.lacks_from.lock().unwrap_or_else(PoisonError::into_inner);
        *first = first.iter().copied().chain([record]).min();
        Ok(Some(Reapplied::default()))
    }

    /// The first commit that the log has to be kept for, if the tree was set aside.
    pub fn lacks_from(&self) -> Option<LogRecord> {
        *self.lacks_from.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Refuses reads and flushes of a tree that was set aside.
    ///
    /// # Errors
    /// [`Error::TreeFailed`].
    pub fn check_whole(&self, tree: TreeId) -> Result<(), Error> {
        match self.set_aside.get() {
            Some(error) => Err(Error::TreeFailed {
                tree: tree.0,
                why: format!("the log could not be replayed: {error}"),
            }),
            None => Ok(()),
        }
    }

    /// Notes the end of background work. A lack of room is the store's, and so is poison.
    pub fn note(&self, done: &Result<(), Error>) {
        let failed = match done {
            Err(Error::Full { .. } | Error::Closed | Error::Poisoned { .. }) => return,
            Err(error) => Some(error.clone()),
            Ok(()) if !self.has_failed.load(Ordering::Acquire) => return,
            Ok(()) => None,
        };
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        self.has_failed.store(failed.is_some(), Ordering::Release);
        *last = failed;
    }

    /// Whether background work has failed, and has not succeeded since, or the tree was set aside.
    pub fn is_there(&self) -> bool {
        self.has_failed.load(Ordering::Acquire) || self.set_aside.get().is_some()
    }

    /// Refuses a write to a tree whose background work has failed.
    ///
    /// # Errors
    /// [`Error::TreeFailed`].
    pub fn check(&self, tree: TreeId) -> Result<(), Error> {
        self.check_whole(tree)?;
        if !self.has_failed.load(Ordering::Acquire) {
            return Ok(());
        }
        match &*self.last.lock().unwrap_or_else(PoisonError::into_inner) {
            Some(failed @ Error::TreeFailed { .. }) => Err(failed.clone()),
            Some(error) => Err(Error::TreeFailed { tree: tree.0, why: error.to_string() }),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ErrorKind;
    use crate::log::{Lsn, Timestamp};

    #[test]
    fn only_what_is_the_trees_own_stops_its_writes_until_it_is_done() {
        let trouble = Trouble::default();
        trouble.note(&Err(Error::Full { why: "pages".into() }));
        trouble.note(&Err(Error::Closed));
        assert!(trouble.check(TreeId(3)).is_ok() && !trouble.is_there());
        trouble.note(&Err(Error::io("read a page", libc::EIO)));
        trouble.note(&Err(Error::Full { why: "pages".into() }));
        let error = trouble.check(TreeId(3)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TreeFailed);
        assert!(error.to_string().contains("tree 3") && error.to_string().contains("read a page"), "{error}");
        trouble.note(&Ok(()));
        assert!(trouble.check(TreeId(3)).is_ok());
    }

    #[test]
    fn a_tree_that_cannot_be_replayed_is_set_aside_from_the_first_commit_that_it_may_lack() {
        let trouble = Trouble::default();
        let record = |at| LogRecord { start: Lsn(at), timestamp: Timestamp(at) };
        assert_eq!(trouble.replayed(record(3), || Ok(None)).unwrap(), None);
        assert!(trouble.replayed(record(4), || Err(Error::Closed)).is_err());
        assert!(trouble.check_whole(TreeId(3)).is_ok() && trouble.lacks_from().is_none());
        let unread = || Err(Error::io("read a page", libc::EIO));
        assert_eq!(trouble.replayed(record(7), unread).unwrap(), Some(Reapplied::default()));
        assert_eq!(trouble.replayed(record(6), || Ok(None)).unwrap(), Some(Reapplied::default()));
        assert_eq!(trouble.lacks_from(), Some(record(6)));
        trouble.note(&Ok(()));
        assert_eq!(trouble.check(TreeId(3)).unwrap_err().kind(), ErrorKind::TreeFailed);
        assert_eq!(trouble.check_whole(TreeId(3)).unwrap_err().kind(), ErrorKind::TreeFailed);
    }
}
