//! Growth of the device.

use std::ops::Range;

use flashgrain_device::{ErrorKind as DeviceErrorKind, Nanos};

use super::Dirty;
use super::changes::Changes;
use super::space::Space;
use crate::Error;
use crate::io_context::{self, Devices, Role};
use crate::sync::Arc;
use crate::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use crate::task::Executor;

/// The device grows before pages fill more than this part of the usable bytes, which do not include the
/// reserve.
const GROWN_BEFORE_PERCENT: u64 = 90;

/// The device grows from this on if cleaning is expensive at that fullness already, or if segments run short.
const GROWN_IF_SHORT_PERCENT: u64 = 55;

/// A device smaller than `GROWTH_BYTES_MIN` grows by a quarter at a time: few records take little room. A
/// larger one grows by `GROWTH_BYTES_MIN` or, if that is more, a sixteenth: growth in the background has to
/// stay ahead of writers.
const GROWTH_OF_SMALL_DIVISOR: u64 = 4;
const GROWTH_BYTES_MIN: u64 = 16 << 20;
const GROWTH_DIVISOR: u64 = 16;

/// After the disk had no room for growth, the next attempt comes this much later, and only if needed: the
/// disk may have room again by then.
const GROWTH_RETRY: Nanos = Nanos(200_000_000);

/// How long the device is, and may become. One task at a time changes its length.
pub(crate) struct Growth {
    devices: Devices,
    executor: Executor,
    space: Arc<Space>,
    changes: Arc<Changes>,
    /// The length is being changed.
    is_changing: AtomicBool,
    /// The store is being compacted: it grows only if nothing else helps.
    is_held_back: AtomicBool,
    /// See [`Growth::rest`].
    rests: AtomicBool,
    /// When the device may be asked to grow again, on its clock; 0: at any time.
    from_ns: AtomicU64,
    /// The device may grow to this.
    limit_bytes: AtomicU64,
    /// A device that was made smaller grows to this first.
    first_bytes: AtomicU64,
}

/// The right to change the device's length.
pub(super) struct Changing<'a>(&'a Growth);

impl Drop for Changing<'_> {
    fn drop(&mut self) {
        self.0.is_changing.store(false, Ordering::Release);
        self.0.changes.wake_all();
    }
}

impl Growth {
    pub(super) fn new(
        devices: Devices,
        executor: Executor,
        space: &Arc<Space>,
        changes: &Arc<Changes>,
    ) -> Self {
        Self {
            devices,
            executor,
            space: Arc::clone(space),
            changes: Arc::clone(changes),
            is_changing: AtomicBool::new(false),
            is_held_back: AtomicBool::new(false),
            rests: AtomicBool::new(false),
            from_ns: AtomicU64::new(0),
            limit_bytes: AtomicU64::new(0),
            first_bytes: AtomicU64::new(0),
        }
    }

    /// Lets the device grow up to `limit_bytes`. With `first_segments` it is as large as a new one.
    pub fn set(&self, limit_bytes: u64, first_segments: u64) {
        let first_bytes = self.space.sizes().device_bytes(first_segments as usize);
        self.first_bytes.store(first_bytes, Ordering::Relaxed);
        self.limit_bytes.store(limit_bytes, Ordering::Release);
    }

    fn limit_bytes(&self) -> u64 {
        self.limit_bytes.load(Ordering::Acquire)
    }

    /// Whether the device's length is not fixed.
    pub(super) fn is_possible(&self) -> bool {
        self.limit_bytes() > 0
    }

    /// Segments that a new store has.
    pub(super) fn first_segments(&self) -> usize {
        self.space.sizes().count(self.first_bytes.load(Ordering::Relaxed))
    }

    /// Until it is called with `false`, the device does not grow ahead of need. It returns whether growth was
    /// held back before.
    pub(super) fn hold_back(&self, holds: bool) -> bool {
        self.is_held_back.swap(holds, Ordering::AcqRel)
    }

    pub(super) fn is_held_back(&self) -> bool {
        self.is_held_back.load(Ordering::Acquire)
    }

    /// After a compaction nothing is done about free segments that are few. The first that asks for more than
    /// there are calls this with `false`.
    pub(super) fn rest(&self, rests: bool) {
        self.rests.store(rests, Ordering::Release);
    }

    pub(super) fn rests(&self) -> bool {
        self.rests.load(Ordering::Acquire)
    }

    /// Whether the latest try to grow found no room. Another try is then no reason to let more pages become
    /// dirty: there may be no room for them.
    pub fn has_failed(&self) -> bool {
        self.from_ns.load(Ordering::Acquire) != 0
    }

    /// Bytes of all segments, unless there may be more.
    pub fn bytes_if_at_end(&self) -> Option<u64> {
        (!self.may_grow()).then(|| self.space.bytes())
    }

    /// Whether the device's length is being changed.
    pub(super) fn is_changing(&self) -> bool {
        self.is_changing.load(Ordering::Acquire)
    }

