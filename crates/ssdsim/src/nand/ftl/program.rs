//! From a full row in memory to a programmed one.

use super::blocks::BlockState;
use super::geometry::FlashAddress;
use super::read::SECTOR_BYTES;
use super::rows::{Row, RowUnit, Stream, WHOLE};
use super::{Ftl, Purpose};
use crate::drive::Context;
use crate::nand::flash::{Cause, Flash, FlashDone, FlashKind, FlashOp};

impl Ftl {
    /// The row takes no more units, and is programmed as soon as the missing parts of partly written units
    /// have been read.
    pub(super) fn seal(&mut self, row: u32, flash: &mut Flash, context: &mut Context<'_>) {
        let entry = &mut self.rows[row];
        let (stream, die, block, number) = (entry.stream, entry.die, entry.block, entry.row);
        entry.sealed = true;
        if stream != Stream::Collect {
            entry.number = self.flushes.begin();
        }
        let block = self.blocks.get_mut(block);
        block.sealed = number + 1;
        let last = block.sealed == self.geometry.rows_per_block;
        self.placement.seal(stream, die, last);
        self.read_missing_parts(row, flash, context);
        self.program_if_ready(row, flash, context);
    }

    /// Read-modify-write: the parts of a unit that were not written come from its previous place.
    fn read_missing_parts(&mut self, row: u32, flash: &mut Flash, context: &mut Context<'_>) {
        for index in 0..self.rows[row].slots.len() {
            let RowUnit { unit, covered, before, .. } = self.rows[row].slots[index];
            let Some(before) = before.filter(|_| covered != WHOLE) else { continue };
            let entry = &self.rows[row];
            let here = self.geometry.place(entry.block, entry.row, index as u32);
            let at = self.geometry.at(before);
            // A unit that was overwritten or discarded since needs no completion; a unit in memory needs no
            // reading.
            let on_flash = at.row < self.blocks.get(at.block).programmed;
            if !on_flash || self.mapping.get(unit) != Some(here) {
                continue;
            }
            let missing = u64::from(covered.count_zeros()) * u64::from(self.geometry.unit_bytes) / 64;
            self.rows[row].reads += 1;
            let cause = if unit < self.geometry.host_units { Cause::Host } else { Cause::Mapping };
            let counters = &mut context.tally.counters;
            match cause {
                Cause::Host => counters.flash_reads += 1,
                _ => counters.mapping_reads += 1,
            }
            let op = FlashOp {
                kind: FlashKind::Read,
                cause,
                urgent: false,
                die: at.die,
                row: at.row,
                transfer_bytes: (missing as u32).next_multiple_of(SECTOR_BYTES),
                token: Purpose::RowRead.token(row.into()),
            };
            flash.submit(op, context);
        }
    }

    /// Something that the row had to wait for has been read.
    pub(super) fn row_read_done(&mut self, row: u32, flash: &mut Flash, context: &mut Context<'_>) {
        self.rows[row].reads -= 1;
        self.program_if_ready(row, flash, context);
    }

    /// Programs the row, and those of its block that waited for it.
    pub(super) fn program_if_ready(&mut self, row: u32, flash: &mut Flash, context: &mut Context<'_>) {
        let mut next = Some(row);
        while let Some(row) = next {
            let Row { stream, block, row: number, sealed, reads, .. } = self.rows[row];
            if !sealed || reads > 0 {
                return;
            }
            if stream != Stream::Journal {
                let block = self.blocks.get_mut(block);
                if block.submitted < number {
                    return;
                }
                block.submitted += 1;
            }
            next = self.rows[row].next.take();
            self.program(row, flash, context);
        }
    }

