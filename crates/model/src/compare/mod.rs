//! All models side by side on points that none of them was fitted to.

mod ranking;
mod split;

use ranking::Contender;
use serde::{Deserialize, Serialize};

use crate::observation::Observation;
use crate::statistics::{adjusted_r_squared, median, r_squared};
use crate::{Access, Error, FitOptions, IoModel, ModelName, Models, Sample, Workload};

/// All models on the same held-out points.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// One row per model and kind; a model that says nothing about a kind has no row there.
    pub rows: Vec<ComparisonRow>,
    /// Every workload in the samples with measurement and predictions, for charts.
    pub points: Vec<ComparedPoint>,
    /// Noise of the measurement: the error of a repeat against the median of the other repeats. The points are medians, which
    /// scatter less than single repeats do: a good model's error may lie somewhat below.
    pub noise_floor: Vec<NoiseFloor>,
    /// Best first.
    pub ranking: Vec<ModelName>,
    /// Why the first is first, in words with numbers.
    pub ranking_reason: String,
}

/// One model's errors on one kind.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ComparisonRow {
    /// The model.
    pub model: ModelName,
    /// Reads, writes, or (`None`) mixed.
    pub access: Option<Access>,
    /// R² of throughput on the held-out points; below zero if the mean of the measurements predicts better. `None` with
    /// fewer than two different measurements.
    pub r_squared: Option<f64>,
    /// Adjusted for the number of constants; `None` with too few points.
    pub adjusted_r_squared: Option<f64>,
    /// Median of |predicted - measured| / measured.
    pub median_relative_error: f64,
    /// Worst of them.
    pub worst_relative_error: f64,
    /// Held-out points.
    pub points: usize,
    /// Fitted constants.
    pub constants: usize,
}

/// One workload of one experiment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ComparedPoint {
    /// Its experiment.
    pub experiment: String,
    /// The workload.
    pub workload: Workload,
    /// Median over repeats.
    pub bytes_per_second: f64,
    /// Smallest repeat.
    pub bytes_per_second_min: f64,
    /// Largest repeat.
    pub bytes_per_second_max: f64,
    /// Repeats.
    pub repeats: usize,
    /// Whether the fits did not see it.
    pub held_out: bool,
    /// Predictions of the models fitted to the training points, in the order of `ModelName`; absent where a model says
    /// nothing.
    pub predicted_bytes_per_second: Vec<(ModelName, f64)>,
}

impl ComparedPoint {
    /// What a model predicts, if it says something.
    pub fn predicted(&self, model: ModelName) -> Option<f64> {
        self.predicted_bytes_per_second.iter().find(|(name, _)| *name == model).map(|(_, rate)| *rate)
    }

    /// |predicted - measured| / measured.
    pub fn relative_error(&self, model: ModelName) -> Option<f64> {
        self.predicted(model).map(|predicted| (predicted / self.bytes_per_second - 1.0).abs())
    }
}

/// Noise of the measurement itself.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NoiseFloor {
    /// Reads, writes, or (`None`) mixed.
    pub access: Option<Access>,
    /// Median relative error of a repeat against the median of the others.
    pub median_relative_error: f64,
    /// Workloads with repeats.
    pub points: usize,
}

/// Reads, writes, mixed: the kinds that errors are stated for.
const KINDS: [Option<Access>; 3] = [Some(Access::Read), Some(Access::Write), None];

/// Splits by workload into training and held-out points, fits on the training points only, predicts all.
///
/// The split is decided by the seed: about a quarter of the workloads, from the inside of the measured range. The first in
/// the ranking is the simplest model whose mean |ln(predicted / measured)| on the held-out points is not more than a tenth
/// above the lowest with 95 % confidence (paired bootstrap); the others follow by that error.
///
/// # Errors
/// As [`fit`](crate::fit), and [`Error::Samples`] if there are too few workloads to hold any out.
pub fn compare(samples: &[Sample], options: &FitOptions) -> Result<Comparison, Error> {
    let observations = Observation::group(samples)?;
    let held_out = split::held_out(&observations, options.seed);
    if held_out.is_empty() {
        return Err(Error::Samples(
            "too few workloads to hold any out for a comparison: measure at least 4 request sizes at one concurrency, or 5 \
             concurrencies"
                .into(),
        ));
    }
    let training: Vec<&Observation> =
        observations.iter().filter(|observation| !held_out.contains(&observation.workload.key())).collect();
    let models = Models::fit(&training, options);
    let points: Vec<ComparedPoint> = observations
        .iter()
        .map(|observation| compared(observation, held_out.contains(&observation.workload.key()), &models))
        .collect();
    let rows = models
        .iter()
        .flat_map(|model| KINDS.into_iter().filter_map(|access| row(model, access, &points)))
        .collect();
    let (ranking, ranking_reason) =
        ranking::rank(contenders(&models, &points), options.resamples, options.seed);
    let noise_floor = KINDS.into_iter().filter_map(|access| noise_floor(access, &observations)).collect();
    Ok(Comparison { rows, points, noise_floor, ranking, ranking_reason })
}

