//! The steady state under uniform random writes of single units, constructed rather than simulated.
//!
//! In it, blocks that were written longer ago have fewer valid units. With `n` units per block, and `x` of
//! them still valid when a block is collected, every block passes through all counts from `n` down to `x`,
//! and stays at a count `j` for a time proportional to `1/j`. So the share of blocks between two counts is
//! proportional to the difference of their logarithms (harmonic numbers, to be exact: Desnoyers, "Analytic
//! models of SSD write performance", 2014), and the mean count, which is known from the spare space, gives
//! `x`. First-in-first-out collection is the same without the shift by one half that integer counts bring.

use super::geometry::{FlashAddress, Geometry};
use super::history::{Cycle, History};
use super::permutation::Permutation;
use crate::config::CollectPolicy;

/// Phases that the dies are in at the most: dies of one phase differ in their units only.
const PHASES_MAX: u32 = 1024;
/// Fraction of the golden ratio: its multiples are spread evenly over 0 to 1.
const GOLDEN: f64 = 0.618_033_988_749_894_9;

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
    /// Die `d` is in phase `d % phases.len()`.
    phases: Vec<Phase>,
}

/// Where a die is in the cycle of filling, collecting and erasing blocks.
///
/// The closed blocks come first, oldest first; the block open for hosts is after them if there is one, then
/// the one open for moved units.
#[derive(Debug)]
pub(super) struct Phase {
    /// Blocks that are full; with `victim_rows`, the first is being collected.
    pub closed: u32,
    /// Rows of the oldest block that have been moved; `None`: no block is being collected.
    pub victim_rows: Option<u32>,
    /// Whether a block is open for hosts.
    pub hosts_open: bool,
    /// Rows filled in the blocks open for hosts and for moved units; the block is free if there are none.
    pub open_rows: [u32; 2],
    /// The last rows of the block open for hosts, which are in the write cache.
    pub cached_rows: u32,
    units_per_row: u32,
    units_per_block: u32,
    /// Valid units in all blocks before; one more than there are blocks.
    valid_before: Vec<u32>,
    /// For each `index >> hint_shift`, a block that is at or before the one that holds valid unit `index` of
    /// the die.
    hints: Vec<u32>,
    hint_shift: u32,
}

impl Phase {
    /// Phase number `index` of `phases`, of dies that hold `units`.
    fn new(geometry: &Geometry, units: u32, shift: f64, history: History, index: u32, phases: u32) -> Self {
        let since = (f64::from(index) + 0.5) / f64::from(phases);
        let draw = (f64::from(index) * GOLDEN).fract();
        let (mut phase, moved) = Self::empty(geometry, units, shift, history, since, draw);
        phase.fill(geometry.blocks_per_die, units, shift, moved);
        phase
    }

    /// A phase in which the share `since` of a cycle has passed since hosts opened their last block; and the
    /// units that have left the oldest block.
    ///
    /// Hosts that wait open a block as soon as one more is free than collection needs. That is when a victim
    /// was erased and its valid units still fitted into the open block: `draw`, 0 to 1, says how full that
    /// was then.
    fn empty(
        geometry: &Geometry,
        units: u32,
        shift: f64,
        history: History,
        since: f64,
        draw: f64,
    ) -> (Self, u32) {
        let (rows, per_block) = (geometry.rows_per_block, geometry.units_per_block);
        let filled = |share: f64| ((share * f64::from(rows)).round() as u32).min(rows - 1);
        let mean = f64::from(units) / f64::from(geometry.blocks_per_die - geometry.stop_below - 1);
        let fewest = fewest_valid(f64::from(per_block), mean, shift);
        let kept = (fewest / f64::from(per_block)).min(0.99);
        let mut phase = Self {
            closed: 0,
            victim_rows: None,
            hosts_open: true,
            open_rows: [filled(since), filled(draw)],
            cached_rows: 0,
            units_per_row: geometry.units_per_row,
            units_per_block: per_block,
            valid_before: vec![0],
            hints: Vec::new(),
            hint_shift: (per_block / 2).max(1).ilog2(),
        };
        let cycle = history.cycle(geometry, kept);
        if let (History::FreeDies { .. }, Some(Cycle { programming, cached_rows, .. })) = (history, cycle) {
            // The block was filled as fast as the cache had room, and is programmed first.
            phase.hosts_open = since < programming;
            if phase.hosts_open {
                let programmed = (f64::from(rows) * since / programming) as u32;
                phase.open_rows[0] = (programmed + cached_rows).min(rows);
                phase.cached_rows = phase.open_rows[0] - programmed;
            } else {
                phase.open_rows[0] = 0;
            }
        }
        let (mut free, mut moved) = (geometry.collect_below, 0.0);
        if let Some(Cycle { programming, busy, free: at_first, .. }) = cycle {
            let share = ((since - programming) / (busy - programming).max(1e-3)).clamp(0.0, 1.0);
            let room = (1.0 - draw) * (1.0 - kept);
            let victims = share * (((1.0 - room) / (1.0 - kept)).floor() + 1.0);
            let opened = victims * kept - room;
            free = (at_first - 1).saturating_add_signed(victims.floor() as i32 - opened.floor() as i32);
            phase.open_rows[1] = filled(opened - opened.floor());
            // With all its free blocks a die rests.
            if free < geometry.collect_below {
                let erased = filled(victims - victims.floor());
                phase.victim_rows = Some(erased);
                moved = fewest * f64::from(erased) / f64::from(rows);
            }
        }
        phase.closed = geometry.blocks_per_die - free - 1 - u32::from(phase.hosts_open);
        (phase, moved as u32)
    }