    fn program(&mut self, row: u32, flash: &mut Flash, context: &mut Context<'_>) {
        let entry = &self.rows[row];
        let units = entry.slots.len() as u32;
        let (cause, urgent) = match entry.stream {
            Stream::Collect => (Cause::Collect, self.collectors[entry.die as usize].programs_are_urgent()),
            _ if entry.table == units => (Cause::Mapping, false),
            _ => (Cause::Host, false),
        };
        let op = FlashOp {
            kind: FlashKind::Program,
            cause,
            urgent,
            die: entry.die,
            row: entry.row,
            transfer_bytes: units * self.geometry.unit_bytes,
            token: Purpose::Program.token(row.into()),
        };
        flash.submit(op, context);
    }

    /// A row has been programmed.
    pub(super) fn programmed(&mut self, done: &FlashDone, flash: &mut Flash, context: &mut Context<'_>) {
        let row = Purpose::payload(done.op.token) as u32;
        let entry = &self.rows[row];
        let (stream, die, number, cached) = (entry.stream, entry.die, entry.number, entry.cached);
        let (at, programmed) = (entry.block, entry.row + 1);
        self.count_program(row, context);
        if stream != Stream::Journal {
            let block = self.blocks.get_mut(at);
            debug_assert_eq!(
                block.programmed + 1,
                programmed,
                "rows of a block are programmed in their order"
            );
            block.programmed = programmed;
            if block.programmed == self.geometry.rows_per_block {
                block.state = BlockState::Closed;
            }
        }
        if self.volatile && stream != Stream::Collect {
            self.settle(row, context);
        }
        for index in 0..self.rows[row].writers.len() {
            let command = self.rows[row].writers[index];
            self.write_part_done(command, done, context);
        }
        self.rows.remove(row);
        if stream == Stream::Collect {
            self.collected_row_programmed(die, flash, context);
        } else {
            self.writes.used -= cached;
            self.flushes.end(number);
            self.finish_flushes(done, context);
            self.pump(flash, context);
        }
    }

    fn count_program(&mut self, row: u32, context: &mut Context<'_>) {
        let (geometry, row) = (&self.geometry, &self.rows[row]);
        let counters = &mut context.tally.counters;
        let table_bytes = u64::from(row.table) * u64::from(geometry.unit_bytes);
        let row_bytes = u64::from(geometry.row_bytes);
        match row.stream {
            Stream::Collect => counters.collect_programmed_bytes += row_bytes,
            Stream::Journal => {
                let bytes = row.slots.len() as u32 * geometry.unit_bytes;
                counters.flash_programs += 1;
                counters.journal_programmed_bytes += u64::from(bytes.next_multiple_of(geometry.page_bytes));
            }
            // Padding of a row that holds only the table is for the table.
            _ if row.table == row.slots.len() as u32 => counters.mapping_programmed_bytes += row_bytes,
            _ => {
                counters.flash_programs += 1;
                counters.mapping_programmed_bytes += table_bytes;
                counters.programmed_bytes += row_bytes - table_bytes;
            }
        }
    }

    /// Marks the host's data in the row as durable: they survive a power cut.
    fn settle(&self, row: u32, context: &mut Context<'_>) {
        let slots = &self.rows[row].slots;
        let follows = |a: &RowUnit, b: &RowUnit| a.unit + 1 == b.unit && a.version == b.version;
        for run in slots.chunk_by(follows) {
            // The table is not the host's.
            if run[0].unit < self.geometry.host_units {
                let length = run.len() as u64 * u64::from(self.geometry.unit_bytes);
                context.content.settle(self.geometry.start_bytes(run[0].unit), length, run[0].version);
            }
        }
    }

    /// The open row and slot where the unit is, if it is in one that hosts' writes fill.
    pub(super) fn open_slot(&self, place: FlashAddress) -> Option<(u32, u32)> {
        let at = self.geometry.at(place);
        if at.row < self.blocks.get(at.block).sealed {
            return None;
        }
        let row = self.placement.open_row(at.die, at.block)?;
        (self.rows[row].stream != Stream::Collect).then_some((row, at.slot))
    }
}
