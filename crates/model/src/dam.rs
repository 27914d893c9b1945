//! The disk access machine: every page costs the same (MQSSD paper eq. 1).

use serde::{Deserialize, Serialize};

use crate::fitting::{Fit, FitOptions, Number, microseconds_per_page};
use crate::observation::{Point, Points};
use crate::per_access::PerAccess;
use crate::statistics::mean;
use crate::{Access, FittedModel, IoModel, ModelName, Parameter, Workload};

/// One cost per page, whatever the order of access and the concurrency.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Dam {
    page_bytes: f64,
    seconds_per_byte: PerAccess<f64>,
    parameters: Vec<Parameter>,
}

impl Dam {
    /// A model of known costs: B in bytes, and the seconds that a block takes to read and to write. It has no
    /// parameters with intervals, since nothing was fitted.
    pub fn from_costs(block_bytes: f64, read_block_seconds: f64, write_block_seconds: f64) -> Self {
        let seconds_per_byte =
            PerAccess::of_both(read_block_seconds / block_bytes, write_block_seconds / block_bytes);
        Self { page_bytes: block_bytes, seconds_per_byte, parameters: Vec::new() }
    }

    /// Seconds per page.
    pub fn page_cost_seconds(&self, access: Access) -> Option<f64> {
        self.seconds_per_byte.get(access).map(|cost| cost * self.page_bytes)
    }

    /// A page costs the mean of the points.
    pub(crate) fn of_mean_costs(points: &Points, page_bytes: f64) -> Option<Self> {
        let seconds_per_byte = PerAccess::fit(points, |_, points| mean_cost(points))?;
        Some(Self { page_bytes, seconds_per_byte, parameters: Vec::new() })
    }

    fn fit_costs(points: &Points, page_bytes: f64) -> Option<Self> {
        let seconds_per_byte = PerAccess::fit(points, |_, points| geometric_mean(points))?;
        Some(Self { page_bytes, seconds_per_byte, parameters: Vec::new() })
    }
}

/// Mean of the seconds per byte.
pub(crate) fn mean_cost(points: &[Point]) -> Option<f64> {
    mean(points.iter().map(|point| point.seconds_per_byte))
}

/// The cost that minimises the squared logarithms of predicted over measured.
fn geometric_mean(points: &[Point]) -> Option<f64> {
    mean(points.iter().map(|point| point.seconds_per_byte.ln())).map(f64::exp)
}

impl IoModel for Dam {
    fn seconds_per_byte(&self, workload: &Workload) -> Option<f64> {
        self.seconds_per_byte.seconds_per_byte(workload, |cost| *cost)
    }

    /// Whole pages, except of requests that continue: those share pages.
    fn seconds_per_request(&self, workload: &Workload) -> Option<f64> {
        let bytes = workload.whole_blocks(self.page_bytes) * self.page_bytes;
        self.seconds_per_byte(workload).map(|seconds| seconds * bytes)
    }
}

impl FittedModel for Dam {
    fn name(&self) -> ModelName {
        ModelName::Dam
    }

    fn parameters(&self) -> Vec<Parameter> {
        self.parameters.clone()
    }

    fn constants(&self, access: Option<Access>) -> usize {
        self.seconds_per_byte.count(access, |_| 1)
    }
}

impl Fit for Dam {
    fn fit(points: &Points, options: &FitOptions) -> Option<Self> {
        Self::fit_costs(points, options.page_bytes)
    }

    fn refit(&self, points: &Points) -> Option<Self> {
        Self::fit_costs(points, self.page_bytes)
    }

    fn numbers(&self) -> Vec<Number> {
        let number = |(access, cost): (Access, &f64)| Number {
            name: "page cost".into(),
            symbol: "page_cost".into(),
            unit: microseconds_per_page(self.page_bytes),
            at_concurrency: None,
            access: Some(access),
            value: cost * self.page_bytes * 1e6,
            doubt: None,
        };
        self.seconds_per_byte.iter().map(number).collect()
    }

    fn set_parameters(&mut self, parameters: Vec<Parameter>) {
        self.parameters = parameters;
    }
}
