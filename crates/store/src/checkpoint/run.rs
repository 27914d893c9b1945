//! The steps of a checkpoint.
//!
//! 1. *Cut*: between two changes of pages, the epoch ends. From then on a page of the old epoch is copied
//!    before it is changed. Pages that are withheld at the cut, because the values in them are not committed,
//!    are not part of the checkpoint; their changes are carried over to the next one.
//! 2. *Pages*: every page that changed in the old epoch, and whose newest image is in memory only, is
//!    gathered into write units. The changes of locations go into the map.
//! 3. *Durable*: the units are written and the data device is flushed; the log is made durable up to its end
//!    at the cut.
//! 4. *Current*: the superblock is written.
//! 5. *Free*: everything that only older checkpoints referred to may be used again: segments, page numbers,
//!    the log before the replay start.
//! 6. *Log*: a log that has become [short](super::log_growth) [moves](crate::log::Log::move_to) to a longer
//!    place, with another superblock. If much of the device's end is free, it is
//!    [cut off](super::give_back).
//!
//! Commits go on all the while; only the cut delays them, for as long as the longest change of pages takes.
//! After a failure before step 4 the previous checkpoint stays current; a failed write or flush poisons the
//! store.

use crate::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::collections::HashSet;

use flashgrain_device::Nanos;

use super::log_growth::{FREE_BYTES, LogUse};
use super::map::{Change, MapPageLocation, Writer};
use super::{CheckpointState, MapHead, Superblock, slots};
use crate::Error;
use crate::class::class_bytes;
use crate::epoch::Epoch;
use crate::header::PageId;
use crate::index::May;
use crate::io_context::{Devices, Role, flush, now};
use crate::layout::{Layout, LogExtent};
use crate::log::{Durability, Log, Lsn, Timestamp};
use crate::page::Page;
use crate::poison::Poison;
use crate::pool::{Moved, Pool};
use crate::segment::{Leave, Lifetime, Location, NotAppended, Segments, Stream, UnitSequence};
use crate::txn::Transactions;

/// Largest map page.
const MAP_PAGE_BYTES_MAX: u64 = 64 << 10;

/// A new chain of the map is begun when the present one is longer than twice the new one's length plus this
/// number of flash pages. The flash pages are added because each checkpoint fills at least one, even for few
/// changes.
const CHAIN_PACKS_MIN: u64 = 16;

/// Average bytes of a page's entry in the map.
const CHANGE_BYTES: u64 = 8;

/// The parts of a store that take part in a checkpoint.
#[derive(Clone)]
pub(crate) struct Parts {
    pub devices: Devices,
    pub poison: Poison,
    pub segments: Arc<Segments>,
    pub pool: Arc<Pool>,
    pub log: Log,
    pub transactions: Arc<Transactions>,
    /// Upper bound for the bytes of log that recovery may have to read.
    pub recovery_log_bytes: u64,
}

/// A checkpoint must be complete before the ring is full. It begins when the first of these parts of the ring
/// was written since the previous cut, or the second part of a ring that is going to move, so that commits do
/// not wait for the move.
const STEP_DIVISOR: u64 = 3;
const FIRST_STEP_DIVISOR: u64 = 8;

impl Parts {
    /// A checkpoint begins when the log has grown by this since the previous cut. Recovery may have to replay
    /// the log of two such steps.
    pub fn log_step_bytes(&self) -> u64 {
        if !self.log.is_written() {
            return (self.recovery_log_bytes / 2).max(1);
        }
        let bytes = self.log.place().bytes;
        let divisor = match self.log.is_growing(FREE_BYTES) {
            true => FIRST_STEP_DIVISOR,
            false => STEP_DIVISOR,
        };
        (self.recovery_log_bytes / 2).min(bytes / divisor).max(1)
    }
}

