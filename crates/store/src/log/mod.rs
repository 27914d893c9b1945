//! The write-ahead log: a ring of blocks with the committed logical operations.
//!
//! The life of a record:
//!
//! 1. *Appended* to the open [group](group) in memory. It gets its position and its timestamp under one lock,
//!    so both ascend together.
//! 2. *Written.* A caller that waits for its record, and finds no other caller writing, becomes the leader:
//!    it replaces the open group by an empty one, writes the group on its own thread or task, and wakes all
//!    callers with records in it. Each group begins with a new block, so durable bytes are never written
//!    again. At most [`Ring::window_bytes`] are written beyond the durable end.
//! 3. *Durable*, by a flush after the write or by a durable write, if a caller waits for that.
//! 4. *Truncated.* A checkpoint does not need the record any longer, and its bytes in the ring are used
//!    again.
//!
//! [Recovery](recover) reads from the replay start:
//!
//! 1. It replays the records of block after block, as long as each block is whole, at its position and
//!    chained to the one before.
//! 2. The first other block is the end. If a later block, the checkpoint or the durable mark records that
//!    this position was durable, the log is corrupt, which is an error. Otherwise it is a torn tail.
//! 3. Valid blocks that a crash left after the end are erased before anything is appended, so that no later
//!    recovery takes them for newer blocks.
//!
//! Only the last group before an idle period has no later block that records that it was durable. Therefore
//! [`Log::settle`] writes the [durable mark](durable_mark) when nothing was appended for a moment. Before
//! that, damage to the last group cannot be told from a torn tail.
//!
//! A ring that has become short [moves](moving) to a larger place, at a checkpoint. A log may also be left
//! [unwritten]: checkpoints alone make commits durable then.
//!
//! Owners of the state:
//! - The open group, the last timestamp and the lists of waiters: the holder of the state's lock.
//! - The ring's blocks, and how far they are written and durable: the holder of the only [`Leader`]. It is
//!   the right to write.
//! - The ring's place: the mover, which holds the leader meanwhile.
//! - The tail: the checkpoint, by [`Log::truncate`].

pub(crate) mod block;
pub(crate) mod durable_mark;
mod group;
mod lead;
mod moving;
pub(crate) mod recover;
mod ring;
#[cfg(test)]
pub(crate) mod tests;
mod unwritten;

use crate::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use crate::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use crate::Error;
use crate::io_context::{Devices, Role, now};
use crate::layout::{Layout, LogExtent, SyncMethod};
use crate::poison::Poison;
use crate::task::{Executor, Waker, park, waker};
use group::Group;
use lead::Leader;
pub(crate) use lead::LogStats;
use ring::Ring;

/// A position in the log: bytes since the store was created. Its place is the position modulo the ring's
/// length.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Lsn(pub u64);

/// Number of a commit. Commits are numbered from 1, in their order in the log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Timestamp(pub u64);

impl Timestamp {
    /// Timestamps read from a device are at most this. So all later ones still fit into the 56 bits that
    /// [versions](crate::index::Version) have for them.
    pub const MAX: Self = Self(1 << 55);
}

/// How durable a commit is when it returns. In a store [without a log](crate::Builder::write_log) the first
/// two wait for a checkpoint, and a commit with the last one survives nothing before the next checkpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Durability {
    /// It survives a power cut.
    #[default]
    Sync,
    /// It is written but not flushed: it survives the end of this process, not a power cut. Later `Sync`
    /// commits make it durable.
    Buffered,
    /// It is in memory only: it survives the end of this process if a later commit or the background writer
    /// has taken it along.
    None,
}

/// A record that was appended.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Logged {
    /// Position of the record's first byte.
    pub start: Lsn,
    /// Position after its last byte.
    pub end: Lsn,
    /// The commit's number.
    pub timestamp: Timestamp,
}

/// A record's position and timestamp.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct LogRecord {
    pub start: Lsn,
    pub timestamp: Timestamp,
}

impl Logged {
    pub fn record(self) -> LogRecord {
        LogRecord { start: self.start, timestamp: self.timestamp }
    }
}

