//! Profiles of drives.

use std::path::Path;

use flashgrain_profile::{DeviceProfile, file};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyType;

use crate::byte_string::ByteString;
use crate::file_path::FilePath;
use crate::models::Models;
use crate::{errors, json};

/// Everything that `flashgrain profile` learned about a drive: its file, read.
#[pyclass(frozen, module = "flashgrain._flashgrain")]
pub struct Profile {
    profile: DeviceProfile,
}

impl Profile {
    /// A profile that was given as such, or as the path of its file.
    ///
    /// # Errors
    /// As [`Profile::load`]; `TypeError` for anything else.
    pub fn given(value: &Bound<'_, PyAny>) -> PyResult<DeviceProfile> {
        // The package's own class holds this one.
        let value = value.getattr("_profile").unwrap_or_else(|_| value.clone());
        if let Ok(profile) = value.cast::<Self>() {
            return Ok(profile.get().profile.clone());
        }
        Self::read(value.py(), &value.extract::<FilePath>()?.0)
    }

    fn read(py: Python<'_>, path: &Path) -> PyResult<DeviceProfile> {
        py.detach(|| file::read(path)).map_err(|error| errors::of_profile(py, &error))
    }
}

#[pymethods]
impl Profile {
    /// Reads a `profile.json`.
    #[classmethod]
    fn load(class: &Bound<'_, PyType>, path: FilePath) -> PyResult<Self> {
        Ok(Self { profile: Self::read(class.py(), &path.0)? })
    }

    /// A profile from the bytes of its file.
    #[classmethod]
    fn parse(class: &Bound<'_, PyType>, content: &Bound<'_, PyAny>) -> PyResult<Self> {
        let Ok(content) = content.extract::<ByteString>() else {
            let kind = content.get_type().name()?;
            let text = format!("the content of a profile is bytes, not {kind}: read the file as bytes");
            return Err(PyTypeError::new_err(text));
        };
        // The place that messages begin with.
        let parsed = file::parse(Path::new("the given content"), &content);
        Ok(Self { profile: parsed.map_err(|error| errors::of_profile(class.py(), &error))? })
    }

    /// The whole profile as dictionaries and lists, with the keys of docs/profile-format.md.
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        json::object(py, &self.profile)
    }

    /// The models that were fitted, or None.
    fn models(&self) -> Option<Models> {
        self.profile.models.clone().map(Models::new)
    }

    /// The models of writes that the drive's cache took, or None.
    fn burst_models(&self) -> Option<Models> {
        self.profile.burst_models.clone().map(Models::new)
    }
}
