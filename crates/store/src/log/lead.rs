//! Writing groups: the leader's work.

use crate::sync::atomic::{AtomicU64, Ordering};

use flashgrain_device::{Nanos, Op};

use super::group::Group;
use super::ring::Ring;
use super::{Durability, Log, LogCore, LogState, Lsn, WRITE_BEHIND_BYTES, Waiting, durable_mark};
use crate::Error;
use crate::io_context::{Block, Role, flush, now, sleep_until, write};
use crate::layout::SyncMethod;
use crate::task::{Waker, yield_now};

/// The most bytes of one write.
const WRITE_BYTES_MAX: u64 = 1 << 20;

/// Bytes of a new ring that are prepared at a time.
const PREPARED_BYTES: u64 = 1 << 20;

/// Records without a waiting caller are written after this time at most, and the log is settled if nothing
/// was appended for as long.
const PAUSE: Nanos = Nanos(20_000_000);

/// Times that a leader yields to tasks that may append before it writes.
const GATHERINGS: usize = 4;

/// The right to write, and the state that its holders pass on. A log has one.
pub(super) struct Leader {
    /// The ring that it writes to.
    pub ring: Ring,
    /// Changes places with the open group.
    group: Group,
    /// Checksum of the last block.
    chain: u32,
    /// Waiters whose records were in the last group: they may append again soon.
    companions: usize,
    /// Position in the [durable mark](super::durable_mark).
    pub marked: Lsn,
    /// The ring was written to at least once up to `prepared`; at `prepared_end` all of it was.
    prepared: Lsn,
    prepared_end: Lsn,
}

/// Counters of written groups.
#[derive(Default)]
pub(super) struct Counters {
    pub groups: AtomicU64,
    pub records: AtomicU64,
    pub bytes: AtomicU64,
    pub flushes: AtomicU64,
    /// Time that callers were parked in the queue, in nanoseconds.
    pub queued_ns: AtomicU64,
    pub queue_longest: AtomicU64,
}

/// Statistics of the log since it was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct LogStats {
    /// Groups written.
    pub groups: u64,
    /// Records in them.
    pub records: u64,
    /// Bytes written, headers and unused ends of blocks included.
    pub bytes: u64,
    /// Flushes, and writes that were durable by themselves.
    pub flushes: u64,
    /// Time that all callers together waited for another one to write.
    pub queued: Nanos,
    /// Most callers that waited at the same time.
    pub queue_longest: u64,
}

impl Leader {
    /// `prepares`: whether parts of the ring are written with zeros before they are used for the first time.
    pub fn new(group: Group, ring: Ring, chain: u32, prepares: bool) -> Self {
        let prepared = if prepares { group.start() } else { Lsn(u64::MAX) };
        // It is unknown how much of an existing ring was used before, so all of it is prepared once.
        let prepared_end = Lsn(ring.length_bytes);
        Self { group, ring, chain, companions: 0, marked: Lsn(0), prepared, prepared_end }
    }

    /// Continues in another ring. Nothing from `end` on was ever written there.
    pub fn move_to(&mut self, ring: Ring, end: Lsn) {
        self.ring = ring;
        self.marked = end;
        if self.prepared.0 < u64::MAX {
            (self.prepared, self.prepared_end) = (end, Lsn(end.0 + ring.length_bytes));
        }
    }
}

impl Log {
    /// Statistics since the log was opened.
    pub fn stats(&self) -> LogStats {
        let counters = &self.shared.counters;
        let get = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        LogStats {
            groups: get(&counters.groups),
            records: get(&counters.records),
            bytes: get(&counters.bytes),
            flushes: get(&counters.flushes),
            queued: Nanos(get(&counters.queued_ns)),
            queue_longest: get(&counters.queue_longest),
        }
    }

