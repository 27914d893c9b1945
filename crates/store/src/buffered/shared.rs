//! What trees that merge versions in the background know of the store around them.

use super::flush_room::FlushRoom;
use super::{Room, Turns};
use crate::index::Horizon;
use crate::pool::Pool;
use crate::segment::Segments;
use crate::sync::{Arc, OnceLock, Weak};
use crate::task::Executor;

/// Flushes have this part of the cache.
const FLUSH_MEMORY_DIVISOR: u64 = 2;

/// What trees that merge versions in the background share with the rest of the store.
pub(crate) struct Shared {
    pub(crate) pool: Arc<Pool>,
    pub(crate) segments: Arc<Segments>,
    pub(crate) executor: Executor,
    pub(crate) room: Room,
    /// Bytes of the cache for pages that flushes change: with less, they would evict each other's for ever.
    pub(crate) flush_memory: Turns,
    /// Room for the pages that one flush changes at a time, which waits for room before.
    pub(crate) flush_room: FlushRoom,
    /// Known when transactions are.
    horizon: OnceLock<Weak<dyn Horizon>>,
}

impl Shared {
    pub fn new(pool: &Arc<Pool>, segments: &Arc<Segments>, executor: &Executor, room: Room) -> Arc<Self> {
        let (pool, segments, executor) = (Arc::clone(pool), Arc::clone(segments), executor.clone());
        let flush_memory = Turns::of(pool.pages.budget_bytes() / FLUSH_MEMORY_DIVISOR);
        let flush_room = FlushRoom::new(segments.owned.claim());
        Arc::new(Self { pool, segments, executor, room, flush_memory, flush_room, horizon: OnceLock::new() })
    }

    /// From now on merges leave out what nobody will see. Only the first call of this has an effect.
    pub fn set_horizon(&self, horizon: Weak<dyn Horizon>) {
        let _first_stays = self.horizon.set(horizon);
    }

    /// `None` while the log is replayed.
    pub(crate) fn horizon(&self) -> Option<Arc<dyn Horizon>> {
        self.horizon.get().and_then(Weak::upgrade)
    }
}