/// The state that the next checkpoint builds on.
pub(crate) struct Base {
    pub superblock: Superblock,
    /// The newest pages of the map's chain, the nearest first.
    pub priors: Vec<MapPageLocation>,
    pub next_serial: u64,
    /// Bytes that the chain takes on the device.
    pub chain_bytes: u64,
    /// The opening sequence of each segment, as the map has it.
    pub openings: Vec<UnitSequence>,
}

/// Statistics of checkpoints.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct CheckpointStats {
    /// Checkpoints that were completed.
    pub completed: u64,
    /// Time from cut to superblock of the last one.
    pub last_duration: Nanos,
    /// The same of the longest one.
    pub longest_duration: Nanos,
    /// The longest time that a cut kept changes of pages waiting.
    pub longest_cut: Nanos,
    /// Pages that the last one found changed.
    pub last_changes: u64,
    /// Map pages written.
    pub map_pages: u64,
    /// Pages in the map's chain.
    pub map_chain_pages: u64,
    /// Times that the map was written as a whole.
    pub map_chains: u64,
}

/// State recorded at the cut.
struct Cut {
    epoch: Epoch,
    replay_start: Lsn,
    log_end: Lsn,
    newest: Timestamp,
    /// Pages that the checkpoint leaves out.
    withheld: HashSet<PageId>,
}

/// Makes checkpoints, one at a time.
pub(crate) struct Run {
    pub(super) parts: Parts,
    pub(super) base: Base,
    /// Changes of pages for the next checkpoint: those that a failed one had taken, and those that the last
    /// one left out.
    carried: Vec<Moved>,
    /// The log's end, and the bytes of pages written so far, at the last checkpoint's cut.
    last: (Lsn, u64),
    stats: Arc<Mutex<CheckpointStats>>,
}

impl Run {
    pub fn new(parts: Parts, base: Base, stats: Arc<Mutex<CheckpointStats>>) -> Self {
        let last = (base.superblock.state.replay_start, 0);
        Self { parts, base, carried: Vec::new(), last, stats }
    }

    /// The current superblock.
    pub fn superblock(&self) -> &Superblock {
        &self.base.superblock
    }

    fn stats(&self) -> MutexGuard<'_, CheckpointStats> {
        self.stats.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes a checkpoint of everything that was done before. With `closed`, nothing may be under way, and
    /// the superblock says that the log ends here.
    ///
    /// # Errors
    /// [`Error::Full`] if the device has no room for it: it can be tried again. Everything else poisons.
    pub fn checkpoint(&mut self, closed: bool) -> Result<(), Error> {
        self.parts.poison.check()?;
        let poison = self.parts.poison.clone();
        let _others_wait_for_it = poison.guard("a checkpoint was made");
        self.parts.segments.reclaim.set_checkpointing(true);
        let began = now(&self.parts.devices);
        let result = match self.prepare_and_cut(closed) {
            Ok(cut) => self.write(cut, closed, began).map_err(|error| match error {
                Error::Full { .. } | Error::Poisoned { .. } => error,
                other => self.parts.poison.by(other),
            }),
            // Nothing has begun: the cause is a lack of room, or a failure of one tree, which does not affect
            // the store.
            Err(error) => Err(error),
        };
        self.note_end(&result);
        self.parts.segments.reclaim.set_checkpointing(false);
        result
    }

    /// Notifies the tasks that wait for a checkpoint of the result of one.
    fn note_end(&self, result: &Result<(), Error>) {
        let Parts { segments, log, .. } = &self.parts;
        match result {
            Ok(()) => segments.reclaim.set_checkpoints_failed(0),
            Err(Error::Poisoned { .. }) => {}
            Err(_) if log.is_written() => log.no_room(),
            Err(error) => {
                log.long_at(Lsn(log.end().0 + self.parts.log_step_bytes()));
                segments.reclaim.set_checkpoints_failed(log.checkpoint_failed(error));
            }
        }
    }

