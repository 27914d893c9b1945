//! The costs of a drive as two numbers.

use pyo3::prelude::*;

use crate::errors;
use crate::numbers::Float;

/// A drive of the affine model, such as one of a paper: x bytes take `setup_seconds` and
/// `x * transfer_seconds_per_byte`.
#[pyclass(frozen, module = "flashgrain")]
pub struct AffineCosts {
    /// The two numbers.
    pub costs: flashgrain_cost::AffineCosts,
}

#[pymethods]
impl AffineCosts {
    #[new]
    fn new(py: Python<'_>, setup_seconds: Float, transfer_seconds_per_byte: Float) -> PyResult<Self> {
        let (setup_seconds, transfer_seconds_per_byte) = (setup_seconds.0, transfer_seconds_per_byte.0);
        for (name, value) in
            [("setup_seconds", setup_seconds), ("transfer_seconds_per_byte", transfer_seconds_per_byte)]
        {
            if !(value.is_finite() && value >= 0.0) {
                return Err(errors::argument(py, format!("{name} is {value}: use a number from 0 on")));
            }
        }
        Ok(Self { costs: flashgrain_cost::AffineCosts { setup_seconds, transfer_seconds_per_byte } })
    }

    /// Seconds of a random access.
    #[getter]
    fn setup_seconds(&self) -> f64 {
        self.costs.setup_seconds
    }

    /// Seconds of a byte.
    #[getter]
    fn transfer_seconds_per_byte(&self) -> f64 {
        self.costs.transfer_seconds_per_byte
    }

    fn __repr__(&self) -> String {
        let costs = &self.costs;
        format!(
            "AffineCosts(setup_seconds={}, transfer_seconds_per_byte={})",
            costs.setup_seconds, costs.transfer_seconds_per_byte
        )
    }
}
