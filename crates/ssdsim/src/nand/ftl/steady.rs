//! The steady state under uniform random writes of single units, constructed rather than simulated.
//!
//! In it, blocks that were written longer ago have fewer valid units. With `n` units per block, of which `x`
//! are still valid when a block is collected, every block passes through all counts from `n` down to `x`, and
//! stays at a count `j` for a time proportional to `1/j`. So the share of blocks between two counts is
//! proportional to the difference of their logarithms (harmonic numbers, to be exact: Desnoyers, "Analytic
//! models of SSD write performance", 2014), and the mean count, which is known from the spare space, gives
//! `x`. First-in-first-out collection is the same without the shift by one half that integer counts bring.

use super::geometry::{FlashAddress, Geometry};
use super::permutation::Permutation;
use crate::config::CollectPolicy;

/// See the module.
#[derive(Debug)]
pub(super) struct Steady {
    dies: u32,
    blocks_per_die: u32,
    units_per_block: u32,
    /// Units of the host that were written: those below this number.
    host_units_written: u32,
    /// First unit of the mapping table.
    host_units: u32,
    /// Units that were written.
    units: u32,
    /// Of all units; of the rounds over all dies, where units stay on the die of their address.
    permutation: Permutation,
    by_address: bool,
    /// Valid units in all older blocks of a die, oldest first; one more than there are blocks. The counts are
    /// the same in every die.
    valid_before: Vec<u32>,
    /// For each `index >> hint_shift`, a block that is not behind the one that holds valid unit `index` of
    /// the die.
    hints: Vec<u32>,
    hint_shift: u32,
}

impl Steady {
    /// `working_set` of the capacity was written. `closed_blocks` of every die hold it, of the rest nothing
    /// is known here.
    pub fn new(
        geometry: &Geometry,
        working_set: f64,
        policy: CollectPolicy,
        closed_blocks: u32,
        seed: u64,
    ) -> Self {
        let host_units_written = (f64::from(geometry.host_units) * working_set).round() as u32;
        let written_table_units = match geometry.table_units {
            0 => 0,
            _ => host_units_written.div_ceil(geometry.entries_per_unit),
        };
        let units = host_units_written + written_table_units;
        let by_address = geometry.by_address;
        let shift = if policy == CollectPolicy::Fifo { 0.0 } else { 0.5 };
        let counts =
            valid_counts(geometry.units_per_block, closed_blocks, units.div_ceil(geometry.dies), shift);
        let mut valid_before = vec![0];
        valid_before.extend(counts.iter().scan(0, |sum, count| {
            *sum += count;
            Some(*sum)
        }));
        let hint_shift = (geometry.units_per_block / 2).max(1).ilog2();
        let mut hints = Vec::new();
        for (block, until) in valid_before[1..].iter().enumerate() {
            while ((hints.len() as u64) << hint_shift) < u64::from(*until) {
                hints.push(block as u32);
            }
        }
        Self {
            dies: geometry.dies,
            blocks_per_die: geometry.blocks_per_die,
            units_per_block: geometry.units_per_block,
            host_units_written,
            host_units: geometry.host_units,
            units,
            permutation: Permutation::new(if by_address { units / geometry.dies } else { units }, seed),
            by_address,
            valid_before,
            hints,
            hint_shift,
        }
    }

    pub fn units_per_block(&self) -> u32 {
        self.units_per_block
    }

    #[inline]
    pub fn get(&self, unit: u32) -> Option<FlashAddress> {
        let written = match unit {
            _ if unit < self.host_units_written => unit,
            _ if unit < self.host_units => return None,
            _ => unit - self.host_units + self.host_units_written,
        };
        if written >= self.units() {
            return None;
        }
        let index = self.moved(written, Permutation::forward);
        let (die, in_die) = (index % self.dies, index / self.dies);
        let mut block = self.hints[(in_die >> self.hint_shift) as usize] as usize;
        while self.valid_before[block + 1] <= in_die {
            block += 1;
        }
        let valid = self.valid_before[block + 1] - self.valid_before[block];
        let in_block = spread(in_die - self.valid_before[block], valid, self.units_per_block);
        Some(FlashAddress((die * self.blocks_per_die + block as u32) * self.units_per_block + in_block))
    }

