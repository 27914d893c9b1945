//! Whether a term of a model lowers the errors of points that its fit has not seen.

use crate::statistics::mean;

/// Mean of errors; 0 of none.
pub(crate) fn average(values: &[f64]) -> f64 {
    mean(values.iter().copied()).unwrap_or_default()
}

/// How much lower errors are than others of the same points.
pub(crate) struct Gain {
    pub(crate) mean: f64,
    pub(crate) standard_error: f64,
}

impl Gain {
    pub(crate) fn of(errors: &[f64], others: &[f64]) -> Self {
        let gains: Vec<f64> = others.iter().zip(errors).map(|(other, own)| other - own).collect();
        let mean = average(&gains);
        let squares = gains.iter().map(|own| (own - mean).powi(2)).sum::<f64>();
        let variance = squares / (gains.len() as f64 - 1.0).max(1.0);
        Self { mean, standard_error: (variance / gains.len().max(1) as f64).sqrt() }
    }
}

/// Whether errors are lower than others of the same points by more than the standard error of that gain.
pub(crate) fn is_better(errors: &[f64], others: &[f64]) -> bool {
    let Gain { mean, standard_error } = Gain::of(errors, others);
    mean > standard_error
}
