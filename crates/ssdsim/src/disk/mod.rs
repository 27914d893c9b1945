//! A hard disk: one arm, turning platters, a command queue and a cache for writes.
//!
//! The arm serves one access at a time: it seeks, waits for the platters to turn to the first byte, and moves
//! the data at the rate of its zone. Among the commands in its queue the disk takes the one that it reaches
//! soonest. While idle, it reads ahead of the last access. Writes complete in the cache, if there is one, and
//! are written back when no command waits, when the cache is full, or for a flush.

mod cache;
mod geometry;
mod queue;

use std::collections::VecDeque;

use flashgrain_device::Op;

use self::cache::WriteCache;
use self::geometry::Geometry;
use self::queue::{Access, Purpose, Queue};
use crate::config::{DiskConfig, SimConfig};
use crate::drive::{Context, Stages};

/// The only kind of event: bytes have passed the head.
const PASSED: u8 = 0;

/// Reads cross the link in parts of this size while the rest passes the head.
const PART_BYTES: u64 = 16 << 10;

/// See the module.
#[derive(Debug)]
pub(crate) struct Disk {
    geometry: Geometry,
    read_ahead_bytes: u64,
    queue: Queue,
    cache: WriteCache,
    /// Writes for which the cache has no room.
    waiting_for_room: VecDeque<u32>,
    /// Flushes, and the order in the cache up to which they make writes durable.
    flushes: VecDeque<(u32, u64)>,
    running: Option<Running>,
    cylinder: u32,
    /// `None` before the first access.
    head: Option<Head>,
}

/// Position of the head along the tracks while the arm does not move.
#[derive(Clone, Copy, Debug)]
struct Head {
    /// The first byte after the last access.
    next_byte: u64,
    /// When the head was, or is, above it.
    at_ns: u64,
}

/// The access that the arm performs.
#[derive(Clone, Copy, Debug)]
struct Running {
    access: Access,
    begun_ns: u64,
    /// When the first byte passes the head; in the past for data that were read ahead.
    head_ns: u64,
    passed_bytes: u64,
}

/// How the arm comes to an access.
#[derive(Clone, Copy, Debug, Default)]
struct Approach {
    seek_ns: u64,
    rotation_ns: u64,
    /// When the first byte passes the head.
    head_ns: u64,
    /// The head is there already, or was.
    follows: bool,
}

impl Disk {
    pub fn new(config: &DiskConfig, drive: &SimConfig) -> Self {
        Self {
            geometry: Geometry::new(config, drive.capacity_bytes, drive.sector_bytes),
            read_ahead_bytes: config.read_ahead_bytes,
            queue: Queue::new(config.reorder_depth),
            cache: WriteCache::new(config.write_cache_bytes),
            waiting_for_room: VecDeque::new(),
            flushes: VecDeque::new(),
            running: None,
            cylinder: 0,
            head: None,
        }
    }

    /// Begins a command (see [`crate::medium::Medium::start`]).
    pub fn start(&mut self, command: u32, context: &mut Context<'_>) {
        let entry = context.commands[command];
        let (offset, length) = (entry.offset_bytes, u64::from(entry.length_bytes));
        match entry.op {
            Op::Read if self.cache.covers(offset, length) => {
                context.tally.counters.write_cache_hits += 1;
                context.data_ready(command, entry.length_bytes, &Stages::default());
            }
            Op::Read => self.enqueue(offset, length, Purpose::Read { command }),
            Op::Write if length <= self.cache.capacity_bytes() => {
                self.waiting_for_room.push_back(command);
                self.admit(context);
            }
            Op::Write | Op::WriteDsync | Op::WriteThenFlush => {
                self.enqueue(offset, length, Purpose::Write { command, version: entry.version });
            }
            Op::Flush => {
                self.flushes.push_back((command, self.cache.next_order()));
                self.finish_flushes(context);
            }
            Op::Discard => context.finish(command, &Stages::default()),
        }
        self.dispatch(context);
    }

