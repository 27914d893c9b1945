//! Keeping segments free ahead of demand: cleaning, growing the device, discarding, and asking for
//! checkpoints.

use crate::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, AtomicUsize, Ordering};
use crate::sync::{Arc, PoisonError};
use std::ops::Range;

use flashgrain_device::{ErrorKind as DeviceErrorKind, Nanos};

use super::policy::Target;
use super::stats::add;
use super::{Dirty, PageLocator, Segments, Stream};
use crate::Error;
use crate::io_context::{self, Role};
use crate::layout::LogExtent;
use crate::task::{park, waker, yield_now};

/// The device grows before pages fill more than this part of the usable bytes, which do not include the
/// reserve.
const GROWN_BEFORE_PERCENT: u64 = 90;

/// The device grows from this on if cleaning is expensive at that fullness already, or if segments run short.
const GROWN_IF_SHORT_PERCENT: u64 = 55;

/// A device grows by this part of itself at a time, and a small one to twice its size, up to so many bytes.
/// These steps are taken in the background, and are so large that they are rare.
const GROWTH_DIVISOR: u64 = 16;
const GROWTH_OF_SMALL_BYTES_MAX: u64 = 16 << 20;

/// After the disk had no room for growth, the next attempt comes so much later, and only if there is need:
/// somebody may have made room.
const GROWTH_RETRY: Nanos = Nanos(200_000_000);

/// State of the background work.
#[derive(Default)]
pub(super) struct Upkeep {
    cleaners: AtomicUsize,
    pub growing: AtomicBool,
    /// The store is being compacted: it grows only if nothing else helps.
    pub compacting: AtomicBool,
    /// When the device may be asked to grow again, on its clock; 0: at any time.
    growth_from_ns: AtomicU64,
    /// The device may grow to this.
    pub limit_bytes: AtomicU64,
    /// A device that was made smaller grows to this first.
    pub first_bytes: AtomicU64,
    pressure: AtomicU8,
    stopped: AtomicBool,
    discards: AtomicBool,
}

/// Shortage of room for more dirty pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pressure {
    /// Enough.
    None,
    /// The free segments are just enough for the pages that are dirty already. Segments are being made free,
    /// so waiting helps.
    Tight,
    /// Live and dirty pages together fill the device.
    Full,
}

/// Room for dirty pages, by purpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Room {
    pub to_grow: Pressure,
    pub to_remove: bool,
    /// For all overflow values that room is reserved for.
    pub for_overflow: Pressure,
    /// So few segments are free that writers check before every commit.
    pub is_near: bool,
}

/// See [`Segments::want`].
pub(crate) struct Wanted {
    owner: Arc<Segments>,
    bytes: u64,
}

impl Drop for Wanted {
    fn drop(&mut self) {
        self.owner.space.unwant(self.bytes);
    }
}

/// These bytes as the log's place.
fn place(range: Range<u64>) -> LogExtent {
    LogExtent { start_bytes: range.start, bytes: range.end - range.start }
}

impl Segments {
    /// Looks after the free segments. It never waits: work becomes tasks.
    pub(super) fn tend(&self) {
        self.tend_and(true);
    }