    fn write(&mut self, (cut, is_full): (Cut, bool), closed: bool, began: Nanos) -> Result<(), Error> {
        let Parts { devices, segments, pool, log, .. } = self.parts.clone();
        // Then the store is opened as if it had not been closed.
        let closed = closed && !is_full;
        if planted!(RingReusedTooEarly) {
            log.truncate(cut.replay_start);
        }
        let flushed = pool.checkpoints().flush_epoch(cut.epoch);
        // The changes must be carried over if this checkpoint fails.
        self.carried.append(&mut pool.checkpoints().take_changes(cut.epoch));
        keep_last_of_each(&mut self.carried);
        flushed?;
        let changes = self.carried.len() as u64;
        let chain = self.write_map(&cut)?;
        segments.gatherer.write_all()?;
        // The flush makes this length durable; if the device grows now, a crash may shorten it again.
        let data_bytes = devices.device(Role::Data).capacity_bytes();
        if !planted!(CheckpointSkipsFlush) {
            match flush(&devices, Role::Data) {
                Err(_) if planted!(CheckpointForgivesFlush) => {}
                flushed => flushed.map_err(|failure| failure.error("flush the pages of a checkpoint"))?,
            }
        }
        if log.is_written() && !planted!(CheckpointBeforeLog) {
            log.wait(cut.log_end, Durability::Sync)?;
        }
        // An earlier flush may have failed, and dropped writes that this one should have kept.
        self.parts.poison.check()?;
        let (next_sequence, _) = segments.sequences();
        let state = CheckpointState {
            epoch: cut.epoch,
            replay_start: cut.replay_start,
            log_durable: log.durable().max(cut.log_end),
            newest: cut.newest,
            next_page: match self.base.superblock.state.map.is_some() && planted!(NextPageForgotten) {
                true => self.base.superblock.state.next_page,
                false => pool.pages.next_page(),
            },
            next_sequence,
            map: Some(chain.head),
        };
        if planted!(FreedBeforeSuperblock) {
            segments.reclaim.free_pending(cut.epoch);
        }
        let is_unfinished = self.base.superblock.unfinished;
        self.save(state, data_bytes, closed)?;
        self.parts.poison.check()?;
        let log_use = self.log_use(&cut);
        self.release(cut, chain);
        if is_full {
            log.no_room();
        }
        match closed {
            true if is_unfinished => self.cut_tail(Leave::Nothing)?,
            true => {}
            false => self.grow_log(log_use).and_then(|()| self.shorten())?,
        }
        let mut stats = self.stats();
        stats.completed += 1;
        stats.last_changes = changes;
        stats.last_duration = now(&devices).since(began);
        stats.longest_duration = stats.longest_duration.max(stats.last_duration);
        Ok(())
    }

    /// The cut, and whether indexes have changes outside of pages for want of room.
    fn prepare_and_cut(&self, closed: bool) -> Result<(Cut, bool), Error> {
        let Parts { devices, log, .. } = &self.parts;
        if !log.is_written() {
            return Ok((self.cut_between_commits()?, false));
        }
        let began = now(devices);
        let is_full = self.before_cut(closed)?;
        let cut = self.cut();
        self.note_cut(now(devices).since(began));
        Ok((cut, is_full))
    }

    /// Whether indexes could not bring the changes that they keep outside of pages into these: the changes
    /// stay in the log. The cause is a lack of room, or a failure of one tree, which does not affect the
    /// store.
    fn before_cut(&self, closed: bool) -> Result<bool, Error> {
        match self.parts.transactions.before_cut(if closed { May::Wait } else { May::NotWait }) {
            Err(error @ Error::Poisoned { .. }) => Err(error),
            done => Ok(done.is_err()),
        }
    }

