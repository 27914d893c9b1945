//! Giving room back: compaction, and the device's free end.
//!
//! A compaction goes on in rounds, each of which ends with a checkpoint:
//! 1. Open segments behind those that are to be kept are closed.
//! 2. What is live in the emptiest segments behind them is moved, which fills the first free segments. Where
//!    these lack room, loose segments before them are emptied as well.
//! 3. The checkpoint makes the emptied segments free, and writes the page table anew if any of it lies behind.
//!
//! In the end the device's free end is cut off: both superblocks say so before the device is shorter.
//!
//! Readers and writers go on meanwhile. A reader that has looked up a place behind the new end reads again
//! where the page was moved to.

use crate::sync::atomic::{AtomicUsize, Ordering};
use crate::sync::{Arc, Mutex, PoisonError};
use std::collections::VecDeque;

use super::cleaner::{READ_BYTES, Stop};
use super::policy::Target;
use super::survey::Surveyed;
use super::{PageLocator, Segments, Stream, UnitSequence};
use crate::Error;
use crate::io_context::{Block, Role};
use crate::layout::LogExtent;

/// A compaction that is under way. Until it is dropped, the store does not grow ahead of need, and no other
/// compaction begins.
pub(crate) struct Compaction(Arc<Segments>);

impl Drop for Compaction {
    fn drop(&mut self) {
        self.0.space.set_ceiling(None);
        self.0.upkeep.compacting.store(false, Ordering::Release);
        self.0.tend();
    }
}

impl Segments {
    /// Begins a compaction. `None` if there is one, or if the device keeps its size.
    pub fn begin_compaction(self: &Arc<Self>) -> Option<Compaction> {
        let may_begin = self.may_shrink() && self.in_place.is_none();
        let begins = may_begin && !self.upkeep.compacting.swap(true, Ordering::AcqRel);
        begins.then(|| Compaction(Arc::clone(self)))
    }

    fn may_shrink(&self) -> bool {
        let may_grow = self.upkeep.limit_bytes.load(Ordering::Acquire) > 0;
        may_grow && self.devices.device(Role::Data).shrinks()
    }

    /// Segments that a new store has.
    fn first_segments(&self) -> usize {
        self.space.sizes().count(self.upkeep.first_bytes.load(Ordering::Relaxed))
    }

    /// How many segments to keep when the device's free end is cut off after a checkpoint, if that is worth
    /// it. A device that was as large as it may become from the beginning stays so.
    pub fn worth_keeping(&self) -> Option<usize> {
        let was_small = self.layout.log_grows() || self.space.sizes().length(0) < self.layout.segment_bytes;
        let is_compacted = self.upkeep.compacting.load(Ordering::Acquire);
        let cuts = was_small && self.in_place.is_none() && !is_compacted && self.may_shrink();
        if cuts { self.space.worth_keeping(self.first_segments()) } else { None }
    }

    /// Whether the log's place ends behind the first `keep` segments.
    pub fn is_behind(&self, place: LogExtent, keep: usize) -> bool {
        place.end_bytes() > self.space.sizes().device_bytes(keep)
    }

    /// Cuts the device's free end off. With `keep`, the first so many segments stay, and the free ones that
    /// writers need; without it nothing may be written any more. `make_current` is told how long the device
    /// will be, and makes that durable before the device is shortened.
    ///
    /// # Errors
    /// Those of `make_current`.
    pub fn cut_tail(
        &self,
        keep: Option<usize>,
        make_current: impl FnOnce(u64) -> Result<(), Error>,
    ) -> Result<(), Error> {
        if !self.may_shrink() || self.upkeep.growing.swap(true, Ordering::AcqRel) {
            return Ok(());
        }
        // Whatever the file system does not take back is free room when the store is opened.
        let shrink = |bytes| drop(self.devices.device(Role::Data).shrink(bytes));
        let cut = self.space.cut_tail(keep).map_or(Ok(()), |bytes| {
            if planted!(CutBeforeSuperblock) {
                shrink(bytes);
            }
            make_current(bytes).map(|()| shrink(bytes))
        });
        self.upkeep.growing.store(false, Ordering::Release);
        self.wake_all();
        cut
    }
}

