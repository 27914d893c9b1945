//! Which snapshots are in use, so that what they see is kept.
//!
//! A commit keeps the version that it replaces if a snapshot may see it; otherwise it says that it does not.
//! A new snapshot first says that it comes (from then on every commit keeps everything), then waits for the
//! last of those who have said so. The last commit that can be seen then is its timestamp: nobody behind it,
//! who may still be under way, has replaced anything without keeping it.

use crate::sync::atomic::{AtomicU64, Ordering};
use crate::sync::{Mutex, MutexGuard, PoisonError};
use std::collections::BTreeMap;

use crate::Error;
use crate::log::Timestamp;

/// Snapshots are told from one another by nothing but their timestamp; each is given back as often as it was
/// taken.
#[derive(Default)]
pub(crate) struct Snapshots {
    state: Mutex<ActiveSnapshots>,
    /// The newest in use; the largest number while one is coming; 0 if there is none. A snapshot of an
    /// empty store counts as 1: it sees nothing.
    newest: AtomicU64,
    /// The last commit that replaced a version without keeping it. This and `newest` are sequentially
    /// consistent: of a commit that says so and a snapshot that says that it comes, one must see the other.
    unkept: AtomicU64,
}

#[derive(Default)]
struct ActiveSnapshots {
    coming: usize,
    active: BTreeMap<u64, usize>,
}

impl Snapshots {
    /// A snapshot of everything that was committed before. `visible` waits until a commit can be seen, and
    /// says which one is the last that can.
    ///
    /// # Errors
    /// Those of `visible`: a commit that failed while it was applied, and had kept nothing of what it
    /// replaced as nobody wanted it then, never becomes visible.
    pub fn take(
        &self,
        visible: impl FnOnce(Timestamp) -> Result<Timestamp, Error>,
    ) -> Result<Timestamp, Error> {
        {
            let mut state = self.state();
            state.coming += 1;
            self.note(&state);
        }
        preempt!();
        let unkept = Timestamp(self.unkept.load(Ordering::SeqCst));
        let taken = visible(unkept);
        preempt!();
        let mut state = self.state();
        state.coming -= 1;
        if let Ok(timestamp) = taken {
            *state.active.entry(timestamp.0).or_default() += 1;
        }
        self.note(&state);
        taken
    }

    /// Gives a snapshot back. Whether nobody else has it.
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

    /// Whether the commit `by` has to keep a version, committed with that timestamp, that it is about to
    /// replace: a snapshot may see it. If not, those that come wait for the commit.
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

    /// Whether there is a snapshot, or one is coming.
    pub fn any(&self) -> bool {
        self.newest.load(Ordering::SeqCst) > 0
    }

    /// The oldest snapshot that sees such a version; `None`: one that is coming.
    pub fn oldest_from(&self, timestamp: Timestamp) -> Option<Timestamp> {
        let state = self.state();
        state.active.range(timestamp.0..).next().map(|(oldest, _)| Timestamp(*oldest))
    }

    /// Whether a snapshot in use, or one that is coming, may be in `from..until`.
    pub fn any_within(&self, from: Timestamp, until: Timestamp) -> bool {
        let state = self.state();
        state.coming > 0 || state.active.range(from.0..until.0.max(from.0)).next().is_some()
    }

    fn state(&self) -> MutexGuard<'_, ActiveSnapshots> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn note(&self, state: &ActiveSnapshots) {
        let newest = if state.coming > 0 {
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
    fn a_snapshot_that_is_coming_may_be_anywhere() {
        let snapshots = Snapshots::default();
        let within = || snapshots.any_within(Timestamp(5), Timestamp(7));
        assert!(!within());
        snapshots.state().coming = 1;
        assert!(within(), "old versions must not be given up before it is known what it sees");
        snapshots.state().coming = 0;
        for (timestamp, is_within) in [(4, false), (5, true), (6, true), (7, false)] {
            snapshots.state().active.insert(timestamp, 1);
            assert_eq!(within(), is_within, "a snapshot of {timestamp}");
            assert!(snapshots.give_back(Timestamp(timestamp)));
        }
    }
}
