//! The page locator: the segments ask it where pages are, and tell it where images have moved.

use super::Location;
use crate::header::PageId;
use crate::sync::{Arc, OnceLock, Weak};

/// Knows the location of every page. The engine implements it over the pool, and asks for checkpoints through
/// it.
pub(crate) trait PageLocator: Send + Sync {
    /// Whether the newest image of the page is the one at `location`, and nothing newer is in memory.
    fn is_at(&self, id: PageId, location: Location) -> bool;

    /// Makes `new` the page's location if it is still `old` and nothing newer is in memory. Releases neither.
    fn relocate(&self, id: PageId, old: Location, new: Location) -> bool;

    /// All pages whose newest image is at a location that `wanted` accepts. It looks at every page of the
    /// store.
    fn pages_where(&self, wanted: &dyn Fn(Location) -> bool) -> Vec<(PageId, Location)>;

    /// Asks for a checkpoint soon, as it would make segments free. It returns at once.
    fn want_checkpoint(&self);

    /// The pages that are newer in memory than on the device.
    fn dirty(&self) -> Dirty;
}

/// Bytes of pages that are newer in memory than on the device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Dirty {
    /// Of all: they need a place when they leave the memory.
    pub bytes: u64,
    /// Of those that the next checkpoint writes.
    pub durable_bytes: u64,
}

/// The page locator, which is made after the segments and may be gone before them.
#[derive(Default)]
pub(super) struct LocatorSlot(OnceLock<Weak<dyn PageLocator>>);

impl LocatorSlot {
    /// Sets the page locator. The first one stays.
    pub fn set(&self, locator: Weak<dyn PageLocator>) {
        let _first_stays = self.0.set(locator);
    }

    /// Whether a locator was ever set.
    pub fn is_set(&self) -> bool {
        self.0.get().is_some()
    }

    /// The page locator, if it still exists.
    pub fn get(&self) -> Option<Arc<dyn PageLocator>> {
        self.0.get()?.upgrade()
    }

    /// Without a locator nothing is dirty.
    pub fn dirty(&self) -> Dirty {
        self.get().map_or_else(Dirty::default, |locator| locator.dirty())
    }
}
