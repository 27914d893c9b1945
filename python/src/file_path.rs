//! Paths of files as Python gives them.

use std::path::PathBuf;

use pyo3::prelude::*;

use crate::errors;

/// A path that the operating system takes: one without a null byte.
pub struct FilePath(pub PathBuf);

impl FilePath {
    /// Checks a path.
    ///
    /// # Errors
    /// `ArgumentError` for a null byte.
    pub fn new(py: Python<'_>, path: PathBuf) -> PyResult<Self> {
        match path.as_os_str().as_encoded_bytes().contains(&0) {
            true => Err(errors::argument(py, format!("the path {path:?} has a null byte"))),
            false => Ok(Self(path)),
        }
    }
}

impl<'a, 'py> FromPyObject<'a, 'py> for FilePath {
    type Error = PyErr;

    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        Self::new(object.py(), object.extract()?)
    }
}
