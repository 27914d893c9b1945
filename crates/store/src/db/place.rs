//! From the places that a user names to devices.

use std::fs;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use flashgrain_device::{Device, FileDevice, OpenOptions};

use crate::Error;
use crate::lane::Devices;

/// The store's file in a directory.
const DATA_FILE: &str = "data.flashgrain";
/// The log's file in a directory.
const LOG_FILE: &str = "log.flashgrain";

/// Where a device comes from.
#[derive(Clone)]
pub(super) enum Place {
    /// Directories or block devices, one for each member.
    Paths(Vec<PathBuf>),
    /// An opened device.
    Device(Arc<dyn Device>),
}

/// Where a store is.
#[derive(Clone, Debug, Default)]
pub(super) struct Site {
    pub data: Place,
    pub log: Option<Place>,
    /// Whether opened devices may grow.
    pub growable: bool,
    /// Block devices that may be overwritten.
    pub consent: Vec<PathBuf>,
}

impl Default for Place {
    fn default() -> Self {
        Self::Paths(Vec::new())
    }
}

impl Place {
    /// One more member.
    pub fn add_path(&mut self, path: &Path) {
        match self {
            Self::Paths(paths) => paths.push(path.to_owned()),
            Self::Device(_) => *self = Self::Paths(vec![path.to_owned()]),
        }
    }
}

impl std::fmt::Debug for Place {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Paths(paths) => paths.fmt(formatter),
            Self::Device(device) => write!(formatter, "{}", device.identity().target),
        }
    }
}
