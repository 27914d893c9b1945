//! Numbers as Python gives them, which have no bounds there.

use std::fmt::Display;

use pyo3::exceptions::PyOverflowError;
use pyo3::prelude::*;

use crate::errors;

/// A type of whole numbers from zero.
pub trait Whole: for<'a, 'py> FromPyObject<'a, 'py, Error = PyErr> + Display {
    /// The largest.
    const LARGEST: Self;
}

impl Whole for u32 {
    const LARGEST: Self = Self::MAX;
}

impl Whole for u64 {
    const LARGEST: Self = Self::MAX;
}

impl Whole for usize {
    const LARGEST: Self = Self::MAX;
}

/// The number that was given for `name`.
///
/// # Errors
/// `ArgumentError` for one that is negative or too large, `TypeError` for one that is not whole.
pub fn whole<T: Whole>(name: &str, value: &Bound<'_, PyAny>) -> PyResult<T> {
    let py = value.py();
    value.extract().map_err(|error: PyErr| match error.is_instance_of::<PyOverflowError>(py) {
        true => {
            errors::argument(py, format!("{name} is {value}: use a whole number from 0 to {}", T::LARGEST))
        }
        false => error,
    })
}

/// A number. Infinity stands for one that is too large for 64 bits, so that checks of its range refuse it by
/// name.
#[derive(Clone, Copy)]
pub struct Float(pub f64);

impl<'a, 'py> FromPyObject<'a, 'py> for Float {
    type Error = PyErr;

    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        match object.extract() {
            Ok(number) => Ok(Self(number)),
            Err(error) if error.is_instance_of::<PyOverflowError>(object.py()) => {
                let is_negative = object.lt(0)?;
                Ok(Self(if is_negative { f64::NEG_INFINITY } else { f64::INFINITY }))
            }
            Err(error) => Err(error),
        }
    }
}
