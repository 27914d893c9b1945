//! Medians, percentiles and R².

/// Middle of the values (mean of the two middle ones); sorts them. `None` without values.
pub(crate) fn median(values: &mut [f64]) -> Option<f64> {
    percentile(values, 0.5)
}

/// Linear interpolation between order statistics; sorts the values. `None` without values.
pub(crate) fn percentile(values: &mut [f64], share: f64) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let place = share.clamp(0.0, 1.0) * values.len().checked_sub(1)? as f64;
    let below = *values.get(place.floor() as usize)?;
    let above = *values.get(place.ceil() as usize)?;
    Some(below + (above - below) * place.fract())
}

/// Mean; `None` without values.
pub(crate) fn mean(values: impl IntoIterator<Item = f64>) -> Option<f64> {
    let (mut count, mut sum) = (0usize, 0.0);
    for value in values {
        count += 1;
        sum += value;
    }
    (count > 0).then(|| sum / count as f64)
}

/// Share of the variance of the measurements that the predictions explain; pairs are (measured, predicted).
/// `None` if the measurements do not vary.
pub(crate) fn r_squared(pairs: &[(f64, f64)]) -> Option<f64> {
    let center = mean(pairs.iter().map(|(measured, _)| *measured))?;
    let total: f64 = pairs.iter().map(|(measured, _)| (measured - center).powi(2)).sum();
    let rest: f64 = pairs.iter().map(|(measured, predicted)| (measured - predicted).powi(2)).sum();
    // Differences that are only rounding are no variation.
    let varies = total > pairs.len() as f64 * (center * 1e-12).powi(2);
    Some(1.0 - rest / total).filter(|r_squared| varies && r_squared.is_finite())
}

/// R² adjusted for the number of fitted constants without the mean; `None` with too few points.
pub(crate) fn adjusted_r_squared(r_squared: f64, points: usize, constants: usize) -> Option<f64> {
    let freedom = points.checked_sub(constants).filter(|freedom| *freedom > 0)?;
    Some(1.0 - (1.0 - r_squared) * (points as f64 - 1.0) / freedom as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_interpolate() {
        assert_eq!(median(&mut [3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(&mut [4.0, 1.0, 2.0, 3.0]), Some(2.5));
        assert_eq!(percentile(&mut [0.0, 10.0], 0.25), Some(2.5));
        assert_eq!(median(&mut []), None);
    }

    #[test]
    fn r_squared_is_one_for_perfect_zero_for_the_mean_and_none_without_variation() {
        assert_eq!(r_squared(&[(1.0, 1.0), (2.0, 2.0)]), Some(1.0));
        assert_eq!(r_squared(&[(1.0, 1.5), (2.0, 1.5)]), Some(0.0));
        assert_eq!(r_squared(&[(2.0, 1.5), (2.0, 1.5)]), None);
        assert_eq!(r_squared(&[]), None);
    }

    #[test]
    fn adjusting_costs_more_with_fewer_points() {
        // Textbook form: 1 - (1 - R²)(n - 1)/(n - p), p constants including the mean.
        assert_eq!(adjusted_r_squared(0.9, 11, 1), Some(0.9));
        assert_eq!(adjusted_r_squared(0.9, 11, 6), Some(1.0 - 0.1 * 10.0 / 5.0));
        assert_eq!(adjusted_r_squared(0.9, 6, 6), None);
    }
}
