//! TRIM: units that lie wholly in a discarded range are nowhere from then on, and cost nothing to collect.

use super::Ftl;
use crate::drive::{Context, Stages};
use crate::nand::flash::Flash;

impl Ftl {
    /// Parts of units stay: only the content knows that they are zeros now. The change of the mapping takes
    /// no time.
    pub(super) fn discard(&mut self, command: u32, flash: &mut Flash, context: &mut Context<'_>) {
        let entry = &context.commands[command];
        let end_bytes = entry.offset_bytes + u64::from(entry.length_bytes);
        let unit_bytes = u64::from(self.geometry.unit_bytes);
        let first = entry.offset_bytes.div_ceil(unit_bytes) as u32;
        let end = (end_bytes / unit_bytes) as u32;
        if first < end {
            let blocks = &mut self.blocks;
            self.mapping.clear(first..end, self.geometry.units_per_block, |block, units| {
                blocks.invalidate(block, units);
            });
        }
        let wait = context.now() - context.commands[command].started_ns;
        context.finish(command, &Stages { wait, ..Stages::default() });
        // Blocks that could not be collected with any gain may be worth it now.
        for die in 0..self.geometry.dies {
            if self.blocks.free(die) < self.geometry.collect_below {
                self.collect(die, flash, context);
            }
        }
    }
}
