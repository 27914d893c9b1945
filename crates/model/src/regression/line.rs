//! Time of one request over its size: the affine model's regression (dictionaries paper §4.2).

use serde::{Deserialize, Serialize};

use super::{TwoCosts, check_positive};
use crate::bootstrap::{Groups, generator};
use crate::statistics::r_squared;
use crate::{Error, Estimate};

/// Time of one request as setup plus size times transfer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Line {
    /// y at x = 0: the setup, in seconds if y is.
    pub intercept: Estimate,
    /// y per x: seconds per byte if y is in seconds and x in bytes.
    pub slope: Estimate,
    /// intercept / slope: the half-bandwidth size, in bytes if x is.
    pub half_bandwidth: Estimate,
    /// R² of y, `None` if y does not vary.
    pub r_squared: Option<f64>,
}

/// Line through (bytes, seconds) points, both costs positive; repeats are points with the same size.
///
/// # Errors
/// [`Error::Samples`] if there are fewer than two different sizes, or some numbers are not positive.
pub fn line_fit(points: &[(f64, f64)], resamples: u32, seed: u64) -> Result<Line, Error> {
    check_positive(points)?;
    let fitted = fit(points)
        .ok_or_else(|| Error::Samples("a line needs points of at least two different sizes".into()))?;
    let groups = Groups::new(points, |_| (), |(bytes, _)| bytes.to_bits());
    let mut rng = generator(seed);
    let refitted: Vec<TwoCosts> = (0..resamples).filter_map(|_| fit(&groups.draw(&mut rng))).collect();
    let estimate = |number: fn(&TwoCosts) -> f64| {
        let mut values: Vec<f64> = refitted.iter().map(number).collect();
        Estimate::from_resamples(number(&fitted), &mut values, resamples)
    };
    let (intercept, slope) =
        (estimate(|costs| costs.setup_if_any()), estimate(|costs| costs.transfer_if_any()));
    let half_bandwidth = match (&intercept, &slope) {
        (Estimate::Determined { .. }, Estimate::Determined { .. }) => {
            estimate(|costs| costs.setup / costs.transfer)
        }
        (Estimate::Undetermined { why }, _) => {
            Estimate::undetermined(format!("the setup is undetermined: {why}"))
        }
        (_, Estimate::Undetermined { why }) => {
            Estimate::undetermined(format!("the slope is undetermined: {why}"))
        }
    };
    let pairs: Vec<(f64, f64)> =
        points.iter().map(|(bytes, seconds)| (*seconds, fitted.setup + fitted.transfer * bytes)).collect();
    Ok(Line { intercept, slope, half_bandwidth, r_squared: r_squared(&pairs) })
}

fn fit(points: &[(f64, f64)]) -> Option<TwoCosts> {
    let per_byte: Vec<(f64, f64)> =
        points.iter().map(|(bytes, seconds)| (bytes.recip(), seconds / bytes)).collect();
    TwoCosts::fit(&per_byte)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sizes of the dictionaries paper: one block to 16 MiB.
    fn sizes() -> impl Iterator<Item = f64> {
        (0..13).map(|power| 4096.0 * f64::from(1 << power))
    }

    #[test]
    fn the_papers_hitachi_is_recovered() {
        // Dictionaries paper, table 2: s = 0.013 s, t = 0.000031 s per 4 KiB, α = 0.0031 after its rounding
        // of both.
        let (setup, per_byte) = (0.013, 0.000_031 / 4096.0);
        let points: Vec<(f64, f64)> = sizes().map(|bytes| (bytes, setup + per_byte * bytes)).collect();
        let line = line_fit(&points, 100, 1).unwrap();
        assert!((line.intercept.value().unwrap() / setup - 1.0).abs() < 1e-6, "{line:?}");
        assert!((line.slope.value().unwrap() / per_byte - 1.0).abs() < 1e-6, "{line:?}");
        assert!((line.half_bandwidth.value().unwrap() / (setup / per_byte) - 1.0).abs() < 1e-6, "{line:?}");
        assert!(line.r_squared.unwrap() > 0.9999);
    }

    #[test]
    fn a_setup_that_is_not_there_is_undetermined() {
        let points: Vec<(f64, f64)> = sizes()
            .enumerate()
            .map(|(i, bytes)| (bytes, 1e-9 * bytes * (1.0 + 0.03 * (i as f64 * 2.1).sin())))
            .collect();
        let line = line_fit(&points, 200, 1).unwrap();
        assert!(line.slope.value().is_some(), "{line:?}");
        assert_eq!(line.intercept.value(), None, "{line:?}");
        assert_eq!(line.half_bandwidth.value(), None, "{line:?}");
    }

    #[test]
    fn one_size_is_refused() {
        assert!(line_fit(&[(4096.0, 1e-4); 3], 100, 1).is_err());
        assert!(line_fit(&[(4096.0, -1e-4), (8192.0, 1e-4)], 100, 1).is_err());
    }
}