    /// The cut of a store whose log is not written: between two commits, with everything that indexes have in
    /// memory in pages. Most of that is written before commits have to wait.
    ///
    /// # Errors
    /// [`Error::Full`] if indexes find no room for their changes in memory; those of a tree that has failed.
    /// A checkpoint without these changes would lack a part of some commits.
    fn cut_between_commits(&self) -> Result<Cut, Error> {
        let Parts { devices, log, segments, transactions, .. } = &self.parts;
        // Flushes that wait for room end now, as it may be this checkpoint that they wait for.
        segments.reclaim.wake_waiters();
        // Changes that cannot be written now are tried again below.
        let _tried = self.before_cut(false)?;
        transactions.between_commits(|| {
            let began = now(devices);
            if !planted!(CutWithoutMemtables) {
                transactions.before_cut(May::Wait)?;
            }
            if transactions.has_changes_outside_of_pages() && !planted!(CutWithoutMemtables) {
                return Err(Error::Full { why: "a tree could not write its changes in memory".into() });
            }
            log.end_block();
            let cut = self.cut();
            // Otherwise commits would wait for the next checkpoint, and again.
            let [without_memtables, amid_commits] = [planted!(CutWithoutMemtables), planted!(CutAmidCommits)];
            debug_assert!(
                cut.replay_start == cut.log_end || without_memtables || amid_commits,
                "a checkpoint has {:?} of {:?}",
                cut.replay_start,
                cut.log_end
            );
            self.note_cut(now(devices).since(began));
            Ok(cut)
        })
    }

    fn cut(&self) -> Cut {
        let Parts { segments, pool, log, transactions, .. } = &self.parts;
        let mut noted = ((Lsn(0), Timestamp(0)), Lsn(0), Vec::new());
        let epoch = pool.checkpoints().cut(|| {
            segments.reclaim.begin_epoch(Epoch(pool.epoch().0 + 1));
            noted = (transactions.replay_start(), log.end(), pool.withheld.pages());
        });
        let ((replay_start, newest), log_end, mut withheld) = noted;
        if planted!(UncommittedInMap) {
            withheld.clear();
        }
        log.long_at(Lsn(log_end.0 + self.parts.log_step_bytes()));
        Cut { epoch, replay_start, log_end, newest, withheld: withheld.into_iter().collect() }
    }

    fn note_cut(&self, took: Nanos) {
        let mut stats = self.stats();
        stats.longest_cut = stats.longest_cut.max(took);
    }

    /// The current superblock with another state.
    fn save(&mut self, state: CheckpointState, data_bytes: u64, closed: bool) -> Result<(), Error> {
        let before = self.base.superblock.clone();
        let generation =
            before.generation + u64::from(before.generation == 0 || !planted!(GenerationRepeats));
        let data_bytes = if planted!(GrowthNotRecorded) { before.data_bytes } else { data_bytes };
        let unfinished = before.unfinished && !closed;
        let superblock = Superblock { generation, state, closed, unfinished, data_bytes, ..before };
        slots::save(&self.parts.devices, &superblock)?;
        self.base.superblock = superblock;
        Ok(())
    }

    /// Input for the decision about the log's length.
    fn log_use(&mut self, cut: &Cut) -> LogUse {
        let Parts { segments, pool, log, transactions, .. } = &self.parts;
        let usage = segments.usage();
        let in_memory_bytes = pool.images.durable_dirty_bytes() + transactions.in_memory_bytes();
        let written_bytes = segments.written().by_stream_bytes[Stream::Fresh as usize];
        let (last_end, last_written_bytes) = std::mem::replace(&mut self.last, (cut.log_end, written_bytes));
        let logged_bytes = cut.log_end.0.saturating_sub(last_end.0);
        LogUse {
            place: log.place(),
            bytes_max: self.base.superblock.layout.log_bytes_max,
            wanted_bytes: log.wanted_bytes(),
            is_long: logged_bytes >= self.parts.log_step_bytes(),
            logged_bytes,
            written_bytes: written_bytes - last_written_bytes,
            fill: log.fill(),
            live_bytes: usage.live_bytes + usage.owned_bytes + in_memory_bytes,
            is_copy: self.base.superblock.unfinished,
        }
    }

