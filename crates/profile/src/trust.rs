//! Whether a run can be trusted: a run whose repeats differ by more than the measured value concludes
//! nothing.

use crate::series::Series;
use crate::stats::median;

/// Noise, as [`Series::noise`] has it, at and above which the interval of a measurement includes zero.
const NOISE_MAX: f64 = 1.0;

/// Fewer workloads may be noisy by their kind, as durable writes are.
const WORKLOADS_MIN: usize = 3;

/// Reason of each single value of a run without conclusions.
pub(crate) const NOTHING_CONCLUDED: &str = "nothing is concluded from this run";

/// Why nothing may be concluded from these measurements; `None` if something may.
pub(crate) fn distrust(series: &[Series]) -> Option<String> {
    let noises: Vec<f64> = series.iter().filter_map(Series::noise).collect();
    let noise = median(&noises).filter(|noise| noises.len() >= WORKLOADS_MIN && *noise > NOISE_MAX)?;
    Some(format!(
        "this run cannot be trusted: the noise of its measurements is ± {:.0} % (median of {} workloads), and nothing is \
         concluded from them; measure again when less else uses the drive and the processors, or for longer",
        noise * 100.0,
        noises.len()
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::ExperimentName;
    use crate::experiment::testing;
    use crate::series::Repeat;

    fn series(rates: &[f64]) -> Series {
        let trial = testing::trials(ExperimentName::Size).trials.remove(0);
        let mut series = Series::new(trial);
        let repeat = |rate: &f64| Repeat { bytes_per_second: *rate, ..Repeat::default() };
        series.repeats = rates.iter().map(repeat).collect();
        series
    }

    #[test]
    fn noise_beyond_what_is_measured_is_distrusted_and_less_is_not() {
        let quiet = || series(&[100.0, 110.0, 95.0, 104.0]);
        let noisy = || series(&[1.0, 100.0, 10.0, 300.0]);
        assert_eq!(distrust(&[quiet(), quiet(), noisy()]), None);
        assert_eq!(distrust(&[noisy(), noisy()]), None, "too few to tell");
        let why = distrust(&[quiet(), noisy(), noisy(), noisy()]).unwrap();
        assert!(why.contains("cannot be trusted") && why.contains("4 workloads"), "{why}");
    }
}
