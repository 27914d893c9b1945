//! Configurations as TOML text and files.

use std::fs;
use std::path::Path;

use super::SimConfig;
use crate::error::Error;
use crate::mqsim::import_drive;
use crate::preset;

/// A drive's description has a few kilobytes; something much larger is another file.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// Prefix of a simulated drive's name where a target is expected.
const PREFIX: &str = "sim:";

impl SimConfig {
    /// Reads a description. `origin` says where the text comes from, for messages.
    ///
    /// # Errors
    /// [`Error::Syntax`] with the line and the expected text, also for unknown and missing fields;
    /// [`Error::Config`] for values that make no drive.
    pub fn from_toml(text: &str, origin: &str) -> Result<Self, Error> {
        let config: Self = toml::from_str(text).map_err(|error| Error::Syntax {
            origin: origin.to_owned(),
            problem: error.to_string().trim_end().to_owned(),
        })?;
        config.check()?;
        Ok(config)
    }

    /// The description as TOML, every field with its value; [`SimConfig::from_toml`] reads the same
    /// configuration back.
    ///
    /// # Errors
    /// [`Error::Config`] if a number is beyond TOML's range (2^63).
    pub fn to_toml(&self) -> Result<String, Error> {
        toml::to_string_pretty(self)
            .map_err(|error| Error::Syntax { origin: self.name.clone(), problem: error.to_string() })
    }

    /// Reads a TOML file, or MQSim's `ssdconfig.xml` if its name ends in `.xml`.
    ///
    /// # Errors
    /// [`Error::File`] with the system's reason, otherwise as [`SimConfig::from_toml`] and [`import_drive`].
    pub fn load(path: &Path) -> Result<Self, Error> {
        let file = |source| Error::File { path: path.to_owned(), source };
        let size = fs::metadata(path).map_err(file)?.len();
        if size > FILE_BYTES_MAX {
            return Err(Error::Syntax {
                origin: path.display().to_string(),
                problem: format!("{size} bytes are too many for a drive's description"),
            });
        }
        let (text, origin) = (fs::read_to_string(path).map_err(file)?, path.display().to_string());
        if has_extension(path, "xml") {
            return Ok(import_drive(&text, &origin)?.config);
        }
        Self::from_toml(&text, &origin)
    }

    /// The configuration that a name stands for: a preset, or a file if the name ends in `.toml` or `.xml`.
    /// `sim:` before it is optional.
    ///
    /// # Errors
    /// Errors are [`Error::UnknownPreset`], which lists all presets, and those of [`SimConfig::load`].
    pub fn named(name: &str) -> Result<Self, Error> {
        let name = name.strip_prefix(PREFIX).unwrap_or(name);
        let path = Path::new(name);
        if has_extension(path, "toml") || has_extension(path, "xml") {
            Self::load(path)
        } else {
            preset::find(name)
        }
    }

    /// Whether a target names a simulated drive.
    pub fn is_name(target: &str) -> bool {
        target.starts_with(PREFIX)
    }
}

fn has_extension(path: &Path, wanted: &str) -> bool {
    path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case(wanted))
}
