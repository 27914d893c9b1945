//! Ways to draw numbers.

use rand::RngExt;
use rand_pcg::Pcg64;

/// A number from `least` to `most`; each order of magnitude is as likely as the others.
pub fn log_uniform(random: &mut Pcg64, least: u64, most: u64) -> u64 {
    let most = most.max(least);
    // With one more, 0 has a logarithm, too.
    let (low, high) = (((least + 1) as f64).ln(), ((most + 2) as f64).ln());
    let drawn = random.random_range(low..high).exp() as u64;
    drawn.saturating_sub(1).clamp(least, most)
}

/// A power of two from `least` to `most`, which are powers of two themselves.
pub fn power_of_two(random: &mut Pcg64, least: u64, most: u64) -> u64 {
    let exponents = least.ilog2()..=most.max(least).ilog2();
    1 << random.random_range(exponents)
}

/// One of several.
pub fn one_of<T: Copy>(random: &mut Pcg64, all: &[T]) -> T {
    all[random.random_range(0..all.len())]
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;

    use super::*;

    #[test]
    fn each_order_of_magnitude_is_drawn_and_nothing_beyond_the_ends() {
        let random = &mut Pcg64::seed_from_u64(1);
        let drawn: Vec<u64> = (0..10_000).map(|_| log_uniform(random, 0, 1_000_000)).collect();
        assert!(drawn.contains(&0) && drawn.iter().all(|number| *number <= 1_000_000));
        for decade in [1..10, 10..100, 100..1000, 1000..10_000, 10_000..100_000, 100_000..1_000_000] {
            let count = drawn.iter().filter(|number| decade.contains(*number)).count();
            assert!((1000..2500).contains(&count), "{decade:?}: {count}");
        }
        assert!((0..100).all(|_| log_uniform(random, 7, 7) == 7));
        let powers: Vec<u64> = (0..100).map(|_| power_of_two(random, 4, 16)).collect();
        assert!([4, 8, 16].iter().all(|power| powers.contains(power)));
        assert!(powers.iter().all(|power| [4, 8, 16].contains(power)));
    }
}