    /// With `clean` false no cleaner is started: one has just found nothing to do.
    fn tend_and(&self, clean: bool) {
        let Some(locator) = self.page_locator() else { return };
        if self.in_place.is_some()
            || self.upkeep.stopped.load(Ordering::Acquire)
            || self.poison.check().is_err()
        {
            return;
        }
        let dirty = locator.dirty();
        let (dirty_bytes, need) = (dirty.bytes, self.space.need(dirty));
        let out_of_room =
            need.urgent && (need.hopeless || self.space.usage().available_bytes() < dirty_bytes);
        let cleans = clean && need.cleaning;
        let grows = self.grow_if_full(dirty_bytes)
            || out_of_room && self.begin_growing()
            || (cleans || need.urgent) && self.grow_if_short(need.urgent, dirty_bytes)
            || need.checkpoint
                && !need.checkpoint_pays
                && !self.is_new_with_little(dirty)
                && self.grow_ahead();
        if cleans && (need.urgent || !grows) {
            self.begin_cleaning(locator.clone());
        }
        let is_anything_coming = need.checkpoint && need.pending || need.freeing || grows;
        if need.urgent
            && need.moving
            && !is_anything_coming
            && self.upkeep.cleaners.load(Ordering::Acquire) == 0
        {
            // Without cleaners nobody fills the units of moved images, and their moves would not end.
            self.push_moved();
        }
        // Growing is faster than a checkpoint, and lets changes gather for longer.
        if need.checkpoint && !grows {
            locator.want_checkpoint();
        }
        let pressure = if grows && !self.has_growth_failed() || !need.tight {
            Pressure::None
        } else if out_of_room {
            Pressure::Full
        } else {
            Pressure::Tight
        };
        self.upkeep.pressure.store(pressure as u8, Ordering::Release);
    }

    /// Room for more dirty pages, with so many bytes that are dirty already, or soon will be. Dirty pages
    /// need segments before a checkpoint can make others free, so writers have to stop while there are just
    /// enough of them; this starts making more free. Commits that only remove may take from the cleaner's
    /// reserve.
    pub fn room(&self, dirty_bytes: u64) -> Room {
        if self.in_place.is_some() {
            return Room {
                to_grow: Pressure::None,
                to_remove: true,
                for_overflow: Pressure::None,
                is_near: false,
            };
        }
        let room = self.space.room(dirty_bytes);
        if room.to_grow {
            self.upkeep.pressure.store(Pressure::None as u8, Ordering::Release);
        } else {
            self.tend();
        }
        let to_grow = if room.to_grow { Pressure::None } else { self.pressure() };
        let for_overflow = match self.space.wanted_bytes() {
            _ if room.for_overflow => Pressure::None,
            0 => to_grow,
            wanted_bytes => self.pressure_for_overflow(dirty_bytes + wanted_bytes),
        };
        let to_remove = room.to_remove || to_grow == Pressure::None;
        Room { to_grow, to_remove, for_overflow, is_near: room.is_near }
    }

    /// Shortage of room for overflow values, with so many bytes becoming live in addition.
    fn pressure_for_overflow(&self, more_bytes: u64) -> Pressure {
        self.tend();
        let dirty = self.page_locator().map_or_else(Dirty::default, |locator| locator.dirty());
        let is_too_much = self.space.usage().available_bytes() < more_bytes;
        let is_full = is_too_much || self.space.need(dirty).hopeless;
        let grows = is_full && self.begin_growing() && !self.has_growth_failed();
        if is_full && !grows { Pressure::Full } else { Pressure::Tight }
    }

    /// Reserves room for overflow values of so many bytes until the result is dropped: segments are made free
    /// for them, and other writers of overflow values have to wait.
    pub fn want(self: &Arc<Self>, bytes: u64) -> Wanted {
        let bytes = self.space.bytes_for(bytes);
        self.space.want(bytes);
        Wanted { owner: Arc::clone(self), bytes }
    }

    pub(super) fn pressure(&self) -> Pressure {
        match self.upkeep.pressure.load(Ordering::Acquire) {
            0 => Pressure::None,
            1 => Pressure::Tight,
            _ => Pressure::Full,
        }
    }

    /// Starts one more cleaner. Segments under way count as nearly free, so another one starts only if
    /// segments are used up faster than the present ones make them free.
    fn begin_cleaning(&self, locator: Arc<dyn PageLocator>) {
        let most = self.cleaners_max();
        let more = |cleaners| (cleaners < most).then_some(cleaners + 1);
        let cleaners = &self.upkeep.cleaners;
        let Some(own) = self.own.upgrade() else { return };
        if cleaners.fetch_update(Ordering::AcqRel, Ordering::Acquire, more).is_ok() {
            self.executor.spawn(move || {
                own.clean(&*locator);
                own.upkeep.cleaners.fetch_sub(1, Ordering::AcqRel);
                own.tend_and(false);
                own.wake_all();
            });
        }
    }