    /// Moves the log to a longer place, if it has become too short and one is free. On a full disk it moves
    /// it to a shorter one instead, so that pages get the room.
    fn grow_log(&mut self, log_use: LogUse) -> Result<(), Error> {
        let Parts { segments, log, .. } = self.parts.clone();
        if !self.base.superblock.layout.log_grows() || !log.is_written() {
            return Ok(());
        }
        if segments.growth.has_failed() && log_use.wanted_bytes == 0 {
            if log_use.place.bytes > 2 * FREE_BYTES {
                let at_creation = self.base.superblock.layout.log_at_creation;
                self.move_log(segments.log_room.take_free(FREE_BYTES).unwrap_or(at_creation))?;
            }
            return Ok(());
        }
        let Some(bytes) = log_use.target_bytes() else { return Ok(()) };
        match segments.log_room.take(bytes) {
            Some(place) => self.move_log(place).map(drop),
            None => {
                log.refuse_to_grow();
                Ok(())
            }
        }
    }

    /// Moves the log to a place that was taken for it, or to its first place. It returns whether it has
    /// moved.
    pub(super) fn move_log(&mut self, place: LogExtent) -> Result<bool, Error> {
        let Parts { segments, log, .. } = self.parts.clone();
        let before = log.place();
        if planted!(OldRingFreedTooEarly) {
            segments.log_room.release(before);
        }
        let moved = log.move_to(place, |durable| self.save_log_place(place, durable))?;
        segments.log_room.release(if moved { before } else { place });
        log.long_at(Lsn(self.last.0.0 + self.parts.log_step_bytes()));
        Ok(moved)
    }

    fn save_log_place(&mut self, place: LogExtent, durable: Lsn) -> Result<(), Error> {
        let before = &self.base.superblock;
        let superblock = Superblock {
            generation: before.generation + 1,
            layout: Layout { log: place, ..before.layout.clone() },
            data_bytes: before.data_bytes.max(place.end_bytes()),
            state: CheckpointState { log_durable: before.state.log_durable.max(durable), ..before.state },
            ..before.clone()
        };
        slots::save(&self.parts.devices, &superblock)?;
        self.base.superblock = superblock;
        Ok(())
    }

    /// Frees everything that only older checkpoints referred to.
    fn release(&mut self, cut: Cut, chain: Chain) {
        let Parts { segments, pool, log, .. } = &self.parts;
        self.carried.retain(|moved| cut.withheld.contains(&moved.id));
        self.carried.shrink_to_fit();
        pool.checkpoints().done(cut.epoch);
        segments.reclaim.free_pending(cut.epoch);
        if let Some(first) = chain.begun_at {
            segments.reclaim.release_map_before(first);
        }
        log.truncate(cut.replay_start);
        self.base.priors = chain.priors;
        self.base.next_serial = chain.next_serial;
        self.base.chain_bytes = chain.bytes;
        self.base.openings = chain.openings;
    }
}

/// The map as a checkpoint leaves it.
struct Chain {
    head: MapHead,
    priors: Vec<MapPageLocation>,
    next_serial: u64,
    bytes: u64,
    openings: Vec<UnitSequence>,
    /// The first page, if the chain is a new one.
    begun_at: Option<Location>,
}

impl Run {
    /// Whether to begin a new chain instead of appending `changes` to the present one.
    fn is_chain_long(&self, changes: u64, whole_bytes: u64) -> bool {
        let pack_bytes = u64::from(self.base.superblock.layout.pack_bytes);
        let bytes = self.base.chain_bytes + changes * CHANGE_BYTES;
        self.base.superblock.state.map.is_none()
            || bytes > 2 * whole_bytes + CHAIN_PACKS_MIN * pack_bytes
            || self.parts.segments.reclaim.is_map_long()
    }

