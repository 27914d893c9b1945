//! The parallel disk access machine: up to P pages at once for the cost of one (MQSSD paper eqs. 2 and 4;
//! dictionaries paper §2.2).

use serde::{Deserialize, Serialize};

use crate::dam::mean_cost;
use crate::fitting::{Fit, FitOptions, Number, microseconds_per_page};
use crate::observation::{Point, Points};
use crate::per_access::PerAccess;
use crate::regression::{RatePoint, Segments};
use crate::{Access, FittedModel, IoModel, ModelName, Parameter, Workload};

/// Throughput that grows in proportion to the concurrency up to P and stays there.
///
/// The paper's machine serves P *blocks* of B bytes in each step, whichever clients ask for them, so that one
/// request of several blocks is served in parallel (Definition 1 and §8). A model whose B is known does the
/// same in [`IoModel::seconds_per_request`]. Samples tell how throughput grows with the requests outstanding,
/// but not how large the parts are in which a drive serves one; so a fitted model has no B, and a request
/// takes one slot whatever its size, until [`Pdam::with_block_bytes`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Pdam {
    page_bytes: f64,
    segments: PerAccess<Segments>,
    parameters: Vec<Parameter>,
    /// B, if it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    block_bytes: Option<f64>,
}

/// Costs of a drive of the parallel disk access machine.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PdamCosts {
    /// P: blocks that are served at a time, at least 1; not necessarily whole.
    pub parallelism: f64,
    /// Seconds of a step in which up to P blocks are served; positive.
    pub step_seconds: f64,
}

impl Pdam {
    /// A model of known costs, of blocks of `block_bytes` (B). It has no parameters with intervals, since
    /// nothing was fitted.
    pub fn from_costs(block_bytes: f64, reads: PdamCosts, writes: PdamCosts) -> Self {
        let segments = |costs: PdamCosts| {
            Segments::of_knee(block_bytes / costs.step_seconds, costs.parallelism.max(1.0))
        };
        Self {
            page_bytes: block_bytes,
            segments: PerAccess::of_both(segments(reads), segments(writes)),
            parameters: Vec::new(),
            block_bytes: Some(block_bytes),
        }
    }

    /// The same with a known B: requests are served in blocks of `block_bytes`, and each block takes one of
    /// the P slots.
    #[must_use]
    pub fn with_block_bytes(self, block_bytes: f64) -> Self {
        Self { block_bytes: Some(block_bytes), ..self }
    }

    /// P, used even where the points do not support it (see the parameters): no less than the smallest and no
    /// more than the largest concurrency measured, so that nothing is predicted beyond the measurements.
    pub fn parallelism(&self, access: Access) -> Option<f64> {
        self.segments.get(access).map(|segments| segments.knee)
    }

    /// Seconds per page of a single stream.
    pub fn cycle_cost_seconds(&self, access: Access) -> Option<f64> {
        self.segments.get(access).map(|segments| self.page_bytes / segments.slope)
    }

    /// The same P, and cycles that cost the mean of the points, which are those of one stream.
    pub(crate) fn with_mean_costs(&self, points: &Points) -> Option<Self> {
        let segments = PerAccess::fit(points, |access, points| {
            Some(Segments::of_knee(mean_cost(points)?.recip(), self.parallelism(access)?))
        })?;
        Some(Self { segments, parameters: Vec::new(), ..self.clone() })
    }

    fn fit_segments(points: &Points, page_bytes: f64) -> Option<Self> {
        let segments = PerAccess::fit(points, |_, points| {
            let rates: Vec<RatePoint> = points.iter().map(rate_point).collect();
            Segments::fit(&rates)
        })?;
        Some(Self { page_bytes, segments, parameters: Vec::new(), block_bytes: None })
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
    fn seconds_per_byte(&self, workload: &Workload) -> Option<f64> {
        self.segments.seconds_per_byte(workload, |segments| segments.rate(workload.concurrency).recip())
    }

    fn seconds_per_request(&self, workload: &Workload) -> Option<f64> {
        let Some(block_bytes) = self.block_bytes else {
            return self.seconds_per_byte(workload).map(|seconds| seconds * workload.request_bytes);
        };
        let blocks = workload.whole_blocks(block_bytes);
        let in_blocks = Workload {
            request_bytes: block_bytes,
            concurrency: workload.concurrency * blocks.max(1.0),
            ..*workload
        };
        self.seconds_per_byte(&in_blocks).map(|seconds| seconds * blocks * block_bytes)
    }
}

impl FittedModel for Pdam {
    fn name(&self) -> ModelName {
        ModelName::Pdam
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

#[cfg(test)]
mod tests {
    use super::*;

    const STEP: f64 = 1e-4;

    fn seconds(model: &Pdam, bytes: f64, concurrency: f64) -> f64 {
        model.seconds_per_request(&Workload::random(Access::Read, bytes, concurrency)).unwrap()
    }

    #[test]
    fn p_blocks_take_a_step_whoever_wants_them() {
        let costs = PdamCosts { parallelism: 4.0, step_seconds: STEP };
        let model = Pdam::from_costs(4096.0, costs, costs);
        // Definition 1: one client with a block, one with four blocks, four clients with one each.
        assert!((seconds(&model, 4096.0, 1.0) / STEP - 1.0).abs() < 1e-9);
        assert!((seconds(&model, 16_384.0, 1.0) / STEP - 1.0).abs() < 1e-9);
        assert!((4.0 * seconds(&model, 4096.0, 4.0) / STEP - 1.0).abs() < 1e-9);
        // Beyond P blocks at a time the drive is saturated, and parts of blocks cost whole ones.
        assert!((seconds(&model, 32_768.0, 1.0) / STEP - 2.0).abs() < 1e-9);
        assert!((seconds(&model, 16_384.0, 16.0) / STEP - 1.0).abs() < 1e-9);
        assert_eq!(seconds(&model, 100.0, 1.0), seconds(&model, 4096.0, 1.0));
    }

    #[test]
    fn without_blocks_a_request_takes_one_slot_whatever_its_size() {
        let costs = PdamCosts { parallelism: 4.0, step_seconds: STEP };
        let model = Pdam { block_bytes: None, ..Pdam::from_costs(4096.0, costs, costs) };
        assert!((seconds(&model, 16_384.0, 1.0) / STEP - 4.0).abs() < 1e-9);
        let split = model.clone().with_block_bytes(4096.0);
        assert!((seconds(&split, 16_384.0, 1.0) / STEP - 1.0).abs() < 1e-9);
        // Stored models of older files have no field for the blocks.
        assert!(!serde_json::to_string(&model).unwrap().contains("block_bytes"));
    }
}
