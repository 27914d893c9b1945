//! Times that vary.

use rand::{Rng, RngExt};

/// Around `typical`, nearly normal with the given relative standard deviation: the sum of four uniform
/// numbers of 16 bits each, which one draw gives. It draws nothing if nothing varies.
#[inline]
pub(crate) fn vary(typical_ns: u64, relative_deviation: f64, random: &mut impl Rng) -> u64 {
    if relative_deviation == 0.0 {
        return typical_ns;
    }
    let draw: u64 = random.random();
    let sum: u64 = (0..4).map(|index| draw >> (16 * index) & 0xffff).sum();
    // Mean 2, variance 4/12.
    let deviations = (sum as f64 / 65536.0 - 2.0) * 3.0_f64.sqrt();
    (typical_ns as f64 * (1.0 + relative_deviation * deviations)).max(0.0) as u64
}