    /// The next bytes of the running access have passed the head.
    pub fn event(&mut self, kind: u8, _index: u32, context: &mut Context<'_>) {
        debug_assert_eq!(kind, PASSED);
        let Some(mut running) = self.running.take() else { return };
        let access = running.access;
        let before = running.passed_bytes;
        running.passed_bytes = part_end(&access, before);
        if let Purpose::Read { command } = access.purpose {
            let stages = stages_of(command, running.begun_ns, context);
            context.data_ready(command, (running.passed_bytes - before) as u32, &stages);
        }
        if running.passed_bytes < access.length_bytes {
            self.proceed(running, context);
            return;
        }
        let passing_ns = self.geometry.transfer_ns(access.offset_bytes, access.end());
        self.head = Some(Head { next_byte: access.end(), at_ns: running.head_ns + passing_ns });
        self.cylinder = self.geometry.place(access.end() - 1).cylinder;
        self.complete(&running, context);
        self.dispatch(context);
    }

    /// All operations under way are lost, and the cache with them.
    pub fn power_cycle(&mut self) {
        self.queue.clear();
        self.cache.clear();
        self.waiting_for_room.clear();
        self.flushes.clear();
        self.running = None;
        self.cylinder = 0;
        self.head = None;
    }

    /// Whether a completed write may be lost.
    pub fn is_volatile(&self) -> bool {
        self.cache.capacity_bytes() > 0
    }

    fn enqueue(&mut self, offset_bytes: u64, length_bytes: u64, purpose: Purpose) {
        let place = self.geometry.place(offset_bytes);
        self.queue.push(Access { offset_bytes, length_bytes, place, purpose });
    }

    /// Lets writes into the cache, in order, as far as there is room.
    fn admit(&mut self, context: &mut Context<'_>) {
        while let Some(command) = self.waiting_for_room.front().copied() {
            let entry = context.commands[command];
            let length = u64::from(entry.length_bytes);
            if !self.cache.has_room_for(length) {
                return;
            }
            self.waiting_for_room.pop_front();
            self.cache.insert(entry.offset_bytes, length, entry.version);
            context.finish(command, &stages_of(command, context.now(), context));
        }
    }

    /// Begins the access that the arm reaches soonest, if it is free.
    fn dispatch(&mut self, context: &mut Context<'_>) {
        if self.running.is_some() {
            return;
        }
        let now = context.now();
        let write_back =
            self.queue.is_empty() || !self.waiting_for_room.is_empty() || !self.flushes.is_empty();
        let write_backs = self.cache.oldest_first().filter(|_| write_back).map(|dirty| Access {
            offset_bytes: dirty.offset_bytes,
            length_bytes: dirty.length_bytes,
            place: self.geometry.place(dirty.offset_bytes),
            purpose: Purpose::WriteBack(*dirty),
        });
        let cost = |access: &Access| self.approach(access, now).head_ns.saturating_sub(now);
        let choice = self.queue.choose(write_backs, cost);
        let Some(access) = choice.and_then(|choice| self.queue.take(choice)) else { return };
        let approach = self.approach(&access, now);
        let counters = &mut context.tally.counters;
        counters.seeks += u64::from(approach.seek_ns > 0);
        counters.seek_ns += approach.seek_ns;
        counters.rotation_ns += approach.rotation_ns;
        match &access.purpose {
            Purpose::Read { .. } => counters.read_ahead_hits += u64::from(approach.follows),
            Purpose::Write { .. } => {}
            Purpose::WriteBack(dirty) => self.cache.take(dirty),
        }
        self.proceed(Running { access, begun_ns: now, head_ns: approach.head_ns, passed_bytes: 0 }, context);
    }

    /// Schedules the moment when the next part of the running access has passed the head.
    fn proceed(&mut self, running: Running, context: &mut Context<'_>) {
        let access = &running.access;
        let end = access.offset_bytes + part_end(access, running.passed_bytes);
        let passed_ns = running.head_ns + self.geometry.transfer_ns(access.offset_bytes, end);
        self.running = Some(running);
        context.at(passed_ns.max(context.now()), PASSED, 0);
    }

