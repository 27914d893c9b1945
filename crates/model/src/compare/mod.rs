//! All models side by side on points that none of them was fitted to.

mod absent;
mod ranking;
mod split;

pub use absent::WithoutRow;

use ranking::Contender;
use serde::{Deserialize, Serialize};

use crate::observation::Observation;
use crate::statistics::{adjusted_r_squared, median, r_squared};
use crate::{Access, Error, FitOptions, FittedModel, ModelName, Models, Sample, Workload};

/// All models on the same held-out points.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// One row per model and kind; a model that says nothing about a kind has no row there.
    pub rows: Vec<ComparisonRow>,
    /// Kinds and models that have no row, with the reason; older files have none of these.
    #[serde(default)]
    pub without_row: Vec<WithoutRow>,
    /// Splits into training and held-out points whose held-out points are pooled.
    #[serde(default = "one_split")]
    pub splits: usize,
    /// Every workload in the samples with measurement and predictions, for charts.
    pub points: Vec<ComparedPoint>,
    /// Noise of the measurement: the error of a repeat against the median of the other repeats. The points
    /// are medians, which scatter less than single repeats do: a good model's error may lie somewhat below.
    pub noise_floor: Vec<NoiseFloor>,
    /// Best first; none where the measurements do not show which is.
    pub ranking: Vec<ModelName>,
    /// Why the first is first, in words with numbers.
    pub ranking_reason: String,
}

impl Comparison {
    /// Takes the ranking away: the measurements do not bear it.
    pub fn conclude_nothing(&mut self, why: &str) {
        self.ranking.clear();
        why.clone_into(&mut self.ranking_reason);
    }
}

/// One model's errors on one kind.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ComparisonRow {
    /// The model.
    pub model: ModelName,
    /// Reads, writes, or (`None`) mixed.
    pub access: Option<Access>,
    /// R² of throughput on the held-out points; below zero if the mean of the measurements predicts better.
    /// `None` with fewer than two different measurements.
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
    /// Whether the fits that predict it did not see it.
    pub held_out: bool,
    /// Predictions of the models fitted to the training points of the first split that holds this point out,
    /// or of the first split if none does, in the order of `ModelName`; absent where a model says nothing.
    pub predicted_bytes_per_second: Vec<(ModelName, f64)>,
}

impl ComparedPoint {
    /// The model's prediction, if it has one.
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

/// Files of before there were several.
fn one_split() -> usize {
    1
}

/// Splits by workload into training and held-out points, fits on the training points only, predicts all.
///
/// The splits are decided by the seed: about a quarter of the workloads each, from the inside of the measured
/// range. If a split leaves few points of a kind, further splits hold out others, and each point is predicted
/// by a fit that has not seen it. The first in the ranking is the simplest model whose mean |ln(predicted /
/// measured)| on the held-out points is not more than a tenth above the lowest with 95 % confidence (paired
/// bootstrap); the others follow by that error.
///
/// # Errors
/// As [`fit`](crate::fit), and [`Error::Samples`] if there are too few workloads to hold any out.
pub fn compare(samples: &[Sample], options: &FitOptions) -> Result<Comparison, Error> {
    let observations = Observation::group(samples)?;
    let splits = split::splits(&observations, options.seed);
    let fits: Vec<Models> = splits
        .iter()
        .map(|held_out| {
            let training: Vec<&Observation> =
                observations.iter().filter(|own| !held_out.contains(&own.workload.key())).collect();
            Models::fit(&training, options)
        })
        .collect();
    let Some(first) = fits.first() else {
        return Err(Error::Samples(
            "too few workloads to hold any out for a comparison: measure at least 4 request sizes at one concurrency, or 5 \
             concurrencies"
                .into(),
        ));
    };
    let points: Vec<ComparedPoint> = observations
        .iter()
        .map(|observation| {
            let key = observation.workload.key();
            let blind = splits.iter().zip(&fits).find(|(held_out, _)| held_out.contains(&key));
            compared(observation, blind.is_some(), blind.map_or(first, |(_, models)| models))
        })
        .collect();
    let rows: Vec<ComparisonRow> = first
        .iter()
        .flat_map(|model| KINDS.into_iter().filter_map(|access| row(model, access, &points)))
        .collect();
    let noise_floor: Vec<NoiseFloor> =
        KINDS.into_iter().filter_map(|access| noise_floor(access, &observations)).collect();
    let contenders = contenders(first, &points);
    let (ranking, ranking_reason) = match are_within_noise(&rows, &noise_floor) {
        true => ranking::simplest_first(contenders),
        false => ranking::rank(contenders, options.resamples, options.seed),
    };
    let without_row = absent::without_row(&points, &rows);
    Ok(Comparison { rows, without_row, splits: splits.len(), points, noise_floor, ranking, ranking_reason })
}

/// Whether no model can be better than another: the errors of all are within the noise floor, of every kind.
fn are_within_noise(rows: &[ComparisonRow], floors: &[NoiseFloor]) -> bool {
    let floor_of = |row: &ComparisonRow| floors.iter().find(|floor| floor.access == row.access);
    let is_within = |row: &ComparisonRow| {
        floor_of(row).is_some_and(|floor| row.median_relative_error <= floor.median_relative_error)
    };
    !rows.is_empty() && rows.iter().all(is_within)
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

fn row(model: &dyn FittedModel, access: Option<Access>, points: &[ComparedPoint]) -> Option<ComparisonRow> {
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
    let predicts =
        |name: &ModelName| points.iter().any(|point| point.held_out && point.predicted(*name).is_some());
    let models: Vec<&dyn FittedModel> = models.iter().filter(|model| predicts(&model.name())).collect();
    let names: Vec<ModelName> = models.iter().map(|model| model.name()).collect();
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
