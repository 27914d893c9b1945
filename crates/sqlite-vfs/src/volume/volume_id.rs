//! The identity of a volume.

use std::hash::{BuildHasher as _, RandomState};

use flashgrain_device::calendar_seconds;

/// Identity of a volume, drawn at random when it is made. Its labels and its directory have it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct VolumeId(pub [u8; 16]);

impl VolumeId {
    /// Draws a new one. The random numbers decide about nothing but equality.
    pub fn draw() -> Self {
        let draw = || RandomState::new().hash_one(calendar_seconds()).to_le_bytes();
        let halves = [draw(), draw()];
        Self(std::array::from_fn(|at| halves[at / 8][at % 8]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn volumes_are_told_apart() {
        assert_ne!(VolumeId::draw(), VolumeId::draw());
    }
}
