//! Fitting all models to samples, with confidence intervals.

use serde::{Deserialize, Serialize};

use crate::bootstrap::{Resampler, generator};
use crate::observation::{Observation, Points};
use crate::{Access, Affine, Dam, Error, Estimate, FittedModel, ModelName, Mqssd, Parameter, Pdam, Sample};

/// How to fit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FitOptions {
    /// Page size that per-page costs refer to; 4096.
    pub page_bytes: f64,
    /// Bootstrap resamples.
    pub resamples: u32,
    /// Seed.
    pub seed: u64,
}

impl Default for FitOptions {
    fn default() -> Self {
        Self { page_bytes: 4096.0, resamples: 300, seed: 1 }
    }
}

/// The fitted models; a model is absent where the samples cannot support it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Models {
    /// Disk access machine.
    pub dam: Option<Dam>,
    /// Parallel disk access machine.
    pub pdam: Option<Pdam>,
    /// Affine.
    pub affine: Option<Affine>,
    /// Multi-queue SSD.
    pub mqssd: Option<Mqssd>,
}

impl Models {
    /// Those that are there, coarsest first.
    pub fn iter(&self) -> impl Iterator<Item = &dyn FittedModel> {
        ModelName::ALL.into_iter().filter_map(|name| self.get(name))
    }

    /// One of them, if it is there.
    pub fn get(&self, name: ModelName) -> Option<&dyn FittedModel> {
        match name {
            ModelName::Dam => self.dam.as_ref().map(|model| model as &dyn FittedModel),
            ModelName::Pdam => self.pdam.as_ref().map(|model| model as &dyn FittedModel),
            ModelName::Affine => self.affine.as_ref().map(|model| model as &dyn FittedModel),
            ModelName::Mqssd => self.mqssd.as_ref().map(|model| model as &dyn FittedModel),
        }
    }

    /// Fits to the medians of observations, without intervals.
    pub(crate) fn fit(observations: &[&Observation], options: &FitOptions) -> Self {
        let points: Points = observations.iter().map(|observation| observation.point()).collect();
        Self {
            dam: Dam::fit(&points, options),
            pdam: Pdam::fit(&points, options),
            affine: Affine::fit(&points, options),
            mqssd: Mqssd::fit(&points, options),
        }
    }
}

/// Fits all models to all samples, each to reads and to writes on their own, and each by the same measure:
/// the squared logarithm of predicted over measured, which is the relative error where that is small. Repeats
/// of a workload count with their median.
///
/// # Errors
/// [`Error::Samples`] if there are none, or one of them makes no sense.
pub fn fit(samples: &[Sample], options: &FitOptions) -> Result<Models, Error> {
    let observations = Observation::group(samples)?;
    let observations: Vec<&Observation> = observations.iter().collect();
    let mut models = Models::fit(&observations, options);
    if let Some(mqssd) = &mut models.mqssd {
        mqssd.judge_curves();
    }
    let resampler = Resampler::new(&observations);
    add_intervals(&mut models.dam, &resampler, options);
    add_intervals(&mut models.pdam, &resampler, options);
    add_intervals(&mut models.affine, &resampler, options);
    add_intervals(&mut models.mqssd, &resampler, options);
    Ok(models)
}

/// Operations of a model that fitting needs beyond predicting.
pub(crate) trait Fit: FittedModel + Sized {
    /// Fits to points; `None` if they cannot support the model.
    fn fit(points: &Points, options: &FitOptions) -> Option<Self>;
    /// Fits to resampled points of the same experiment.
    fn refit(&self, points: &Points) -> Option<Self>;
    /// The fitted numbers.
    fn numbers(&self) -> Vec<Number>;
    /// Takes the numbers with their intervals.
    fn set_parameters(&mut self, parameters: Vec<Parameter>);
}

/// A fitted number before its interval is known.
#[derive(Clone, Debug)]
pub(crate) struct Number {
    pub(crate) name: String,
    pub(crate) symbol: String,
    pub(crate) unit: String,
    pub(crate) at_concurrency: Option<f64>,
    pub(crate) access: Option<Access>,
    pub(crate) value: f64,
    /// Why the points do not support it, whatever its interval.
    pub(crate) doubt: Option<String>,
}

impl Number {
    fn is(&self, other: &Self) -> bool {
        self.access == other.access
            && self.at_concurrency == other.at_concurrency
            && self.symbol == other.symbol
    }

    fn into_parameter(self, resampled: &mut [f64], resamples: u32) -> Parameter {
        let estimate = match self.doubt {
            Some(why) => Estimate::Undetermined { why },
            None => Estimate::from_resamples(self.value, resampled, resamples),
        };
        Parameter {
            name: self.name,
            symbol: self.symbol,
            unit: self.unit,
            at_concurrency: self.at_concurrency,
            access: self.access,
            estimate,
        }
    }
}

/// Refits a model to resampled workloads and repeats, and gives each of its numbers the interval that
/// results.
fn add_intervals<M: Fit>(model: &mut Option<M>, resampler: &Resampler<'_>, options: &FitOptions) {
    let Some(model) = model else { return };
    let numbers = model.numbers();
    let mut resampled: Vec<Vec<f64>> = numbers.iter().map(|_| Vec::new()).collect();
    // The same seed for every model: all see the same resamples.
    let mut rng = generator(options.seed);
    for _ in 0..options.resamples {
        let Some(refitted) = model.refit(&resampler.draw(&mut rng)) else { continue };
        let refitted = refitted.numbers();
        // A resample may lack a concurrency or so, but the remaining numbers come in the same order.
        let mut rest = refitted.as_slice();
        for (number, values) in numbers.iter().zip(&mut resampled) {
            if let Some(place) = rest.iter().position(|candidate| candidate.is(number)) {
                let (found, after) = rest.split_at(place + 1);
                values.extend(found.last().map(|number| number.value));
                rest = after;
            }
        }
    }
    let parameters = numbers
        .into_iter()
        .zip(&mut resampled)
        .map(|(number, values)| number.into_parameter(values, options.resamples))
        .collect();
    model.set_parameters(parameters);
}

/// Such as `µs per 4 KiB page`.
pub(crate) fn microseconds_per_page(page_bytes: f64) -> String {
    if page_bytes >= 1024.0 && page_bytes % 1024.0 == 0.0 {
        format!("µs per {} KiB page", page_bytes / 1024.0)
    } else {
        format!("µs per page of {page_bytes} bytes")
    }
}
