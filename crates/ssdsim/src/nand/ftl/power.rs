//! The power is gone and back.

use super::Ftl;
use super::blocks::BlockState;

impl Ftl {
    /// Operations under way and the cache are lost; the mapping keeps units of the cache, as if they had been
    /// programmed: the content records which data were lost.
    pub fn power_cycle(&mut self) {
        let rows_per_block = self.geometry.rows_per_block;
        for block in &mut self.blocks.all {
            if block.state == BlockState::Open {
                (block.submitted, block.programmed) = (block.sealed, block.sealed);
            }
            if block.state == BlockState::Open && block.programmed == rows_per_block {
                block.state = BlockState::Closed;
            }
        }
        self.rests = false;
        for victim in self.collectors.iter_mut().filter_map(|collector| collector.power_cycle()) {
            self.blocks.get_mut(victim).state = BlockState::Closed;
        }
        if let Some(table) = &mut self.table {
            table.power_cycle();
        }
        self.writes.power_cycle();
        self.flushes.power_cycle();
        self.keep_open_rows();
    }

    /// Open rows stay as they are, but lose their waiters; all others were being programmed.
    fn keep_open_rows(&mut self) {
        let mut old = std::mem::take(&mut self.rows);
        self.writes.used = 0;
        for row in self.placement.open_rows_mut() {
            let from = &mut old[*row];
            let to = self.rows.insert(from.stream, from.die, from.block, from.row);
            let kept = &mut self.rows[to];
            kept.slots = std::mem::take(&mut from.slots);
            kept.slots.iter_mut().for_each(|slot| slot.durable = true);
            (kept.cached, kept.table) = (from.cached, from.table);
            self.writes.used += kept.cached;
            *row = to;
        }
    }
}
