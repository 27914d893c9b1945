//! Reads: every unit is looked up, units of the same row are read together, and only the bytes that are asked
//! for cross the channel.

use std::ops::Range;

use super::geometry::Geometry;
use super::{Ftl, Purpose};
use crate::config::NandConfig;
use crate::drive::{Context, Stages};
use crate::engine::nanos_of_us;
use crate::nand::FIRST_FTL_KIND;
use crate::nand::flash::{Cause, Flash, FlashDone, FlashKind, FlashOp};

/// Event: the controller has looked up a read's mapping; its index is the command.
pub(super) const LOOKED_UP: u8 = FIRST_FTL_KIND;

/// A channel transfers whole sectors.
pub(super) const SECTOR_BYTES: u32 = 512;

/// Settings and scratch memory of the read path.
#[derive(Debug)]
pub(super) struct ReadPath {
    lookup_ns: u64,
    misaligned_ns: u64,
    /// Rows to read for the command at hand.
    rows: Vec<RowRead>,
    /// For each die, which of `rows` is its last; may be out of date.
    last_of_die: Vec<u32>,
}

/// Bytes to read from a row.
#[derive(Clone, Copy, Debug)]
struct RowRead {
    die: u32,
    block: u32,
    row: u32,
    bytes: u32,
}

impl ReadPath {
    pub fn new(config: &NandConfig, geometry: &Geometry) -> Self {
        Self {
            lookup_ns: config.mapping.lookup_ns,
            misaligned_ns: nanos_of_us(config.misaligned_read_us),
            rows: Vec::new(),
            last_of_die: vec![0; geometry.dies as usize],
        }
    }

    #[inline]
    fn add(&mut self, die: u32, block: u32, row: u32, bytes: u32) {
        let last = &mut self.last_of_die[die as usize];
        match self.rows.get_mut(*last as usize) {
            Some(known) if (known.die, known.block, known.row) == (die, block, row) => known.bytes += bytes,
            _ => {
                *last = self.rows.len() as u32;
                self.rows.push(RowRead { die, block, row, bytes });
            }
        }
    }
}

impl Ftl {
    /// A read has arrived: the controller looks its mapping up, and prepares to join parts of pages.
    pub(super) fn start_read(&mut self, command: u32, flash: &mut Flash, context: &mut Context<'_>) {
        let delay_ns = self.read.lookup_ns + self.joining_ns(command, context);
        if delay_ns == 0 {
            self.look_up(command, flash, context);
        } else {
            context.at(context.now() + delay_ns, LOOKED_UP, command);
        }
    }

    /// Controller time for a read that starts or ends inside of a flash page.
    #[inline]
    fn joining_ns(&self, command: u32, context: &Context<'_>) -> u64 {
        if self.read.misaligned_ns == 0 {
            return 0;
        }
        let entry = &context.commands[command];
        // Pages are powers of two.
        let aligned = (entry.offset_bytes | u64::from(entry.length_bytes))
            .is_multiple_of(u64::from(self.geometry.page_bytes));
        if aligned { 0 } else { self.read.misaligned_ns }
    }

    /// Reads the units of a command.
    pub(super) fn look_up(&mut self, command: u32, flash: &mut Flash, context: &mut Context<'_>) {
        let entry = &context.commands[command];
        let first = self.geometry.unit_of(entry.offset_bytes);
        let last = self.geometry.unit_of(entry.offset_bytes + u64::from(entry.length_bytes) - 1);
        self.translate(command, first..last + 1, flash, context);
    }

    /// Reads some units of a command whose mapping is in memory.
    pub(super) fn read_units(
        &mut self,
        command: u32,
        units: Range<u32>,
        flash: &mut Flash,
        context: &mut Context<'_>,
    ) {
        let entry = &context.commands[command];
        let (start, end) = (entry.offset_bytes, entry.offset_bytes + u64::from(entry.length_bytes));
        let mut ready_bytes = 0;
        for unit in units {
            let unit_start = self.geometry.start_bytes(unit);
            let unit_end = unit_start + u64::from(self.geometry.unit_bytes);
            let bytes = (end.min(unit_end) - start.max(unit_start)) as u32;
            let Some(place) = self.mapping.get(unit) else {
                if self.geometry.by_address {
                    self.sense_unwritten(unit, bytes);
                } else {
                    ready_bytes += bytes;
                }
                continue;
            };
            let at = self.geometry.at(place);
            if at.row < self.blocks.get(at.block).programmed {
                self.read.add(at.die, at.block, at.row, bytes);
            } else {
                context.tally.counters.write_cache_hits += 1;
                ready_bytes += bytes;
            }
        }
        for row in self.read.rows.drain(..) {
            context.tally.counters.flash_reads += 1;
            let op = FlashOp {
                kind: FlashKind::Read,
                cause: Cause::Host,
                urgent: false,
                die: row.die,
                row: row.row,
                transfer_bytes: row.bytes.next_multiple_of(SECTOR_BYTES),
                token: Purpose::HostRead.token(u64::from(row.bytes) << 32 | u64::from(command)),
            };
            flash.submit(op, context);
        }
        if ready_bytes > 0 {
            let stages = self.read_stages(command, context.now(), context);
            context.data_ready(command, ready_bytes, &stages);
        }
    }

    /// Reads the page where a unit that was never written would be, and maps it: its entry is new.
    fn sense_unwritten(&mut self, unit: u32, bytes: u32) {
        let (die, row) = self.geometry.unwritten(unit);
        self.read.add(die, die * self.geometry.blocks_per_die, row, bytes);
        self.table_moves(unit);
    }

    /// Stages of a read until its flash operations were submitted at `submitted_ns`.
    #[inline]
    fn read_stages(&self, command: u32, submitted_ns: u64, context: &Context<'_>) -> Stages {
        let joining_ns = self.joining_ns(command, context);
        let before_ns = submitted_ns - context.commands[command].started_ns;
        Stages { controller: joining_ns, mapping: before_ns - joining_ns, ..Stages::default() }
    }

    /// A row has been read for a host.
    #[inline]
    pub(super) fn read_done(&mut self, done: &FlashDone, context: &mut Context<'_>) {
        let payload = Purpose::payload(done.op.token);
        let (command, bytes) = (payload as u32, (payload >> 32) as u32);
        let in_flash_ns = done.wait_ns + done.collect_ns + done.medium_ns;
        let before = self.read_stages(command, context.now() - in_flash_ns, context);
        let stages =
            Stages { wait: done.wait_ns, collect: done.collect_ns, medium: done.medium_ns, ..before };
        context.data_streamed(command, bytes, done.out_ns, &stages);
    }
}
