//! Measurements of a drive, to which models are fitted.

use std::fs;
use std::sync::Arc;

use flashgrain_model::{FitOptions, Sample, Workload, compare, fit, read_csv, write_csv};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyType};

use crate::file_path::FilePath;
use crate::models::Models;
use crate::numbers::{Float, whole};
use crate::{errors, interruptible, json};

/// Throughputs of trials: rows of docs/samples-csv.md.
#[pyclass(frozen, module = "flashgrain._flashgrain")]
pub struct Samples {
    samples: Arc<[Sample]>,
}

/// Refuses a name that a CSV file would not give back: its fields are without spaces at their ends, an empty
/// one stands for the usual name, and a number sign begins a comment.
fn check_experiment(py: Python<'_>, row: usize, name: &str) -> PyResult<()> {
    match name.is_empty() || name.trim() != name || name.starts_with('#') {
        true => {
            let text = format!(
                "row {row}: experiment is {name:?}: use a name without spaces at its ends and # in front"
            );
            Err(errors::argument(py, text))
        }
        false => Ok(()),
    }
}

fn fit_options(
    py: Python<'_>,
    page_bytes: Float,
    resamples: &Bound<'_, PyAny>,
    seed: &Bound<'_, PyAny>,
) -> PyResult<FitOptions> {
    let page_bytes = page_bytes.0;
    if !(page_bytes.is_finite() && page_bytes > 0.0) {
        return Err(errors::argument(py, format!("page_bytes is {page_bytes}: use a number above 0")));
    }
    Ok(FitOptions { page_bytes, resamples: whole("resamples", resamples)?, seed: whole("seed", seed)? })
}

#[pymethods]
impl Samples {
    /// Columns of equal lengths. The package's `Samples` makes them so.
    #[new]
    #[pyo3(signature = (read_share, request_bytes, random_share, concurrency, bytes_per_second, experiment, repeat))]
    #[expect(clippy::too_many_arguments, reason = "one for each column")]
    fn new(
        py: Python<'_>,
        read_share: Vec<f64>,
        request_bytes: Vec<f64>,
        random_share: Vec<f64>,
        concurrency: Vec<f64>,
        bytes_per_second: Vec<f64>,
        experiment: Vec<String>,
        repeat: Vec<u32>,
    ) -> PyResult<Self> {
        let workloads = workloads(&read_share, &request_bytes, &random_share, &concurrency);
        let named = experiment.into_iter().zip(repeat);
        let rows = workloads.zip(bytes_per_second).zip(named).enumerate();
        let samples = rows.map(|(row, ((workload, bytes_per_second), (experiment, repeat)))| {
            check_experiment(py, row, &experiment)?;
            let sample = Sample { experiment, repeat, workload, bytes_per_second };
            match sample.check() {
                Ok(()) => Ok(sample),
                Err(error) => Err(errors::argument(py, format!("row {row}: {error}"))),
            }
        });
        Ok(Self { samples: samples.collect::<PyResult<_>>()? })
    }

    /// Reads a CSV file.
    #[classmethod]
    fn read_csv(class: &Bound<'_, PyType>, path: FilePath) -> PyResult<Self> {
        let (py, path) = (class.py(), path.0);
        let content = py.detach(|| fs::read(&path)).map_err(|error| errors::of_file(&error, &path))?;
        let read = read_csv(&content[..]);
        let samples = read.map_err(|error| errors::argument(py, format!("{}: {error}", path.display())))?;
        Ok(Self { samples: samples.into() })
    }

    /// Writes a CSV file that `read_csv`, `flashgrain compare` and `flashgrain tune` read.
    fn write_csv(&self, py: Python<'_>, path: FilePath) -> PyResult<()> {
        let mut content = Vec::new();
        write_csv(&mut content, &self.samples)?;
        py.detach(|| fs::write(&path.0, content)).map_err(|error| errors::of_file(&error, &path.0))
    }

    fn __len__(&self) -> usize {
        self.samples.len()
    }

    /// The columns as lists, by their names.
    fn columns<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let columns = PyDict::new(py);
        let numbers = |name: &str, of: fn(&Sample) -> f64| {
            columns.set_item(name, self.samples.iter().map(of).collect::<Vec<f64>>())
        };
        numbers("read_share", |sample| sample.workload.read_share)?;
        numbers("request_bytes", |sample| sample.workload.request_bytes)?;
        numbers("random_share", |sample| sample.workload.random_share)?;
        numbers("concurrency", |sample| sample.workload.concurrency)?;
        numbers("bytes_per_second", |sample| sample.bytes_per_second)?;
        let experiments: Vec<&str> = self.samples.iter().map(|sample| sample.experiment.as_str()).collect();
        columns.set_item("experiment", experiments)?;
        let repeats: Vec<u32> = self.samples.iter().map(|sample| sample.repeat).collect();
        columns.set_item("repeat", repeats)?;
        Ok(columns)
    }

    /// Fits all models to all samples.
    fn fit(
        &self,
        py: Python<'_>,
        page_bytes: Float,
        resamples: &Bound<'_, PyAny>,
        seed: &Bound<'_, PyAny>,
    ) -> PyResult<Models> {
        let options = fit_options(py, page_bytes, resamples, seed)?;
        let samples = Arc::clone(&self.samples);
        let fitted = interruptible::run(py, move |_| fit(&samples, &options))?;
        fitted.map(Models::new).map_err(|error| errors::argument(py, error))
    }

    /// The models on points that they were not fitted to.
    fn compare<'py>(
        &self,
        py: Python<'py>,
        page_bytes: Float,
        resamples: &Bound<'_, PyAny>,
        seed: &Bound<'_, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let options = fit_options(py, page_bytes, resamples, seed)?;
        let samples = Arc::clone(&self.samples);
        let compared = interruptible::run(py, move |_| compare(&samples, &options))?;
        json::object(py, &compared.map_err(|error| errors::argument(py, error))?)
    }
}

/// Workloads from columns of equal lengths.
pub fn workloads(
    read_share: &[f64],
    request_bytes: &[f64],
    random_share: &[f64],
    concurrency: &[f64],
) -> impl Iterator<Item = Workload> {
    let kinds = read_share.iter().zip(request_bytes);
    kinds.zip(random_share.iter().zip(concurrency)).map(
        |((read_share, request_bytes), (random_share, concurrency))| Workload {
            read_share: *read_share,
            request_bytes: *request_bytes,
            random_share: *random_share,
            concurrency: *concurrency,
        },
    )
}
