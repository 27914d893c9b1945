//! Measurements of a drive, to which models are fitted.

use std::fs::File;
use std::path::PathBuf;

use flashgrain_model::{FitOptions, Sample, Workload, compare, fit, read_csv, write_csv};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyType};

use crate::models::Models;
use crate::{errors, json};

/// Throughputs of trials: rows of docs/samples-csv.md.
#[pyclass(frozen, module = "flashgrain._flashgrain")]
pub struct Samples {
    samples: Vec<Sample>,
}

/// A file that cannot be opened is an `OSError`, as everywhere in Python.
fn opened(file: std::io::Result<File>) -> PyResult<File> {
    file.map_err(PyErr::from)
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
    fn read_csv(class: &Bound<'_, PyType>, path: PathBuf) -> PyResult<Self> {
        let file = opened(File::open(path))?;
        let samples = read_csv(file).map_err(|error| errors::argument(class.py(), error))?;
        Ok(Self { samples })
    }

    /// Writes a CSV file that `read_csv`, `flashgrain compare` and `flashgrain tune` read.
    fn write_csv(&self, path: PathBuf) -> PyResult<()> {
        Ok(write_csv(opened(File::create(path))?, &self.samples)?)
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
    fn fit(&self, py: Python<'_>, page_bytes: f64, resamples: u32, seed: u64) -> PyResult<Models> {
        let options = FitOptions { page_bytes, resamples, seed };
        let fitted = py.detach(|| fit(&self.samples, &options));
        fitted.map(Models::new).map_err(|error| errors::argument(py, error))
    }

    /// The models on points that they were not fitted to.
    fn compare<'py>(
        &self,
        py: Python<'py>,
        page_bytes: f64,
        resamples: u32,
        seed: u64,
    ) -> PyResult<Bound<'py, PyAny>> {
        let options = FitOptions { page_bytes, resamples, seed };
        let compared = py.detach(|| compare(&self.samples, &options));
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
