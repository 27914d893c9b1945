//! The information about transactions that an index needs to merge versions in the background.

use super::Snapshots;
use crate::Error;
use crate::log::Timestamp;
use crate::sync::{Arc, Mutex, PoisonError, Weak};

/// See the module.
pub(crate) trait Horizon: Send + Sync {
    /// The snapshots in use.
    fn snapshots(&self) -> &Snapshots;

    /// The commit up to which all can be seen.
    fn visible(&self) -> Timestamp;

    /// The last commit that is not replayed after a crash, whatever checkpoint comes before it.
    fn replayed_behind(&self) -> Timestamp;

    /// Called when no reader sees the overflow value with this reference any more.
    fn overflow_is_gone(&self, reference: &[u8]);

    /// Appends the overflow value with this reference to `into`.
    ///
    /// # Errors
    /// [`Error::Corrupt`], also if the value is gone by now; [`Error::Io`].
    fn read_overflow(&self, reference: &[u8], into: &mut Vec<u8>) -> Result<(), Error>;
}

/// The horizon while the log is replayed: no snapshot is left of the store's last life, and all commits of
/// the log are replayed before anything is read. The next crash has all of them replayed again.
#[derive(Default)]
pub(crate) struct ReplayHorizon {
    snapshots: Snapshots,
    state: Mutex<ReplayState>,
}

/// Overflow values that merges leave out are freed after the replay, which may adopt them again.
enum ReplayState {
    /// References of overflow values that were left out.
    Replaying(Vec<Vec<u8>>),
    Opened(Weak<dyn Horizon>),
}

impl Default for ReplayState {
    fn default() -> Self {
        Self::Replaying(Vec::new())
    }
}

impl ReplayHorizon {
    /// The log was replayed: overflow values that were left out go to this horizon, now and from now on.
    pub fn end(&self, opened: &Arc<dyn Horizon>) {
        let before = std::mem::replace(
            &mut *self.state.lock().unwrap_or_else(PoisonError::into_inner),
            ReplayState::Opened(Arc::downgrade(opened)),
        );
        if let ReplayState::Replaying(gone) = before {
            gone.iter().for_each(|reference| opened.overflow_is_gone(reference));
        }
    }
}

impl Horizon for ReplayHorizon {
    fn snapshots(&self) -> &Snapshots {
        &self.snapshots
    }

    fn visible(&self) -> Timestamp {
        Timestamp(u64::MAX)
    }

    fn replayed_behind(&self) -> Timestamp {
        Timestamp(0)
    }

    fn overflow_is_gone(&self, reference: &[u8]) {
        let opened = match &mut *self.state.lock().unwrap_or_else(PoisonError::into_inner) {
            ReplayState::Replaying(gone) => return gone.push(reference.to_vec()),
            ReplayState::Opened(opened) => opened.upgrade(),
        };
        if let Some(opened) = opened {
            opened.overflow_is_gone(reference);
        }
    }

    fn read_overflow(&self, _reference: &[u8], _into: &mut Vec<u8>) -> Result<(), Error> {
        Err(Error::Closed)
    }
}

/// A horizon with given answers, for tests.
#[cfg(test)]
#[derive(Default)]
pub(crate) struct FixedHorizon {
    snapshots: Snapshots,
    visible: Timestamp,
    replayed_behind: Timestamp,
}

#[cfg(test)]
impl FixedHorizon {
    /// Commits up to the first of these can be seen, and those after the second may be replayed.
    pub fn new(visible: u64, replayed_behind: u64, snapshots: &[u64]) -> Self {
        let (visible, replayed_behind) = (Timestamp(visible), Timestamp(replayed_behind));
        let own = Self { visible, replayed_behind, ..Self::default() };
        for timestamp in snapshots {
            own.snapshots.take(Timestamp(0), |_| Ok(Timestamp(*timestamp))).unwrap();
        }
        own
    }
}

#[cfg(test)]
impl Horizon for FixedHorizon {
    fn snapshots(&self) -> &Snapshots {
        &self.snapshots
    }

    fn visible(&self) -> Timestamp {
        self.visible
    }

    fn replayed_behind(&self) -> Timestamp {
        self.replayed_behind
    }

    fn overflow_is_gone(&self, _reference: &[u8]) {}

    fn read_overflow(&self, _reference: &[u8], _into: &mut Vec<u8>) -> Result<(), Error> {
        Err(Error::Closed)
    }
}
