//! Placement of new data: chooses the die, and the block and row there.

use super::Ftl;
use super::blocks::Blocks;
use super::geometry::Geometry;
use super::rows::{RowUnit, Stream};
use crate::config::{LayoutConfig, NandConfig};
use crate::drive::{Command, Context};
use crate::nand::flash::Flash;

/// The block of a die that a stream writes to.
#[derive(Clone, Copy, Debug, Default)]
struct Opened {
    block: Option<u32>,
    /// The block's row that is being filled.
    row: Option<u32>,
    /// The row that was filled before it; it may be programmed already.
    last: Option<u32>,
}

/// Destination of the next units of a write.
#[derive(Clone, Copy, Debug)]
pub(super) struct Target {
    pub stream: Stream,
    pub die: u32,
    /// First unit that goes elsewhere.
    until: u32,
}

/// See the module.
#[derive(Debug)]
pub(super) struct Placement {
    layout: LayoutConfig,
    /// Of each die: striped, small, collect.
    opened: Vec<[Opened; 3]>,
    /// The die that the next chunk goes to.
    next_die: u32,
    /// The dies that small writes go to now, in turns.
    small: Vec<SmallLog>,
    next_small: u32,
}

/// A die that small writes go to.
#[derive(Clone, Copy, Debug)]
struct SmallLog {
    die: u32,
    /// Whether the one block that it gives has been opened.
    used: bool,
}

impl Placement {
    pub fn new(config: &NandConfig, geometry: &Geometry) -> Self {
        let small_dies = config.layout.small_write_dies.clamp(1, geometry.dies);
        Self {
            layout: config.layout.clone(),
            opened: vec![[Opened::default(); 3]; geometry.dies as usize],
            next_die: 0,
            small: (0..small_dies).map(|die| SmallLog { die, used: false }).collect(),
            next_small: 0,
        }
    }

    /// The stream goes on with a block that was opened before the start.
    pub fn resume(&mut self, stream: Stream, die: u32, block: u32) {
        *self.opened(stream, die) = Opened { block: Some(block), ..Opened::default() };
    }

    fn opened(&mut self, stream: Stream, die: u32) -> &mut Opened {
        let stream = match stream {
            Stream::Striped => 0,
            Stream::Small => 1,
            Stream::Collect | Stream::Journal => 2,
        };
        &mut self.opened[die as usize][stream]
    }

    /// The row of this block that is being filled.
    #[inline]
    pub fn open_row(&self, die: u32, block: u32) -> Option<u32> {
        self.opened[die as usize].iter().find(|opened| opened.block == Some(block))?.row
    }

    /// All open rows for writes of hosts.
    pub fn open_host_rows(&self) -> impl Iterator<Item = u32> + '_ {
        self.opened.iter().flat_map(|streams| streams[..2].iter().filter_map(|opened| opened.row))
    }

    /// All rows that are being filled.
    pub fn open_rows_mut(&mut self) -> impl Iterator<Item = &mut u32> + '_ {
        self.opened.iter_mut().flatten().filter_map(|opened| opened.row.as_mut())
    }

    /// The row takes no more units.
    pub fn seal(&mut self, stream: Stream, die: u32, last_of_block: bool) {
        let opened = self.opened(stream, die);
        opened.last = opened.row.take();
        if last_of_block {
            *opened = Opened::default();
        }
    }

    /// The next die in turn that has room for a chunk, and a block to write it to: one that is open, or a
    /// free one. Without such a die, the next one with room, to be waited for.
    fn striped_die(&mut self, blocks: &Blocks, geometry: &Geometry) -> u32 {
        let dies = self.opened.len() as u32;
        let first = self.next_die;
        let in_turn =
            || (0..dies).map(|step| (first + step) % dies).filter(|die| has_room(blocks, geometry, *die));
        let is_open = |die: u32| self.opened[die as usize][0].block.is_some();
        let ready = in_turn().find(|die| is_open(*die) || is_writable(blocks, geometry, *die));
        let die = ready.or_else(|| in_turn().next()).unwrap_or(first);
        self.next_die = (die + 1) % dies;
        die
    }

    /// The next of the dies that small writes go to. If the blocks of these are full, the next dies that can
    /// open one take their place; if none can, the next die, to be waited for.
    fn small_die(&mut self, blocks: &Blocks, geometry: &Geometry) -> Option<u32> {
        let (dies, group) = (self.opened.len() as u32, self.small.len() as u32);
        let mut wait_for = None;
        for step in 0..=dies.div_ceil(group) {
            let first = if step == 0 { self.next_small } else { 0 };
            for turn in (0..group).map(|turn| (first + turn) % group) {
                let SmallLog { die, used } = self.small[turn as usize];
                let (die, used) = ((die + step * group) % dies, used && step == 0);
                let open = self.opened[die as usize][1].block.is_some();
                if !has_room(blocks, geometry, die) || (!open && used) {
                    continue;
                }
                if open || is_writable(blocks, geometry, die) {
                    if step > 0 {
                        self.small.iter_mut().for_each(|log| {
                            *log = SmallLog { die: (log.die + step * group) % dies, used: false }
                        });
                    }
                    self.next_small = (turn + 1) % group;
                    return Some(die);
                }
                wait_for = wait_for.or(Some(die));
            }
        }
        wait_for
    }

    /// A block has been opened for small writes on this die.
    fn small_opened(&mut self, die: u32) {
        self.small.iter_mut().filter(|log| log.die == die).for_each(|log| log.used = true);
    }
}