    /// Spreads `units` over the blocks; `moved` of those in the oldest block have left it.
    fn fill(&mut self, blocks_per_die: u32, units: u32, shift: f64, moved: u32) {
        // A small working set may be valid in few of the slots.
        let open = self.open_rows.map(|rows| (rows * self.units_per_row).min(units / 4));
        let in_closed = units - open.iter().sum::<u32>();
        let mut counts = valid_counts(self.units_per_block, self.closed, in_closed + moved, shift);
        let mut left = moved;
        for count in &mut counts {
            let here = left.min(*count);
            *count -= here;
            left -= here;
        }
        // Rounding may have left more in the oldest block than its other rows hold, or, if no block is free,
        // than the block open for moved units has room for.
        let has_free = self.closed + 1 + u32::from(self.hosts_open) < blocks_per_die;
        let room = self.units_per_block - self.open_rows[1] * self.units_per_row;
        let most = self.slots(0).1.min(if has_free { u32::MAX } else { room });
        let mut over = counts[0].saturating_sub(most);
        counts[0] -= over;
        for count in counts.iter_mut().skip(1) {
            let here = over.min(self.units_per_block - *count);
            *count += here;
            over -= here;
        }
        for count in counts.into_iter().chain(open.into_iter().skip(usize::from(!self.hosts_open))) {
            self.valid_before.push(self.valid_before.last().copied().unwrap_or(0) + count);
        }
        for (block, until) in self.valid_before[1..].iter().enumerate() {
            while ((self.hints.len() as u64) << self.hint_shift) < u64::from(*until) {
                self.hints.push(block as u32);
            }
        }
    }

    /// Slots of the block that hold its valid units: the first of them, and their number.
    #[inline]
    fn slots(&self, block: u32) -> (u32, u32) {
        if block >= self.closed {
            return (0, self.open_rows[self.stream(block) & 1] * self.units_per_row);
        }
        let from = match self.victim_rows {
            Some(rows) if block == 0 => rows * self.units_per_row,
            _ => 0,
        };
        (from, self.units_per_block - from)
    }

    /// Rows that the block has on flash; `None` if it is free.
    pub fn rows(&self, block: u32) -> Option<u32> {
        if block < self.closed {
            return Some(self.units_per_block / self.units_per_row);
        }
        self.open_rows.get(self.stream(block)).copied().filter(|rows| *rows > 0)
    }

    /// Place of an open block in `open_rows`.
    #[inline]
    fn stream(&self, block: u32) -> usize {
        (block - self.closed) as usize + usize::from(!self.hosts_open)
    }
}

