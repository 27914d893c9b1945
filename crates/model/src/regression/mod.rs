//! The regressions that the models are fitted with, which minimise squared *logarithms* of predicted over
//! measured; and, to compare with its paper, the PDAM's by squared differences.
//!
//! A drive's costs span three orders of magnitude; squared absolute errors would be the errors of the few
//! largest. The logarithm is the relative error where that is small, and treats twice as much and half as
//! much alike where it is large, so that a model which cannot fit is still given the best that it can do.

mod line;
mod linear_segmented;
mod segmented;
mod two_costs;

pub use line::{Line, line_fit};
pub use linear_segmented::{LinearSegmented, linear_segmented_fit};
pub(crate) use segmented::{RatePoint, Segments};
pub use segmented::{Segmented, segmented_fit};
pub(crate) use two_costs::TwoCosts;

use crate::Error;

/// Refuses coordinates that the logarithmic fits cannot use.
fn check_positive(points: &[(f64, f64)]) -> Result<(), Error> {
    match points.iter().find(|(x, y)| !(x.is_normal() && y.is_normal() && *x > 0.0 && *y > 0.0)) {
        Some((x, y)) => {
            Err(Error::Samples(format!("cannot fit the point ({x}, {y}): both must be positive")))
        }
        None => Ok(()),
    }
}