    /// Writes the open group in the background, unless that is under way.
    pub(super) fn write_behind(&self) {
        if self.shared.writing_behind.swap(true, Ordering::AcqRel) {
            return;
        }
        let log = self.clone();
        self.shared.executor.spawn(move || {
            while !log.shared.is_poisoned() && log.shared.state().open.used_bytes() >= WRITE_BEHIND_BYTES {
                // A failure poisons, so the next commit reports it.
                let _heard_later = log.wait(log.end(), Durability::Buffered);
            }
            log.shared.writing_behind.store(false, Ordering::Release);
        });
    }

    /// Starts a background task, unless one is running. It writes records without a waiting caller, settles
    /// the log when it has been idle for a moment, and ends then.
    #[inline]
    pub(super) fn attend(&self) {
        if !self.shared.attended.load(Ordering::Acquire) && !self.shared.attended.swap(true, Ordering::AcqRel)
        {
            let log = self.clone();
            self.shared.executor.spawn(move || log.attend_until_idle());
        }
    }

    fn attend_until_idle(&self) {
        let shared = &*self.shared;
        loop {
            let before = self.end_and_last();
            let slept = sleep_until(&shared.devices, now(&shared.devices) + PAUSE);
            if slept.is_err() || shared.is_poisoned() {
                // After a failure nothing is written but this, if it can be: earlier records stay durable,
                // and no other write will record that.
                let durable = Lsn(shared.durable.load(Ordering::Acquire));
                let ring = shared.state().ring;
                let _tried = durable_mark::write(&shared.devices, ring, shared.store, durable);
                return;
            }
            // Failures poison, so the next commit reports them.
            if self.end_and_last() != before {
                if self.is_written() {
                    let _heard_later = self.wait(self.end(), Durability::Buffered);
                }
                continue;
            }
            let _heard_later = self.settle();
            if let Some(call) = shared.when_idle.get() {
                call();
            }
            shared.attended.store(false, Ordering::SeqCst);
            // Appends before the store above did not start another task.
            if !self.is_unsettled() || shared.attended.swap(true, Ordering::SeqCst) {
                return;
            }
        }
    }

    /// Whether [`Log::settle`] has something to do.
    pub fn is_unsettled(&self) -> bool {
        let state = self.shared.state();
        let marked = state.leader.as_ref().is_some_and(|leader| leader.marked == state.open.start());
        !(planted!(LogNeverSettles) || state.open.is_empty() && marked)
    }

    /// To be called when the store has been idle for a moment: makes everything durable and writes that into
    /// the [durable mark](super::durable_mark), so that damage to the last group is told from a torn tail. It
    /// does nothing if nothing was appended since the last time, or another caller is writing.
    ///
    /// # Errors
    /// As [`Log::wait`].
    pub fn settle(&self) -> Result<(), Error> {
        let shared = &*self.shared;
        if !self.is_unsettled() {
            return Ok(());
        }
        if !self.is_written() {
            self.note_idle();
            return Ok(());
        }
        self.wait(self.end(), Durability::Sync)?;
        let mut state = shared.state();
        if !state.open.is_empty() || state.open.start().0 != shared.durable.load(Ordering::Acquire) {
            return Ok(());
        }
        let (Some(mut leader), durable) = (state.leader.take(), state.open.start()) else { return Ok(()) };
        drop(state);
        debug_assert!(
            durable.0 <= shared.durable.load(Ordering::Acquire),
            "the durable mark vouches for records that may be lost"
        );
        let _nobody_else_can_lead = shared.poison.guard("the log's durable mark was written");
        let written = durable_mark::write(&shared.devices, leader.ring, shared.store, durable)
            .map_err(|error| shared.poison.by(error));
        leader.marked = durable;
        shared.hand_over(leader);
        written
    }
}

impl LogCore {
    fn is_poisoned(&self) -> bool {
        self.poison.check().is_err()
    }

