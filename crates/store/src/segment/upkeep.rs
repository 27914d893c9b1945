//! Keeping segments free ahead of demand, by cleaning, growing the device, and asking for checkpoints; and
//! the waits of writers meanwhile.

use super::changes::{Changes, Observer};
use super::cleaner::Cleaner;
use super::gather::Gatherer;
use super::growth::Growth;
use super::locator::LocatorSlot;
use super::space::Space;
use super::{Lifetime, PageLocator, Purpose, Stream};
use crate::Error;
use crate::epoch::Epoch;
use crate::poison::Poison;
use crate::sync::atomic::{AtomicBool, AtomicU8, AtomicUsize, Ordering};
use crate::sync::{Arc, Weak};
use crate::task::{Executor, yield_now};

/// Bytes on their way to the device beyond which a writer that is in no hurry waits. They are enough to keep
/// a drive writing, and too few for reads to wait for them noticeably.
pub(super) const PACED_BYTES: u64 = 2 << 20;

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
}

/// See [`Upkeep::want`].
pub(crate) struct Wanted {
    space: Arc<Space>,
    bytes: u64,
}

impl Drop for Wanted {
    fn drop(&mut self) {
        self.space.unwant(self.bytes);
    }
}

/// See the module.
pub(crate) struct Upkeep {
    own: Weak<Self>,
    executor: Executor,
    poison: Poison,
    space: Arc<Space>,
    gatherer: Arc<Gatherer>,
    cleaner: Arc<Cleaner>,
    growth: Arc<Growth>,
    locator: Arc<LocatorSlot>,
    changes: Arc<Changes>,
    /// Cleaners at work.
    cleaners: AtomicUsize,
    pressure: AtomicU8,
    /// See [`Upkeep::segments_are_few`].
    are_few: Arc<AtomicBool>,
    stopped: AtomicBool,
}

impl Observer for Upkeep {
    fn segments_changed(&self) {
        self.tend(true);
    }

    fn unit_written(&self) {
        if self.pressure() != Pressure::None {
            self.tend(true);
        }
    }
}

impl Upkeep {
    /// Becomes the observer of `changes`.
    pub(super) fn new(
        (executor, poison): (Executor, Poison),
        (space, gatherer, cleaner): (&Arc<Space>, &Arc<Gatherer>, &Arc<Cleaner>),
        (growth, locator, changes): (&Arc<Growth>, &Arc<LocatorSlot>, &Arc<Changes>),
    ) -> Arc<Self> {
        let upkeep = Arc::new_cyclic(|own: &Weak<Self>| Self {
            own: Weak::clone(own),
            executor,
            poison,
            space: Arc::clone(space),
            gatherer: Arc::clone(gatherer),
            cleaner: Arc::clone(cleaner),
            growth: Arc::clone(growth),
            locator: Arc::clone(locator),
            changes: Arc::clone(changes),
            cleaners: AtomicUsize::new(0),
            pressure: AtomicU8::new(Pressure::None as u8),
            // The first commit checks: the device may have been full for long.
            are_few: Arc::new(AtomicBool::new(true)),
            stopped: AtomicBool::new(false),
        });
        changes.set_observer(Arc::downgrade(&upkeep) as Weak<dyn Observer>);
        upkeep
    }

    fn is_in_place(&self) -> bool {
        self.gatherer.in_place().is_some()
    }

    /// Sets the page locator. To be called once, before anything is cleaned.
    pub fn set_page_locator(&self, locator: Weak<dyn PageLocator>) {
        self.locator.set(locator);
    }

    /// Begins no more background work. Work under way ends soon.
    pub fn stop(&self) {
        self.stopped.store(true, Ordering::Release);
    }

    /// Takes [`stop`](Self::stop) back.
    pub fn resume(&self) {
        self.stopped.store(false, Ordering::Release);
        self.tend(true);
    }

    /// Whether the device may become longer, as far as is known.
    pub(super) fn may_grow(&self) -> bool {
        self.growth.bytes_if_at_end().is_none() && !self.growth.has_failed()
    }

    fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Acquire)
    }

    /// Looks after the free segments. It never waits: work becomes tasks. With `clean` false no cleaner is
    /// started: one has just found nothing to do.
    pub(super) fn tend(&self, clean: bool) {
        let Some(locator) = self.locator.get() else { return };
        if self.is_in_place() || self.is_stopped() || self.poison.check().is_err() {
            return;
        }
        let dirty = locator.dirty();
        let (dirty_bytes, need) = (dirty.bytes, self.space.need(dirty));
        self.are_few.store(need.few, Ordering::Relaxed);
        if self.growth.rests() {
            return;
        }
        let out_of_room =
            need.urgent && (need.hopeless || self.space.usage().available_bytes() < dirty_bytes);
        let cleans = clean && need.cleaning;
        let grows = self.growth.begin_if_full(dirty_bytes)
            || out_of_room && self.growth.begin()
            || (cleans || need.urgent) && self.growth.begin_if_short(need.urgent, dirty_bytes)
            || need.checkpoint
                && !need.checkpoint_pays
                && !self.growth.is_new_with_little(dirty)
                && self.growth.begin_ahead();
        if cleans && (need.urgent || !grows) {
            self.begin_cleaning(locator.clone());
        }
        let is_anything_coming = need.checkpoint && need.pending || need.freeing || grows;
        if need.urgent && need.moving && !is_anything_coming && self.cleaners.load(Ordering::Acquire) == 0 {
            // Without cleaners the units of moved images are not filled, and their moves would not end.
            self.gatherer.push_moved();
        }
        // Growing is faster than a checkpoint, and lets changes gather for longer.
        if need.checkpoint && !grows {
            locator.want_checkpoint();
        }
        let pressure = if grows && !self.growth.has_failed() || !need.tight {
            Pressure::None
        } else if out_of_room && !need.merging {
            Pressure::Full
        } else {
            Pressure::Tight
        };
        self.pressure.store(pressure as u8, Ordering::Release);
    }

    /// Starts one more cleaner. Segments under way count as nearly free, so another one starts only if
    /// segments are used up faster than the present ones make them free.
    fn begin_cleaning(&self, locator: Arc<dyn PageLocator>) {
        let most = self.cleaner.cleaners_max();
        let more = |cleaners| (cleaners < most).then_some(cleaners + 1);
        let Some(own) = self.own.upgrade() else { return };
        if self.cleaners.fetch_update(Ordering::AcqRel, Ordering::Acquire, more).is_ok() {
            self.executor.spawn(move || {
                own.clean(&*locator);
                let before = own.cleaners.fetch_sub(1, Ordering::AcqRel);
                debug_assert!((1..=most).contains(&before), "{before} cleaners of {most}");
                own.tend(false);
                own.changes.wake_all();
            });
        }
    }

    /// Cleans segments until there are enough free ones, or none is worth it.
    fn clean(&self, locator: &dyn PageLocator) {
        let Ok(mut block) = Cleaner::block() else { return };
        while !self.is_stopped() && !self.growth.rests() && self.poison.check().is_ok() {
            let dirty = locator.dirty();
            let need = self.space.need(dirty);
            if !need.cleaning || !need.urgent && self.growth.begin_if_short(false, dirty.bytes) {
                break;
            }
            let Ok(true) = self.cleaner.clean_next(locator, &mut block) else { break };
            self.changes.wake_all();
        }
    }

    /// Whether free segments are so scarce that writers check before every commit. It changes as segments are
    /// taken and become free, and with each check.
    pub fn segments_are_few(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.are_few)
    }

    fn pressure(&self) -> Pressure {
        match self.pressure.load(Ordering::Acquire) {
            0 => Pressure::None,
            1 => Pressure::Tight,
            _ => Pressure::Full,
        }
    }

    /// Room for more dirty pages, with `dirty_bytes` that are dirty already, or soon will be. Dirty pages
    /// need segments before a checkpoint can make others free, so writers have to stop while there are just
    /// enough of them; this starts making more free. Commits that only remove may take from the cleaner's
    /// reserve.
    pub fn room(&self, dirty_bytes: u64) -> Room {
        if self.is_in_place() {
            self.are_few.store(false, Ordering::Relaxed);
            return Room { to_grow: Pressure::None, to_remove: true, for_overflow: Pressure::None };
        }
        let room = self.space.room(dirty_bytes);
        self.are_few.store(room.few, Ordering::Relaxed);
        if !(room.to_grow && room.for_overflow) {
            self.growth.rest(false);
        }
        if room.to_grow {
            self.pressure.store(Pressure::None as u8, Ordering::Release);
        } else {
            self.tend(true);
        }
        let to_grow = if room.to_grow { Pressure::None } else { self.pressure() };
        let for_overflow = match self.space.wanted_bytes() {
            _ if room.for_overflow => Pressure::None,
            0 => to_grow,
            wanted_bytes => self.pressure_for_overflow(dirty_bytes + wanted_bytes),
        };
        let to_remove = room.to_remove || to_grow == Pressure::None;
        Room { to_grow, to_remove, for_overflow }
    }

    /// Shortage of room for overflow values, with `more_bytes` becoming live in addition.
    fn pressure_for_overflow(&self, more_bytes: u64) -> Pressure {
        self.tend(true);
        let dirty = self.locator.dirty();
        let is_too_much = self.space.usage().available_bytes() < more_bytes;
        let need = self.space.need(dirty);
        let is_full = is_too_much || need.hopeless;
        let grows = is_full && self.growth.begin() && !self.growth.has_failed();
        if is_full && !grows && !need.merging { Pressure::Full } else { Pressure::Tight }
    }

    /// Reserves room for overflow values of `bytes` bytes until the result is dropped: segments are made free
    /// for them, and other writers of overflow values have to wait.
    pub fn want(&self, bytes: u64) -> Wanted {
        let bytes = self.space.bytes_for(bytes);
        self.space.want(bytes);
        Wanted { space: Arc::clone(&self.space), bytes }
    }

    /// Waits until [`Gatherer::append`] may find a buffer and a segment for such images. Call with no latch
    /// in hand.
    ///
    /// # Errors
    /// [`Error::Full`] if no segment is free and none is to be expected; [`Error::Poisoned`].
    pub fn wait_for_room(&self, lifetime: Lifetime) -> Result<(), Error> {
        self.wait_for_segment(lifetime.stream())
    }

    /// The same for images of this stream.
    pub(super) fn wait_for_segment(&self, stream: Stream) -> Result<(), Error> {
        self.wait_until_open(stream, || self.space.can_open(stream))
    }

    /// The same for a segment of an owner.
    pub(super) fn wait_for_owned(&self, purpose: Purpose) -> Result<(), Error> {
        self.wait_until_open(Stream::Owned, || self.space.can_take(purpose))
    }

    fn wait_until_open(&self, stream: Stream, may_open: impl Fn() -> bool) -> Result<(), Error> {
        if self.is_in_place() {
            // The write of a single page may be all that the caller waits for.
            yield_now();
        }
        if !may_open() {
            self.growth.rest(false);
        }
        self.tend(true);
        self.changes.wait_until(|| {
            self.poison.check()?;
            let may_open = may_open();
            if !may_open {
                self.check_hope(stream)?;
            }
            // An owner has memory of its own for its writes.
            Ok(may_open && (stream == Stream::Owned || self.gatherer.output().buffers().has_free()))
        })
    }

    /// Waits until pages of `bytes` bytes may become dirty besides those that are: a checkpoint must find
    /// room for them before it makes any segment free. For work that commits have left room for.
    ///
    /// # Errors
    /// [`Error::Full`] if there is no room and none is to be expected, or a checkpoint is under way;
    /// [`Error::Poisoned`].
    pub fn wait_to_change(&self, bytes: u64) -> Result<(), Error> {
        if self.is_in_place() {
            return self.poison.check();
        }
        let is_room = || self.space.room(self.locator.dirty().bytes + bytes).to_remove;
        if is_room() {
            return self.poison.check();
        }
        self.growth.rest(false);
        // Once: a cleaner that finds nothing wakes all waiters, and one that they began would be hope again.
        self.tend(true);
        self.changes.wait_until(|| {
            self.poison.check()?;
            let is_room = is_room();
            if !is_room {
                self.check_hope(Stream::Awaited)?;
                if self.space.is_checkpointing() {
                    // Segments that cleaners empty become free after it.
                    return Err(self.full());
                }
            }
            Ok(is_room)
        })
    }

    /// Bytes of pages that may become dirty at present by work that commits have left room for.
    pub fn room_to_change(&self) -> u64 {
        match self.is_in_place() {
            true => u64::MAX,
            false => self.space.spare_to_remove(self.locator.dirty().bytes),
        }
    }

    /// As [`Space::is_awaited`].
    pub fn is_awaited(&self, epoch: Epoch) -> bool {
        self.space.is_awaited(epoch)
    }

    /// Waits until no checkpoint is writing pages. Returns whether one was.
    ///
    /// # Errors
    /// [`Error::Poisoned`].
    pub fn wait_for_checkpoint(&self) -> Result<bool, Error> {
        let was_checkpointing = self.space.is_checkpointing();
        self.changes.wait_until(|| {
            self.poison.check()?;
            Ok(!self.space.is_checkpointing())
        })?;
        Ok(was_checkpointing)
    }

    /// Waits until pages would have room if an owner took a segment, while the device grows.
    ///
    /// # Errors
    /// [`Error::Full`] if it does not grow: pages do not become fewer by cleaning; [`Error::Poisoned`].
    pub(super) fn wait_for_room_for_owner(&self) -> Result<(), Error> {
        self.changes.wait_until(|| {
            self.poison.check()?;
            let is_room = self.space.is_room_for_owner(0);
            if !is_room && !self.growth.begin() && !self.growth.is_changing() {
                let usage = self.space.usage();
                let why = format!("pages need the rest: {} of {} bytes", usage.live_bytes, usage.bytes);
                return Err(Error::Full { why });
            }
            Ok(is_room)
        })
    }

    /// # Errors
    /// [`Error::Full`] if nothing that is going on will make a segment free for images of this stream.
    fn check_hope(&self, stream: Stream) -> Result<(), Error> {
        let dirty = self.locator.dirty();
        let busy = self.cleaners.load(Ordering::Acquire) > 0 || self.growth.is_changing();
        let need = self.space.need(dirty);
        // A checkpoint that is under way cannot use the segments that it will make free, but it waits for no
        // page that has changed since its cut.
        let waits_for_itself =
            self.space.is_checkpointing() && !(stream == Stream::Fresh && self.space.is_cut());
        let is_alone = !self.locator.is_set();
        let stuck = need.hopeless || self.is_stopped() || is_alone || waits_for_itself && !need.freeing;
        if stuck && !busy && !self.growth.begin() {
            return Err(self.full());
        }
        Ok(())
    }

    #[cold]
    fn full(&self) -> Error {
        let usage = self.space.usage();
        Error::Full { why: format!("{} of {} bytes are live pages", usage.live_bytes, usage.bytes) }
    }

    /// Waits while more than [`PACED_BYTES`] are on their way to the device, unless a writer waits for room,
    /// or pages are written in place.
    ///
    /// # Errors
    /// [`Error::Poisoned`].
    pub fn pace(&self) -> Result<(), Error> {
        let most = (PACED_BYTES / self.gatherer.unit_bytes()).max(1) as usize;
        self.changes.wait_until(|| {
            self.poison.check()?;
            let is_in_a_hurry = self.is_in_place() || self.pressure() != Pressure::None;
            Ok(is_in_a_hurry || self.gatherer.output().buffers().on_their_way() <= most)
        })
    }
}
