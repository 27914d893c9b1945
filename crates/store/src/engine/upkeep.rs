//! Background work: eviction and checkpoints keep free frames, free segments and free log, and writers are
//! slowed down when they do not keep up.

use crate::sync::atomic::{AtomicU32, Ordering};
use crate::sync::{Arc, Weak};

use crate::checkpoint::log_growth::FREE_BYTES;
use crate::checkpoint::{Checkpointer, Parts};
use crate::header::PageId;
use crate::options::Options;
use crate::pool::Pool;
use crate::segment::{Dirty, Location, PageLocator, Pressure};
use crate::task::{Executor, Upkeep};
use crate::txn::{Load, Space};

/// Steps between two looks at the dirty bytes.
const STEPS_PER_LOOK: u32 = 256;

/// Commits are slowed when more than this fraction of the memory is dirty until the next checkpoint. Old
/// versions do not count: eviction writes their pages, checkpoints do not.
const DIRTY_FROM: f64 = 0.9;

/// Commits are slowed when more than this share of the log's ring is in use: more than two checkpoints'
/// worth.
const LOG_FROM: f64 = 0.75;

/// Commits are slowed when old versions take more than this fraction of their share of the device, which is
/// one part in `OLD_VERSIONS_DIVISOR`. On a device that may grow they have no share.
const OLD_VERSIONS_FROM: f64 = 0.5;
const OLD_VERSIONS_DIVISOR: f64 = 3.0;

/// Starts the upkeep: checkpoints when the log is long, the segments need one or much is dirty; a locator of
/// pages for the segments; slower commits near the limits; giving up old versions when nothing is committed
/// for a moment. It goes on as long as the store keeps the result.
pub(super) fn connect(
    parts: &Parts,
    checkpointer: &Checkpointer,
    executor: &Executor,
    options: &Options,
) -> Arc<Pages> {
    parts.log.when_long(checkpointer.wanting(true));
    let (log, want_if_idle) = (parts.log.clone(), checkpointer.wanting(false));
    let pages = Arc::new(Pages {
        pool: Arc::clone(&parts.pool),
        want: Box::new(checkpointer.wanting(true)),
        want_if_idle: Box::new(move || {
            if log.may_checkpoint() {
                want_if_idle();
            }
        }),
        dirty_bytes_max: options.dirty_bytes_max(),
        steps: AtomicU32::new(0),
    });
    let locator: Weak<dyn PageLocator> = Arc::<Pages>::downgrade(&pages);
    parts.segments.upkeep.set_page_locator(locator);
    let upkeep: Weak<dyn Upkeep> = Arc::<Pages>::downgrade(&pages);
    executor.add_upkeep(upkeep);
    slow_writers(parts);
    let transactions = Arc::downgrade(&parts.transactions);
    parts.log.when_idle(move || {
        // An error only leaves old versions in place.
        let _tried = transactions.upgrade().map(|transactions| transactions.settle());
    });
    pages
}

/// A share, scaled so that `from` becomes 0, and 1 stays 1.
fn over(share: f64, from: f64) -> f64 {
    (share - from) / (1.0 - from)
}

fn slow_writers(parts: &Parts) {
    let (pool, segments, log) = (Arc::clone(&parts.pool), Arc::clone(&parts.segments), parts.log.clone());
    let segments_are_few = segments.upkeep.segments_are_few();
    parts.transactions.watch(parts.devices.clone(), segments_are_few, move |charged_bytes| {
        let (dirty_bytes, durable_dirty_bytes) =
            (pool.images.dirty_bytes(), pool.images.durable_dirty_bytes());
        let room = segments.upkeep.room(dirty_bytes + charged_bytes);
        let share_bytes = segments.growth.bytes_if_at_end().map(|bytes| bytes as f64 / OLD_VERSIONS_DIVISOR);
        let old_versions = share_bytes.map_or(0.0, |bytes| pool.pages.volatile_bytes() as f64 / bytes);
        let space = |pressure| match pressure {
            Pressure::None => Space::Enough,
            Pressure::Tight => Space::Tight,
            Pressure::Full => Space::Full,
        };
        Load {
            dirty: over(durable_dirty_bytes as f64 / pool.budget_of_pages_bytes() as f64, DIRTY_FROM),
            old_versions: over(old_versions, OLD_VERSIONS_FROM),
            // A ring that moves to a longer place with the next checkpoint is no reason to be slow.
            log: if log.is_growing(FREE_BYTES) { 0.0 } else { over(log.fill(), LOG_FROM) },
            space: space(room.to_grow),
            space_for_overflow: space(room.for_overflow),
            no_removes: !room.to_remove,
            // Transactions know the indexes, and add their debt.
            ..Load::default()
        }
    });
}

/// The segments' page locator, and a look at the dirty bytes between tasks.
pub(super) struct Pages {
    pool: Arc<Pool>,
    want: Box<dyn Fn() + Send + Sync>,
    want_if_idle: Box<dyn Fn() + Send + Sync>,
    dirty_bytes_max: u64,
    steps: AtomicU32,
}

impl PageLocator for Pages {
    fn is_at(&self, id: PageId, location: Location) -> bool {
        self.pool.pages.is_at(id, location)
    }

    fn relocate(&self, id: PageId, old: Location, new: Location) -> bool {
        self.pool.relocate(id, old, new)
    }

    fn pages_where(&self, wanted: &dyn Fn(Location) -> bool) -> Vec<(PageId, Location)> {
        self.pool.pages.with_image(wanted)
    }

    fn want_checkpoint(&self) {
        (self.want)();
    }

    fn dirty(&self) -> Dirty {
        Dirty { bytes: self.pool.images.dirty_bytes(), durable_bytes: self.pool.images.durable_dirty_bytes() }
    }
}

impl Upkeep for Pages {
    fn step(&self) {
        // Counting is cheaper than looking; a count that concurrent workers get wrong does no harm.
        let steps = self.steps.load(Ordering::Relaxed).wrapping_add(1);
        self.steps.store(steps, Ordering::Relaxed);
        let is_much = || {
            let bytes_max = self.dirty_bytes_max.min(self.pool.budget_of_pages_bytes() / 4 * 3);
            self.pool.images.durable_dirty_bytes() > bytes_max
        };
        if steps.is_multiple_of(STEPS_PER_LOOK) && is_much() {
            (self.want_if_idle)();
        }
    }
}
