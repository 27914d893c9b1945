//! The states that a drive may start in, constructed so that even a large drive starts at once.

use super::blocks::Blocks;
use super::default_map::{DefaultMap, Striped};
use super::geometry::{Geometry, OPEN_BLOCKS_PER_DIE};
use super::mapping::Mapping;
use super::steady::Steady;
use crate::config::{CollectPolicy, StartState};

/// All randomness of a start is the same for every drive of a configuration: it decides places only, and any choice is as good as another.
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
            // Collection keeps `collect_below` blocks free; those that are open at the moment have just been opened.
            let closed = geometry.blocks_per_die - geometry.collect_below - (OPEN_BLOCKS_PER_DIE - 1);
            let steady = Steady::new(geometry, working_set, policy, closed, SEED);
            let blocks =
                Blocks::new(geometry, |die, block| (block < closed).then(|| steady.valid(die, block)));
            (DefaultMap::Steady(steady), blocks)
        }
    };
    (Mapping::new(geometry.logical_units(), map), blocks)
}
