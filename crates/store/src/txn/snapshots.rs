//! Which snapshots are in use, so that what they see is kept.
//!
//! A commit keeps the version that it replaces if a snapshot may see it. So a new snapshot first says that it comes (from then on every commit keeps everything), then looks which
//! timestamp was given last, and waits until all up to that one can be seen. That is its timestamp: commits that looked before it came are not after it.

use crate::sync::atomic::{AtomicU64, Ordering};
use crate::sync::{Mutex, MutexGuard, PoisonError};
use std::collections::BTreeMap;

use super::visible::Visible;
use crate::Error;
use crate::log::Timestamp;
use crate::poison::Poison;

/// Snapshots are told from one another by nothing but their timestamp; each is given back as often as it was taken.
#[derive(Default)]
pub(crate) struct Snapshots {
    state: Mutex<State>,
    /// The newest in use; the largest number while one is coming; 0 if there is none. A snapshot of an
    /// empty store counts as 1: it sees nothing.
    newest: AtomicU64,
}

#[derive(Default)]
struct State {
    coming: usize,
    active: BTreeMap<u64, usize>,
}

impl Snapshots {
    /// A snapshot of everything that was committed before.
    ///
    /// # Errors
    /// [`Error::Poisoned`] if a commit failed while it was applied: it kept nothing of what it replaced, for nobody wanted it then, and never becomes visible.
    pub fn take(&self, visible: &Visible, poison: &Poison) -> Result<Timestamp, Error> {
        {
            let mut state = self.state();
            state.coming += 1;
            self.note(&state);
        }
        let timestamp = visible.given();
        let waited = visible.wait(timestamp, poison);
        let mut state = self.state();
        state.coming -= 1;
        if waited.is_ok() {
            *state.active.entry(timestamp.0).or_default() += 1;
        }
        self.note(&state);
        waited.map(|()| timestamp)
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

    /// Whether a snapshot may see a version that was committed with that timestamp and is about to be replaced.
    #[inline]
    pub fn may_see(&self, timestamp: Timestamp) -> bool {
        let (newest, needed) = (self.newest.load(Ordering::SeqCst), timestamp.0.max(1));
        newest > needed || newest == needed && !planted!(OldVersionDropped)
    }

    /// Whether there is a snapshot, or one is coming.
    #[inline]
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

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn note(&self, state: &State) {
        let newest = if state.coming > 0 {
            u64::MAX
        } else {
            state.active.last_key_value().map_or(0, |(newest, _)| (*newest).max(1))
        };
        self.newest.store(newest, Ordering::SeqCst);
    }
}
