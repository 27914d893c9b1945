//! Sizes in mapping units, and how places on flash are numbered.

use crate::config::{MappingCache, NandConfig, PlacementRule, SimConfig};
use crate::error::Error;

/// Open blocks that a die may have: striped writes, small writes, collection.
pub(super) const OPEN_BLOCKS_PER_DIE: u32 = 3;

/// Place of a mapping unit on flash: units are numbered die by die, block by block, row by row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct FlashAddress(pub u32);

/// A place, taken apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct At {
    pub die: u32,
    /// Counted through all dies.
    pub block: u32,
    /// Row of the block: the unit of one program.
    pub row: u32,
    pub slot: u32,
}

/// A *row* is the unit of one program: a page on every plane of a die with multi-plane commands, else a page
/// of one plane. With placement by address, *dies* are planes: all those of plane 0 come first.
#[derive(Clone, Copy, Debug)]
pub(super) struct Geometry {
    pub dies: u32,
    pub blocks_per_die: u32,
    pub rows_per_block: u32,
    pub units_per_row: u32,
    pub units_per_block: u32,
    pub unit_bytes: u32,
    pub unit_shift: u32,
    pub row_bytes: u32,
    pub page_bytes: u32,
    /// Units that the host sees.
    pub host_units: u32,
    /// Units that hold the mapping table, numbered after those of the host; none if the table is in memory.
    pub table_units: u32,
    /// Mapping entries in one unit of the table.
    pub entries_per_unit: u32,
    /// Contiguous units on one die in striped writes.
    pub units_per_chunk: u32,
    /// Free blocks per die below which collection starts.
    pub collect_below: u32,
    /// Free blocks per die below which host writes wait; at least one is left for collection.
    pub stop_below: u32,
    /// Valid units that a die may hold, so that collection always finds something to gain.
    pub valid_limit: u32,
    /// Whether a unit's address decides its die (see [`Geometry::die_of`]).
    pub by_address: bool,
}

impl Geometry {
    pub fn new(nand: &NandConfig, drive: &SimConfig) -> Result<Self, Error> {
        let unit_bytes = nand.mapping.unit_bytes;
        if !unit_bytes.is_power_of_two() || !nand.page_bytes.is_multiple_of(unit_bytes) {
            let allowed = format!("a power of two that divides page_bytes ({})", nand.page_bytes);
            return Err(refuse("mapping.unit_bytes", unit_bytes, allowed));
        }
        let row_bytes = nand.page_bytes * nand.planes_per_row();
        let dies = nand.channels * nand.chips_per_channel * nand.dies_per_chip * nand.parts_per_die();
        let block_bytes = u64::from(row_bytes) * u64::from(nand.pages_per_block);
        let physical_bytes = drive.capacity_bytes as f64 * (1.0 + nand.over_provisioning);
        let blocks_per_die = (physical_bytes / (block_bytes as f64 * f64::from(dies))).ceil() as u64;
        let host_units = drive.capacity_bytes.div_ceil(u64::from(unit_bytes));
        let entries_per_unit = (unit_bytes / nand.mapping.entry_bytes).max(1);
        let table_units = match nand.mapping.cache {
            MappingCache::Whole => 0,
            _ => host_units.div_ceil(u64::from(entries_per_unit)),
        };
        let physical_units = blocks_per_die * u64::from(dies) * block_bytes / u64::from(unit_bytes);
        if physical_units.max(host_units + table_units) >= u64::from(u32::MAX) - 1 {
            let smallest = (physical_bytes / f64::from(u32::MAX)).ceil() as u64;
            let allowed = format!("at least {} for this capacity", smallest.next_power_of_two());
            return Err(refuse("mapping.unit_bytes", unit_bytes, allowed));
        }
        let units_per_row = row_bytes / unit_bytes;
        let stop_below = nand.collect.stop_writes_below_free_blocks.max(2);
        let geometry = Self {
            dies,
            blocks_per_die: blocks_per_die as u32,
            rows_per_block: nand.pages_per_block,
            units_per_row,
            units_per_block: units_per_row * nand.pages_per_block,
            unit_bytes,
            unit_shift: unit_bytes.trailing_zeros(),
            row_bytes,
            page_bytes: nand.page_bytes,
            host_units: host_units as u32,
            table_units: table_units as u32,
            entries_per_unit,
            units_per_chunk: ((nand.layout.chunk_bytes / u64::from(unit_bytes)) as u32).max(1),
            collect_below: nand.collect.start_below_free_blocks.max(stop_below + 1),
            stop_below,
            valid_limit: 0,
            by_address: nand.layout.placement == PlacementRule::ByAddress,
        };
        geometry.with_limit(nand.over_provisioning, drive.capacity_bytes)
    }

