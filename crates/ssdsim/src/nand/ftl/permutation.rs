//! A seeded permutation of `0..size` that needs no memory: a Feistel network on as many bits as `size` needs,
//! applied again while the result is outside (cycle walking).

const ROUNDS: u32 = 4;

/// See the module.
#[derive(Clone, Copy, Debug)]
pub(super) struct Permutation {
    size: u32,
    low_bits: u32,
    low_mask: u32,
    high_mask: u32,
    key: u32,
}

impl Permutation {
    pub fn new(size: u32, seed: u64) -> Self {
        let bits = (u32::BITS - size.saturating_sub(1).leading_zeros()).max(2);
        let low_bits = bits / 2;
        let mask = |bits: u32| ((1_u64 << bits) - 1) as u32;
        let key = (seed ^ (seed >> 32)).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        Self { size, low_bits, low_mask: mask(low_bits), high_mask: mask(bits - low_bits), key: key as u32 }
    }

    /// Numbers that are permuted.
    pub fn size(&self) -> u32 {
        self.size
    }

    /// The index to which the permutation takes `index`; both are below `size`.
    #[inline]
    pub fn forward(&self, mut index: u32) -> u32 {
        loop {
            let (mut low, mut high) = (index & self.low_mask, index >> self.low_bits);
            for round in 0..ROUNDS {
                low ^= self.mix(high, 2 * round) & self.low_mask;
                high ^= self.mix(low, 2 * round + 1) & self.high_mask;
            }
            index = high << self.low_bits | low;
            if index < self.size {
                return index;
            }
        }
    }

    /// The index that the permutation takes to `index`.
    pub fn backward(&self, mut index: u32) -> u32 {
        loop {
            let (mut low, mut high) = (index & self.low_mask, index >> self.low_bits);
            for round in (0..ROUNDS).rev() {
                high ^= self.mix(low, 2 * round + 1) & self.high_mask;
                low ^= self.mix(high, 2 * round) & self.low_mask;
            }
            index = high << self.low_bits | low;
            if index < self.size {
                return index;
            }
        }
    }

    #[inline]
    fn mix(&self, half: u32, round: u32) -> u32 {
        let mixed = (half ^ self.key.rotate_left(5 * round)).wrapping_add(round).wrapping_mul(0x9e37_79b1);
        (mixed ^ mixed >> 15).wrapping_mul(0x85eb_ca6b) >> 11
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_index_is_hit_once_and_found_again() {
        for (size, seed) in [(1, 0), (2, 1), (3, 2), (1000, 3), (1024, 4), (70_001, 5)] {
            let permutation = Permutation::new(size, seed);
            let mut hit = vec![false; size as usize];
            for index in 0..size {
                let to = permutation.forward(index);
                assert!(!std::mem::replace(&mut hit[to as usize], true), "{size}: {to} is hit twice");
                assert_eq!(permutation.backward(to), index);
            }
        }
    }

    #[test]
    fn neighbours_are_scattered_and_seeds_differ() {
        let size = 100_000;
        let permutation = Permutation::new(size, 7);
        let distance = |index| f64::from(permutation.forward(index).abs_diff(permutation.forward(index + 1)));
        let mean = (0..size - 1).map(distance).sum::<f64>() / f64::from(size - 1);
        // Two uniform numbers are a third of the range apart.
        assert!((mean / f64::from(size) - 1.0 / 3.0).abs() < 0.01, "{mean}");
        let other = Permutation::new(size, 8);
        let same = (0..size).filter(|&index| permutation.forward(index) == other.forward(index)).count();
        assert!(same < 20, "{same} of {size} alike");
    }
}