/// Called with each record at opening: position, timestamp and bytes.
pub(crate) type Replay<'a> = &'a mut dyn FnMut(Lsn, Timestamp, &[u8]) -> Result<(), Error>;

/// The log as of the newest checkpoint, or of the store's creation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LogCheckpoint {
    /// The store's identity: constant, and different for each store.
    pub store: u64,
    /// The replay start: nothing before it is needed.
    pub tail: Lsn,
    /// Everything before it was durable.
    pub durable: Lsn,
    /// The timestamp of the last record that ends before `tail`, or of a later one; 0 in a new store.
    pub timestamp: Timestamp,
    /// Whether the store was closed with the log ending at `tail`, so that nothing has to be read.
    pub closed: bool,
}

/// Statistics of reading the log at opening.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Recovered {
    /// Records that were replayed.
    pub records: u64,
    /// Bytes from the tail to the log's end.
    pub bytes: u64,
    /// Whether a group that was never acknowledged was discarded.
    pub torn: bool,
}

/// An open group of this length is written in the background, even if no caller waits for it.
const WRITE_BEHIND_BYTES: usize = 256 << 10;

/// Checkpoints in a row that may find no room before an append that waits for one fails.
const ROOM_REFUSED_MAX: u32 = 100;

/// Checkpoints that may find no room for the longer ring that a record waits for.
const GROWTH_REFUSED_MAX: u64 = 3;

/// Longest open group: an append beyond it waits until the group is written.
const GROUP_BYTES_MAX: usize = 4 << 20;

/// See the module. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Log {
    shared: Arc<LogCore>,
}

struct LogCore {
    devices: Devices,
    poison: Poison,
    executor: Executor,
    /// The longest record, whatever the ring's length is at present.
    record_bytes_max: u64,
    store: u64,
    sync_method: SyncMethod,
    recovered: Recovered,
    state: Mutex<LogState>,
    tail: AtomicU64,
    written: AtomicU64,
    durable: AtomicU64,
    /// Whether a background write is on its way.
    writing_behind: AtomicBool,
    /// Whether a background task writes records without a waiting caller.
    attended: AtomicBool,
    /// Called when nothing was appended for a moment.
    when_idle: OnceLock<Box<dyn Fn() + Send + Sync>>,
    /// Called when the ring is full, or the log has reached `long_at`.
    when_long: OnceLock<Box<dyn Fn() + Send + Sync>>,
    long_at: AtomicU64,
    /// Length that the ring's place must have for a record that waits; 0 if none does.
    wanted_bytes: AtomicU64,
    /// See [`unwritten`].
    is_unwritten: AtomicBool,
    counters: lead::Counters,
}

struct LogState {
    /// As the leader has it.
    ring: Ring,
    open: Group,
    /// The right to write; `None` while a caller holds it.
    leader: Option<Leader>,
    /// The task that waits to move the log. It gets the right to write before all others.
    mover: moving::Mover,
    last: Timestamp,
    /// `Sync` was asked for everything before it.
    sync_wanted: Lsn,
    waiting: Vec<Waiting>,
    /// Appends that wait for room in the ring, and commits that wait for a checkpoint.
    for_room: Vec<Waker>,
    /// Checkpoints in a row that found no room on the device, and so made none in the ring.
    room_refused: u32,
    /// The failed checkpoints of a store without a log.
    failures: unwritten::Failures,
    /// Times that the device had no room for a longer ring.
    growth_refused: u64,
}

struct Waiting {
    end: Lsn,
    sync: bool,
    waker: Waker,
}

impl Log {
    /// Calls `see` with each record that [`Log::open`] is going to replay, and makes sure that they are not
    /// lost afterwards: it flushes them, as a process that was killed may have left them in the drive's
    /// cache, and writes the [durable mark](durable_mark). To be called before anything else is written.
    ///
    /// # Errors
    /// As [`Log::open`]; of the device.
    pub fn scan(
        layout: &Layout,
        devices: &Devices,
        checkpoint: LogCheckpoint,
        see: Replay<'_>,
    ) -> Result<(), Error> {
        recover::scan(devices, Ring::at(layout.log, layout.log_block_bytes), checkpoint, see)
    }