    /// Appends the changes to the map, or writes the whole map if the chain has become long.
    fn write_map(&mut self, cut: &Cut) -> Result<Chain, Error> {
        let Parts { segments, pool, .. } = &self.parts;
        let whole_bytes = pool.pages.count() * CHANGE_BYTES;
        segments.reclaim.set_map_bytes(whole_bytes);
        let anew = self.is_chain_long(self.carried.len() as u64, whole_bytes);
        let class = map_class(segments);
        let pack_bytes = u64::from(self.base.superblock.layout.pack_bytes);
        let priors = if anew { Vec::new() } else { self.base.priors.clone() };
        let first_serial = self
            .base
            .superblock
            .state
            .map
            .filter(|_| !anew)
            .map_or(self.base.next_serial, |map| map.first_serial);
        let mut writer = Writer::new(class_bytes(class) as u32, priors, self.base.next_serial);
        let (mut begun_at, mut bytes, mut pages) = (None, 0, 0);
        let mut write = |serial: u64, page: Page<'_>| {
            let location = append(segments, serial, class, page)?;
            begun_at.get_or_insert(location);
            bytes += u64::from(location.length_bytes());
            pages += 1;
            Ok(location)
        };
        if anew {
            pool.checkpoints().snapshot(cut.epoch, &mut |id, location| match cut.withheld.contains(&id) {
                true => Ok(()),
                false => writer.push(Change::Page(id, Some(location)), &mut write),
            })?;
        }
        let (carried, known) = match anew {
            true => (&[][..], &[][..]),
            false => (self.carried.as_slice(), self.base.openings.as_slice()),
        };
        let is_left_out = |moved: &&Moved| moved.to.is_none() && planted!(FreedPageLeftInMap);
        let is_withheld = |moved: &&Moved| cut.withheld.contains(&moved.id);
        let moved = carried.iter().filter(|moved| !is_left_out(moved) && !is_withheld(moved));
        let moved = moved.map(|moved| Change::Page(moved.id, moved.to));
        let (_, openings) = segments.sequences();
        let opened = openings.iter().filter(|(index, opening)| known.get(*index as usize) != Some(opening));
        let opened = opened.map(|(index, opening)| Change::Segment(*index, *opening));
        for change in moved.chain(opened) {
            writer.push(change, &mut write)?;
        }
        let (priors, next_serial) = writer.finish(&mut write)?;
        let last = priors.first().copied().ok_or(Error::Closed)?;
        let mut stats = self.stats();
        stats.map_pages += pages;
        stats.map_chains += u64::from(anew);
        stats.map_chain_pages = next_serial - first_serial;
        drop(stats);
        Ok(Chain {
            head: MapHead { last: last.location, last_serial: last.serial, first_serial },
            priors,
            next_serial,
            bytes: if anew { 0 } else { self.base.chain_bytes } + bytes.next_multiple_of(pack_bytes),
            openings: openings.into_iter().map(|(_, opening)| opening).collect(),
            begun_at: begun_at.filter(|_| anew),
        })
    }
}

/// The size class of map pages.
pub(super) fn map_class(segments: &Segments) -> usize {
    let fits = |class: &usize| class_bytes(*class) <= MAP_PAGE_BYTES_MAX;
    (0..=segments.gatherer.class_max()).rev().find(fits).unwrap_or(0)
}

/// Keeps the last change of each page, by page.
fn keep_last_of_each(moved: &mut Vec<Moved>) {
    // Stable: changes of a page stay in their order.
    moved.sort_by_key(|moved| moved.id);
    moved.dedup_by(|later, kept| {
        let same = later.id == kept.id;
        if same {
            *kept = *later;
        }
        same
    });
    moved.shrink_to_fit();
}

/// Gathers a map page, waiting for room if need be.
fn append(segments: &Segments, serial: u64, class: usize, page: Page<'_>) -> Result<Location, Error> {
    loop {
        match segments.gatherer.append(Lifetime::Map, super::map::page_id(serial), class, page, None) {
            Ok(appended) => return Ok(appended.location),
            Err(NotAppended::Failed(error)) => return Err(error),
            Err(NotAppended::NoBuffer) => segments.gatherer.wait_for_buffer()?,
            Err(NotAppended::NoSegment) => {
                return Err(Error::Full { why: "there is no free segment for the page table".into() });
            }
        }
    }
}