    /// Seals the units of moved images, unless somebody is adding to them.
    fn push_moved(&self) {
        for target in [Target::MovedYoung, Target::MovedOld] {
            if let Ok(mut gathering) = self.gatherings[target as usize].try_lock() {
                self.seal(target, &mut gathering, false);
            }
        }
    }

    /// Begins no more background work. Work under way ends soon.
    pub fn stop(&self) {
        self.upkeep.stopped.store(true, Ordering::Release);
    }

    /// Takes [`stop`](Self::stop) back.
    pub fn resume(&self) {
        self.upkeep.stopped.store(false, Ordering::Release);
        self.tend();
    }

    pub(super) fn is_stopped(&self) -> bool {
        self.upkeep.stopped.load(Ordering::Acquire)
    }

    /// Lets the device grow up to `limit_bytes`. With `first_segments` it is as large as a new one.
    pub fn set_growth(&self, limit_bytes: u64, first_segments: u64) {
        let first_bytes = self.space.sizes().device_bytes(first_segments as usize);
        self.upkeep.first_bytes.store(first_bytes, Ordering::Relaxed);
        self.upkeep.limit_bytes.store(limit_bytes, Ordering::Release);
    }

    /// Has freed segments discarded on the device. Not for files: it would give their blocks back to the file
    /// system.
    pub fn set_discards(&self, discards: bool) {
        self.upkeep.discards.store(discards, Ordering::Release);
    }

    /// Has the device grown if it is filling up and may grow. Returns whether it is growing.
    fn grow_if_full(&self, dirty_bytes: u64) -> bool {
        self.is_fuller_than(GROWN_BEFORE_PERCENT, dirty_bytes) && self.grow_ahead()
    }

    /// Has the device grown if free segments are short, or more than half of what is cleaned next would have
    /// to be moved, and there is no plenty of room. Returns whether it is growing.
    pub(super) fn grow_if_short(&self, are_segments_short: bool, dirty_bytes: u64) -> bool {
        // `may_grow` comes first, because `is_cleaning_dear` goes through all segments.
        self.may_grow()
            && self.is_fuller_than(GROWN_IF_SHORT_PERCENT, dirty_bytes)
            && (are_segments_short || self.space.is_cleaning_dear())
            && self.grow_ahead()
    }

    /// Whether the device is as large as at first, and a checkpoint writes no more than a segment: a store of
    /// few records stays small.
    fn is_new_with_little(&self, dirty: Dirty) -> bool {
        let capacity_bytes = self.devices.device(Role::Data).capacity_bytes();
        capacity_bytes <= self.upkeep.first_bytes.load(Ordering::Relaxed)
            && dirty.durable_bytes <= self.space.sizes().length(0)
    }

    fn is_fuller_than(&self, percent: u64, dirty_bytes: u64) -> bool {
        let used_bytes = self.space.live_bytes() + dirty_bytes + self.space.wanted_bytes();
        used_bytes > self.space.usable_bytes() / 100 * percent
    }

    fn may_grow(&self) -> bool {
        self.devices.device(Role::Data).capacity_bytes() < self.upkeep.limit_bytes.load(Ordering::Acquire)
    }

    /// Whether growth may find room: shortly after a failure it hardly does.
    fn may_try_to_grow(&self) -> bool {
        let from_ns = self.upkeep.growth_from_ns.load(Ordering::Acquire);
        from_ns == 0 || io_context::now(&self.devices).0 >= from_ns
    }

    /// Whether the latest try to grow found no room. Another try is then no reason to let more pages become
    /// dirty: there may be no room for them.
    pub fn has_growth_failed(&self) -> bool {
        self.upkeep.growth_from_ns.load(Ordering::Acquire) != 0
    }

    /// Bytes of all segments, unless there may be more.
    pub fn bytes_if_it_cannot_grow(&self) -> Option<u64> {
        (!self.may_grow()).then(|| self.space.bytes())
    }

