//! Segmented linear regression, as the dictionaries paper has it (§4.1): a line of best fit in each of two
//! regions that meet at a boundary, by least squares of the values themselves.

use super::check_positive;
use crate::Error;
use crate::statistics::r_squared;

/// Two lines that meet at the knee.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LinearSegmented {
    /// The boundary of both regions, in units of x: the paper's P.
    pub knee: f64,
    /// y per x below the knee: the paper's β.
    pub slope: f64,
    /// y per x above the knee.
    pub slope_above: f64,
    /// y at the knee: the paper's saturation.
    pub saturation: f64,
    /// R² of y; `None` if y does not vary.
    pub r_squared: Option<f64>,
}

/// The best of all continuous pairs of lines, exactly: between two neighbouring values of x the best boundary
/// is where the lines of both sides meet, or it is one of these values.
///
/// # Errors
/// [`Error::Samples`] if points are not positive, or have fewer than four values of x.
pub fn linear_segmented_fit(points: &[(f64, f64)]) -> Result<LinearSegmented, Error> {
    check_positive(points)?;
    let mut knots: Vec<f64> = points.iter().map(|(x, _)| *x).collect();
    knots.sort_by(f64::total_cmp);
    knots.dedup();
    let mut best: Option<(f64, Broken)> = None;
    let mut offer = |line: Broken| {
        let error: f64 = points.iter().map(|(x, y)| (line.at(*x) - y).powi(2)).sum();
        if best.is_none_or(|(least, _)| error < least) {
            best = Some((error, line));
        }
    };
    // Each side has two values of x at least.
    let inside = knots.get(1..knots.len().saturating_sub(1)).unwrap_or_default();
    for pair in inside.windows(2) {
        let [low, high] = pair else { continue };
        let (left, right): (Vec<_>, Vec<_>) = points.iter().copied().partition(|(x, _)| x <= low);
        let (Some((y_left, slope)), Some((y_right, above))) = (line(&left), line(&right)) else { continue };
        let knee = (y_right - y_left) / (slope - above);
        if (*low..=*high).contains(&knee) {
            offer(Broken { knee, at_knee: y_left + slope * knee, slope, slope_above: above });
        }
    }
    inside.iter().filter_map(|knee| meeting_at(points, *knee)).for_each(&mut offer);
    let (_, line) = best.filter(|_| inside.len() >= 2).ok_or_else(|| {
        Error::Samples("a segmented linear fit needs at least four different values of x".into())
    })?;
    let pairs: Vec<(f64, f64)> = points.iter().map(|(x, y)| (*y, line.at(*x))).collect();
    Ok(LinearSegmented {
        knee: line.knee,
        slope: line.slope,
        slope_above: line.slope_above,
        saturation: line.at_knee,
        r_squared: r_squared(&pairs),
    })
}

/// A line that bends at the knee.
#[derive(Clone, Copy)]
struct Broken {
    knee: f64,
    at_knee: f64,
    slope: f64,
    slope_above: f64,
}

impl Broken {
    fn at(&self, x: f64) -> f64 {
        let beyond = x - self.knee;
        self.at_knee + beyond * if beyond < 0.0 { self.slope } else { self.slope_above }
    }
}

/// Value at 0 and slope of the line of least squares; `None` if x does not vary.
fn line(points: &[(f64, f64)]) -> Option<(f64, f64)> {
    let count = points.len() as f64;
    let (x_mean, y_mean) = points.iter().fold((0.0, 0.0), |(x, y), point| (x + point.0, y + point.1));
    let (x_mean, y_mean) = (x_mean / count, y_mean / count);
    let squares: f64 = points.iter().map(|(x, _)| (x - x_mean).powi(2)).sum();
    let products: f64 = points.iter().map(|(x, y)| (x - x_mean) * (y - y_mean)).sum();
    let slope = products / squares;
    (squares > 0.0).then_some((y_mean - slope * x_mean, slope))
}

