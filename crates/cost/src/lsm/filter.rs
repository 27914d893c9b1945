//! Bloom filters.

use std::f64::consts::LN_2;

/// False-positive rate of a Bloom filter with `bits_per_key` bits per key and the best number of hash
/// functions: exp(−bits·ln²2). Without bits every key passes.
pub fn false_positive_rate(bits_per_key: f64) -> f64 {
    (-bits_per_key.max(0.0) * LN_2 * LN_2).exp()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ten_bits_let_one_percent_pass_and_none_everything() {
        assert_eq!(false_positive_rate(0.0), 1.0);
        assert!((false_positive_rate(10.0) - 0.008_19).abs() < 1e-5);
    }
}
