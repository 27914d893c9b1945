//! Setup and transfer: the regression of the affine model and of each row of the MQSSD model.

use serde::{Deserialize, Serialize};

use crate::statistics::mean;

/// Cost per byte = `setup` · (random accesses per byte) + `transfer`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct TwoCosts {
    /// Seconds per random access; positive.
    #[serde(rename = "setup_seconds")]
    pub(crate) setup: f64,
    /// Seconds per byte; positive.
    #[serde(rename = "transfer_seconds_per_byte")]
    pub(crate) transfer: f64,
    /// The one that the points cannot tell from zero.
    pub(crate) negligible: Option<Negligible>,
}

/// One of the two costs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Negligible {
    Setup,
    Transfer,
}

/// A cost that never makes up more than this share of a measurement cannot be told from zero; it is held
/// there, so that every prediction stays positive and every logarithm finite.
const NEGLIGIBLE_FRACTION: f64 = 1e-3;

/// Ratios of the two costs tried before the best is refined.
const COARSE_STEPS: usize = 24;
/// Each reduces the interval around the best ratio by the golden section; enough for eight digits.
const GOLDEN_STEPS: usize = 44;

impl TwoCosts {
    pub(crate) fn seconds_per_byte(self, random_accesses_per_byte: f64) -> f64 {
        self.setup * random_accesses_per_byte + self.transfer
    }

    /// The setup, or zero if it cannot be told from that.
    pub(crate) fn setup_if_any(self) -> f64 {
        if self.negligible == Some(Negligible::Setup) { 0.0 } else { self.setup }
    }

    /// The transfer, or zero if it cannot be told from that.
    pub(crate) fn transfer_if_any(self) -> f64 {
        if self.negligible == Some(Negligible::Transfer) { 0.0 } else { self.transfer }
    }

    /// Least squares of ln(predicted / measured) over (random accesses per byte, seconds per byte), no cost
    /// negative.
    ///
    /// `None` if the points do not differ in random accesses per byte: then nothing tells the two costs
    /// apart.
    pub(crate) fn fit(points: &[(f64, f64)]) -> Option<Self> {
        let accesses = || points.iter().map(|(accesses, _)| *accesses);
        let most = accesses().fold(0.0, f64::max);
        let least = accesses().fold(f64::INFINITY, f64::min);
        if points.len() < 2 || most <= least * (1.0 + 1e-6) {
            return None;
        }
        // Scaled to one random access per byte at most.
        let scaled: Vec<(f64, f64)> = points.iter().map(|(x, y)| (x / most, y.ln())).collect();
        // Given the ratio of setup to transfer, the best transfer is a mean. One unknown remains; it is
        // searched where neither cost is negligible at the points where it counts most.
        let ratio_min = NEGLIGIBLE_FRACTION.ln();
        let ratio_max = -(NEGLIGIBLE_FRACTION * (least / most).max(1e-12)).ln();
        let (ratio, ln_transfer) = best_ratio(&scaled, ratio_min, ratio_max)?;
        let negligible = if ratio <= ratio_min {
            Some(Negligible::Setup)
        } else if ratio >= ratio_max {
            Some(Negligible::Transfer)
        } else {
            None
        };
        Some(Self { setup: (ratio + ln_transfer).exp() / most, transfer: ln_transfer.exp(), negligible })
    }
}