fn compared(observation: &Observation, held_out: bool, models: &Models) -> ComparedPoint {
    let workload = observation.workload;
    let measured = observation.bytes_per_second();
    let predicted =
        models.iter().filter_map(|model| Some((model.name(), model.bytes_per_second(&workload)?)));
    ComparedPoint {
        experiment: observation.experiment.clone(),
        workload,
        bytes_per_second: measured,
        bytes_per_second_min: observation.repeats.first().copied().unwrap_or(measured),
        bytes_per_second_max: observation.repeats.last().copied().unwrap_or(measured),
        repeats: observation.repeats.len(),
        held_out,
        predicted_bytes_per_second: predicted.collect(),
    }
}

fn row(model: &dyn IoModel, access: Option<Access>, points: &[ComparedPoint]) -> Option<ComparisonRow> {
    let name = model.name();
    let of_kind = || points.iter().filter(|point| point.held_out && point.workload.access() == access);
    let pairs: Vec<(f64, f64)> =
        of_kind().filter_map(|point| Some((point.bytes_per_second, point.predicted(name)?))).collect();
    let mut errors: Vec<f64> = of_kind().filter_map(|point| point.relative_error(name)).collect();
    let constants = model.constants(access);
    let r_squared = r_squared(&pairs);
    Some(ComparisonRow {
        model: name,
        access,
        r_squared,
        adjusted_r_squared: r_squared
            .and_then(|r_squared| adjusted_r_squared(r_squared, pairs.len(), constants)),
        median_relative_error: median(&mut errors)?,
        worst_relative_error: errors.last().copied()?,
        points: pairs.len(),
        constants,
    })
}

/// The models' errors on the held-out points that all of them predict.
fn contenders(models: &Models, points: &[ComparedPoint]) -> Vec<Contender> {
    let names: Vec<ModelName> = models.iter().map(IoModel::name).collect();
    let common: Vec<&ComparedPoint> = points
        .iter()
        .filter(|point| point.held_out && names.iter().all(|name| point.predicted(*name).is_some()))
        .collect();
    models
        .iter()
        .map(|model| {
            let error = |point: &&ComparedPoint| {
                point.predicted(model.name()).map(|predicted| (predicted / point.bytes_per_second).ln().abs())
            };
            let errors = common.iter().filter_map(error).collect();
            Contender { name: model.name(), constants: model.constants(None), errors }
        })
        .collect()
}

fn noise_floor(access: Option<Access>, observations: &[Observation]) -> Option<NoiseFloor> {
    let repeated =
        || observations.iter().filter(|own| own.workload.access() == access && own.repeats.len() >= 2);
    let mut errors: Vec<f64> =
        repeated().flat_map(|observation| errors_of_repeats(&observation.repeats)).collect();
    Some(NoiseFloor { access, median_relative_error: median(&mut errors)?, points: repeated().count() })
}

/// |repeat - median of the others| / that median, of every repeat.
fn errors_of_repeats(repeats: &[f64]) -> Vec<f64> {
    let error = |index: usize| {
        let (before, rest) = repeats.split_at_checked(index)?;
        let (own, after) = rest.split_first()?;
        let others = median(&mut [before, after].concat())?;
        Some((own / others - 1.0).abs())
    };
    (0..repeats.len()).filter_map(error).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_repeat_is_judged_by_the_others() {
        assert_eq!(errors_of_repeats(&[100.0, 110.0]), [1.0 - 100.0 / 110.0, 110.0f64 / 100.0 - 1.0]);
        let errors = errors_of_repeats(&[90.0, 100.0, 110.0]);
        assert!((errors[1] - 0.0).abs() < 1e-12 && (errors[0] - 15.0 / 105.0).abs() < 1e-12, "{errors:?}");
    }
}
