//! Giving room back: compaction, and the device's free end.
//!
//! A compaction goes on in rounds. Each ends with a checkpoint:
//! 1. Open segments after those that are to be kept are closed.
//! 2. Owners rewrite their segments after them into the first free segments.
//! 3. Live images in the emptiest segments after them are moved into the first free segments. Where these
//!    lack room, loose segments before them are emptied as well.
//! 4. The checkpoint makes the emptied segments free, and rewrites the page table if any of it lies after the
//!    end.
//!
//! In the end the device's free end is cut off: both superblocks say so before the device is shorter. It
//! grows again when a writer asks for room, not before.
//!
//! Readers and writers go on meanwhile. A reader that has looked up a place after the new end reads again
//! where the page was moved to.

use std::collections::VecDeque;

use super::PageLocator;
use super::changes::Changes;
use super::cleaner::Cleaner;
use super::device_end::DeviceEnd;
use super::gather::Gatherer;
use super::growth::Growth;
use super::locator::LocatorSlot;
use super::space::{Leave, Space};
use super::survey::Surveyed;
use crate::Error;
use crate::poison::Poison;
use crate::sync::atomic::{AtomicUsize, Ordering};
use crate::sync::{Arc, Mutex, PoisonError};
use crate::task::Executor;

/// Begins compactions.
pub(crate) struct Compactor {
    executor: Executor,
    poison: Poison,
    space: Arc<Space>,
    gatherer: Arc<Gatherer>,
    cleaner: Arc<Cleaner>,
    growth: Arc<Growth>,
    end: Arc<DeviceEnd>,
    locator: Arc<LocatorSlot>,
    changes: Arc<Changes>,
}

/// A compaction that is under way. Until it is dropped, the store does not grow ahead of need, and no other
/// compaction begins. Afterwards it rests: see [`Growth::rest`].
pub(crate) struct Compaction {
    parts: Arc<Compactor>,
    /// Segments of the device when it began, which are enough.
    most: usize,
}

impl Drop for Compaction {
    fn drop(&mut self) {
        let Compactor { space, growth, changes, .. } = &*self.parts;
        space.set_ceiling(None);
        growth.rest(true);
        growth.hold_back(false);
        changes.segments_changed();
    }
}

impl Compactor {
    pub(super) fn new(
        (executor, poison): (Executor, Poison),
        (space, gatherer, cleaner): (&Arc<Space>, &Arc<Gatherer>, &Arc<Cleaner>),
        (growth, end): (&Arc<Growth>, &Arc<DeviceEnd>),
        (locator, changes): (&Arc<LocatorSlot>, &Arc<Changes>),
    ) -> Self {
        Self {
            executor,
            poison,
            space: Arc::clone(space),
            gatherer: Arc::clone(gatherer),
            cleaner: Arc::clone(cleaner),
            growth: Arc::clone(growth),
            end: Arc::clone(end),
            locator: Arc::clone(locator),
            changes: Arc::clone(changes),
        }
    }

    /// Begins a compaction of a device of `bytes`. `None` if there is one, or if the device keeps its size.
    pub fn begin(self: &Arc<Self>, bytes: u64) -> Option<Compaction> {
        let begins = self.end.may_compact() && !self.growth.hold_back(true);
        begins.then(|| Compaction { parts: Arc::clone(self), most: self.space.sizes().count(bytes) })
    }
}

impl Compaction {
    /// Number of segments that the store is to keep, by its live bytes now; no more than it had.
    pub fn target(&self) -> usize {
        let Compactor { space, growth, .. } = &*self.parts;
        let keep = space.fewest().max(growth.first_segments()).min(self.most);
        space.set_ceiling(Some(keep));
        keep
    }

    /// Whether the store may become shorter by more than a checkpoint and moves may add to it. One that was
    /// just compacted, or is a backup, does not.
    pub fn is_worth_it(&self) -> bool {
        let Compactor { space, locator, .. } = &*self.parts;
        locator.dirty().bytes > 0 || space.is_worth_compacting(self.target())
    }

    /// Grows the device by the segments that moves need; they are cut off in the end. A disk without room for
    /// it allows fewer moves.
    pub fn make_room_to_move(&self) {
        self.parts.growth.grow_to_write();
    }

    /// The free segments that stay.
    pub fn leaves(&self) -> Leave {
        Leave::ForRemoving { first: self.parts.growth.first_segments(), most: self.most }
    }

    /// Whether segments are in use after the end that the device had.
    pub fn reaches_behind(&self) -> bool {
        self.remaining_bytes(self.most) > 0
    }

    /// Where the first `keep` segments end on the device.
    pub fn end_bytes(&self, keep: usize) -> u64 {
        self.parts.space.sizes().device_bytes(keep)
    }

    /// Bytes of used segments after those that the store is to keep.
    pub fn remaining_bytes(&self, keep: usize) -> u64 {
        self.parts.space.used_bytes_behind(keep)
    }

    /// Closes open segments that are in the way, and moves live images out of some of the others. It returns
    /// whether there are any; the next checkpoint makes them free.
    ///
    /// # Errors
    /// [`Error::Poisoned`].
    pub fn move_some(&self, keep: usize) -> Result<bool, Error> {
        let Compactor { executor, poison, space, gatherer, cleaner, locator, changes, .. } = &*self.parts;
        let Some(locator) = locator.get() else { return Ok(false) };
        let is_closed = gatherer.close_open_behind(keep);
        gatherer.write_all()?;
        let victims = space.to_compact(keep, |range| cleaner.survey().is_written(range));
        if victims.is_empty() {
            return Ok(is_closed);
        }
        let work = Arc::new(Work {
            cleaner: Arc::clone(cleaner),
            changes: Arc::clone(changes),
            surveyed: Mutex::new(cleaner.survey().of(victims, &*locator).into()),
            locator,
            movers: AtomicUsize::new(0),
        });
        for _ in 0..cleaner.cleaners_max() {
            let mover = Mover::new(&work);
            executor.spawn(move || mover.work());
        }
        changes.wait_until(|| {
            poison.check()?;
            Ok(work.movers.load(Ordering::Acquire) == 0)
        })?;
        gatherer.write_moved().map(|()| true)
    }
}

/// The segments of a round that are to be emptied.
struct Work {
    cleaner: Arc<Cleaner>,
    changes: Arc<Changes>,
    locator: Arc<dyn PageLocator>,
    surveyed: Mutex<VecDeque<Surveyed>>,
    /// Tasks that have not ended.
    movers: AtomicUsize,
}

/// One of the tasks. Its drop counts it out on every path, panics included.
struct Mover(Arc<Work>);

impl Mover {
    fn new(work: &Arc<Work>) -> Self {
        work.movers.fetch_add(1, Ordering::AcqRel);
        Self(Arc::clone(work))
    }

    fn next(&self) -> Option<Surveyed> {
        self.0.surveyed.lock().unwrap_or_else(PoisonError::into_inner).pop_front()
    }

    fn work(self) {
        let Work { cleaner, locator, .. } = &*self.0;
        let Ok(mut block) = Cleaner::block() else { return };
        while let Some(victim) = self.next() {
            if cleaner.empty(victim, &**locator, &mut block).is_err() {
                return;
            }
        }
    }
}

impl Drop for Mover {
    fn drop(&mut self) {
        self.0.movers.fetch_sub(1, Ordering::AcqRel);
        self.0.changes.wake_all();
    }
}
