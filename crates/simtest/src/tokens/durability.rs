//! How durable a commit is.

use flashgrain::Durability;
use rand::RngExt;
use rand_pcg::Pcg64;

/// Some commits wait until they are durable.
pub fn durability(random: &mut Pcg64) -> Durability {
    match random.random_range(0..4) {
        0 => Durability::Sync,
        1 => Durability::Buffered,
        _ => Durability::None,
    }
}