    /// Writes the open group and wakes the callers that wait for it.
    pub(super) fn lead(&self, mut leader: Leader) -> Result<(), Error> {
        let _nobody_else_can_lead = self.poison.guard("the log was written");
        self.gather(leader.companions);
        {
            let mut state = self.state();
            let next = state.open.blocks_end();
            leader.group.restart(next);
            std::mem::swap(&mut leader.group, &mut state.open);
        }
        let records = leader.group.records();
        let result = self.write(&mut leader).and_then(|()| leader.group.shrink());
        if result.is_ok() {
            self.counters.groups.fetch_add(1, Ordering::Relaxed);
            self.counters.records.fetch_add(records as u64, Ordering::Relaxed);
        }
        self.hand_over(leader);
        result
    }

    /// Gives up the right to write. It wakes the callers whose records have reached their durability, and one
    /// more, which will write next.
    pub(super) fn hand_over(&self, mut leader: Leader) {
        let mut state = self.state();
        let (ready, next) = self.ready(&mut state);
        leader.companions = ready.len();
        let next = match state.mover.offer(leader) {
            Ok(mover) => {
                // No other caller can write until the mover hands over.
                state.waiting.extend(next);
                Some(mover)
            }
            Err(leader) => {
                state.leader = Some(leader);
                next.map(|waiting| waiting.waker)
            }
        };
        drop(state);
        ready.into_iter().chain(next).for_each(|waker| waker.wake());
    }

    /// Yields to tasks that will probably append a record to the group.
    fn gather(&self, companions: usize) {
        let mut seen = self.state().open.records();
        for _ in 0..GATHERINGS {
            if seen > companions || companions == 0 {
                return;
            }
            yield_now();
            let now = self.state().open.records();
            if now == seen {
                return;
            }
            seen = now;
        }
    }

    /// Takes out the waiters whose records have reached their durability, and one more, which will write the
    /// next group.
    fn ready(&self, state: &mut LogState) -> (Vec<Waker>, Option<Waiting>) {
        let is_ready = |waiting: &mut Waiting| self.has_reached(waiting.end, waiting.sync);
        let ready = state.waiting.extract_if(.., is_ready).map(|waiting| waiting.waker).collect();
        let next = state.waiting.pop();
        (ready, next)
    }

    /// Wakes all waiters after a failure, so that they see it.
    pub(super) fn give_up(&self) {
        let (waiting, for_room, mover) = {
            let mut state = self.state();
            (std::mem::take(&mut state.waiting), std::mem::take(&mut state.for_room), state.mover.give_up())
        };
        let waiting = waiting.into_iter().map(|waiting| waiting.waker);
        waiting.chain(for_room).chain(mover).for_each(|waker| waker.wake());
    }

    /// Writes the leader's group, piece by piece, and flushes if durability was asked for up to its end.
    fn write(&self, leader: &mut Leader) -> Result<(), Error> {
        let ring = leader.ring;
        let block_bytes = ring.block_bytes;
        let blocks_max = (WRITE_BYTES_MAX.min(ring.window_bytes()) / block_bytes).max(1);
        let (mut index, blocks) = (0, leader.group.blocks() as u64);
        while index < blocks {
            let start = Lsn(leader.group.start().0 + index * block_bytes);
            let count = (blocks - index).min(blocks_max).min(ring.until_wrap(start) / block_bytes);
            let end = Lsn(start.0 + count * block_bytes);
            if end.0 - self.durable.load(Ordering::Acquire) > ring.window_bytes()
                && !planted!(LogWindowNotWatched)
            {
                self.flush()?;
            }
            let durable = Lsn(self.durable.load(Ordering::Acquire));
            for block in index..index + count {
                leader.chain = leader.group.seal(block as usize, self.store, leader.chain, durable);
            }
            let last = index + count == blocks;
            self.prepare(leader, end)?;
            self.write_piece(leader, index, start, end, last && self.is_sync_wanted())?;
            index += count;
        }
        if self.is_sync_wanted() {
            self.flush()?;
        }
        Ok(())
    }

