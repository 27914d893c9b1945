//! Garbage collection and wear levelling, for each die by itself: the valid units of a block are moved, and
//! the block erased.

use super::blocks::BlockState;
use super::rows::{RowUnit, Stream, WHOLE};
use super::{Ftl, Purpose};
use crate::config::CollectPolicy;
use crate::drive::Context;
use crate::nand::flash::{Cause, Flash, FlashKind, FlashOp};

/// Programs of moved units that a die may have waiting before more is read.
pub(super) const PROGRAMS_AHEAD: u32 = 2;

/// Collection on one die.
#[derive(Clone, Debug, Default)]
pub(super) struct Collector {
    /// The block that is being collected.
    victim: Option<u32>,
    /// Its next row.
    row: u32,
    step: Step,
    /// Rows of moved units that are sealed and not programmed.
    programs: u32,
    programs_urgent: bool,
    /// Whether host writes wait for it.
    pub urgent: bool,
    /// Most erases of a block of the die.
    erases_max: u32,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Step {
    /// May go on with the next row.
    #[default]
    Between,
    /// Waiting for a row.
    Reading,
    Erasing,
}

impl Collector {
    /// Whether a program goes before others of the die. It never overtakes one of the same block: as long as
    /// there are any, all are alike.
    pub fn programs_are_urgent(&mut self) -> bool {
        if self.programs <= 1 {
            self.programs_urgent = self.urgent;
        }
        self.programs_urgent
    }

    /// Collection that has moved the first rows of `victim`; it goes on with [`Ftl::resume`].
    pub fn begun(victim: u32, row: u32) -> Self {
        Self { victim: Some(victim), row, ..Self::default() }
    }

    /// The power is gone. It returns the block that was being collected.
    pub fn power_cycle(&mut self) -> Option<u32> {
        let victim = self.victim.take();
        *self = Self { erases_max: self.erases_max, ..Self::default() };
        victim
    }
}

impl Ftl {
    /// Begins to collect on this die, if that is necessary and not under way.
    pub(super) fn collect(&mut self, die: u32, flash: &mut Flash, context: &mut Context<'_>) {
        if self.collectors[die as usize].victim.is_some() {
            return;
        }
        let short = self.blocks.free(die) < self.geometry.collect_below;
        let victim = if short { self.victim(die) } else { self.worn_victim(die) };
        let Some(victim) = victim else { return };
        self.blocks.get_mut(victim).state = BlockState::Collecting;
        let collector = &mut self.collectors[die as usize];
        (collector.victim, collector.row, collector.step) = (Some(victim), 0, Step::Between);
        self.collect_row(die, flash, context);
    }

    /// The block to collect next; `None` if nothing would be gained.
    fn victim(&self, die: u32) -> Option<u32> {
        if let Some(worn) = self.worn_victim(die) {
            return Some(worn);
        }
        let per_block = self.geometry.units_per_block;
        let blocks = &self.blocks.all;
        let closed =
            self.blocks.of_die(die).filter(|block| blocks[*block as usize].state == BlockState::Closed);
        let opened = self.blocks.opened();
        match self.policy {
            CollectPolicy::Greedy => closed
                .min_by_key(|block| {
                    let block = &blocks[*block as usize];
                    (block.valid, block.opened)
                })
                .filter(|block| blocks[*block as usize].valid < per_block),
            CollectPolicy::CostBenefit => closed
                .filter(|block| blocks[*block as usize].valid < per_block)
                .map(|block| {
                    let entry = &blocks[block as usize];
                    let utilisation = f64::from(entry.valid) / f64::from(per_block);
                    let age = (opened - entry.opened) as f64;
                    (block, (1.0 - utilisation) / (2.0 * utilisation) * age)
                })
                .max_by(|a, b| a.1.total_cmp(&b.1))
                .map(|(block, _)| block),
            CollectPolicy::Fifo => {
                // The oldest may be fully valid; going on is only worth it if there is a block to be gained
                // in the end.
                let spare: u64 =
                    closed.clone().map(|block| u64::from(per_block - blocks[block as usize].valid)).sum();
                closed
                    .min_by_key(|block| blocks[*block as usize].opened)
                    .filter(|_| spare >= u64::from(per_block))
            }
        }
    }