/// The logarithms of setup / transfer with the least error, and of the transfer that goes with it.
fn best_ratio(points: &[(f64, f64)], min: f64, max: f64) -> Option<(f64, f64)> {
    let error = |ratio: f64| profile(points, ratio).map_or(f64::INFINITY, |(error, _)| error);
    let step = (max - min) / COARSE_STEPS as f64;
    let coarse = (0..=COARSE_STEPS).map(|index| min + step * index as f64);
    let best = coarse.min_by(|a, b| error(*a).total_cmp(&error(*b)))?;

    let (mut low, mut high) = ((best - step).max(min), (best + step).min(max));
    let golden = (5f64.sqrt() - 1.0) / 2.0;
    let (mut left, mut right) = (high - golden * (high - low), low + golden * (high - low));
    let (mut left_error, mut right_error) = (error(left), error(right));
    for _ in 0..GOLDEN_STEPS {
        if left_error <= right_error {
            (high, right, right_error) = (right, left, left_error);
            left = high - golden * (high - low);
            left_error = error(left);
        } else {
            (low, left, left_error) = (left, right, right_error);
            right = low + golden * (high - low);
            right_error = error(right);
        }
    }
    // The ends of the range are candidates too: there a cost is negligible.
    let ratio = [(low + high) / 2.0, min, max].into_iter().min_by(|a, b| error(*a).total_cmp(&error(*b)))?;
    Some((ratio, profile(points, ratio)?.1))
}

/// The squared error with the best transfer for a ratio, and the logarithm of that transfer.
fn profile(points: &[(f64, f64)], ratio: f64) -> Option<(f64, f64)> {
    let ratio = ratio.exp();
    let ln_transfer = |(x, ln_y): &(f64, f64)| ln_y - (ratio * x).ln_1p();
    let center = mean(points.iter().map(ln_transfer))?;
    Some((points.iter().map(|point| (ln_transfer(point) - center).powi(2)).sum(), center))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZES: [f64; 7] = [4e3, 16e3, 64e3, 256e3, 1e6, 4e6, 16e6];

    fn points(setup: f64, transfer: f64) -> Vec<(f64, f64)> {
        SIZES.iter().map(|size| (1.0 / size, setup / size + transfer)).collect()
    }

    fn close(got: f64, wanted: f64) -> bool {
        (got / wanted - 1.0).abs() < 1e-6
    }

    #[test]
    fn exact_costs_of_any_scale_are_found() {
        for (setup, transfer) in [(1e-4, 1e-9), (15e-3, 8e-9), (1e-6, 3e-10), (1e-4, 3e-8), (10.0, 1e-6)] {
            let got = TwoCosts::fit(&points(setup, transfer)).unwrap();
            assert!(close(got.setup, setup) && close(got.transfer, transfer), "{got:?} {setup} {transfer}");
        }
    }

    #[test]
    fn a_cost_that_is_not_there_is_zero_not_negative() {
        // Falling cost per byte with more random accesses: the best setup is none, the best transfer the
        // geometric mean.
        let falling: Vec<(f64, f64)> =
            SIZES.iter().zip(1..).map(|(size, i)| (1.0 / size, 1e-9 * f64::from(i))).collect();
        let got = TwoCosts::fit(&falling).unwrap();
        assert!(got.setup_if_any() == 0.0 && got.setup > 0.0);
        let geometric_mean = 1e-9 * 5040f64.powf(1.0 / 7.0);
        assert!((got.transfer / geometric_mean - 1.0).abs() < 1e-3, "{got:?} {geometric_mean}");
        // A cost per request that does not depend on its size: no transfer.
        let flat: Vec<(f64, f64)> = SIZES.iter().map(|size| (1.0 / size, 1e-3 / size)).collect();
        let got = TwoCosts::fit(&flat).unwrap();
        assert!(got.transfer_if_any() == 0.0 && (got.setup / 1e-3 - 1.0).abs() < 1e-3, "{got:?}");
    }

    #[test]
    fn sequential_points_determine_the_transfer() {
        let got = TwoCosts::fit(&[(0.0, 1e-9), (1.0 / 4096.0, 2e-8)]).unwrap();
        assert!(close(got.transfer, 1e-9) && close(got.setup, 19e-9 * 4096.0), "{got:?}");
    }

    #[test]
    fn one_size_alone_tells_nothing() {
        assert_eq!(TwoCosts::fit(&[(1.0 / 4096.0, 2e-8); 5]), None);
        assert_eq!(TwoCosts::fit(&[(0.0, 2e-8); 5]), None);
        assert_eq!(TwoCosts::fit(&[]), None);
    }
}
