//! Power cuts.

use flashgrain_ssdsim::fault::{PowerCut, Survivors, Tear};
use rand::RngExt;
use rand_pcg::Pcg64;

/// Anything that a power cut can do.
pub fn random_cut(random: &mut Pcg64) -> PowerCut {
    let survivors =
        [Survivors::None, Survivors::All, Survivors::Random, Survivors::Random, Survivors::First(2)];
    let unit_bytes = [512, 4096][random.random_range(0..2)];
    let tear =
        [Tear::Whole, Tear::Prefix { unit_bytes }, Tear::Shorn { unit_bytes }][random.random_range(0..3)];
    PowerCut {
        survivors: survivors[random.random_range(0..survivors.len())].clone(),
        tear,
        in_flight: random.random_bool(0.5),
        seed: random.random(),
    }
}