    /// Keeps all others from changing the device's length. `None` if it is being changed.
    pub(super) fn begin_change(&self) -> Option<Changing<'_>> {
        (!self.is_changing.swap(true, Ordering::AcqRel)).then(|| Changing(self))
    }

    /// As [`Growth::begin_change`], but waits for changes under way.
    fn wait_to_change(&self) -> Result<Changing<'_>, Error> {
        let mut changing = None;
        self.changes.wait_until(|| {
            changing = self.begin_change();
            Ok(changing.is_some())
        })?;
        changing.ok_or(Error::Closed)
    }

    /// Has the device grown if it is filling up and may grow. It returns whether it is growing.
    pub(super) fn begin_if_full(self: &Arc<Self>, dirty_bytes: u64) -> bool {
        self.is_fuller_than(GROWN_BEFORE_PERCENT, dirty_bytes) && self.begin_ahead()
    }

    /// Has the device grown if free segments are short, or more than half of the next victim's bytes would
    /// have to be moved, and room is not plentiful. It returns whether it is growing.
    pub(super) fn begin_if_short(self: &Arc<Self>, are_segments_short: bool, dirty_bytes: u64) -> bool {
        // `may_grow` comes first, because `is_cleaning_dear` goes through all segments.
        self.may_grow()
            && self.is_fuller_than(GROWN_IF_SHORT_PERCENT, dirty_bytes)
            && (are_segments_short || self.space.is_cleaning_dear())
            && self.begin_ahead()
    }

    /// Whether the device is as large as at first, and a checkpoint writes no more than a segment: a store of
    /// few records stays small.
    pub(super) fn is_new_with_little(&self, dirty: Dirty) -> bool {
        let capacity_bytes = self.devices.device(Role::Data).capacity_bytes();
        capacity_bytes <= self.first_bytes.load(Ordering::Relaxed)
            && dirty.durable_bytes <= self.space.sizes().length(0)
    }

    fn is_fuller_than(&self, percent: u64, dirty_bytes: u64) -> bool {
        let used_bytes = self.space.live_bytes() + dirty_bytes + self.space.wanted_bytes();
        used_bytes > self.space.usable_bytes() / 100 * percent
    }

    fn may_grow(&self) -> bool {
        self.devices.device(Role::Data).capacity_bytes() < self.limit_bytes()
    }

    /// Whether growth may find room: shortly after a failure it hardly does.
    fn may_try(&self) -> bool {
        let from_ns = self.from_ns.load(Ordering::Acquire);
        from_ns == 0 || io_context::now(&self.devices).0 >= from_ns
    }

    /// Has the device grown before it must, if it may grow. It returns whether it is growing.
    pub(super) fn begin_ahead(self: &Arc<Self>) -> bool {
        !self.is_held_back() && self.begin()
    }

    /// Has the device grown if it may grow. It returns whether it is growing.
    pub(super) fn begin(self: &Arc<Self>) -> bool {
        if !self.may_grow() || !self.may_try() {
            return false;
        }
        if !self.is_changing.swap(true, Ordering::AcqRel) {
            let now = self.devices.device(Role::Data).capacity_bytes();
            let step = match now < GROWTH_BYTES_MIN {
                true => now / GROWTH_OF_SMALL_DIVISOR,
                false => GROWTH_BYTES_MIN.max(now / GROWTH_DIVISOR),
            };
            let least = self.space.one_more_bytes().max(self.first_bytes.load(Ordering::Relaxed));
            let target = now.saturating_add(step).max(least).min(self.limit_bytes());
            let own = Arc::clone(self);
            self.executor.spawn(move || own.grow(target));
        }
        true
    }

    /// The task that [`Growth::begin`] has started.
    fn grow(&self, target_bytes: u64) {
        let changing = Changing(self);
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
            self.limit_bytes.store(now, Ordering::Release);
        }
        // The disk is full, or the process may not have longer files: that may change.
        let from_ns = if grown { 0 } else { (io_context::now(&self.devices).0 + GROWTH_RETRY.0).max(1) };
        self.from_ns.store(from_ns, Ordering::Release);
        drop(changing);
        self.changes.segments_changed();
        self.changes.wake_all();
    }

    /// Grows the device until enough segments are free that no writer has to wait, unless there is no room
    /// for them. It waits for growth that is under way.
    pub(super) fn grow_to_write(self: &Arc<Self>) {
        while self.space.lacks_room() && self.begin() {
            if self.changes.wait_until(|| Ok(!self.is_changing())).is_err() {
                return;
            }
        }
    }

    /// Has the device grown by adjacent segments of at least `bytes` bytes, for the log, and returns their
    /// range. It waits for growth that is under way: a refusal means that there is no room.
    pub(super) fn grow_for_log(&self, bytes: u64) -> Option<Range<u64>> {
        if !self.may_grow() {
            return None;
        }
        let changing = self.wait_to_change().ok()?;
        if !self.may_try() {
            return None;
        }
        let device = self.devices.device(Role::Data);
        let target = self.space.device_bytes_for_log(bytes).max(device.capacity_bytes());
        let grown = target <= self.limit_bytes() && device.grow(target).is_ok();
        let range = if grown { self.space.grow_for_log(device.capacity_bytes(), bytes) } else { None };
        drop(changing);
        range
    }
}
