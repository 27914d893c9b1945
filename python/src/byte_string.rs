//! Keys and values as Python gives them.

use std::ops::Deref;

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::{PyByteArray, PyBytes, PyMemoryView};

/// The bytes of `bytes`, without a copy, or those of a `bytearray` or `memoryview`, copied.
pub struct ByteString(PyBackedBytes);

impl Deref for ByteString {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0
    }
}

impl AsRef<[u8]> for ByteString {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl<'a, 'py> FromPyObject<'a, 'py> for ByteString {
    type Error = PyErr;

    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        if object.is_instance_of::<PyBytes>() || object.is_instance_of::<PyByteArray>() {
            return Ok(Self(object.extract()?));
        }
        if object.is_instance_of::<PyMemoryView>() {
            return Ok(Self(object.call_method0("tobytes")?.extract()?));
        }
        let name = object.get_type().name()?;
        Err(PyTypeError::new_err(format!(
            "keys and values are bytes, bytearray or memoryview, not {name}: encode text, such as \"apple\".encode()"
        )))
    }
}