    /// Has the device grown before it must, if it may grow. Returns whether it is growing.
    fn grow_ahead(&self) -> bool {
        !self.upkeep.compacting.load(Ordering::Acquire) && self.begin_growing()
    }

    /// Has the device grown if it may grow. Returns whether it is growing.
    fn begin_growing(&self) -> bool {
        if !self.may_grow() || !self.may_try_to_grow() {
            return false;
        }
        let Some(own) = self.own.upgrade() else { return false };
        if !self.upkeep.growing.swap(true, Ordering::AcqRel) {
            let now = self.devices.device(Role::Data).capacity_bytes();
            let step = (now / GROWTH_DIVISOR).max(now.min(GROWTH_OF_SMALL_BYTES_MAX));
            let least = self.space.one_more_bytes().max(self.upkeep.first_bytes.load(Ordering::Relaxed));
            let limit = self.upkeep.limit_bytes.load(Ordering::Acquire);
            let target = now.saturating_add(step).max(least).min(limit);
            self.executor.spawn(move || own.grow(target));
        }
        true
    }

    fn grow(&self, target_bytes: u64) {
        let device = self.devices.device(Role::Data);
        let now = device.capacity_bytes();
        // If there is no room for this much, there may be for less.
        let halves = std::iter::successors(Some(target_bytes.saturating_sub(now)), |more| Some(more / 2));
        let least = self.space.one_more_bytes().saturating_sub(now).max(1);
        let mut enough = halves.take_while(|more| *more >= least);
        let mut is_fixed = false;
        let grown = enough.any(|more| match device.grow(now + more) {
            Ok(()) => true,
            Err(error) => {
                is_fixed = error.kind() == DeviceErrorKind::Target;
                false
            }
        });
        if grown {
            self.space.grow(device.capacity_bytes());
        } else if is_fixed {
            // The device has a fixed size.
            self.upkeep.limit_bytes.store(now, Ordering::Release);
        }
        // The disk is full, or the process may not have longer files: that may change.
        let from_ns = if grown { 0 } else { (io_context::now(&self.devices).0 + GROWTH_RETRY.0).max(1) };
        self.upkeep.growth_from_ns.store(from_ns, Ordering::Release);
        self.upkeep.growing.store(false, Ordering::Release);
        self.tend();
        self.wake_all();
    }

    /// Free segments side by side for the log, of at least so many bytes. `None` if there are none at
    /// present.
    pub fn take_free_log(&self, bytes: u64) -> Option<LogExtent> {
        self.space.take_log(bytes).map(place)
    }

    /// As [`Segments::take_free_log`], growing the device if need be.
    pub fn take_log(&self, bytes: u64) -> Option<LogExtent> {
        if let Some(place) = self.take_free_log(bytes) {
            return Some(place);
        }
        if !self.may_grow() || !self.may_try_to_grow() || self.upkeep.growing.swap(true, Ordering::AcqRel) {
            return None;
        }
        let device = self.devices.device(Role::Data);
        let target = self.space.device_bytes_for_log(bytes).max(device.capacity_bytes());
        let is_within = target <= self.upkeep.limit_bytes.load(Ordering::Acquire);
        let grown = is_within && device.grow(target).is_ok();
        let range = if grown { self.space.grow_for_log(device.capacity_bytes(), bytes) } else { None };
        self.upkeep.growing.store(false, Ordering::Release);
        self.wake_all();
        range.map(place)
    }

    /// The log is no longer there.
    pub fn release_log(&self, place: LogExtent) {
        self.free(self.space.release_log(&(place.start_bytes..place.end_bytes())));
    }

    /// While a store is opened: the log is in these segments.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if there are no such segments.
    pub fn adopt_log(&self, place: LogExtent) -> Result<(), Error> {
        if self.space.adopt_log(&(place.start_bytes..place.end_bytes())) {
            return Ok(());
        }
        Err(Error::Corrupt {
            what: "the log's place".into(),
            offset_bytes: place.start_bytes,
            expected: format!("whole segments, of {}", self.space.usage().segments),
            got: format!("{} bytes outside of them", place.bytes),
        })
    }

