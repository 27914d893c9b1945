//! The interface that the four fitted models share.

use flashgrain_cost::{Access, IoModel};
use serde::{Deserialize, Serialize};

use crate::Estimate;

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

/// A cost model of a drive whose numbers come from measurements.
pub trait FittedModel: IoModel {
    /// Name of the model.
    fn name(&self) -> ModelName;

    /// The fitted numbers with their confidence intervals.
    fn parameters(&self) -> Vec<Parameter>;

    /// How many constants the fit chose for that kind; `None` means mixed workloads, which need those of both
    /// kinds.
    fn constants(&self, access: Option<Access>) -> usize;
}

/// A fitted number with its name.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Parameter {
    /// Such as `setup` or `parallelism`.
    pub name: String,
    /// Symbol of the paper: `t(k)`, `α(k)`, `s(k)`, `β(k)`, `P`.
    pub symbol: String,
    /// Unit, such as `µs per random access`, `µs per 4 KiB page`; empty for a plain number.
    pub unit: String,
    /// The concurrency that it belongs to.
    pub at_concurrency: Option<f64>,
    /// The kind that it belongs to.
    pub access: Option<Access>,
    /// The number.
    pub estimate: Estimate,
}