/// The best lines that meet at this x: the value there and both slopes, by the normal equations.
fn meeting_at(points: &[(f64, f64)], knee: f64) -> Option<Broken> {
    let (mut below, mut above) = ([0.0; 3], [0.0; 3]);
    let (mut count, mut y_sum) = (0.0, 0.0);
    for (x, y) in points {
        let side = if *x < knee { &mut below } else { &mut above };
        let distance = x - knee;
        // Sums of the distances, of their squares, and of their products with y.
        for (sum, term) in side.iter_mut().zip([distance, distance * distance, distance * y]) {
            *sum += term;
        }
        (count, y_sum) = (count + 1.0, y_sum + y);
    }
    if below[1] <= 0.0 || above[1] <= 0.0 {
        return None;
    }
    // With the best slopes for a value at the knee, one equation in that value remains.
    let part = |[sum, squares, products]: [f64; 3]| (sum * products / squares, sum * sum / squares);
    let ((y_below, n_below), (y_above, n_above)) = (part(below), part(above));
    let at_knee = (y_sum - y_below - y_above) / (count - n_below - n_above);
    let slope = |[sum, squares, products]: [f64; 3]| (products - at_knee * sum) / squares;
    let line = Broken { knee, at_knee, slope: slope(below), slope_above: slope(above) };
    [line.at_knee, line.slope, line.slope_above].iter().all(|number| number.is_finite()).then_some(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The concurrencies of the dictionaries paper's rounds.
    const ROUNDS: [f64; 11] = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 16.0, 32.0, 64.0];

    #[test]
    fn exact_lines_are_found_wherever_they_meet() {
        for knee in [2.0, 2.9, 5.5, 6.0, 9.1, 16.0, 21.0] {
            let y = |x: f64| 40.0 + 90.0 * x.min(knee) + 0.5 * (x - knee).max(0.0);
            let fitted = linear_segmented_fit(&ROUNDS.map(|x| (x, y(x)))).unwrap();
            assert!((fitted.knee / knee - 1.0).abs() < 1e-9, "{knee}: {fitted:?}");
            assert!((fitted.slope - 90.0).abs() < 1e-6 && (fitted.slope_above - 0.5).abs() < 1e-6);
            assert!((fitted.saturation / y(knee) - 1.0).abs() < 1e-9, "{fitted:?}");
            assert!(fitted.r_squared.unwrap() > 0.999_999);
        }
    }

    /// No pair of lines on a fine grid of boundaries, values and slopes is better.
    #[test]
    fn no_other_lines_are_nearer() {
        let points: Vec<(f64, f64)> =
            ROUNDS.iter().map(|x| (*x, 100.0 * x.min(5.2) * (1.0 + 0.07 * (x * 1.7).sin()))).collect();
        let fitted = linear_segmented_fit(&points).unwrap();
        let error = |line: &Broken| points.iter().map(|(x, y)| (line.at(*x) - y).powi(2)).sum::<f64>();
        let LinearSegmented { knee, slope, slope_above, saturation, .. } = fitted;
        let best = error(&Broken { knee, at_knee: saturation, slope, slope_above });
        for step in 0..620 {
            let knee = 2.0 + f64::from(step) * 0.05;
            let other = meeting_at(&points, knee).map_or(f64::INFINITY, |line| error(&line));
            assert!(other >= best * (1.0 - 1e-9), "{knee}: {other} {best}");
            for [a, b, c] in [[0.01, 0.0, 0.0], [0.0, 0.01, 0.0], [0.0, 0.0, 0.01], [-0.01, 0.01, -0.01]] {
                let at_knee = saturation * (1.0 + a);
                let (slope, slope_above) = (slope * (1.0 + b), slope_above + slope * c);
                assert!(error(&Broken { knee, at_knee, slope, slope_above }) >= best * (1.0 - 1e-9));
            }
        }
    }

    #[test]
    fn fewer_than_four_concurrencies_have_no_two_lines() {
        for count in 0..4 {
            let points: Vec<(f64, f64)> = ROUNDS.iter().take(count).map(|x| (*x, *x)).collect();
            assert!(linear_segmented_fit(&points).is_err(), "{count}");
        }
        assert!(linear_segmented_fit(&[(1.0, -1.0); 5]).is_err());
    }
}