    pub fn unit_at(&self, place: FlashAddress) -> Option<u32> {
        let (block, in_block) = (place.0 / self.units_per_block, place.0 % self.units_per_block);
        let (die, block) = (block / self.blocks_per_die, (block % self.blocks_per_die) as usize);
        let (before, until) = (self.valid_before.get(block)?, self.valid_before.get(block + 1)?);
        let valid = until - before;
        let rank = (u64::from(in_block) * u64::from(valid)).div_ceil(u64::from(self.units_per_block)) as u32;
        if rank >= valid || spread(rank, valid, self.units_per_block) != in_block {
            return None;
        }
        let index = (before + rank) * self.dies + die;
        if index >= self.units() {
            return None;
        }
        let written = self.moved(index, Permutation::backward);
        let table = written.checked_sub(self.host_units_written);
        Some(table.map_or(written, |table| self.host_units + table))
    }

    /// Valid units in block `block` of `die`.
    pub fn valid(&self, die: u32, block: u32) -> u32 {
        let block = block as usize;
        match (self.valid_before.get(block), self.valid_before.get(block + 1)) {
            (Some(before), Some(until)) => {
                // The last valid units are missing in dies that have one unit less.
                let in_die = self.units() / self.dies + u32::from(die < self.units() % self.dies);
                until.min(&in_die) - before.min(&in_die)
            }
            _ => 0,
        }
    }

    fn units(&self) -> u32 {
        self.units
    }

    /// The permuted place of a unit, or, with the inverse `permute`, the reverse.
    #[inline]
    fn moved(&self, from: u32, permute: impl Fn(&Permutation, u32) -> u32) -> u32 {
        if !self.by_address {
            return permute(&self.permutation, from);
        }
        let (round, die) = (from / self.dies, from % self.dies);
        // The last round may not reach all dies.
        let round = if round < self.permutation.size() { permute(&self.permutation, round) } else { round };
        round * self.dies + die
    }
}

/// Slot of the valid unit number `rank` of `valid` in a block: valid units are spread evenly.
#[inline]
fn spread(rank: u32, valid: u32, units_per_block: u32) -> u32 {
    (u64::from(rank) * u64::from(units_per_block) / u64::from(valid)) as u32
}

/// Valid units of each of `blocks` blocks, oldest first, `total` together.
fn valid_counts(units_per_block: u32, blocks: u32, total: u32, shift: f64) -> Vec<u32> {
    let full = f64::from(units_per_block) + shift;
    let mean = f64::from(total) / f64::from(blocks);
    let fewest = fewest_valid(f64::from(units_per_block), mean, shift) + shift;
    // Counts are differences of rounded cumulative sums, so that rounding errors do not add up.
    let mut handed_out = 0;
    let mut expected = 0.0;
    let counts: Vec<f64> = (0..blocks)
        .map(|rank| (f64::from(rank) + 0.5) / f64::from(blocks))
        .map(|age| fewest.powf(1.0 - age) * full.powf(age) - shift / 2.0)
        .collect();
    let scale = f64::from(total) / counts.iter().sum::<f64>().max(1.0);
    let mut counts: Vec<u32> = counts
        .iter()
        .map(|count| {
            expected += count * scale;
            let count = ((expected.round() as u32) - handed_out).min(units_per_block);
            handed_out += count;
            count
        })
        .collect();
    // Units that do not fit into the fullest blocks go to the next fullest ones.
    for count in counts.iter_mut().rev() {
        let more = (units_per_block - *count).min(total - handed_out.min(total));
        *count += more;
        handed_out += more;
    }
    counts
}

/// Valid units of the block that is collected next, if blocks have `mean` valid units of `units_per_block` on
/// average: the solution `x` of `mean = (n - x) / ln((n + shift) / (x + shift))`.
fn fewest_valid(units_per_block: f64, mean: f64, shift: f64) -> f64 {
    let (mut low, mut high) = (0.0, units_per_block);
    for _ in 0..200 {
        let middle = (low + high) / 2.0;
        let mean_there = (units_per_block - middle) / ((units_per_block + shift) / (middle + shift)).ln();
        if mean_there < mean {
            low = middle;
        } else {
            high = middle;
        }
    }
    low
}
