//! The target of a profile run: a device, and the same device through other backends.

use flashgrain_device::{BackendKind, Device, FileDevice, Geometry};

use crate::Error;
use crate::load::{Region, layout};

/// A device and the ways to reach it.
pub struct Target<'a> {
    /// The device that everything but `interface` runs on.
    pub device: &'a dyn Device,
    /// The same storage through each backend by name, for `interface`. A simulated drive has one.
    pub backends: Vec<Backend<'a>>,
    /// The device again if growing files can be made in its directory: scratch files.
    pub scratch: Option<&'a FileDevice>,
}

/// One way to reach the storage.
pub struct Backend<'a> {
    /// Such as `io_uring`.
    pub name: String,
    /// The device, or why this backend cannot be used here.
    pub device: Result<Box<dyn Device + 'a>, String>,
}

impl<'a> Target<'a> {
    /// A target that is reached in one way only.
    pub fn new(device: &'a dyn Device) -> Self {
        Self { device, backends: Vec::new(), scratch: None }
    }

    /// Files or block devices, also through every other backend that works here.
    pub fn of_files(device: &'a FileDevice) -> Self {
        let backend = |kind: BackendKind| Backend {
            name: kind.name().to_owned(),
            device: match device.with_backend(kind) {
                Ok(device) => Ok(Box::new(device)),
                Err(error) => Err(error.to_string()),
            },
        };
        let backends = device.backends().iter().copied().map(backend).collect();
        Self { device, backends, scratch: device.is_scratch().then_some(device) }
    }
}

impl<'a> Target<'a> {
    /// The device through a backend.
    pub(crate) fn through(&self, index: usize) -> Result<&dyn Device, Error> {
        match self.backends.get(index).map(|backend| &backend.device) {
            Some(Ok(device)) => Ok(device.as_ref()),
            Some(Err(why)) => Err(Error::Argument(why.clone())),
            None => Ok(self.device),
        }
    }

    /// A new, empty file in the directory of the device's.
    pub(crate) fn growing_file(&self) -> Result<FileDevice, Error> {
        match self.scratch.and_then(FileDevice::growing) {
            Some(file) => Ok(file?),
            None => Err(Error::Argument("files that grow can be made in directories only".into())),
        }
    }
}

impl std::fmt::Debug for Target<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Target").field("target", &self.device.identity().target).finish_non_exhaustive()
    }
}

/// How the scratch space is divided. All offsets and lengths are multiples of [`Site::page_bytes`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Site {
    /// Smallest unit of offsets and lengths.
    pub align_bytes: u64,
    /// The models' page: 4 KiB, or the alignment if that is larger.
    pub page_bytes: u64,
    /// Region on which loads run.
    pub main: Region,
    /// Region that `location` reads: written once with 512 KiB requests and then left alone. Empty if not
    /// wanted.
    pub location: Region,
    /// Region where `request-size` creates its own regions, one after the other. Empty if not wanted.
    pub request_size: Region,
}

/// Regions are multiples of this, so that they can be laid out with whole requests.
const LAYOUT_REQUEST_BYTES: u64 = layout::REQUEST_BYTES;

impl Site {
    /// Divides the first `bytes` of a device; `location` gets a quarter of them, 256 MiB, or
    /// `location_bytes_max`, whichever is least.
    pub(crate) fn divide(
        geometry: &Geometry,
        bytes: u64,
        location_bytes_max: u64,
        request_size_bytes: u64,
    ) -> Self {
        let align_bytes = u64::from(geometry.offset_align_bytes).max(512);
        let page_bytes = align_bytes.max(4096);
        let whole = bytes.min(geometry.capacity_bytes) / LAYOUT_REQUEST_BYTES * LAYOUT_REQUEST_BYTES;
        let request_size_bytes =
            request_size_bytes.min(whole / 2) / LAYOUT_REQUEST_BYTES * LAYOUT_REQUEST_BYTES;
        let rest = whole - request_size_bytes;
        let location_bytes = (rest / 4).min(256 << 20).min(location_bytes_max);
        let location_bytes = location_bytes / LAYOUT_REQUEST_BYTES * LAYOUT_REQUEST_BYTES;
        let main_bytes = rest - location_bytes;
        Self {
            align_bytes,
            page_bytes,
            main: Region { offset_bytes: 0, length_bytes: main_bytes },
            location: Region { offset_bytes: main_bytes, length_bytes: location_bytes },
            request_size: Region { offset_bytes: rest, length_bytes: request_size_bytes },
        }
    }

    /// Bytes in use.
    pub fn bytes(&self) -> u64 {
        self.main.length_bytes + self.location.length_bytes + self.request_size.length_bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn regions_do_not_overlap_and_stay_inside() {
        let geometry = Geometry {
            capacity_bytes: (1 << 30) + 777,
            offset_align_bytes: 512,
            memory_align_bytes: 512,
            preferred_max_transfer_bytes: 1 << 20,
            direct: true,
            writable: true,
            members: 1,
            stripe_unit_bytes: None,
        };
        let site = Site::divide(&geometry, u64::MAX, u64::MAX, 200 << 20);
        assert_eq!(site.page_bytes, 4096);
        assert_eq!(site.main.offset_bytes + site.main.length_bytes, site.location.offset_bytes);
        assert_eq!(site.location.offset_bytes + site.location.length_bytes, site.request_size.offset_bytes);
        assert_eq!(site.bytes(), 1 << 30);
        assert_eq!(site.request_size.length_bytes, 200 << 20);
    }
}
