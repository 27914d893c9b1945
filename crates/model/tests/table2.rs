//! The fit of cost curves reaches the MQSSD paper's Table 2 (Samsung 990 Pro), at every k.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use flashgrain_model::CostCurve;

const K: [f64; 8] = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0];
/// µs per percentage point of random pages of 1 GB per thread.
const S: [f64; 8] = [3.10e5, 2.54e5, 1.54e5, 8.02e4, 4.23e4, 2.15e4, 1.34e4, 9.98e3];
const T: [f64; 8] = [1.47e5, 4.07e4, 1.05e4, 2.93e3, 931.0, 392.0, 263.0, 202.0];
/// µs per page.
const BETA: [f64; 8] = [2.79, 3.01, 2.59, 1.93, 1.27, 0.891, 0.745, 0.697];
const ALPHA: [f64; 8] = [3.53, 1.71, 0.659, 0.265, 0.157, 0.121, 0.105, 0.0974];

fn check(name: &str, costs: [f64; 8], degree: usize, limit: f64) {
    let pairs: Vec<(f64, f64)> = K.into_iter().zip(costs).collect();
    for seed in [1, 2, 3] {
        let curve = CostCurve::fit(&pairs, degree, seed).unwrap();
        let quality = curve.quality(&pairs).unwrap();
        println!("{name}(k), degree {degree}: {:?}\n  {quality:?}", curve.constants());
        for (k, cost) in &pairs {
            let error = curve.at(*k) / cost - 1.0;
            println!("  k {k:>3}: {cost:>9} fitted {:>12.4} ({:+.2} %)", curve.at(*k), 100.0 * error);
            assert!(error.abs() <= limit, "{name}({k}) is off by {error}");
        }
        assert_eq!(curve.constant_count(), 2 * degree + 1);
        assert!(quality.r_squared.unwrap() > 0.99);
        assert!(quality.adjusted_r_squared.unwrap() < quality.r_squared.unwrap());
        assert!(quality.leave_one_out_median.unwrap() < 0.10);
    }
}

#[test]
fn t_at_every_k_within_5_percent_with_degree_2() {
    check("t", T, 2, 0.05);
}

#[test]
fn alpha_at_every_k_within_5_percent_with_degree_2() {
    check("α", ALPHA, 2, 0.05);
}

#[test]
fn s_at_every_k_within_5_percent_with_degree_2() {
    check("s", S, 2, 0.05);
}

#[test]
fn beta_at_every_k_within_2_percent_with_degree_3() {
    check("β", BETA, 3, 0.02);
}
