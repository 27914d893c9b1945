//! Learning hidden parameters and working points from measurements. A value is given only where the
//! measurements support it; otherwise the reason says why not.

pub(crate) mod cap;
mod curve;
mod groups;
mod line;
mod location;
mod period;
mod request_size;
#[cfg(test)]
mod synthetic;

use flashgrain_model::Estimate;

use crate::schema::{Cap, Learned, LearnedValue};
use crate::series::Series;

/// Measurements to learn from.
#[derive(Debug)]
pub(crate) struct Evidence<'a> {
    pub series: &'a [Series],
    /// How the regions of `request-size` were made.
    pub creation: &'a str,
    pub page_bytes: u64,
    /// Offsets and lengths of requests are multiples of this.
    pub align_bytes: u64,
    /// Whether requests bypassed the page cache.
    pub direct: bool,
    pub seed: u64,
    /// A limit before the drive.
    pub cap: Option<&'a Cap>,
}

/// Least share of resamples that must agree before a value counts as determined.
const CONFIDENCE_MIN: f64 = 0.8;

/// Learns everything.
pub(crate) fn learn(evidence: &Evidence<'_>) -> Learned {
    let request_size = request_size::learn(evidence);
    let location = location::learn(evidence);
    let curve = curve::learn(evidence);
    let line = line::learn(evidence);
    let mut learned = Learned {
        cap: evidence.cap.cloned(),
        desirable_write_bytes: request_size.desirable,
        stripe_bytes: request_size.stripe,
        chunk_bytes: location.chunk,
        hot_offset_bytes: location.hot_offset,
        hot_latency_drop: location.drop,
        flash_page_bytes: location.flash_page,
        best_page_iops_bytes: curve.best_page_iops,
        best_page_latency_bytes: curve.best_page_latency,
        depth_90: curve.depth_90,
        depth_99: curve.depth_99,
        parallelism: line.parallelism,
        saturation_bytes_per_second: line.saturation,
        half_bandwidth_bytes: line.half_bandwidth,
    };
    if let Some(cap) = evidence.cap {
        cap::hide(cap, evidence.series, &mut learned);
    }
    learned
}

/// No value at all, and why.
pub(crate) fn nothing(why: &str) -> Learned {
    let none = undetermined(why, "");
    Learned {
        cap: None,
        desirable_write_bytes: none.clone(),
        stripe_bytes: none.clone(),
        chunk_bytes: none.clone(),
        hot_offset_bytes: none.clone(),
        hot_latency_drop: none.clone(),
        flash_page_bytes: none.clone(),
        best_page_iops_bytes: none.clone(),
        best_page_latency_bytes: none.clone(),
        depth_90: none.clone(),
        depth_99: none.clone(),
        parallelism: none.clone(),
        saturation_bytes_per_second: none.clone(),
        half_bandwidth_bytes: none,
    }
}

/// The basis of a value, besides its numbers.
#[derive(Clone, Copy, Debug)]
struct Basis {
    /// Repeats of its measurements.
    repeats: usize,
    /// The least and the most tried value, if the value must lie between them: at an end nothing shows the
    /// other side.
    tried: Option<(f64, f64)>,
}

impl Basis {
    /// Repeats without a range.
    fn of(repeats: usize) -> Self {
        Self { repeats, tried: None }
    }
}

/// One repeat tells nothing of noise.
const REPEATS_MIN: usize = 2;

/// A value that the data support: only here values become learned ones. It takes repeats and, where a value
/// is one of the tried ones, tried values on both sides of it.
fn determined(
    value: f64,
    interval: (f64, f64),
    confidence: f64,
    evidence: String,
    basis: Basis,
) -> LearnedValue {
    if basis.repeats < REPEATS_MIN {
        return undetermined("measured once, which does not show whether it comes out again", evidence);
    }
    match basis.tried {
        Some((least, _)) if value <= least => {
            return undetermined(
                format!("it may be less than {least:.0}, the least that was tried"),
                evidence,
            );
        }
        Some((_, most)) if value >= most => {
            return undetermined(format!("it may be more than {most:.0}, the most that was tried"), evidence);
        }
        _ => {}
    }
    let (low, high) = (interval.0.min(value), interval.1.max(value));
    LearnedValue { estimate: Estimate::Determined { value, low, high }, evidence, confidence }
}

/// No value, and why.
fn undetermined(why: impl Into<String>, evidence: impl Into<String>) -> LearnedValue {
    LearnedValue {
        estimate: Estimate::Undetermined { why: why.into() },
        evidence: evidence.into(),
        confidence: 0.0,
    }
}

/// Share of a normal distribution with the given 95 % interval that lies within a tenth of its centre: for
/// continuous numbers, the share of resamples that lead to the same value.
fn share_within_a_tenth(value: f64, low: f64, high: f64) -> f64 {
    let deviation = (high - low) / (2.0 * 1.96);
    if deviation <= 0.0 {
        return 1.0;
    }
    error_function(0.1 * value.abs() / deviation / std::f64::consts::SQRT_2)
}

/// erf for x >= 0 to 1.5e-7 (Abramowitz and Stegun 7.1.26).
fn error_function(x: f64) -> f64 {
    let t = 1.0 / (1.0 + 0.327_591_1 * x);
    let series = t
        * (0.254_829_592
            + t * (-0.284_496_736 + t * (1.421_413_741 + t * (-1.453_152_027 + t * 1.061_405_429))));
    1.0 - series * (-x * x).exp()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn confidence_falls_as_the_interval_widens() {
        assert!((error_function(1.0) - 0.842_700_79).abs() < 1e-6);
        assert_eq!(share_within_a_tenth(10.0, 10.0, 10.0), 1.0);
        // A standard deviation of a tenth: 68 % lie within it.
        assert!((share_within_a_tenth(10.0, 8.04, 11.96) - 0.6827).abs() < 1e-3);
        assert!(share_within_a_tenth(10.0, 1.0, 20.0) < 0.2);
    }
}
