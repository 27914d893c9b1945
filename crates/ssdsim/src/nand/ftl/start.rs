//! The states that a drive may start in, constructed so that even a large drive starts at once.

use super::blocks::Blocks;
use super::default_map::{DefaultMap, Striped};
use super::geometry::{Geometry, OPEN_BLOCKS_PER_DIE};
use super::mapping::Mapping;
use super::steady::Steady;
use crate::config::{CollectPolicy, StartState};

/// All randomness of a start is the same for every drive of a configuration: it decides places only, and any
/// choice is as good as another.
const SEED: u64 = 0x5eed_f1a5_4000_0001;

/// Mapping and blocks in the state `start`.
pub(super) fn start(geometry: &Geometry, state: StartState, policy: CollectPolicy) -> (Mapping, Blocks) {
    let (map, blocks) = match state {
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
            // Collection keeps `collect_below` blocks free; those that are open at the moment have just been
            // opened.
            let closed = geometry.blocks_per_die - geometry.collect_below - (OPEN_BLOCKS_PER_DIE - 1);
            let steady = Steady::new(geometry, working_set, policy, closed, SEED);
            let blocks =
                Blocks::new(geometry, |die, block| (block < closed).then(|| steady.valid(die, block)));
            (DefaultMap::Steady(steady), blocks)
        }
    };
    (Mapping::new(geometry.logical_units(), map), blocks)
}

#[cfg(test)]
mod tests {
    use flashgrain_device::{Op, thread_cpu};

    use super::*;
    use crate::config::{MappingCache, MappingConfig, NandConfig, SimConfig};
    use crate::nand::ftl::Ftl;
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
            // And grows with what is written.
            for write in 0..100 {
                bench.finish(Op::Write, write * (10 << 30) + 4096, 4096);
            }
            let tables = bench.ftl.mapping.tables();
            assert!((100..=200).contains(&tables), "{state:?}: {tables}");
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
