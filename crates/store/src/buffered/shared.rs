//! The parts of the store that trees that merge versions in the background use.

use super::flush_room::FlushRoom;
use super::{Room, Semaphore};
use crate::index::{Horizon, ReplayHorizon};
use crate::pool::Pool;
use crate::segment::Segments;
use crate::sync::{Arc, OnceLock, Weak};
use crate::task::Executor;

/// Flushes have this part of the cache.
const FLUSH_MEMORY_DIVISOR: u64 = 2;

/// The parts that trees that merge versions in the background share with the rest of the store.
pub(crate) struct TreeResources {
    pub(crate) pool: Arc<Pool>,
    pub(crate) segments: Arc<Segments>,
    pub(crate) executor: Executor,
    pub(crate) room: Room,
    /// Bytes of the cache for pages that flushes change: with less, flushes would evict each other's pages
    /// for ever.
    pub(crate) flush_memory: Semaphore,
    /// Room for the pages that one flush changes at a time. A flush waits for it before it begins.
    pub(crate) flush_room: FlushRoom,
    /// Set once transactions exist.
    horizon: OnceLock<Weak<dyn Horizon>>,
    /// The horizon until then.
    replay: Arc<ReplayHorizon>,
}

impl TreeResources {
    pub fn new(pool: &Arc<Pool>, segments: &Arc<Segments>, executor: &Executor, room: Room) -> Arc<Self> {
        let (pool, segments, executor) = (Arc::clone(pool), Arc::clone(segments), executor.clone());
        let flush_memory = Semaphore::of(pool.pages.budget_bytes() / FLUSH_MEMORY_DIVISOR);
        let flush_room = FlushRoom::new(segments.owned.reservation());
        let (horizon, replay) = (OnceLock::new(), Arc::default());
        Arc::new(Self { pool, segments, executor, room, flush_memory, flush_room, horizon, replay })
    }

    /// The log was replayed: from now on merges leave out versions that no snapshot sees. Only the first call
    /// of this has an effect.
    pub fn set_horizon(&self, horizon: &Arc<dyn Horizon>) {
        if self.horizon.set(Arc::downgrade(horizon)).is_ok() {
            self.replay.end(horizon);
        }
    }

    /// `None` while the log is replayed.
    pub(crate) fn horizon(&self) -> Option<Arc<dyn Horizon>> {
        self.horizon.get().and_then(Weak::upgrade)
    }

    /// The horizon of flushes into nodes, which have no room for all versions that a log has of a key: while
    /// the log is replayed, flushes leave out replaced versions, too. `None` when the store is gone.
    pub(crate) fn flush_horizon(&self) -> Option<Arc<dyn Horizon>> {
        match self.horizon.get() {
            Some(horizon) => horizon.upgrade(),
            None => Some(Arc::<ReplayHorizon>::clone(&self.replay)),
        }
    }
}