impl Compaction {
    /// The segments that the store is to keep, by what is live now.
    pub fn target(&self) -> usize {
        let keep = self.0.space.fewest().max(self.0.first_segments());
        self.0.space.set_ceiling(Some(keep));
        keep
    }

    /// Bytes of used segments behind those that the store is to keep.
    pub fn remaining_bytes(&self, keep: usize) -> u64 {
        self.0.space.used_bytes_behind(keep)
    }

    /// Closes open segments that are in the way, and moves what is live in some of the others. Returns whether
    /// there are any; the next checkpoint makes them free.
    ///
    /// # Errors
    /// [`Error::Poisoned`].
    pub fn move_some(&self, keep: usize) -> Result<bool, Error> {
        let segments = &self.0;
        let Some(locator) = segments.page_locator() else { return Ok(false) };
        let is_closed = segments.close_open_behind(keep);
        segments.write_all()?;
        let victims = segments.space.to_compact(keep, |range| !segments.buffers.holds_any_of(range));
        if victims.is_empty() {
            return Ok(is_closed);
        }
        let work = Arc::new(Work {
            segments: Arc::clone(segments),
            locator: Arc::clone(&locator),
            surveyed: Mutex::new(segments.survey(victims, &*locator).into()),
            movers: AtomicUsize::new(0),
        });
        for _ in 0..segments.cleaners_max() {
            let mover = Mover::new(&work);
            segments.executor.spawn(move || mover.work());
        }
        segments.wait_until(|| {
            segments.poison.check()?;
            Ok(work.movers.load(Ordering::Acquire) == 0)
        })?;
        segments.write_moved().map(|()| true)
    }
}

/// The segments of a round that are to be emptied.
struct Work {
    segments: Arc<Segments>,
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
        let segments = &self.0.segments;
        let Ok(mut block) = Block::new(READ_BYTES as usize) else { return };
        while let Some(victim) = self.next() {
            let index = victim.index;
            if !segments.space.begin_victim(index, victim.opening) {
                continue;
            }
            let moved = segments.clean_segment(victim, &*self.0.locator, &mut block);
            segments.space.end_victim(index);
            if let Err(Stop::NoSegment | Stop::Failed) = moved {
                return;
            }
        }
    }
}

impl Drop for Mover {
    fn drop(&mut self) {
        self.0.movers.fetch_sub(1, Ordering::AcqRel);
        self.0.segments.wake_all();
    }
}

impl Segments {
    /// Closes open segments behind the first `keep` ones. Returns whether there were any: those without images
    /// are free after the next checkpoint.
    pub fn close_open_behind(&self, keep: usize) -> bool {
        let mut is_any = false;
        for target in Target::ALL {
            let mut gathering = self.gathering(target);
            if gathering.open_segment().is_some_and(|segment| segment >= keep) {
                is_any = true;
                self.seal(target, &mut gathering, false);
                if let Some(segment) = gathering.take_segment() {
                    self.space.close(segment, target.stream());
                }
            }
        }
        is_any
    }

    /// Waits until the units of moved images are written.
    fn write_moved(&self) -> Result<(), Error> {
        let mut open: Vec<UnitSequence> = Vec::new();
        for target in Target::ALL {
            let mut gathering = self.gathering(target);
            match target.stream() {
                Stream::Moved => self.seal(target, &mut gathering, false),
                Stream::Fresh | Stream::Overflow | Stream::Map => open.extend(gathering.open_unit()),
            }
        }
        self.wait_all_written(self.buffers.unwritten().filter(|unit| !open.contains(unit)).collect())
    }
}