    /// Writes zeros to parts of a file's ring that were never written to, up to `end` and some way ahead, but
    /// not over blocks that are needed: a ring that the log has moved to has such blocks from the beginning.
    /// Otherwise the file system would have to make each block's allocation durable together with the commit,
    /// which takes about as long as the commit itself.
    fn prepare(&self, leader: &mut Leader, end: Lsn) -> Result<(), Error> {
        let Leader { ring, prepared, prepared_end, .. } = leader;
        let room_until = ring.room_until(Lsn(self.tail.load(Ordering::Acquire)));
        debug_assert!(room_until >= end, "{end:?} has no room before {room_until:?}");
        let until = room_until.min(*prepared_end);
        while *prepared < end.min(until) {
            let remaining = until.0 - prepared.0;
            let length = PREPARED_BYTES.min(ring.until_wrap(*prepared)).min(remaining);
            let zeros = Block::new(length as usize)?;
            zeros
                .write(&self.devices, Role::Log, ring.place(*prepared))
                .map_err(|error| self.poison.by(error))?;
            *prepared = Lsn(prepared.0 + length);
        }
        Ok(())
    }

    /// Whether a caller waits for the durability of records of this group, or of earlier ones.
    fn is_sync_wanted(&self) -> bool {
        let durable = self.durable.load(Ordering::Acquire);
        self.state().sync_wanted.0 > durable
    }

    fn write_piece(
        &self,
        leader: &Leader,
        index: u64,
        start: Lsn,
        end: Lsn,
        sync: bool,
    ) -> Result<(), Error> {
        // A durable write makes only itself durable.
        let alone = self.durable.load(Ordering::Acquire) == start.0;
        let op = match (sync, self.sync_method) {
            (true, SyncMethod::Dsync) if alone || planted!(DsyncTakenForFlush) => Op::WriteDsync,
            (true, SyncMethod::Dsync | SyncMethod::LinkedFlush) => Op::WriteThenFlush,
            (true, SyncMethod::Fdatasync) | (false, _) => Op::Write,
        };
        let (place, length) = (leader.ring.place(start), (end.0 - start.0) as u32);
        let memory = leader.group.memory(index as usize);
        // SAFETY: the leader has the group to itself and keeps it until the write has been answered; it has
        // `blocks` blocks from `index` on in memory that is aligned to a page, as arenas are.
        let done = unsafe { write(&self.devices, Role::Log, op, place, memory, length) };
        done.map_err(|failed| {
            self.poison.by(failed.error(format!("write {length} bytes of the log at byte {place}")))
        })?;
        self.counters.bytes.fetch_add(u64::from(length), Ordering::Relaxed);
        self.written.store(end.0, Ordering::Release);
        if op != Op::Write {
            self.counters.flushes.fetch_add(1, Ordering::Relaxed);
            self.note_durable(end)?;
        }
        Ok(())
    }

    /// A flush has succeeded. An earlier one that failed may have dropped writes that this one should have
    /// made durable; in that case the store is poisoned already.
    pub(super) fn note_durable(&self, end: Lsn) -> Result<(), Error> {
        self.poison.check()?;
        self.durable.store(end.0, Ordering::Release);
        Ok(())
    }

    fn flush(&self) -> Result<(), Error> {
        let written = self.written.load(Ordering::Acquire);
        if self.durable.load(Ordering::Acquire) < written && planted!(LogSkipsFlush) {
            return self.note_durable(Lsn(written));
        }
        if self.durable.load(Ordering::Acquire) < written {
            let role = match self.devices.has_own_log() && planted!(LogFlushesOtherDevice) {
                true => Role::Data,
                false => Role::Log,
            };
            match flush(&self.devices, role) {
                Err(_) if planted!(FailedFlushRetried) => flush(&self.devices, role),
                flushed => flushed,
            }
            .map_err(|failed| self.poison.by(failed.error("flush the log")))?;
            self.counters.flushes.fetch_add(1, Ordering::Relaxed);
            self.note_durable(Lsn(written))?;
        }
        Ok(())
    }
}
