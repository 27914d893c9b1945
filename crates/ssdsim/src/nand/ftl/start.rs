//! The states that a drive may start in, constructed so that even a large drive starts at once.

use super::Ftl;
use super::blocks::{BlockState, Blocks};
use super::collect::Collector;
use super::default_map::{DefaultMap, Striped};
use super::geometry::Geometry;
use super::history::History;
use super::mapping::Mapping;
use super::rows::{RowUnit, Stream, WHOLE};
use super::steady::Steady;
use crate::config::{NandConfig, SimConfig, StartState};
use crate::drive::Context;
use crate::nand::flash::Flash;

/// All randomness of a start is the same for every drive of a configuration: it decides places only, and any
/// choice is as good as another.
const SEED: u64 = 0x5eed_f1a5_4000_0001;

/// Mapping and blocks in the drive's state.
pub(super) fn start(geometry: &Geometry, config: &NandConfig, drive: &SimConfig) -> (Mapping, Blocks) {
    let (map, blocks) = match drive.state {
        StartState::Fresh => (DefaultMap::Fresh, Blocks::new(geometry, |_, _| None)),
        StartState::Filled => {
            let striped = Striped::new(geometry);
            let mut valid = vec![0; geometry.blocks() as usize];
            striped
                .for_each_block(0..geometry.logical_units(), |block, units| valid[block as usize] += units);
            let valid_of = |die, block| {
                let units = valid[(die * geometry.blocks_per_die + block) as usize];
                (units > 0).then_some(units)
            };
            let blocks = Blocks::new(geometry, valid_of);
            (DefaultMap::Filled(striped), blocks)
        }
        StartState::SteadyRandom { working_set } => {
            let history = History::new(geometry, config, drive);
            let steady = Steady::new(geometry, working_set, config.collect.policy, history, SEED);
            let blocks = Blocks::new(geometry, |die, block| {
                steady.phase(die).rows(block).map(|_| steady.valid(die, block))
            });
            (DefaultMap::Steady(steady), blocks)
        }
    };
    (Mapping::new(geometry.logical_units(), map), blocks)
}

impl Ftl {
    /// Blocks that the start left half full are open, and those half moved are being collected.
    pub(super) fn reopen_blocks(&mut self) {
        let Self { geometry, mapping, blocks, placement, collectors, .. } = self;
        let DefaultMap::Steady(steady) = mapping.start() else { return };
        for (die, collector) in (0..geometry.dies).zip(collectors) {
            let (phase, first) = (steady.phase(die), blocks.of_die(die).start);
            let open = [Stream::Striped, Stream::Collect].into_iter().skip(usize::from(!phase.hosts_open));
            for (number, stream) in (phase.closed..).zip(open) {
                if let Some(rows) = phase.rows(number) {
                    let cached = if stream == Stream::Striped { phase.cached_rows } else { 0 };
                    blocks.reopen(first + number, rows, cached, |place| steady.unit_at(place));
                    if rows < geometry.rows_per_block {
                        placement.resume(stream, die, first + number);
                    }
                }
            }
            if let Some(row) = phase.victim_rows {
                blocks.get_mut(first).state = BlockState::Collecting;
                *collector = Collector::begun(first, row);
            }
        }
    }

    /// Continues the work under way at the start: collection, and programs of the write cache's units. It
    /// waits for the first command that is no read, so that a drive that is only read does nothing else.
    pub(super) fn resume(&mut self, flash: &mut Flash, context: &mut Context<'_>) {
        self.rests = false;
        for die in 0..self.geometry.dies {
            self.collect_row(die, flash, context);
            let DefaultMap::Steady(steady) = self.mapping.start() else { continue };
            let phase = steady.phase(die);
            let block = self.blocks.of_die(die).start + phase.closed;
            for number in phase.open_rows[0] - phase.cached_rows..phase.open_rows[0] {
                self.program_cached(die, block, number, flash, context);
            }
        }
    }

    /// Programs a row that the write cache holds at the start.
    fn program_cached(
        &mut self,
        die: u32,
        block: u32,
        number: u32,
        flash: &mut Flash,
        context: &mut Context<'_>,
    ) {
        let row = self.rows.insert(Stream::Striped, die, block, number);
        let units = (0..self.geometry.units_per_row)
            .filter_map(|slot| self.blocks.unit_at(block, number, slot, &self.mapping));
        self.rows[row].slots.extend(units.map(|unit| RowUnit {
            unit,
            version: 0,
            covered: WHOLE,
            before: None,
            durable: true,
        }));
        let room = self.rows[row].slots.len() as u32 * self.writes.room_of_unit(self.geometry.unit_bytes);
        self.writes.used += room;
        (self.rows[row].cached, self.rows[row].sealed) = (room, true);
        self.rows[row].number = self.flushes.begin();
        self.program_if_ready(row, flash, context);
    }
}

#[cfg(test)]
mod tests {
    use flashgrain_device::{Op, thread_cpu};

    use super::*;
    use crate::config::{MappingCache, MappingConfig};
    use crate::nand::ftl::blocks::Block;
    use crate::nand::ftl::tests::harness::{Bench, drive, nand};

    const STATES: [StartState; 3] =
        [StartState::Fresh, StartState::Filled, StartState::SteadyRandom { working_set: 1.0 }];

    /// 1 TiB on 32 dies, in blocks of 4 MiB.
    fn large(state: StartState) -> (NandConfig, SimConfig) {
        let mapping = MappingConfig { cache: MappingCache::EntriesBytes(64 << 20), ..nand().mapping };
        let (channels, chips_per_channel) = (8, 4);
        let nand = NandConfig {
            channels,
            chips_per_channel,
            pages_per_block: 256,
            over_provisioning: 0.28,
            mapping,
            ..nand()
        };
        let drive = SimConfig { capacity_bytes: 1 << 40, ..drive(&nand, state) };
        (nand, drive)
    }

    #[test]
    fn a_large_drive_starts_with_little_memory_whatever_its_state() {
        for state in STATES {
            let (nand, drive) = large(state);
            let mut bench = Bench::of(&nand, &drive);
            let ftl = &bench.ftl;
            assert_eq!(ftl.mapping.tables(), 0);
            let bytes = ftl.mapping.bytes() + ftl.blocks.all.len() * size_of::<Block>();
            assert!(bytes < 32 << 20, "{state:?}: {bytes} bytes");
            // And grows with the written and moved units.
            for write in 0..100 {
                let command = bench.start(Op::Write, write * (10 << 30) + 4096, 4096);
                while bench.done.pop() != Some(command) {
                    assert!(bench.step());
                }
            }
            let moved = bench.around.tally.counters.moved_units as usize;
            let tables = bench.ftl.mapping.tables();
            assert!((100..=200 + moved).contains(&tables), "{state:?}: {tables}");
            assert!(moved < 10_000, "{state:?}: {moved}");
        }
    }

    /// `cargo test --release -p flashgrain_ssdsim --lib starts_in -- --ignored --nocapture`
    #[test]
    #[ignore = "prints how long it takes"]
    fn a_large_drive_starts_in() {
        for state in STATES {
            let (nand, drive) = large(state);
            let begin = thread_cpu();
            let ftl = Ftl::new(&nand, &drive).unwrap();
            println!("1 TiB, {state:?}: {:?} for {} blocks", thread_cpu() - begin, ftl.geometry.blocks());
        }
    }
}
