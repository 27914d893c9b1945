//! The few statistics that experiments and learning share.

use rand::RngExt;
use rand_pcg::Pcg64;

/// Arithmetic mean; `None` of nothing.
pub(crate) fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// The value that half of the values do not exceed; the mean of the middle two for an even count. `None` of
/// nothing.
pub(crate) fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let upper = *sorted.get(sorted.len() / 2)?;
    if sorted.len() % 2 == 1 {
        return Some(upper);
    }
    sorted.get(sorted.len() / 2 - 1).map(|lower| (lower + upper) / 2.0)
}

/// The `share` quantile (0 to 1) by nearest rank; `None` of nothing.
pub(crate) fn quantile(values: &[f64], share: f64) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(nearest_rank(sorted.len(), share)).copied()
}

/// Index of the `share` quantile among `count` sorted values.
pub(crate) fn nearest_rank(count: usize, share: f64) -> usize {
    ((share * count as f64).ceil() as usize).clamp(1, count.max(1)) - 1
}

/// Two-sided 95 % quantile of Student's t distribution.
fn student_t_95(degrees_of_freedom: usize) -> f64 {
    const TABLE: [f64; 30] = [
        12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145,
        2.131, 2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048,
        2.045, 2.042,
    ];
    match degrees_of_freedom {
        0 => f64::INFINITY,
        // Beyond the table the quantile approaches the normal one like 1.96 + 2.5 / n.
        n => TABLE.get(n - 1).copied().unwrap_or(1.96 + 2.5 / n as f64),
    }
}

/// Half width of the 95 % confidence interval of the mean, relative to the mean. `None` with fewer than two
/// values.
pub(crate) fn relative_half_width(values: &[f64]) -> Option<f64> {
    let count = values.len();
    Some(student_t_95(count.checked_sub(1)?) * relative_deviation(values)? / (count as f64).sqrt())
}

/// Mean and the 95 % bootstrap interval of the mean. `None` of nothing.
pub(crate) fn bootstrap_mean(
    values: &[f64],
    resamples: usize,
    random: &mut Pcg64,
) -> Option<(f64, f64, f64)> {
    let centre = mean(values)?;
    let means: Vec<f64> = (0..resamples).filter_map(|_| mean(&resample(values, random))).collect();
    Some((centre, quantile(&means, 0.025).unwrap_or(centre), quantile(&means, 0.975).unwrap_or(centre)))
}

/// As many values as there are, drawn with replacement.
pub(crate) fn resample(values: &[f64], random: &mut Pcg64) -> Vec<f64> {
    let mut drawn = Vec::new();
    extend_resampled(&mut drawn, values, random);
    drawn
}

/// [`resample`], after the values that have been drawn.
pub(crate) fn extend_resampled(drawn: &mut Vec<f64>, values: &[f64], random: &mut Pcg64) {
    drawn.reserve(values.len());
    for _ in 0..values.len() {
        drawn.extend(values.get(random.random_range(0..values.len())));
    }
}

/// A number from the standard normal distribution (Box and Muller).
pub(crate) fn normal(random: &mut Pcg64) -> f64 {
    let (u, v): (f64, f64) = (1.0 - random.random::<f64>(), random.random());
    (-2.0 * u.ln()).sqrt() * (std::f64::consts::TAU * v).cos()
}

/// Relative standard deviation of repeats; `None` with fewer than two.
pub(crate) fn relative_deviation(values: &[f64]) -> Option<f64> {
    let mean = mean(values)?;
    if values.len() < 2 || mean <= 0.0 {
        return None;
    }
    let squares: f64 = values.iter().map(|value| (value / mean - 1.0).powi(2)).sum();
    Some((squares / (values.len() - 1) as f64).sqrt())
}

/// Mixes a seed with a stream number, so that neighbouring numbers give unrelated generators (SplitMix64's
/// finaliser).
pub(crate) fn mix_seed(seed: u64, stream: u64) -> u64 {
    let mut z = seed ^ stream.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::SeedableRng;

    #[test]
    fn medians_and_quantiles_of_small_sets() {
        assert_eq!(median(&[]), None);
        assert_eq!(median(&[3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), Some(2.5));
        assert_eq!(quantile(&[5.0, 1.0, 2.0, 3.0, 4.0], 0.9), Some(5.0));
        assert_eq!(quantile(&[5.0, 1.0, 2.0, 3.0, 4.0], 0.0), Some(1.0));
    }

    #[test]
    fn half_width_follows_student() {
        // Mean 10, standard deviation 1, n = 3: 4.303 / sqrt(3) / 10.
        let width = relative_half_width(&[9.0, 10.0, 11.0]).unwrap();
        assert!((width - 0.248_43).abs() < 1e-4, "{width}");
        assert_eq!(relative_half_width(&[10.0]), None);
    }

    #[test]
    fn bootstrap_interval_covers_the_mean() {
        let values: Vec<f64> = (0..200).map(|i| f64::from(i % 20)).collect();
        let (mean, low, high) = bootstrap_mean(&values, 500, &mut Pcg64::seed_from_u64(1)).unwrap();
        assert!((mean - 9.5).abs() < 1e-9);
        // The standard error is 5.77 / sqrt(200) = 0.41.
        assert!(low > 8.5 && low < 9.0 && high > 10.0 && high < 10.5, "{low} {high}");
    }
}