impl Steady {
    /// `working_set` of the capacity was written.
    pub fn new(
        geometry: &Geometry,
        working_set: f64,
        policy: CollectPolicy,
        history: History,
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
        let phases = geometry.dies.min(PHASES_MAX);
        let in_die = units.div_ceil(geometry.dies);
        let phase = |index| Phase::new(geometry, in_die, shift, history, index, phases);
        Self {
            dies: geometry.dies,
            blocks_per_die: geometry.blocks_per_die,
            units_per_block: geometry.units_per_block,
            host_units_written,
            host_units: geometry.host_units,
            units,
            permutation: Permutation::new(if by_address { units / geometry.dies } else { units }, seed),
            by_address,
            phases: (0..phases).map(phase).collect(),
        }
    }

    pub fn units_per_block(&self) -> u32 {
        self.units_per_block
    }

    /// Where the die is in its cycle.
    #[inline]
    pub fn phase(&self, die: u32) -> &Phase {
        &self.phases[die as usize % self.phases.len()]
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
        let phase = self.phase(die);
        let mut block = phase.hints[(in_die >> phase.hint_shift) as usize] as usize;
        while phase.valid_before[block + 1] <= in_die {
            block += 1;
        }
        let before = phase.valid_before[block];
        let (from, slots) = phase.slots(block as u32);
        let in_block = from + spread(in_die - before, phase.valid_before[block + 1] - before, slots);
        Some(FlashAddress((die * self.blocks_per_die + block as u32) * self.units_per_block + in_block))
    }

    pub fn unit_at(&self, place: FlashAddress) -> Option<u32> {
        let (block, in_block) = (place.0 / self.units_per_block, place.0 % self.units_per_block);
        let (die, block) = (block / self.blocks_per_die, block % self.blocks_per_die);
        let phase = self.phase(die);
        let before = phase.valid_before.get(block as usize)?;
        let valid = phase.valid_before.get(block as usize + 1)? - before;
        let (from, slots) = phase.slots(block);
        let in_slots = in_block.checked_sub(from).filter(|slot| *slot < slots)?;
        let rank = (u64::from(in_slots) * u64::from(valid)).div_ceil(u64::from(slots)) as u32;
        if rank >= valid || spread(rank, valid, slots) != in_slots {
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
        let (valid_before, block) = (&self.phase(die).valid_before, block as usize);
        match (valid_before.get(block), valid_before.get(block + 1)) {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{MediumConfig, NandConfig, SimConfig, StartState};
    use crate::nand::ftl::Ftl;
    use crate::preset;

    /// All flash drives.
    fn flash_presets() -> impl Iterator<Item = (NandConfig, SimConfig)> {
        preset::names().into_iter().map(|name| preset::find(name).unwrap()).filter_map(|drive| {
            match drive.medium.clone() {
                MediumConfig::Nand(nand) => Some((*nand, drive)),
                _ => None,
            }
        })
    }

    /// Open blocks have the numbers after the closed ones, and collection finds a free block.
    #[test]
    fn blocks_of_every_phase_stay_within_their_die() {
        for (nand, drive) in flash_presets() {
            let geometry = Geometry::new(&nand, &drive).unwrap();
            let own = History::new(&geometry, &nand, &drive);
            for (percent, step) in (1..=100).flat_map(|percent| (0..=20).map(move |step| (percent, step))) {
                let units = u64::from(geometry.logical_units()) * percent / 100;
                let units = units.div_ceil(u64::from(geometry.dies)) as u32;
                let draw = (f64::from(step) * GOLDEN).fract();
                for history in [own, History::FixedDies { queued_rows: 8.0 }] {
                    let since = f64::from(step) / 20.0;
                    let (phase, _) = Phase::empty(&geometry, units, 0.5, history, since, draw);
                    let last = phase.closed + u32::from(phase.hosts_open);
                    assert!(
                        last < geometry.blocks_per_die,
                        "{} {percent} % {history:?}: {phase:?}",
                        drive.name
                    );
                }
            }
        }
    }

    #[test]
    fn every_flash_preset_starts_with_a_share_written() {
        for (nand, mut drive) in flash_presets() {
            drive.state = StartState::SteadyRandom { working_set: 0.6 };
            let ftl = Ftl::new(&nand, &drive).unwrap();
            // A die with a backlog has none: the units that it collects go to the block that is open for it.
            assert!((0..ftl.geometry.dies).any(|die| ftl.blocks.free(die) > 0), "{}", drive.name);
        }
    }
}
