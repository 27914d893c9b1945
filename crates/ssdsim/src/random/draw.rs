//! Numbers drawn from a seed.

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;

/// See the module.
pub(super) struct Draw(Pcg64);

impl Draw {
    pub fn new(seed: u64) -> Self {
        Self(Pcg64::seed_from_u64(seed))
    }

    /// Uniform in [0, 1).
    pub fn unit(&mut self) -> f64 {
        self.0.random()
    }

    /// True with this probability.
    pub fn chance(&mut self, probability: f64) -> bool {
        self.unit() < probability
    }

    /// Between two positive bounds, uniform on a logarithmic scale.
    pub fn between(&mut self, low: f64, high: f64) -> f64 {
        low * (high / low).powf(self.unit())
    }

    /// One of several values, each as likely as the others.
    pub fn one_of<T: Copy>(&mut self, values: &[T]) -> T {
        values[self.0.random_range(0..values.len())]
    }

    /// A power of two between two powers of two, both included.
    pub fn power_of_two(&mut self, low: u64, high: u64) -> u64 {
        low << self.0.random_range(0..=high.ilog2() - low.ilog2())
    }
}
