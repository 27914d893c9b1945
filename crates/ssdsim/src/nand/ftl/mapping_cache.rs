//! Part of the mapping table in memory (DFTL; MQSim). A miss reads a unit of the table from flash; a dirty
//! entry that has to go rewrites one.
//!
//! Only the time of these operations is modelled: the simulation itself always has the whole table.
//! Collection changes entries that are in memory, and, as in MQSim, the others at no cost.

use std::collections::VecDeque;
use std::ops::Range;

use super::geometry::Geometry;
use super::lru::Lru;
use super::read::SECTOR_BYTES;
use super::rows::{RowUnit, Stream, WHOLE};
use super::{Ftl, Purpose};
use crate::config::{MappingCache, MappingConfig};
use crate::drive::Context;
use crate::nand::flash::{Cause, Flash, FlashKind, FlashOp};

/// A part of the table that is not in memory; see the module.
#[derive(Debug)]
pub(super) struct TableCache {
    /// Units of the drive per key: 1 for single entries, those of a unit of the table for whole ones.
    units_per_key: u32,
    entry_bytes: u32,
    lru: Lru,
    /// Waiters for each unit of the table that is being read.
    fetches: Vec<Option<Vec<Waiter>>>,
    spare: Vec<Vec<Waiter>>,
    /// Units of the table that are to be written.
    writes: VecDeque<u32>,
    /// Units of the table that stay in memory rather than being written; none if they are written.
    kept: Vec<bool>,
}

/// A waiter for a unit of the table.
#[derive(Clone, Debug)]
enum Waiter {
    /// A read of these units.
    Read { command: u32, units: Range<u32> },
    /// A row that holds a unit whose entry is there.
    Row(u32),
}

impl TableCache {
    /// `None` if all of the table is in memory.
    pub fn new(config: &MappingConfig, geometry: &Geometry) -> Option<Self> {
        let (bytes, key_bytes, units_per_key) = match config.cache {
            MappingCache::Whole => return None,
            MappingCache::EntriesBytes(bytes) => (bytes, config.entry_bytes, 1),
            MappingCache::PagesBytes(bytes) => (bytes, geometry.unit_bytes, geometry.entries_per_unit),
        };
        let capacity = (bytes / u64::from(key_bytes)).min(u64::from(u32::MAX) - 1) as u32;
        let keys = geometry.host_units.div_ceil(units_per_key);
        Some(Self {
            units_per_key,
            entry_bytes: config.entry_bytes,
            lru: Lru::new(capacity, keys, geometry.entries_per_unit / units_per_key),
            fetches: vec![None; geometry.table_units as usize],
            spare: Vec::new(),
            writes: VecDeque::new(),
            kept: if config.write_back { Vec::new() } else { vec![false; geometry.table_units as usize] },
        })
    }

    fn caches_whole_units(&self) -> bool {
        self.units_per_key > 1
    }

    /// Makes room for the unit's entry and puts it in.
    fn insert(&mut self, unit: u32) {
        let key = unit / self.units_per_key;
        if !self.lru.touch(key) {
            let written = self.lru.insert(key);
            match written.map(|index| self.kept.get_mut(index as usize)) {
                Some(Some(kept)) => *kept = true,
                _ => self.writes.extend(written),
            }
        }
    }

    /// The power is gone, and with it all state in memory.
    pub fn power_cycle(&mut self) {
        self.lru.clear();
        self.fetches.fill(None);
        self.writes.clear();
        self.kept.fill(false);
    }
}

impl Ftl {
    /// Reads those units of a command whose entries are in memory, and has the entries of the others read.
    pub(super) fn translate(
        &mut self,
        command: u32,
        units: Range<u32>,
        flash: &mut Flash,
        context: &mut Context<'_>,
    ) {
        context.tally.counters.mapping_lookups += u64::from(units.end - units.start);
        if self.table.is_none() {
            context.tally.counters.mapping_hits += u64::from(units.end - units.start);
            self.read_units(command, units, flash, context);
            return;
        }
        let mut start = units.start;
        while start < units.end {
            // Units from `start` on that are alike: all in memory, or all in the same unit of the table.
            let known = self.is_known(start);
            let table_end = (start / self.geometry.entries_per_unit + 1) * self.geometry.entries_per_unit;
            let limit = if known { units.end } else { units.end.min(table_end) };
            let end = (start + 1..limit).find(|unit| self.is_known(*unit) != known).unwrap_or(limit);
            if known {
                context.tally.counters.mapping_hits += u64::from(end - start);
                self.read_units(command, start..end, flash, context);
            } else {
                self.fetch(start, Waiter::Read { command, units: start..end }, end - start, flash, context);
            }
            start = end;
        }
        self.pump(flash, context);
    }