    /// How the arm would come to an access that begins now.
    fn approach(&self, access: &Access, now: u64) -> Approach {
        if let Some(head_ns) = self.following_ns(access, now) {
            return Approach { head_ns, follows: true, ..Approach::default() };
        }
        let seek_ns = self.geometry.seek_ns(self.cylinder, access.place.cylinder);
        let rotation_ns = self.geometry.rotation_ns(now + seek_ns, access.place.angle_ns);
        Approach { seek_ns, rotation_ns, head_ns: now + seek_ns + rotation_ns, follows: false }
    }

    /// When the head passes, or passed, an access that goes on where the last one ended; `None` if it does
    /// not.
    ///
    /// While nothing else is to be done the head goes on reading until its buffer is full; then it waits, and
    /// goes on at once as soon as something of it is asked for.
    fn following_ns(&self, access: &Access, now: u64) -> Option<u64> {
        let Head { next_byte, at_ns } = self.head?;
        let ahead = access.offset_bytes.checked_sub(next_byte)?;
        if ahead == 0 && at_ns == now {
            return Some(now);
        }
        let reads = matches!(access.purpose, Purpose::Read { .. });
        if !reads || self.read_ahead_bytes == 0 || ahead > self.read_ahead_bytes {
            return None;
        }
        let full_ns = self.geometry.transfer_ns(next_byte, next_byte + self.read_ahead_bytes);
        let at_ns = at_ns.max(now.saturating_sub(full_ns));
        let head_ns = at_ns + self.geometry.transfer_ns(next_byte, access.offset_bytes);
        (ahead == 0 || head_ns <= now).then_some(head_ns)
    }

    /// The last byte has passed the head.
    fn complete(&mut self, running: &Running, context: &mut Context<'_>) {
        let access = &running.access;
        let written = match &access.purpose {
            Purpose::Read { .. } => return,
            Purpose::Write { command, version } => {
                // Older data in the cache must not overwrite this write later.
                self.cache.supersede(access.offset_bytes, access.length_bytes, *version);
                context.finish(*command, &stages_of(*command, running.begun_ns, context));
                *version
            }
            Purpose::WriteBack(dirty) => {
                self.cache.release(dirty);
                dirty.version
            }
        };
        context.tally.counters.platter_bytes_written += access.length_bytes;
        if self.is_volatile() {
            context.content.settle(access.offset_bytes, access.length_bytes, written);
        }
        self.admit(context);
        self.finish_flushes(context);
    }

    /// Finishes flushes for which all is on the platters.
    fn finish_flushes(&mut self, context: &mut Context<'_>) {
        let written_back = match self.running.as_ref().map(|running| running.access.purpose) {
            Some(Purpose::WriteBack(dirty)) => Some(dirty.order),
            _ => None,
        };
        while let Some((command, order)) = self.flushes.front().copied() {
            if self.cache.has_older_than(order) || written_back.is_some_and(|running| running < order) {
                return;
            }
            self.flushes.pop_front();
            context.finish(command, &stages_of(command, context.now(), context));
        }
    }
}

/// Bytes of an access that have passed the head when the part after `passed_bytes` has: writes go in one.
fn part_end(access: &Access, passed_bytes: u64) -> u64 {
    match access.purpose {
        Purpose::Read { .. } => access.length_bytes.min(passed_bytes + PART_BYTES),
        Purpose::Write { .. } | Purpose::WriteBack(_) => access.length_bytes,
    }
}

/// A command waited from its start until `begun_ns`; from then on the arm was at work for it.
fn stages_of(command: u32, begun_ns: u64, context: &Context<'_>) -> Stages {
    let started_ns = context.commands[command].started_ns;
    Stages { wait: begun_ns - started_ns, medium: context.now() - begun_ns, ..Stages::default() }
}
