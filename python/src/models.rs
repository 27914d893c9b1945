//! Fitted cost models of a drive.

use flashgrain_model::{FittedModel, ModelName, Parameter, Workload};
use pyo3::prelude::*;
use serde_json::{Value, json};

use crate::samples::workloads;
use crate::{errors, json as json_objects};

const NAMES: [(&str, ModelName); 4] = [
    ("dam", ModelName::Dam),
    ("pdam", ModelName::Pdam),
    ("affine", ModelName::Affine),
    ("mqssd", ModelName::Mqssd),
];

/// The DAM, PDAM, affine and MQSSD models of a drive, as far as the samples support them.
#[pyclass(frozen, module = "flashgrain._flashgrain")]
pub struct Models {
    models: flashgrain_model::Models,
}

impl Models {
    /// Models that were fitted, or read of a profile.
    pub fn new(models: flashgrain_model::Models) -> Self {
        Self { models }
    }

    /// A model by its name.
    ///
    /// # Errors
    /// `ArgumentError` if there is no such model, or the samples did not support it.
    pub fn get(&self, py: Python<'_>, name: &str) -> PyResult<&dyn FittedModel> {
        let known = NAMES.iter().find(|(known, _)| *known == name).map(|(_, model)| *model);
        let Some(model) = known else {
            return Err(errors::argument(py, format!("no model {name:?}: use dam, pdam, affine or mqssd")));
        };
        let absent = || errors::argument(py, format!("the samples do not support the model {name}"));
        self.models.get(model).ok_or_else(absent)
    }
}

/// A parameter without the types of its owner: the model's name beside it.
fn parameter(model: &str, parameter: &Parameter) -> Value {
    let mut value = json!(parameter);
    if let Value::Object(fields) = &mut value {
        fields.insert("model".into(), model.into());
    }
    value
}

/// Refuses a workload that cannot be.
fn check(py: Python<'_>, point: usize, workload: &Workload) -> PyResult<()> {
    let Workload { read_share, request_bytes, random_share, concurrency } = *workload;
    for (name, value, is_right, range) in [
        (
            "request_bytes",
            request_bytes,
            request_bytes.is_finite() && request_bytes > 0.0,
            "a number above 0",
        ),
        ("concurrency", concurrency, concurrency.is_finite() && concurrency > 0.0, "a number above 0"),
        ("read_share", read_share, (0.0..=1.0).contains(&read_share), "0 to 1"),
        ("random_share", random_share, (0.0..=1.0).contains(&random_share), "0 to 1"),
    ] {
        if !is_right {
            return Err(errors::argument(py, format!("point {point}: {name} is {value}: use {range}")));
        }
    }
    Ok(())
}

#[pymethods]
impl Models {
    /// The names of the models that there are, coarsest first.
    fn names(&self) -> Vec<&'static str> {
        NAMES.iter().filter(|(_, model)| self.models.get(*model).is_some()).map(|(name, _)| *name).collect()
    }

    /// The fitted numbers of all models.
    fn parameters<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let of = |(name, model): &(&str, ModelName)| {
            let parameters = self.models.get(*model).map(FittedModel::parameters).unwrap_or_default();
            parameters.iter().map(|number| parameter(name, number)).collect::<Vec<Value>>()
        };
        json_objects::object(py, &NAMES.iter().flat_map(of).collect::<Vec<Value>>())
    }

    /// Bytes per second of workloads, given as columns of equal lengths; NaN where the model says nothing.
    fn bytes_per_second(
        &self,
        py: Python<'_>,
        model: &str,
        read_share: Vec<f64>,
        request_bytes: Vec<f64>,
        random_share: Vec<f64>,
        concurrency: Vec<f64>,
    ) -> PyResult<Vec<f64>> {
        let model = self.get(py, model)?;
        let workloads = workloads(&read_share, &request_bytes, &random_share, &concurrency);
        let predicted = workloads.enumerate().map(|(point, workload)| {
            check(py, point, &workload)?;
            Ok(model.bytes_per_second(&workload).unwrap_or(f64::NAN))
        });
        predicted.collect()
    }

    /// Everything, as a profile has it.
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        json_objects::object(py, &self.models)
    }
}
