//! Writes: into the cache as long as there is room, or through to flash.
//!
//! Writes take room in the order in which they arrive; one that finds none waits, and all after it. Cached
//! units are in rows of open blocks; these are programmed as soon as they are full, which makes room.

use std::collections::VecDeque;

use flashgrain_device::Op;

use super::Ftl;
use super::place::Target;
use super::read::SECTOR_BYTES;
use super::rows::{RowUnit, covered};
use crate::config::{NandConfig, PlacementRule};
use crate::drive::{Context, Stages};
use crate::nand::flash::{Flash, FlashDone};

/// See the module.
#[derive(Debug)]
pub(super) struct WriteQueue {
    waiting: VecDeque<Waiting>,
    /// Room of the cache; `None`: writes are done when they are programmed.
    pub capacity: Option<u32>,
    /// Room taken.
    pub used: u32,
    /// Bytes of a write that take one of that.
    room_bytes: u32,
    /// The next unit of the first waiting write; `None` if nothing of it was taken.
    next: Option<u32>,
    target: Option<Target>,
    /// Rows that the first waiting write is in, without a cache.
    touched: Vec<u32>,
    /// Since when the first waiting write waits for a free block.
    stopped_since_ns: Option<u64>,
    /// How long writes have waited for free blocks altogether.
    stopped_ns: u64,
}

#[derive(Clone, Copy, Debug)]
struct Waiting {
    command: u32,
    /// `stopped_ns` when it arrived.
    stopped_before_ns: u64,
}

/// Why the first write must wait.
enum Full {
    Cache,
    Die(u32),
}

impl WriteQueue {
    pub fn new(config: &NandConfig) -> Self {
        // A unit that waits for more to be written to it keeps its whole room.
        let room_bytes = match config.layout.placement {
            PlacementRule::InTurn => config.mapping.unit_bytes,
            PlacementRule::ByAddress => SECTOR_BYTES,
        };
        let capacity = config.write_cache.bytes / u64::from(room_bytes);
        Self {
            waiting: VecDeque::new(),
            capacity: (capacity > 0).then_some(capacity.min(u32::MAX.into()) as u32),
            used: 0,
            room_bytes,
            next: None,
            target: None,
            touched: Vec::new(),
            stopped_since_ns: None,
            stopped_ns: 0,
        }
    }

    /// How long writes have waited for free blocks until now.
    fn stopped_until(&self, now_ns: u64) -> u64 {
        self.stopped_ns + self.stopped_since_ns.map_or(0, |since_ns| now_ns - since_ns)
    }

    /// Room that a whole unit takes.
    pub fn room_of_unit(&self, unit_bytes: u32) -> u32 {
        unit_bytes.div_ceil(self.room_bytes)
    }

    /// Whether no write waits.
    pub fn is_idle(&self) -> bool {
        self.waiting.is_empty()
    }

    /// The power is gone: nothing waits any more.
    pub fn power_cycle(&mut self) {
        self.waiting.clear();
        self.touched.clear();
        (self.next, self.target, self.stopped_since_ns) = (None, None, None);
    }
}

impl Ftl {
    pub(super) fn start_write(&mut self, command: u32, flash: &mut Flash, context: &mut Context<'_>) {
        // Until all its units are in rows it is not done, whatever is programmed before.
        context.commands[command].parts = 1;
        let stopped_before_ns = self.writes.stopped_until(context.now());
        let idle = self.writes.is_idle();
        self.writes.waiting.push_back(Waiting { command, stopped_before_ns });
        if idle {
            self.pump(flash, context);
        }
    }

    /// Takes as much of the waiting writes as there is room for.
    pub(super) fn pump(&mut self, flash: &mut Flash, context: &mut Context<'_>) {
        self.write_table(flash, context);
        while let Some(&waiting) = self.writes.waiting.front() {
            match self.take(waiting.command, flash, context) {
                Ok(()) => {
                    self.writes.waiting.pop_front();
                    self.taken(waiting, flash, context);
                    self.write_table(flash, context);
                }
                Err(Full::Die(die)) => {
                    let now = context.now();
                    self.writes.stopped_since_ns.get_or_insert(now);
                    self.collectors[die as usize].urgent = true;
                    return;
                }
                // Something is on its way to flash and will make room; or all that is cached is in rows that
                // are not full.
                Err(Full::Cache) if self.flushes.under_way() => return,
                Err(Full::Cache) => {
                    let fullest = self.placement.open_host_rows().max_by_key(|row| self.rows[*row].cached);
                    let Some(row) = fullest.filter(|row| self.rows[*row].cached > 0) else { return };
                    self.seal(row, flash, context);
                }
            }
        }
    }

