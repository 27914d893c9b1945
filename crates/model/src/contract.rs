//! Types that other crates are being written against; being implemented, then split into files of their own.
use serde::{Deserialize, Serialize};

use crate::{Access, Estimate, Sample, Workload};

/// The four models, from the coarsest to the finest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ModelName {
    /// Disk access machine.
    Dam,
    /// Parallel disk access machine.
    Pdam,
    /// Affine.
    Affine,
    /// Multi-queue SSD.
    Mqssd,
}

/// A cost model of a drive.
pub trait IoModel {
    /// Which model.
    fn name(&self) -> ModelName;
    /// Device time per byte of the workload, in seconds: the inverse of its throughput. `None` if the model was fitted without data of that kind.
    fn seconds_per_byte(&self, workload: &Workload) -> Option<f64>;
    /// The fitted numbers.
    fn parameters(&self) -> Vec<Parameter>;
}

/// A fitted number with its name.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Parameter {
    /// Such as `setup` or `P`.
    pub name: String,
    /// Symbol of the paper: `t(k)`, `α(k)`, `s(k)`, `β(k)`, `P`.
    pub symbol: String,
    /// Unit, such as `µs per random access`, `ns per 4 KiB page`.
    pub unit: String,
    /// The concurrency that it belongs to.
    pub at_concurrency: Option<f64>,
    /// The kind that it belongs to.
    pub access: Option<Access>,
    /// The number.
    pub estimate: Estimate,
}

/// The fitted models; a model is absent where the samples cannot support it.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Models {}

impl Models {
    /// Those that are there, coarsest first.
    pub fn iter(&self) -> impl Iterator<Item = &dyn IoModel> {
        std::iter::empty()
    }
}

/// How to fit.
#[derive(Clone, Copy, Debug)]
pub struct FitOptions {
    /// Page size that per-page costs refer to; 4096.
    pub page_bytes: f64,
    /// Bootstrap resamples.
    pub resamples: u32,
    /// Seed.
    pub seed: u64,
}

/// All models on the same held-out points.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Comparison {
    /// One row per model and kind.
    pub rows: Vec<ComparisonRow>,
    /// Every workload in the samples with measurement and predictions, for charts.
    pub points: Vec<ComparedPoint>,
    /// What no model can beat: the error of a repeat against the median of the other repeats.
    pub noise_floor: Vec<NoiseFloor>,
    /// Best first.
    pub ranking: Vec<ModelName>,
    /// Why the first is first, in words with numbers.
    pub ranking_reason: String,
}

/// One model's errors on one kind.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ComparisonRow {
    /// The model.
    pub model: ModelName,
    /// Reads, writes, or (`None`) mixed.
    pub access: Option<Access>,
    /// R² of throughput on the held-out points.
    pub r_squared: f64,
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

/// One workload.
#[derive(Clone, Debug, Serialize, Deserialize)]
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
    /// Predictions, in the order of `ModelName`; absent where a model says nothing.
    pub predicted_bytes_per_second: Vec<(ModelName, f64)>,
}

/// Noise of the measurement itself.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct NoiseFloor {
    /// Reads, writes, or mixed.
    pub access: Option<Access>,
    /// Median relative error of a repeat against the median of the others.
    pub median_relative_error: f64,
    /// Workloads with repeats.
    pub points: usize,
}

/// An error of the model crate.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The samples cannot support any fit; the text says what is missing.
    #[error("{0}")]
    Samples(String),
    /// A samples file is malformed.
    #[error("samples, line {line}: {problem}")]
    Csv {
        /// Line, counted from 1.
        line: u64,
        /// What is wrong and what is expected.
        problem: String,
    },
}

/// Fits all models to all samples.
///
/// # Errors
/// [`Error::Samples`] if there are none of use.
pub fn fit(_samples: &[Sample], _options: &FitOptions) -> Result<Models, Error> {
    todo!()
}

/// Splits by workload into training and held-out points, fits on the training points only, predicts all.
///
/// # Errors
/// As [`fit`].
pub fn compare(_samples: &[Sample], _options: &FitOptions) -> Result<Comparison, Error> {
    todo!()
}