    /// Static wear levelling: the least erased block, if its erases lag too far and there is room to move it.
    fn worn_victim(&self, die: u32) -> Option<u32> {
        if self.wear_gap == 0 || self.blocks.free(die) == 0 {
            return None;
        }
        let least = self
            .blocks
            .of_die(die)
            .filter(|block| self.blocks.get(*block).state == BlockState::Closed)
            .min_by_key(|block| self.blocks.get(*block).erases)?;
        let behind = self.collectors[die as usize].erases_max - self.blocks.get(least).erases;
        (behind > self.wear_gap).then_some(least)
    }

    /// Reads the next row of the block that holds something valid, or erases the block.
    pub(super) fn collect_row(&mut self, die: u32, flash: &mut Flash, context: &mut Context<'_>) {
        let collector = &self.collectors[die as usize];
        let Some(victim) = collector.victim else { return };
        if collector.step != Step::Between || collector.programs >= PROGRAMS_AHEAD {
            return;
        }
        let mut op = FlashOp {
            kind: FlashKind::Erase,
            cause: Cause::Collect,
            urgent: collector.urgent,
            die,
            row: 0,
            transfer_bytes: 0,
            token: Purpose::CollectErase.token(die.into()),
        };
        let mut row = collector.row;
        let mut valid = 0;
        while valid == 0 && row < self.geometry.rows_per_block && self.blocks.get(victim).valid > 0 {
            valid = self.valid_units(victim, row).count() as u32;
            row += u32::from(valid == 0);
        }
        let collector = &mut self.collectors[die as usize];
        collector.row = row;
        collector.step = if valid > 0 { Step::Reading } else { Step::Erasing };
        if valid > 0 {
            op.kind = FlashKind::Read;
            op.row = row;
            op.transfer_bytes = valid * self.geometry.unit_bytes;
            op.token = Purpose::CollectRead.token(die.into());
        }
        flash.submit(op, context);
    }

    /// The units that are still in this row.
    fn valid_units(&self, block: u32, row: u32) -> impl Iterator<Item = u32> + '_ {
        (0..self.geometry.units_per_row).filter_map(move |slot| {
            let unit = self.blocks.unit_at(block, row, slot, &self.mapping)?;
            (self.mapping.get(unit) == Some(self.geometry.place(block, row, slot))).then_some(unit)
        })
    }

    /// A row has been read: its valid units go to the open block for moved units.
    pub(super) fn collect_read_done(&mut self, die: u32, flash: &mut Flash, context: &mut Context<'_>) {
        let collector = &mut self.collectors[die as usize];
        let Some(victim) = collector.victim else { return };
        let number = collector.row;
        (collector.step, collector.row) = (Step::Between, number + 1);
        let mut units = std::mem::take(&mut self.moving);
        units.extend(self.valid_units(victim, number));
        for unit in units.drain(..) {
            let Some(row) = self.row_on(Stream::Collect, die, flash, context) else {
                unreachable!("hosts leave a free block for collection, and no block has more units than one");
            };
            context.tally.counters.moved_units += 1;
            let slot = RowUnit { unit, version: 0, covered: WHOLE, before: None, durable: true };
            let last = self.rows[row].slots.len() as u32 + 1 == self.geometry.units_per_row;
            self.collectors[die as usize].programs += u32::from(last);
            self.put(row, slot, flash, context);
            self.table_moves(unit);
        }
        self.moving = units;
        self.collect_row(die, flash, context);
    }

    /// A row of moved units has been programmed.
    pub(super) fn collected_row_programmed(
        &mut self,
        die: u32,
        flash: &mut Flash,
        context: &mut Context<'_>,
    ) {
        self.collectors[die as usize].programs -= 1;
        self.collect_row(die, flash, context);
    }

    /// The block has been erased: there is one more to write to.
    pub(super) fn collect_erase_done(&mut self, die: u32, flash: &mut Flash, context: &mut Context<'_>) {
        let collector = &mut self.collectors[die as usize];
        let Some(victim) = collector.victim.take() else { return };
        self.blocks.erased(victim);
        collector.erases_max = collector.erases_max.max(self.blocks.get(victim).erases);
        collector.urgent &= self.blocks.free(die) < self.geometry.stop_below;
        context.tally.counters.erases += 1;
        context.tally.counters.collected_blocks += 1;
        self.collect(die, flash, context);
        self.pump(flash, context);
    }
}