    /// Puts the rest of the first waiting write into open rows.
    fn take(&mut self, command: u32, flash: &mut Flash, context: &mut Context<'_>) -> Result<(), Full> {
        let entry = context.commands[command];
        let (start, end) = (entry.offset_bytes, entry.offset_bytes + u64::from(entry.length_bytes));
        let first = self.writes.next.unwrap_or(self.geometry.unit_of(start));
        for unit in first..=self.geometry.unit_of(end - 1) {
            self.writes.next = Some(unit);
            let unit_start = self.geometry.start_bytes(unit);
            let unit_bytes = self.geometry.unit_bytes;
            let from = start.saturating_sub(unit_start) as u32;
            let to = (end - unit_start).min(unit_bytes.into()) as u32;
            let covered = covered(from, to, unit_bytes);
            let open = self.mapping.get(unit).and_then(|place| self.open_slot(place));
            match open {
                Some((row, slot)) => {
                    self.overwrite(row, slot, entry.version, covered);
                    self.join(row, command, context);
                    self.table_changes(unit, row, flash, context);
                }
                None => {
                    if self.writes.capacity.is_some_and(|capacity| self.writes.used >= capacity) {
                        return Err(Full::Cache);
                    }
                    let target = self.target(self.writes.target, unit, &entry);
                    self.writes.target = Some(target);
                    let row = self.row_on(target.stream, target.die, flash, context);
                    let Some(row) = row else {
                        // By then, another die may have a free block.
                        if !self.geometry.by_address {
                            self.writes.target = None;
                        }
                        return Err(Full::Die(target.die));
                    };
                    if let Some(since_ns) = self.writes.stopped_since_ns.take() {
                        self.writes.stopped_ns += context.now() - since_ns;
                    }
                    self.join(row, command, context);
                    let room = (to - from).div_ceil(self.writes.room_bytes);
                    self.writes.used += room;
                    self.rows[row].cached += room;
                    let version = entry.version;
                    let slot = RowUnit { unit, version, covered, before: None, durable: !self.volatile };
                    self.table_changes(unit, row, flash, context);
                    self.put(row, slot, flash, context);
                }
            }
        }
        Ok(())
    }

    /// A unit that is still in an open row is overwritten there.
    fn overwrite(&mut self, row: u32, slot: u32, version: u64, covered: u64) {
        let volatile = self.volatile;
        let row = &mut self.rows[row];
        let slot = &mut row.slots[slot as usize];
        slot.version = version;
        slot.covered |= covered;
        if slot.durable && volatile {
            slot.durable = false;
            row.volatile += 1;
        }
    }

    /// Without a cache, a write waits for the rows that it is in.
    fn join(&mut self, row: u32, command: u32, context: &mut Context<'_>) {
        if self.writes.capacity.is_none() && self.rows[row].writers.last() != Some(&command) {
            self.rows[row].writers.push(command);
            context.commands[command].parts += 1;
            self.writes.touched.push(row);
        }
    }

    /// All of the write is in rows.
    fn taken(&mut self, waiting: Waiting, flash: &mut Flash, context: &mut Context<'_>) {
        (self.writes.next, self.writes.target) = (None, None);
        let Waiting { command, stopped_before_ns } = waiting;
        if self.writes.capacity.is_none() {
            while let Some(row) = self.writes.touched.pop() {
                let entry = &self.rows[row];
                if !entry.sealed && entry.writers.last() == Some(&command) {
                    self.seal(row, flash, context);
                }
            }
            context.commands[command].parts -= 1;
            debug_assert!(context.commands[command].parts > 0, "a write is done before it is programmed");
            return;
        }
        if context.commands[command].op == Op::WriteDsync && self.volatile {
            self.start_flush(command, flash, context);
            return;
        }
        let now = context.now();
        let total_ns = now - context.commands[command].started_ns;
        let collect = (self.writes.stopped_until(now) - stopped_before_ns).min(total_ns);
        context.finish(command, &Stages { wait: total_ns - collect, collect, ..Stages::default() });
    }

    /// A row that a write was in is programmed, without a cache.
    pub(super) fn write_part_done(&mut self, command: u32, done: &FlashDone, context: &mut Context<'_>) {
        let entry = &mut context.commands[command];
        entry.parts -= 1;
        if entry.parts == 0 {
            let total_ns = context.now() - context.commands[command].started_ns;
            context.finish(command, &ending_with(done, total_ns));
        }
    }
}

/// Splits `total_ns` by stage for a command that the operation `done` completed.
pub(super) fn ending_with(done: &FlashDone, total_ns: u64) -> Stages {
    let medium = done.medium_ns.min(total_ns);
    let collect = done.collect_ns.min(total_ns - medium);
    Stages { wait: total_ns - medium - collect, collect, medium, ..Stages::default() }
}
