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

impl ModelName {
    /// All four, coarsest first.
    pub const ALL: [Self; 4] = [Self::Dam, Self::Pdam, Self::Affine, Self::Mqssd];
}

impl std::fmt::Display for ModelName {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.pad(match self {
            Self::Dam => "DAM",
            Self::Pdam => "PDAM",
            Self::Affine => "affine",
            Self::Mqssd => "MQSSD",
        })
    }
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

/// Reads samples from CSV; the form is described in docs/samples-csv.md.
///
/// # Errors
/// [`Error::Csv`] with the line and what to do about it.
pub fn read_csv<R: std::io::Read>(_reader: R) -> Result<Vec<Sample>, Error> {
    todo!()
}

/// Writes samples in the form that [`read_csv`] reads.
///
/// # Errors
/// What the writer says.
pub fn write_csv<W: std::io::Write>(_writer: W, _samples: &[Sample]) -> std::io::Result<()> {
    todo!()
}

/// Throughput over concurrency as two segments: through the origin up to the knee, flat behind it (PDAM, dictionaries paper §4.1).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Segmented {
    /// The knee, in units of x: the PDAM's P. Undetermined if y still rises at the largest x or never rises.
    pub knee: Estimate,
    /// y per x before the knee.
    pub slope: Estimate,
    /// y behind the knee.
    pub plateau: Estimate,
    /// R² of y, `None` if y does not vary.
    pub r_squared: Option<f64>,
}

/// Segmented fit of (concurrency, throughput) points; repeats are points with the same concurrency. Relative errors count.
///
/// # Errors
/// [`Error::Samples`] if there are too few points or some are not positive.
pub fn segmented_fit(_points: &[(f64, f64)], _resamples: u32, _seed: u64) -> Result<Segmented, Error> {
    todo!()
}

/// Time of one request over its size (affine, dictionaries paper §4.2).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Line {
    /// y at x = 0: the setup, in seconds if y is.
    pub intercept: Estimate,
    /// y per x: seconds per byte if y is in seconds and x in bytes.
    pub slope: Estimate,
    /// intercept / slope: the half-bandwidth size, in bytes if x is.
    pub half_bandwidth: Estimate,
    /// R² of y, `None` if y does not vary.
    pub r_squared: Option<f64>,
}

/// Line fit of (bytes, seconds) points with non-negative intercept and slope; relative errors count.
///
/// # Errors
/// [`Error::Samples`] if there are too few points or some are not positive.
pub fn line_fit(_points: &[(f64, f64)], _resamples: u32, _seed: u64) -> Result<Line, Error> {
    todo!()
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
