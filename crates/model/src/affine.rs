//! The affine model: each random access costs a setup, each byte its transfer (MQSSD paper eq. 3;
//! dictionaries paper §2.3).

use serde::{Deserialize, Serialize};

use crate::fitting::{Fit, FitOptions, Number, microseconds_per_page};
use crate::observation::{Point, Points};
use crate::per_access::PerAccess;
use crate::regression::TwoCosts;
use crate::{Access, IoModel, ModelName, Parameter, Workload};

/// Setup and transfer costs that do not depend on the concurrency.
///
/// The dictionaries paper normalises the cost of an I/O of x bytes to 1 + αx: its α is transfer / setup.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Affine {
    page_bytes: f64,
    costs: PerAccess<TwoCosts>,
    parameters: Vec<Parameter>,
}

impl Affine {
    /// Seconds per random access.
    pub fn setup_seconds(&self, access: Access) -> Option<f64> {
        self.costs.get(access).map(|costs| costs.setup)
    }

    /// Seconds per byte.
    pub fn transfer_seconds_per_byte(&self, access: Access) -> Option<f64> {
        self.costs.get(access).map(|costs| costs.transfer)
    }

    fn fit_costs(points: &Points, page_bytes: f64) -> Option<Self> {
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
    fn name(&self) -> ModelName {
        ModelName::Affine
    }

    fn seconds_per_byte(&self, workload: &Workload) -> Option<f64> {
        let accesses = workload.random_accesses_per_byte();
        self.costs.seconds_per_byte(workload, |costs| costs.seconds_per_byte(accesses))
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
