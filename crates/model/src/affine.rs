//! The affine model: each random access costs a setup, each byte its transfer (MQSSD paper eq. 3;
//! dictionaries paper §2.3).

use serde::{Deserialize, Serialize};

use crate::fitting::{Fit, FitOptions, Number, microseconds_per_page};
use crate::observation::{Point, Points};
use crate::per_access::PerAccess;
use crate::regression::TwoCosts;
use crate::{Access, AffineCosts, FittedModel, IoModel, ModelName, Parameter, Workload};

/// Setup and transfer costs that do not depend on the concurrency.
///
/// The MQSSD paper writes the cost of an I/O of N bytes as s + βN/B, in seconds, with blocks of B bytes. The
/// dictionaries paper normalises that of x units to 1 + αx, in setups: see [`Affine::alpha`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Affine {
    page_bytes: f64,
    costs: PerAccess<TwoCosts>,
    parameters: Vec<Parameter>,
}

impl Affine {
    /// A model of known costs. It has no parameters with intervals, since nothing was fitted.
    pub fn from_costs(page_bytes: f64, reads: AffineCosts, writes: AffineCosts) -> Self {
        let costs = |costs: AffineCosts| TwoCosts {
            setup: costs.setup_seconds,
            transfer: costs.transfer_seconds_per_byte,
            negligible: None,
        };
        Self { page_bytes, costs: PerAccess::of_both(costs(reads), costs(writes)), parameters: Vec::new() }
    }

    /// α of the dictionaries paper for units of `unit_bytes`: the transfer of a unit over the setup.
    pub fn alpha(&self, access: Access, unit_bytes: f64) -> Option<f64> {
        self.costs.get(access).map(|costs| costs.transfer * unit_bytes / costs.setup)
    }

    /// Bytes that take as long to transfer as a setup takes, 1/α: a request of this size has half the drive's
    /// bandwidth.
    pub fn half_bandwidth_bytes(&self, access: Access) -> Option<f64> {
        self.costs.get(access).map(|costs| costs.setup / costs.transfer)
    }

    /// Seconds per random access.
    pub fn setup_seconds(&self, access: Access) -> Option<f64> {
        self.costs.get(access).map(|costs| costs.setup)
    }

    /// Seconds per byte.
    pub fn transfer_seconds_per_byte(&self, access: Access) -> Option<f64> {
        self.costs.get(access).map(|costs| costs.transfer)
    }

    pub(crate) fn fit_costs(points: &Points, page_bytes: f64) -> Option<Self> {
        let costs = PerAccess::fit(points, |_, points| two_costs(points))?;
        Some(Self { page_bytes, costs, parameters: Vec::new() })
    }
}

/// Setup and transfer of points of one kind, whatever their concurrency.
pub(crate) fn two_costs(points: &[Point]) -> Option<TwoCosts> {
    let pairs: Vec<(f64, f64)> = points
        .iter()
        .map(|point| (point.workload.random_accesses_per_byte(), point.seconds_per_byte))
        .collect();
    TwoCosts::fit(&pairs)
}

impl IoModel for Affine {
    fn seconds_per_byte(&self, workload: &Workload) -> Option<f64> {
        let accesses = workload.random_accesses_per_byte();
        self.costs.seconds_per_byte(workload, |costs| costs.seconds_per_byte(accesses))
    }
}

impl FittedModel for Affine {
    fn name(&self) -> ModelName {
        ModelName::Affine
    }

    fn parameters(&self) -> Vec<Parameter> {
        self.parameters.clone()
    }

    fn constants(&self, access: Option<Access>) -> usize {
        self.costs.count(access, |_| 2)
    }
}

impl Fit for Affine {
    fn fit(points: &Points, options: &FitOptions) -> Option<Self> {
        Self::fit_costs(points, options.page_bytes)
    }

    fn refit(&self, points: &Points) -> Option<Self> {
        Self::fit_costs(points, self.page_bytes)
    }

    fn numbers(&self) -> Vec<Number> {
        let of_kind = |(access, costs): (Access, &TwoCosts)| {
            let number = |name: &str, symbol: &str, unit: String, value: f64| Number {
                name: name.into(),
                symbol: symbol.into(),
                unit,
                at_concurrency: None,
                access: Some(access),
                value,
                doubt: None,
            };
            let page = microseconds_per_page(self.page_bytes);
            [
                number("setup", "s", "µs per random access".into(), costs.setup_if_any() * 1e6),
                number("transfer", "β", page, costs.transfer_if_any() * self.page_bytes * 1e6),
            ]
        };
        self.costs.iter().flat_map(of_kind).collect()
    }

    fn set_parameters(&mut self, parameters: Vec<Parameter>) {
        self.parameters = parameters;
    }
}
