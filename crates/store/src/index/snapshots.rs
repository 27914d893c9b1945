//! The set of snapshots in use. It tells a commit whether it must keep the version that it replaces.
//!
//! Taking a snapshot races with commits that are being applied, and goes like this:
//!
//! 1. The new snapshot announces itself. From then on every commit keeps every version that it replaces.
//! 2. A commit that finds no snapshot for its version replaces it without keeping it, and before that raises
//!    [`unkept`](Snapshots::unkept) to its own timestamp and looks once more.
//! 3. The new snapshot waits until the commit in `unkept` is visible, and takes the last visible commit as
//!    its timestamp. No later commit has replaced a version without keeping it, so everything that the
//!    snapshot sees is there.

use crate::sync::atomic::{AtomicU64, Ordering};
use crate::sync::{Mutex, MutexGuard, PoisonError};
use std::collections::BTreeMap;

use crate::Error;
use crate::log::Timestamp;

/// Snapshots are identified by their timestamps alone; each is given back as often as it was taken.
#[derive(Default)]
pub(crate) struct Snapshots {
    state: Mutex<ActiveSnapshots>,
    /// The newest in use; the largest number while one is being taken; 0 without snapshots. A snapshot of an
    /// empty store counts as 1: it sees nothing.
    newest: AtomicU64,
    /// The last commit that replaced a version without keeping it. This and `newest` are sequentially
    /// consistent: a commit writes `unkept` and then reads `newest`, a new snapshot writes `newest` and then
    /// reads `unkept`, so at least one of them sees the other.
    unkept: AtomicU64,
}

/// The snapshots at one time.
#[derive(Clone, Default)]
pub(crate) struct ActiveSnapshots {
    /// Those that are being taken, as the last commit that was visible when they announced themselves. They
    /// will see at least that.
    coming: Vec<u64>,
    /// Number of snapshots per timestamp.
    active: BTreeMap<u64, usize>,
}

impl ActiveSnapshots {
    /// Whether a snapshot in use, or one that is coming, may be in `from..until`.
    pub fn any_within(&self, from: Timestamp, until: Timestamp) -> bool {
        let may_be_before = |visible: &u64| *visible < until.0 || planted!(SnapshotsLookedAtAgain);
        self.coming.iter().any(may_be_before)
            || self.active.range(from.0..until.0.max(from.0)).next().is_some()
    }
}

impl Snapshots {
    /// Takes a snapshot of everything that was committed before; `announced` is visible already. `visible`
    /// waits until a commit is visible, and returns the last visible one.
    ///
    /// # Errors
    /// Those of `visible`: a commit that failed while it was applied never becomes visible, and it may have
    /// replaced versions without keeping them.
    pub fn take(
        &self,
        announced: Timestamp,
        visible: impl FnOnce(Timestamp) -> Result<Timestamp, Error>,
    ) -> Result<Timestamp, Error> {
        {
            let mut state = self.state();
            state.coming.push(announced.0);
            self.note(&state);
        }
        preempt!();
        let unkept = Timestamp(self.unkept.load(Ordering::SeqCst));
        let taken = visible(unkept);
        preempt!();
        let mut state = self.state();
        if let Some(own) = state.coming.iter().position(|other| *other == announced.0) {
            state.coming.swap_remove(own);
        }
        if let Ok(timestamp) = taken {
            *state.active.entry(timestamp.0).or_default() += 1;
        }
        self.note(&state);
        taken
    }

    /// Gives a snapshot back. It returns whether it was the last one of this timestamp.
    pub fn give_back(&self, timestamp: Timestamp) -> bool {
        let mut state = self.state();
        let Some(users) = state.active.get_mut(&timestamp.0) else { return false };
        *users -= 1;
        let ended = *users == 0;
        if ended {
            state.active.remove(&timestamp.0);
            self.note(&state);
        }
        ended
    }

    /// Ends all snapshots. Nothing is read as of them any more, and they may be given back later.
    pub fn end_all(&self) {
        let mut state = self.state();
        state.active.clear();
        self.note(&state);
    }

    /// Whether the commit `by` has to keep the version of `timestamp` that it is about to replace, because a
    /// snapshot may see it. If not, snapshots that are being taken wait for the commit.
    #[inline]
    pub fn keeps(&self, timestamp: Timestamp, by: Timestamp) -> bool {
        self.may_see(timestamp) || {
            preempt!();
            if self.unkept.load(Ordering::SeqCst) < by.0 && !planted!(UnkeptNotSaid) {
                self.unkept.fetch_max(by.0, Ordering::SeqCst);
            }
            self.may_see(timestamp)
        }
    }

    #[inline]
    fn may_see(&self, timestamp: Timestamp) -> bool {
        let (newest, needed) = (self.newest.load(Ordering::SeqCst), timestamp.0.max(1));
        newest > needed || newest == needed && !planted!(OldVersionDropped)
    }

    /// Whether a snapshot is in use, or being taken.
    pub fn any(&self) -> bool {
        self.newest.load(Ordering::SeqCst) > 0
    }

    /// The oldest snapshot that sees such a version; `None`: one that is coming.
    pub fn oldest_from(&self, timestamp: Timestamp) -> Option<Timestamp> {
        let state = self.state();
        state.active.range(timestamp.0..).next().map(|(oldest, _)| Timestamp(*oldest))
    }

    /// See [`ActiveSnapshots::any_within`].
    pub fn any_within(&self, from: Timestamp, until: Timestamp) -> bool {
        self.state().any_within(from, until)
    }

    /// The present snapshots.
    pub fn now(&self) -> ActiveSnapshots {
        self.state().clone()
    }

    fn state(&self) -> MutexGuard<'_, ActiveSnapshots> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn note(&self, state: &ActiveSnapshots) {
        let newest = if !state.coming.is_empty() {
            u64::MAX
        } else {
            state.active.last_key_value().map_or(0, |(newest, _)| (*newest).max(1))
        };
        self.newest.store(newest, Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_snapshot_that_is_coming_may_be_anywhere_behind_what_it_was_announced_with() {
        let snapshots = Snapshots::default();
        let within = || snapshots.any_within(Timestamp(5), Timestamp(7));
        assert!(!within());
        for (announced, is_within) in [(3, true), (6, true), (7, false)] {
            let taken = snapshots.take(Timestamp(announced), |_| {
                assert_eq!(within(), is_within, "a snapshot of {announced} or later");
                Ok(Timestamp(8))
            });
            assert!(!within() && snapshots.give_back(taken.unwrap()));
        }
        for (timestamp, is_within) in [(4, false), (5, true), (6, true), (7, false)] {
            snapshots.take(Timestamp(0), |_| Ok(Timestamp(timestamp))).unwrap();
            assert_eq!(within(), is_within, "a snapshot of {timestamp}");
            assert!(snapshots.give_back(Timestamp(timestamp)));
        }
    }
}