    /// An empty log.
    ///
    /// # Errors
    /// [`Error::Device`] if memory cannot be allocated.
    pub fn create(
        layout: &Layout,
        devices: Devices,
        executor: Executor,
        poison: Poison,
        store: u64,
    ) -> Result<Self, Error> {
        let nothing = Lsn(0);
        let checkpoint =
            LogCheckpoint { store, tail: nothing, durable: nothing, timestamp: Timestamp(0), closed: true };
        Self::open(layout, devices, executor, poison, checkpoint, &mut |_, _, _| Ok(()))
    }

    /// The log, as a checkpoint knows it, after [`Log::scan`]. It calls `replay` with each record from its
    /// tail on (start, timestamp, bytes) and returns the log, ready to append after the last one.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if a record that was durable is damaged; errors of `replay`. A torn tail is not an
    /// error.
    pub fn open(
        layout: &Layout,
        devices: Devices,
        executor: Executor,
        poison: Poison,
        checkpoint: LogCheckpoint,
        replay: Replay<'_>,
    ) -> Result<Self, Error> {
        let ring = Ring::at(layout.log, layout.log_block_bytes);
        let found = recover::recover(&devices, ring, checkpoint, replay)?;
        let prepares = devices.device(Role::Log).identity().kind == "file";
        let leader = Leader::new(Group::new(layout.log_block_bytes, found.end)?, ring, found.chain, prepares);
        let longest =
            Ring::at(LogExtent { bytes: layout.log_bytes_max, ..layout.log }, layout.log_block_bytes);
        let state = LogState {
            ring,
            open: Group::new(layout.log_block_bytes, found.end)?,
            leader: Some(leader),
            mover: moving::Mover::default(),
            last: found.last,
            sync_wanted: Lsn(0),
            waiting: Vec::new(),
            for_room: Vec::new(),
            room_refused: 0,
            failures: unwritten::Failures::default(),
            growth_refused: 0,
        };
        let log = Self {
            shared: Arc::new(LogCore {
                devices,
                poison,
                executor,
                record_bytes_max: longest.record_limit_bytes().max(ring.record_limit_bytes()),
                store: checkpoint.store,
                sync_method: layout.sync_method,
                recovered: found.recovered,
                state: Mutex::new(state),
                tail: AtomicU64::new(checkpoint.tail.0),
                written: AtomicU64::new(found.end.0),
                durable: AtomicU64::new(found.end.0),
                writing_behind: AtomicBool::new(false),
                attended: AtomicBool::new(false),
                when_idle: OnceLock::new(),
                when_long: OnceLock::new(),
                long_at: AtomicU64::new(u64::MAX),
                wanted_bytes: AtomicU64::new(0),
                is_unwritten: AtomicBool::new(false),
                counters: lead::Counters::default(),
            }),
        };
        let shared = Arc::downgrade(&log.shared);
        log.shared.poison.when_failed(move || {
            if let Some(shared) = shared.upgrade() {
                shared.give_up();
            }
        });
        Ok(log)
    }

    /// Statistics of reading the log at opening.
    pub fn recovered(&self) -> Recovered {
        self.shared.recovered
    }

    /// From now on calls `call` whenever the ring is full, so that a checkpoint makes room, and once when the
    /// log has reached [`Log::long_at`]. It must not wait. Only the first call of this has an effect.
    pub fn when_long(&self, call: impl Fn() + Send + Sync + 'static) {
        let _first_stays = self.shared.when_long.set(Box::new(call));
    }

    /// From now on calls `call`, in a background task, when nothing was appended for a moment after something
    /// was. Only the first call of this has an effect.
    pub fn when_idle(&self, call: impl Fn() + Send + Sync + 'static) {
        let _first_stays = self.shared.when_idle.set(Box::new(call));
    }