#[cfg(test)]
mod tests {
    use flashgrain_device::Op;
    use rand::{RngExt, SeedableRng};
    use rand_pcg::Pcg64;

    use super::*;
    use crate::config::{CollectConfig, NandConfig, StartState};
    use crate::nand::ftl::tests::harness::{Bench, nand};

    fn bench(policy: CollectPolicy, wear_gap: u32) -> Bench {
        let collect = CollectConfig { policy, wear_gap, ..CollectConfig::default() };
        Bench::new(&NandConfig { collect, ..nand() }, StartState::Filled)
    }

    #[test]
    fn each_policy_has_its_victim() {
        // Blocks hold 32 units. The oldest has the most valid ones, the youngest the fewest.
        let victim = |policy| {
            let mut bench = bench(policy, 0);
            let first = bench.ftl.blocks.of_die(1).start;
            for (block, valid, opened) in [(0, 31, 0), (1, 16, 2), (2, 14, 30)] {
                let entry = bench.ftl.blocks.get_mut(first + block);
                (entry.valid, entry.opened) = (valid, opened);
            }
            bench.ftl.victim(1).unwrap() - first
        };
        assert_eq!(victim(CollectPolicy::Fifo), 0);
        assert_eq!(victim(CollectPolicy::CostBenefit), 1);
        assert_eq!(victim(CollectPolicy::Greedy), 2);
    }

    #[test]
    fn nothing_is_collected_where_nothing_is_gained() {
        for policy in [CollectPolicy::Fifo, CollectPolicy::CostBenefit, CollectPolicy::Greedy] {
            assert_eq!(bench(policy, 0).ftl.victim(1), None);
        }
    }

    /// Erases of all blocks after many writes to an eighth of the drive, least and most.
    fn erases_of_a_hot_spot(wear_gap: u32) -> (u32, u32) {
        let mut bench = bench(CollectPolicy::Greedy, wear_gap);
        let mut random = Pcg64::seed_from_u64(5);
        for _ in 0..40_000 {
            bench.write_unit(random.random_range(0..512));
        }
        bench.run();
        bench.check();
        let erases = || bench.ftl.blocks.all.iter().map(|block| block.erases);
        (erases().min().unwrap(), erases().max().unwrap())
    }

    #[test]
    fn static_wear_levelling_moves_what_never_changes() {
        let (least, most) = erases_of_a_hot_spot(0);
        assert!(least == 0 && most > 15, "{least} to {most}");
        let (least, most) = erases_of_a_hot_spot(4);
        assert!(most - least <= 4 + 2, "{least} to {most}");
    }

    #[test]
    fn free_blocks_are_used_in_turn() {
        let mut bench = bench(CollectPolicy::Fifo, 0);
        let mut random = Pcg64::seed_from_u64(5);
        for _ in 0..40_000 {
            bench.write_unit(random.random_range(0..4096));
        }
        let erases = || bench.ftl.blocks.all.iter().map(|block| block.erases);
        let (least, most) = (erases().min().unwrap(), erases().max().unwrap());
        assert!(least > 3 && most - least <= 3, "{least} to {most}");
    }

    #[test]
    fn writes_wait_for_collection_and_it_is_urgent_then() {
        let mut bench = bench(CollectPolicy::Greedy, 0);
        let mut random = Pcg64::seed_from_u64(5);
        let mut collect_ns = 0;
        let mut urgent = false;
        for _ in 0..6_000 {
            let unit = u64::from(random.random_range(0..4096_u32));
            let write = bench.start(Op::Write, unit * 4096, 4096);
            while !bench.done.contains(&write) {
                urgent |= bench.ftl.collectors.iter().any(|collector| collector.urgent);
                assert!(bench.step());
            }
            bench.done.clear();
            collect_ns += bench.around.commands[write].stages.collect;
        }
        assert!(urgent && collect_ns > 10_000_000, "{urgent} {collect_ns}");
        bench.run();
        assert!(bench.ftl.collectors.iter().all(|collector| !collector.urgent));
        bench.check();
    }
}