    /// Whether the unit's entry is in memory; it is used now.
    fn is_known(&mut self, unit: u32) -> bool {
        let Some(table) = &mut self.table else { return true };
        let fetch = &table.fetches[(unit / self.geometry.entries_per_unit) as usize];
        let being_read = fetch.is_some() && table.caches_whole_units();
        if !being_read && table.lru.touch(unit / table.units_per_key) {
            return true;
        }
        let index = (unit / self.geometry.entries_per_unit) as usize;
        let kept = table.kept.get(index).is_some_and(|kept| *kept);
        if being_read || !kept && self.table_place(unit).is_some() {
            return false;
        }
        if let Some(table) = &mut self.table {
            table.insert(unit);
        }
        true
    }

    /// Die and row of the part of the table that holds the unit's entry; `None` if it was never written or is
    /// still in memory.
    fn table_place(&self, unit: u32) -> Option<(u32, u32)> {
        let table_unit = self.geometry.table_unit(unit);
        let Some(place) = self.mapping.get(table_unit) else {
            // MQSim puts the whole table on flash before it starts.
            return self.geometry.by_address.then(|| self.geometry.unwritten(table_unit));
        };
        let at = self.geometry.at(place);
        (at.row < self.blocks.get(at.block).programmed).then_some((at.die, at.row))
    }

    /// Reads the part of the table that holds `unit`'s entry, once for all its waiters.
    fn fetch(
        &mut self,
        unit: u32,
        waiter: Waiter,
        entries: u32,
        flash: &mut Flash,
        context: &mut Context<'_>,
    ) {
        let index = unit / self.geometry.entries_per_unit;
        let place = self.table_place(unit);
        let Some(table) = &mut self.table else { return };
        // A unit of the table that is being read may have been put into a row in memory since: its waiters
        // wait for the read.
        if let Some(waiters) = &mut table.fetches[index as usize] {
            waiters.push(waiter);
            return;
        }
        let Some((die, row)) = place else { return };
        let mut waiters = table.spare.pop().unwrap_or_default();
        waiters.push(waiter);
        table.fetches[index as usize] = Some(waiters);
        context.tally.counters.mapping_reads += 1;
        let transfer_bytes = if table.caches_whole_units() {
            self.geometry.unit_bytes
        } else {
            (entries * table.entry_bytes).next_multiple_of(SECTOR_BYTES).min(self.geometry.unit_bytes)
        };
        let token = Purpose::TableRead.token(index.into());
        let (kind, cause) = (FlashKind::Read, Cause::Mapping);
        flash.submit(FlashOp { kind, cause, urgent: false, die, row, transfer_bytes, token }, context);
    }

    /// A part of the table has been read.
    pub(super) fn table_read_done(&mut self, index: u32, flash: &mut Flash, context: &mut Context<'_>) {
        let Some(table) = &mut self.table else { return };
        let Some(mut waiters) = table.fetches[index as usize].take() else { return };
        for waiter in waiters.drain(..) {
            match waiter {
                Waiter::Read { command, units } => {
                    if let Some(table) = &mut self.table {
                        units
                            .clone()
                            .step_by(table.units_per_key as usize)
                            .for_each(|unit| table.insert(unit));
                    }
                    self.read_units(command, units, flash, context);
                }
                Waiter::Row(row) => self.row_read_done(row, flash, context),
            }
        }
        if let Some(table) = &mut self.table {
            table.spare.push(waiters);
        }
        self.pump(flash, context);
    }

    /// The unit's entry changes, because it goes to `row`: the row is not programmed before the entry is in
    /// memory.
    pub(super) fn table_changes(
        &mut self,
        unit: u32,
        row: u32,
        flash: &mut Flash,
        context: &mut Context<'_>,
    ) {
        context.tally.counters.mapping_lookups += 1;
        let known = self.is_known(unit);
        if known {
            context.tally.counters.mapping_hits += 1;
        } else {
            self.rows[row].reads += 1;
            self.fetch(unit, Waiter::Row(row), 1, flash, context);
        }
        if let Some(table) = &mut self.table {
            table.insert(unit);
            table.lru.make_dirty(unit / table.units_per_key);
        }
    }

    /// The unit's entry changes, because collection moved it.
    pub(super) fn table_moves(&mut self, unit: u32) {
        if let Some(table) = &mut self.table
            && unit < self.geometry.host_units
        {
            table.lru.make_dirty(unit / table.units_per_key);
        }
    }

    /// Puts those parts of the table that have to be written into open rows.
    pub(super) fn write_table(&mut self, flash: &mut Flash, context: &mut Context<'_>) {
        while let Some(table) = &self.table
            && let Some(&index) = table.writes.front()
        {
            // Of single entries only some are known: the rest of the unit must be read before it is written
            // again.
            let covered = if table.caches_whole_units() { WHOLE } else { 0 };
            let unit = self.geometry.host_units + index;
            let open = self.mapping.get(unit).and_then(|place| self.open_slot(place));
            if open.is_none() {
                let die = self.table_die();
                let Some(row) = self.row_on(Stream::Striped, die, flash, context) else { return };
                self.rows[row].table += 1;
                let slot = RowUnit { unit, version: 0, covered, before: None, durable: true };
                self.put(row, slot, flash, context);
            }
            if let Some(table) = &mut self.table {
                table.writes.pop_front();
            }
        }
    }
}