    /// Sets the position where the log begins to count as long.
    pub fn long_at(&self, end: Lsn) {
        self.shared.long_at.store(end.0, Ordering::Relaxed);
    }

    /// The longest record that [`Log::append_noting`] takes.
    pub fn record_limit_bytes(&self) -> u64 {
        if self.is_written() { self.shared.record_bytes_max } else { unwritten::RECORD_BYTES_MAX }
    }

    /// Appends a record with the next timestamp. It parks while the ring is full.
    ///
    /// # Errors
    /// [`Error::BatchLength`] if it is too long; [`Error::Full`] if the ring is full and stays so;
    /// [`Error::Poisoned`].
    #[cfg(test)]
    pub fn append(&self, record: &[u8]) -> Result<Logged, Error> {
        self.append_noting(record, |_| {})
    }

    /// The first half of the store's identity.
    #[cfg(feature = "testing")]
    pub fn store(&self) -> u64 {
        self.shared.store
    }

    /// Appends a record with the next timestamp. It parks while the ring is full. `note` is called before
    /// another caller can append, or see that the record is counted.
    ///
    /// # Errors
    /// [`Error::BatchLength`] if it is too long; [`Error::Full`] if the ring is full and stays so;
    /// [`Error::Poisoned`].
    pub fn append_noting(&self, record: &[u8], note: impl Fn(Logged)) -> Result<Logged, Error> {
        let limit = self.record_limit_bytes();
        if record.len() as u64 > limit {
            return Err(Error::BatchLength { got: record.len() as u64, limit });
        }
        let logged = match self.is_written() {
            true => self.append_to_group(record, note)?,
            false => self.count(record.len(), note)?,
        };
        let long_at = &self.shared.long_at;
        if logged.end.0 >= long_at.load(Ordering::Relaxed)
            && long_at.swap(u64::MAX, Ordering::Relaxed) != u64::MAX
        {
            self.shared.tell_long();
        }
        Ok(logged)
    }

    fn append_to_group(&self, record: &[u8], note: impl Fn(Logged)) -> Result<Logged, Error> {
        let shared = &*self.shared;
        let mut refused_before = None;
        loop {
            let mut state = shared.live_state()?;
            let is_ring_short = record.len() as u64 > state.ring.record_limit_bytes();
            if is_ring_short {
                shared.wanted_bytes.fetch_max(state.ring.bytes_for(record.len() as u64), Ordering::AcqRel);
                let before = *refused_before.get_or_insert(state.growth_refused);
                if state.growth_refused > before + GROWTH_REFUSED_MAX {
                    let why = format!("there is no room for a log that takes {} bytes as one", record.len());
                    return Err(Error::Full { why });
                }
            }
            let end = state.ring.next_block(state.open.end_with(record.len()));
            if is_ring_short || end > shared.room_until(&state) {
                if state.room_refused > ROOM_REFUSED_MAX {
                    drop(state);
                    // The ring may have room the next time.
                    shared.tell_long();
                    let why = "the log, and there is no room for the checkpoint that would empty it".into();
                    return Err(Error::Full { why });
                }
                state.for_room.push(waker());
                drop(state);
                shared.tell_long();
                park();
                continue;
            }
            if !state.open.is_empty() && state.open.used_bytes() + record.len() > GROUP_BYTES_MAX {
                let end = state.open.end();
                drop(state);
                self.wait(end, Durability::Buffered)?;
                continue;
            }
            let timestamp = Timestamp(state.last.0 + 1);
            let start = state.open.push(timestamp, record)?;
            state.last = timestamp;
            let logged = Logged { start, end: state.open.end(), timestamp };
            note(logged);
            let long = state.open.used_bytes() >= WRITE_BEHIND_BYTES;
            drop(state);
            self.attend();
            if long {
                self.write_behind();
            }
            return Ok(logged);
        }
    }

