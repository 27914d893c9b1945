//! Keys, drawn uniformly or by Zipf's law from a table of sums.

use rand::RngExt;
use rand::seq::SliceRandom;
use rand_pcg::Pcg64;

use crate::lsm_simulation::generator;

/// Draws the numbers of records.
pub struct Draws {
    rng: Pcg64,
    /// Sums of the weights of all ranks up to each.
    sums: Vec<f64>,
    /// The record of each rank: popular ones lie anywhere.
    records: Vec<usize>,
}

impl Draws {
    /// Of `count` records, of which that of rank i is drawn in proportion to 1 / i^exponent.
    pub fn new(count: usize, exponent: f64, seed: u64) -> Self {
        let mut rng = generator(seed);
        let mut sum = 0.0;
        let weights = (1..=count).map(|rank| (rank as f64).powf(-exponent));
        let sums = weights
            .map(|weight| {
                sum += weight;
                sum
            })
            .collect();
        let mut records: Vec<usize> = (0..count).collect();
        records.shuffle(&mut rng);
        Self { rng, sums, records }
    }

    /// Each record once, in random order.
    pub fn permutation(count: usize, seed: u64) -> std::vec::IntoIter<usize> {
        Self::new(count, 0.0, seed).records.into_iter()
    }

    /// The next one.
    pub fn draw(&mut self) -> usize {
        let at = self.rng.random::<f64>() * self.sums.last().unwrap();
        self.records[self.sums.partition_point(|sum| *sum < at).min(self.records.len() - 1)]
    }
}
