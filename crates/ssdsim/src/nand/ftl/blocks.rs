//! State of every block, and the list of free blocks.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::geometry::{FlashAddress, Geometry};
use super::mapping::Mapping;

/// Entry of a list of units for a slot without a unit.
const PADDING: u32 = u32::MAX;

/// Use of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BlockState {
    Free,
    /// Being written.
    Open,
    /// Full and programmed: may be collected.
    Closed,
    /// Being collected, or erased.
    Collecting,
}

/// A block.
#[derive(Clone, Debug)]
pub(super) struct Block {
    pub state: BlockState,
    pub valid: u32,
    pub erases: u32,
    /// Rows that take no more units.
    pub sealed: u32,
    /// Rows that flash has been told to program.
    pub submitted: u32,
    /// Rows that are on flash; units that are mapped to a later row are in memory.
    pub programmed: u32,
    /// Number of the block in the order of opening.
    pub opened: u64,
    /// Number of the unit that each slot was written with; `None` as long as all slots hold the units of the
    /// start.
    units: Option<Box<[u32]>>,
}

/// All blocks.
#[derive(Debug)]
pub(super) struct Blocks {
    pub all: Vec<Block>,
    /// Of each die, those that were erased least first.
    free: Vec<BinaryHeap<Reverse<(u32, u32)>>>,
    /// Valid units of each die.
    pub valid_of_die: Vec<u32>,
    opened: u64,
    spare_lists: Vec<Box<[u32]>>,
    units_per_block: u32,
    units_per_row: u32,
    blocks_per_die: u32,
}

impl Blocks {
    /// `valid` says how many valid units block number `block` of a die has at the start; `None` if it is
    /// free. Later blocks of a die are younger.
    pub fn new(geometry: &Geometry, valid: impl Fn(u32, u32) -> Option<u32>) -> Self {
        let mut all = Vec::with_capacity(geometry.blocks() as usize);
        let mut valid_of_die = vec![0; geometry.dies as usize];
        let mut free = Vec::with_capacity(geometry.dies as usize);
        for die in 0..geometry.dies {
            let mut free_blocks = Vec::new();
            for number in 0..geometry.blocks_per_die {
                let found = valid(die, number);
                let rows = if found.is_some() { geometry.rows_per_block } else { 0 };
                valid_of_die[die as usize] += found.unwrap_or(0);
                if found.is_none() {
                    free_blocks.push(Reverse((0, all.len() as u32)));
                }
                all.push(Block {
                    state: if found.is_some() { BlockState::Closed } else { BlockState::Free },
                    valid: found.unwrap_or(0),
                    erases: 0,
                    sealed: rows,
                    submitted: rows,
                    programmed: rows,
                    opened: u64::from(number),
                    units: None,
                });
            }
            free.push(BinaryHeap::from(free_blocks));
        }
        Self {
            all,
            free,
            valid_of_die,
            opened: u64::from(geometry.blocks_per_die),
            spare_lists: Vec::new(),
            units_per_block: geometry.units_per_block,
            units_per_row: geometry.units_per_row,
            blocks_per_die: geometry.blocks_per_die,
        }
    }

    #[inline]
    pub fn get(&self, block: u32) -> &Block {
        &self.all[block as usize]
    }

    #[inline]
    pub fn get_mut(&mut self, block: u32) -> &mut Block {
        &mut self.all[block as usize]
    }

    /// The numbers of a die's blocks.
    pub fn of_die(&self, die: u32) -> std::ops::Range<u32> {
        die * self.blocks_per_die..(die + 1) * self.blocks_per_die
    }

    /// Free blocks of a die.
    pub fn free(&self, die: u32) -> u32 {
        self.free[die as usize].len() as u32
    }

    /// Opened blocks so far.
    pub fn opened(&self) -> u64 {
        self.opened
    }

    /// Opens the free block of the die that was erased least.
    pub fn open(&mut self, die: u32) -> Option<u32> {
        let Reverse((_, number)) = self.free[die as usize].pop()?;
        let spare = self.spare_lists.pop();
        let units = spare.unwrap_or_else(|| vec![PADDING; self.units_per_block as usize].into());
        let block = &mut self.all[number as usize];
        debug_assert_eq!((block.state, block.valid), (BlockState::Free, 0));
        (block.state, block.opened, block.units) = (BlockState::Open, self.opened, Some(units));
        (block.sealed, block.submitted, block.programmed) = (0, 0, 0);
        self.opened += 1;
        Some(number)
    }

    /// Opens the block again that had `rows` rows at the start, the last `cached` in memory; `unit_at` says
    /// which units they hold.
    pub fn reopen(
        &mut self,
        number: u32,
        rows: u32,
        cached: u32,
        unit_at: impl Fn(FlashAddress) -> Option<u32>,
    ) {
        let start = number * self.units_per_block;
        let mut units = vec![PADDING; self.units_per_block as usize];
        for (slot, unit) in units.iter_mut().take((rows * self.units_per_row) as usize).enumerate() {
            *unit = unit_at(FlashAddress(start + slot as u32)).unwrap_or(PADDING);
        }
        let block = &mut self.all[number as usize];
        (block.state, block.units) = (BlockState::Open, Some(units.into()));
        (block.sealed, block.submitted, block.programmed) = (rows, rows - cached, rows - cached);
    }

    /// A block that holds nothing valid has been erased.
    pub fn erased(&mut self, number: u32) {
        let block = &mut self.all[number as usize];
        debug_assert_eq!(block.valid, 0, "erasing valid units");
        block.state = BlockState::Free;
        block.erases += 1;
        if let Some(mut units) = block.units.take() {
            units.fill(PADDING);
            self.spare_lists.push(units);
        }
        self.free[(number / self.blocks_per_die) as usize].push(Reverse((block.erases, number)));
    }

    /// A unit has been put into a slot of an open block.
    pub fn put(&mut self, block: u32, in_block: u32, unit: u32) {
        let die = block / self.blocks_per_die;
        let block = &mut self.all[block as usize];
        block.valid += 1;
        if let Some(units) = &mut block.units {
            units[in_block as usize] = unit;
        }
        self.valid_of_die[die as usize] += 1;
    }

    /// `count` units of the block have been overwritten or discarded.
    #[inline]
    pub fn invalidate(&mut self, block: u32, count: u32) {
        let entry = &mut self.all[block as usize];
        debug_assert!(entry.valid >= count, "block {block} has fewer valid units than are freed");
        entry.valid -= count;
        self.valid_of_die[(block / self.blocks_per_die) as usize] -= count;
    }

    /// The unit that was written to the slot; the unit may have been written elsewhere since.
    pub fn unit_at(&self, block: u32, row: u32, slot: u32, mapping: &Mapping) -> Option<u32> {
        let in_block = row * self.units_per_row + slot;
        match &self.all[block as usize].units {
            Some(units) => Some(units[in_block as usize]).filter(|unit| *unit != PADDING),
            None => mapping.unit_at_start(FlashAddress(block * self.units_per_block + in_block)),
        }
    }
}