impl Ftl {
    /// Destination of `unit` of a write, if the unit is in no open row already. `known` is the destination of
    /// the units before it.
    pub(super) fn target(&mut self, known: Option<Target>, unit: u32, command: &Command) -> Target {
        let Self { geometry, blocks, placement, .. } = self;
        if let Some(target) = known
            && unit < target.until
            && has_room(blocks, geometry, target.die)
        {
            return target;
        }
        if geometry.by_address {
            return Target { stream: Stream::Striped, die: geometry.die_of(unit), until: unit + 1 };
        }
        let end_bytes = command.offset_bytes + u64::from(command.length_bytes);
        let at_bytes = geometry.start_bytes(unit).max(command.offset_bytes);
        let stripe_bytes = placement.layout.stripe_bytes;
        let stripe_start = at_bytes / stripe_bytes * stripe_bytes;
        let piece_start = stripe_start.max(command.offset_bytes);
        let piece_end = (stripe_start + stripe_bytes).min(end_bytes);
        let units_until = |bytes: u64| geometry.unit_of(bytes - 1) + 1;
        if piece_end - piece_start < placement.layout.desirable_write_bytes
            && let Some(die) = placement.small_die(blocks, geometry)
        {
            return Target { stream: Stream::Small, die, until: units_until(piece_end) };
        }
        let chunk = unit / geometry.units_per_chunk;
        let until = units_until(piece_end).min((chunk + 1) * geometry.units_per_chunk);
        Target { stream: Stream::Striped, die: placement.striped_die(blocks, geometry), until }
    }

    /// The next die in turn for a unit of the mapping table.
    pub(super) fn table_die(&mut self) -> u32 {
        let Self { geometry, blocks, placement, .. } = self;
        placement.striped_die(blocks, geometry)
    }

    /// The row that the stream fills on this die; `None` if the die has too few free blocks to open one for
    /// hosts.
    pub(super) fn row_on(
        &mut self,
        stream: Stream,
        die: u32,
        flash: &mut Flash,
        context: &mut Context<'_>,
    ) -> Option<u32> {
        let opened = *self.placement.opened(stream, die);
        if opened.row.is_some() {
            return opened.row;
        }
        let block = match opened.block {
            Some(block) => block,
            None if stream != Stream::Collect && !is_writable(&self.blocks, &self.geometry, die) => {
                self.collect(die, flash, context);
                return None;
            }
            None => {
                let block = self.blocks.open(die)?;
                if stream == Stream::Small {
                    self.placement.small_opened(die);
                }
                self.collect(die, flash, context);
                block
            }
        };
        let entry = self.blocks.get(block);
        let (number, submitted) = (entry.sealed, entry.submitted);
        let row = self.rows.insert(stream, die, block, number);
        if let Some(last) = opened.last
            && submitted < number
        {
            self.rows[last].next = Some(row);
        }
        *self.placement.opened(stream, die) = Opened { block: Some(block), row: Some(row), last: None };
        Some(row)
    }

    /// Puts a unit into an open row, and seals the row if that fills it.
    pub(super) fn put(&mut self, row: u32, slot: RowUnit, flash: &mut Flash, context: &mut Context<'_>) {
        let entry = &mut self.rows[row];
        let index = entry.slots.len() as u32;
        let (block, number) = (entry.block, entry.row);
        if !slot.durable {
            entry.volatile += 1;
        }
        let place = self.geometry.place(block, number, index);
        let before = self.mapping.set(slot.unit, place);
        if let Some(before) = before {
            self.blocks.invalidate(before.0 / self.geometry.units_per_block, 1);
        }
        self.blocks.put(block, number * self.geometry.units_per_row + index, slot.unit);
        entry.slots.push(RowUnit { before, ..slot });
        if index + 1 == self.geometry.units_per_row {
            self.seal(row, flash, context);
        }
    }
}

/// Whether the die holds fewer valid units than it may.
fn has_room(blocks: &Blocks, geometry: &Geometry, die: u32) -> bool {
    blocks.valid_of_die[die as usize] < geometry.valid_limit
}

/// Whether hosts may open a block on the die: one free block is always left for collection.
fn is_writable(blocks: &Blocks, geometry: &Geometry, die: u32) -> bool {
    blocks.free(die) >= geometry.stop_below
}