    /// Refuses a drive that has no room to collect garbage in.
    fn with_limit(mut self, over_provisioning: f64, capacity_bytes: u64) -> Result<Self, Error> {
        let kept_free = OPEN_BLOCKS_PER_DIE + self.collect_below + 1;
        let chunks = self.logical_units().div_ceil(self.units_per_chunk);
        let units = u64::from(chunks.div_ceil(self.dies)) * u64::from(self.units_per_chunk);
        let blocks = units.div_ceil(u64::from(self.units_per_block)) as u32 + kept_free;
        if self.blocks_per_die < blocks {
            let block_bytes = f64::from(self.units_per_block) * f64::from(self.unit_bytes);
            let least = f64::from(blocks) * f64::from(self.dies) * block_bytes / capacity_bytes as f64 - 1.0;
            let allowed = format!(
                "at least {:.3}: every die needs {kept_free} blocks beyond its data to collect garbage in",
                (least * 1000.0).ceil() / 1000.0
            );
            return Err(refuse("over_provisioning", over_provisioning, allowed));
        }
        self.valid_limit = (self.blocks_per_die - kept_free) * self.units_per_block;
        Ok(self)
    }

    /// Units that are mapped: the host's, and those of the mapping table.
    pub fn logical_units(&self) -> u32 {
        self.host_units + self.table_units
    }

    /// Blocks of all dies.
    pub fn blocks(&self) -> u32 {
        self.dies * self.blocks_per_die
    }

    #[inline]
    pub fn at(&self, place: FlashAddress) -> At {
        let block = place.0 / self.units_per_block;
        let in_block = place.0 % self.units_per_block;
        At {
            die: block / self.blocks_per_die,
            block,
            row: in_block / self.units_per_row,
            slot: in_block % self.units_per_row,
        }
    }

    #[inline]
    pub fn place(&self, block: u32, row: u32, slot: u32) -> FlashAddress {
        FlashAddress(block * self.units_per_block + row * self.units_per_row + slot)
    }

    /// The die that the unit belongs to by its address.
    #[inline]
    pub fn die_of(&self, unit: u32) -> u32 {
        unit % self.dies
    }

    /// Die and row that stand for a unit that was never written.
    #[inline]
    pub fn unwritten(&self, unit: u32) -> (u32, u32) {
        (self.die_of(unit), unit / self.dies % self.rows_per_block)
    }

    /// The unit that holds this byte.
    #[inline]
    pub fn unit_of(&self, offset_bytes: u64) -> u32 {
        (offset_bytes >> self.unit_shift) as u32
    }

    /// First byte of the unit.
    #[inline]
    pub fn start_bytes(&self, unit: u32) -> u64 {
        u64::from(unit) << self.unit_shift
    }

    /// The unit of the mapping table that holds this unit's entry.
    #[inline]
    pub fn table_unit(&self, unit: u32) -> u32 {
        self.host_units + unit / self.entries_per_unit
    }
}

fn refuse(field: &str, value: impl ToString, allowed: String) -> Error {
    Error::Config { field: format!("medium.nand.{field}"), value: value.to_string(), allowed }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{MappingConfig, StartState};
    use crate::nand::ftl::tests::harness::{drive, nand};

    fn geometry(nand: &NandConfig) -> Result<Geometry, Error> {
        Geometry::new(nand, &drive(nand, StartState::Fresh))
    }

    #[test]
    fn places_come_apart_and_together() {
        let geometry = geometry(&nand()).unwrap();
        for place in
            [0, 1, 31, 32, 12_345, geometry.blocks() * geometry.units_per_block - 1].map(FlashAddress)
        {
            let at = geometry.at(place);
            assert_eq!(geometry.place(at.block, at.row, at.slot), place);
            assert_eq!(at.die, at.block / geometry.blocks_per_die);
            assert!(at.row < geometry.rows_per_block && at.slot < geometry.units_per_row);
        }
    }

    #[test]
    fn planes_without_multi_plane_commands_are_more_blocks() {
        let together = geometry(&nand()).unwrap();
        let apart = geometry(&NandConfig { multi_plane: false, ..nand() }).unwrap();
        assert_eq!(together.units_per_row, 2 * apart.units_per_row);
        assert_eq!(2 * together.blocks_per_die, apart.blocks_per_die);
    }

    #[test]
    fn a_drive_without_room_to_collect_is_refused_with_what_it_needs() {
        // 16 MiB are 32 blocks of 128 KiB in each of four dies.
        let tight = |over_provisioning| geometry(&NandConfig { over_provisioning, ..nand() });
        let error = tight(0.2).unwrap_err().to_string();
        assert!(
            error.starts_with("medium.nand.over_provisioning is 0.2: allowed is at least 0.25"),
            "{error}"
        );
        assert!(tight(0.25).is_ok());
    }

    #[test]
    fn more_units_than_can_be_numbered_are_refused_with_a_unit_that_works() {
        let small_units =
            NandConfig { mapping: MappingConfig { unit_bytes: 512, ..nand().mapping }, ..nand() };
        let drive = SimConfig { capacity_bytes: 4 << 40, ..drive(&small_units, StartState::Fresh) };
        let error = Geometry::new(&small_units, &drive).unwrap_err().to_string();
        assert!(
            error.starts_with("medium.nand.mapping.unit_bytes is 512: allowed is at least 2048"),
            "{error}"
        );
    }
}
