//! What trees that merge versions in the background know of the store around them.

use super::Room;
use crate::index::Horizon;
use crate::pool::Pool;
use crate::segment::Segments;
use crate::sync::{Arc, OnceLock, Weak};
use crate::task::Executor;

/// What trees that merge versions in the background share with the rest of the store.
pub(crate) struct Shared {
    pub(crate) pool: Arc<Pool>,
    pub(crate) segments: Arc<Segments>,
    pub(crate) executor: Executor,
    pub(crate) room: Room,
    /// Known when transactions are.
    horizon: OnceLock<Weak<dyn Horizon>>,
}

impl Shared {
    pub fn new(pool: &Arc<Pool>, segments: &Arc<Segments>, executor: &Executor, room: Room) -> Arc<Self> {
        let (pool, segments, executor) = (Arc::clone(pool), Arc::clone(segments), executor.clone());
        Arc::new(Self { pool, segments, executor, room, horizon: OnceLock::new() })
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