    /// Makes segments free, to which nothing refers any more.
    pub(super) fn free(&self, segments: Vec<usize>) {
        let bytes = segments.iter().map(|index| self.space.sizes().length(*index)).sum();
        add(&self.counters.freed_bytes, bytes);
        let Some(own) = self.own.upgrade() else { return };
        if segments.is_empty() || !self.upkeep.discards.load(Ordering::Acquire) {
            segments.into_iter().for_each(|index| self.space.freed(index));
            self.tend();
            self.wake_all();
            return;
        }
        self.executor.spawn(move || {
            for index in segments {
                own.discard(index);
                own.space.freed(index);
                own.wake_all();
            }
            own.tend();
            own.wake_all();
        });
    }

    /// Tells the device that a segment's content is no longer needed. After a failure nothing is discarded
    /// any more.
    fn discard(&self, index: usize) {
        let range = self.space.range(index);
        let length = (range.end - range.start) as u32;
        if self.upkeep.discards.load(Ordering::Acquire)
            && io_context::discard(&self.devices, Role::Data, range.start, length).is_err()
        {
            self.upkeep.discards.store(false, Ordering::Release);
        }
    }

    /// Makes all callers of [`Segments::wait_until`] check again.
    pub(super) fn wake_all(&self) {
        let waiting = std::mem::take(&mut *self.waiting.lock().unwrap_or_else(PoisonError::into_inner));
        for waiter in waiting {
            waiter.wake();
        }
    }

    /// Waits until `done`, which is looked at whenever a unit was written or a segment became free.
    pub(super) fn wait_until(&self, mut done: impl FnMut() -> Result<bool, Error>) -> Result<(), Error> {
        while !done()? {
            self.waiting.lock().unwrap_or_else(PoisonError::into_inner).push(waker());
            if done()? {
                break;
            }
            park();
        }
        Ok(())
    }

    /// Waits until [`Segments::append`] may find a buffer and a segment for this stream. Call with no latch
    /// in hand.
    ///
    /// # Errors
    /// [`Error::Full`] if there is no free segment and none is to be expected; [`Error::Poisoned`].
    pub fn wait_for_room(&self, stream: Stream) -> Result<(), Error> {
        if self.in_place.is_some() {
            // The write of a single page may be all that the caller waits for.
            yield_now();
        }
        self.tend();
        self.wait_until(|| {
            self.poison.check()?;
            let may_open = self.space.can_open(stream);
            if !may_open {
                self.check_hope()?;
            }
            Ok(may_open && self.buffers.has_free())
        })
    }

    /// # Errors
    /// [`Error::Full`] if nothing that is going on will make a segment free.
    fn check_hope(&self) -> Result<(), Error> {
        let dirty = self.page_locator().map_or_else(Dirty::default, |locator| locator.dirty());
        let busy =
            self.upkeep.cleaners.load(Ordering::Acquire) > 0 || self.upkeep.growing.load(Ordering::Acquire);
        let need = self.space.need(dirty);
        // A checkpoint that is under way cannot use the segments that it will make free.
        let is_alone = self.page_locator.get().is_none();
        let stuck =
            need.hopeless || self.is_stopped() || is_alone || self.space.is_checkpointing() && !need.freeing;
        if stuck && !busy && !self.begin_growing() {
            let usage = self.space.usage();
            let why = format!("{} of {} bytes are live pages", usage.live_bytes, usage.bytes);
            return Err(Error::Full { why });
        }
        Ok(())
    }

    /// Waits until [`Segments::append`] may find a buffer, for whom no segment would be kept free.
    ///
    /// # Errors
    /// [`Error::Poisoned`].
    pub fn wait_for_buffer(&self) -> Result<(), Error> {
        self.wait_until(|| {
            self.poison.check()?;
            Ok(self.buffers.has_free())
        })
    }
}
