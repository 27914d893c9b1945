//! Results that are only read, as dictionaries and lists.

use pyo3::prelude::*;
use serde_json::to_string;

use crate::errors;

/// A result as Python's `json` reads it: numbers, strings, lists and dictionaries.
///
/// # Errors
/// `ArgumentError` if it cannot be written as JSON.
pub fn object<'py>(py: Python<'py>, value: &impl serde::Serialize) -> PyResult<Bound<'py, PyAny>> {
    let text = to_string(value).map_err(|error| errors::argument(py, error))?;
    py.import("json")?.call_method1("loads", (text,))
}