    /// Waits until everything before `end` is as durable as asked. The first caller writes for all that wait.
    ///
    /// # Errors
    /// [`Error::Poisoned`], or the failure that poisons.
    pub fn wait(&self, end: Lsn, durability: Durability) -> Result<(), Error> {
        let shared = &*self.shared;
        let sync = match durability {
            Durability::None => return Ok(()),
            Durability::Buffered => false,
            Durability::Sync => true,
        };
        if !self.is_written() {
            return self.wait_for_checkpoint(end);
        }
        while !shared.has_reached(end, sync) {
            let mut state = shared.live_state()?;
            if shared.has_reached(end, sync) {
                break;
            }
            if sync {
                state.sync_wanted = state.sync_wanted.max(end);
            }
            match state.leader.take() {
                Some(leader) => {
                    drop(state);
                    shared.lead(leader)?;
                }
                None => {
                    state.waiting.push(Waiting { end, sync, waker: waker() });
                    let waiting = state.waiting.len() as u64;
                    drop(state);
                    shared.counters.queue_longest.fetch_max(waiting, Ordering::Relaxed);
                    let began = now(&shared.devices);
                    park();
                    let queued = now(&shared.devices).since(began);
                    shared.counters.queued_ns.fetch_add(queued.0, Ordering::Relaxed);
                }
            }
        }
        Ok(())
    }

    /// The durable end: everything before it survives a power cut.
    pub fn durable(&self) -> Lsn {
        Lsn(self.shared.durable.load(Ordering::Acquire))
    }

    /// The position of the next record, or of the block header before it.
    pub fn end(&self) -> Lsn {
        self.shared.state().open.end()
    }

    /// [`Log::end`] and the last timestamp given, of the same moment.
    pub fn end_and_last(&self) -> (Lsn, Timestamp) {
        let state = self.shared.state();
        (state.open.end(), state.last)
    }

    /// The last timestamp given.
    pub fn last(&self) -> Timestamp {
        self.shared.state().last
    }

    /// The fraction of the ring in use.
    pub fn fill(&self) -> f64 {
        if !self.is_written() {
            return 0.0;
        }
        let state = self.shared.state();
        let used = state.open.end().0.saturating_sub(self.shared.tail.load(Ordering::Relaxed));
        used as f64 / state.ring.length_bytes as f64
    }

    /// Frees the ring before `tail`.
    pub fn truncate(&self, tail: Lsn) {
        if !self.is_written() {
            self.checkpointed(tail);
        }
        let moves = self.shared.tail.fetch_max(tail.0, Ordering::AcqRel) < tail.0;
        self.shared.wake_for_room(|refused| if moves { 0 } else { refused });
    }

    /// Called when a checkpoint found no room on the device. Appends that wait for room in the ring, or for a
    /// longer ring, ask for another checkpoint, but not for ever.
    pub fn no_room(&self) {
        self.shared.wake_for_room(|refused| refused + 1);
    }
}

impl LogCore {
    fn wake_for_room(&self, refused: impl FnOnce(u32) -> u32) {
        let waiting = {
            let mut state = self.state();
            state.room_refused = refused(state.room_refused);
            std::mem::take(&mut state.for_room)
        };
        waiting.into_iter().for_each(|waker| waker.wake());
    }

    fn tell_long(&self) {
        if let Some(call) = self.when_long.get() {
            call();
        }
    }

    fn state(&self) -> MutexGuard<'_, LogState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The state, if nothing has failed. A failure is noted first, and then all waiters are woken under the
    /// lock. So a caller that finds no failure here, and adds itself to the waiters under the same lock, is
    /// woken.
    fn live_state(&self) -> Result<MutexGuard<'_, LogState>, Error> {
        self.poison.meet_trouble();
        let state = self.state();
        self.poison.look()?;
        Ok(state)
    }

    fn has_reached(&self, end: Lsn, sync: bool) -> bool {
        let reached = if sync { &self.durable } else { &self.written };
        reached.load(Ordering::Acquire) >= end.0
    }

    fn room_until(&self, state: &LogState) -> Lsn {
        let tail = Lsn(self.tail.load(Ordering::Acquire));
        let room = state.ring.room_until(tail);
        state.mover.room_until(tail).map_or(room, |other| room.min(other))
    }
}
