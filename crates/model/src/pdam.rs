//! The parallel disk access machine: up to P pages at once for the cost of one (MQSSD paper eqs. 2 and 4;
//! dictionaries paper §2.2).

use serde::{Deserialize, Serialize};

use crate::fitting::{Fit, FitOptions, Number, microseconds_per_page};
use crate::observation::{Point, Points};
use crate::per_access::PerAccess;
use crate::regression::{RatePoint, Segments};
use crate::{Access, IoModel, ModelName, Parameter, Workload};

/// Throughput that grows in proportion to the concurrency up to P and stays there.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Pdam {
    page_bytes: f64,
    segments: PerAccess<Segments>,
    parameters: Vec<Parameter>,
}

impl Pdam {
    /// P, used even where the points do not support it (see the parameters): no less than the smallest and no
    /// more than the largest concurrency measured, so that nothing is predicted beyond what was seen.
    pub fn parallelism(&self, access: Access) -> Option<f64> {
        self.segments.get(access).map(|segments| segments.knee)
    }

    /// Seconds per page of a single stream.
    pub fn cycle_cost_seconds(&self, access: Access) -> Option<f64> {
        self.segments.get(access).map(|segments| self.page_bytes / segments.slope)
    }

    fn fit_segments(points: &Points, page_bytes: f64) -> Option<Self> {
        let segments = PerAccess::fit(points, |_, points| {
            let rates: Vec<RatePoint> = points.iter().map(rate_point).collect();
            Segments::fit(&rates)
        })?;
        Some(Self { page_bytes, segments, parameters: Vec::new() })
    }
}

fn rate_point(point: &Point) -> RatePoint {
    let workload = &point.workload;
    RatePoint {
        concurrency: workload.concurrency,
        rate: point.seconds_per_byte.recip(),
        alike: [workload.request_bytes.to_bits(), workload.random_share.to_bits()],
    }
}

impl IoModel for Pdam {
    fn name(&self) -> ModelName {
        ModelName::Pdam
    }

    fn seconds_per_byte(&self, workload: &Workload) -> Option<f64> {
        self.segments.seconds_per_byte(workload, |segments| segments.rate(workload.concurrency).recip())
    }

    fn parameters(&self) -> Vec<Parameter> {
        self.parameters.clone()
    }

    fn constants(&self, access: Option<Access>) -> usize {
        self.segments.count(access, |_| 2)
    }
}

impl Fit for Pdam {
    fn fit(points: &Points, options: &FitOptions) -> Option<Self> {
        Self::fit_segments(points, options.page_bytes)
    }

    fn refit(&self, points: &Points) -> Option<Self> {
        Self::fit_segments(points, self.page_bytes)
    }

    fn numbers(&self) -> Vec<Number> {
        let of_kind = |(access, segments): (Access, &Segments)| {
            let cycle_cost = Number {
                name: "cycle cost".into(),
                symbol: "cycle_cost".into(),
                unit: microseconds_per_page(self.page_bytes),
                at_concurrency: None,
                access: Some(access),
                value: self.page_bytes / segments.slope * 1e6,
                doubt: segments.slope_doubt(),
            };
            let parallelism = Number {
                name: "parallelism".into(),
                symbol: "P".into(),
                unit: "requests in flight".into(),
                at_concurrency: None,
                access: Some(access),
                value: segments.knee,
                doubt: segments.knee_doubt(),
            };
            [cycle_cost, parallelism]
        };
        self.segments.iter().flat_map(of_kind).collect()
    }

    fn set_parameters(&mut self, parameters: Vec<Parameter>) {
        self.parameters = parameters;
    }
}
