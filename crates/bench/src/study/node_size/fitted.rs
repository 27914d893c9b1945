//! The affine model's line through the look-ups of the B+-tree, and its α compared with the drive's own.

use serde::Serialize;

use super::drive_costs::{DriveCosts, UNIT_BYTES};
use super::prediction::Predicted;
use crate::study::subject::Measured;

/// A look-up takes the setup for each of its reads and the transfer for each of its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(super) struct Fitted {
    pub setup_seconds: f64,
    pub transfer_seconds_per_byte: f64,
    /// Blocks have 4 KiB, as in the paper's Table 2.
    pub alpha: f64,
    /// How far that is from the drive's own α, as a share of that.
    pub alpha_difference: f64,
    /// Root mean square of the line's residuals, in microseconds.
    pub rms_us: f64,
    /// `None` if the points do not vary, or are two, through which every line goes.
    pub r_squared: Option<f64>,
}

/// The look-ups of a tree: time, reads and their bytes for each.
#[derive(Clone, Copy, Debug)]
pub(super) struct LookUp {
    us: f64,
    reads: f64,
    read_bytes: f64,
}

impl LookUp {
    pub fn of(measured: &Measured) -> Self {
        let Measured { reads_each, read_bytes_each, .. } = *measured;
        Self { us: measured.mean_us(), reads: reads_each, read_bytes: read_bytes_each }
    }

    /// That the model says of; it has not been timed.
    pub fn predicted(predicted: &Predicted) -> Self {
        Self {
            us: predicted.us.unwrap_or_default(),
            reads: predicted.reads,
            read_bytes: predicted.read_bytes,
        }
    }
}

impl Fitted {
    /// Microseconds of a look-up with these accesses.
    pub fn us(&self, look_up: &LookUp) -> f64 {
        let setups = self.setup_seconds * look_up.reads;
        (setups + self.transfer_seconds_per_byte * look_up.read_bytes) * 1e6
    }

    /// Through these; `None` if they do not tell setup and transfer apart.
    pub fn through(look_ups: &[LookUp], drive: DriveCosts) -> Option<Self> {
        let of_a_read = |one: &LookUp| (one.read_bytes / one.reads, one.us * 1e-6 / one.reads);
        let (setup_seconds, transfer_seconds_per_byte) =
            line(&look_ups.iter().map(of_a_read).collect::<Vec<_>>())?;
        let alpha = transfer_seconds_per_byte * UNIT_BYTES / setup_seconds;
        let mut fitted = Self {
            setup_seconds,
            transfer_seconds_per_byte,
            alpha,
            alpha_difference: alpha / drive.alpha() - 1.0,
            rms_us: 0.0,
            r_squared: None,
        };
        let count = look_ups.len() as f64;
        let mean = look_ups.iter().map(|one| one.us).sum::<f64>() / count;
        let squares = |of: &dyn Fn(&LookUp) -> f64| look_ups.iter().map(|one| of(one).powi(2)).sum::<f64>();
        let missed = squares(&|one| one.us - fitted.us(one));
        let all = squares(&|one| one.us - mean);
        fitted.rms_us = (missed / count).sqrt();
        fitted.r_squared = (all > 0.0 && look_ups.len() > 2).then(|| 1.0 - missed / all);
        Some(fitted)
    }
}

/// Intercept and slope of the line with the least squares; `None` unless both are positive.
fn line(points: &[(f64, f64)]) -> Option<(f64, f64)> {
    let count = points.len() as f64;
    let mean = |of: fn(&(f64, f64)) -> f64| points.iter().map(of).sum::<f64>() / count;
    let (mean_x, mean_y) = (mean(|(x, _)| *x), mean(|(_, y)| *y));
    let products: f64 = points.iter().map(|(x, y)| (x - mean_x) * (y - mean_y)).sum();
    let squares: f64 = points.iter().map(|(x, _)| (x - mean_x).powi(2)).sum();
    let slope = products / squares;
    let intercept = mean_y - slope * mean_x;
    (slope > 0.0 && slope.is_finite() && intercept > 0.0).then_some((intercept, slope))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_finds_the_costs_that_look_ups_were_made_of() {
        let (setup, transfer) = (0.012, 8.5e-9);
        let drive = DriveCosts { setup_seconds: setup, transfer_seconds_per_byte: transfer, r_squared: None };
        let look_up = |kib: u32| {
            // Fewer reads the larger the nodes are.
            let reads = 1.5 - f64::from(kib) / 100.0;
            let read_bytes = reads * f64::from(kib) * 1024.0;
            LookUp { us: (setup * reads + transfer * read_bytes) * 1e6, reads, read_bytes }
        };
        let look_ups: Vec<LookUp> = [4, 8, 16, 32, 64].map(look_up).into();
        let fitted = Fitted::through(&look_ups, drive).unwrap();
        assert!(fitted.alpha_difference.abs() < 1e-9 && fitted.rms_us < 1e-6, "{fitted:?}");
        assert!(fitted.r_squared.unwrap() > 0.999, "{fitted:?}");
        let doubled = DriveCosts { setup_seconds: setup / 2.0, ..drive };
        let fitted = Fitted::through(&look_ups, doubled).unwrap();
        assert!((fitted.alpha_difference + 0.5).abs() < 1e-3, "{fitted:?}");
        assert_eq!(Fitted::through(&look_ups[..1], drive), None);
        let backwards =
            [(4096.0, 2.0), (8192.0, 1.0)].map(|(read_bytes, us)| LookUp { us, reads: 1.0, read_bytes });
        assert_eq!(Fitted::through(&backwards, drive), None, "larger reads take less");
    }
}
