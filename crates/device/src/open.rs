//! Opening targets (contract; being implemented).
use crate::{Channel, ChannelOptions, Device, Error, Geometry, Identity};
use std::path::PathBuf;

/// How requests reach the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BackendKind {
    /// `io_uring`.
    IoUring,
    /// `libaio`.
    Libaio,
    /// `pread` and `pwrite`.
    Sync,
}

/// How a target is opened.
#[derive(Clone, Debug)]
pub struct OpenOptions {
    /// The backend; `None` takes the best that works here.
    pub backend: Option<BackendKind>,
    /// Whether to bypass the page cache where possible.
    pub direct: bool,
    /// Whether writes will be made.
    pub write: bool,
    /// Stripe unit when several targets are given.
    pub stripe_unit_bytes: u64,
}

/// A device made of one or more files or block devices.
#[derive(Debug)]
pub struct FileDevice {}

impl FileDevice {
    /// Unnamed scratch files of `bytes` in total, one in each directory; they vanish with the process, however it ends.
    ///
    /// # Errors
    /// contract
    pub fn scratch(_directories: &[PathBuf], _bytes: u64, _options: &OpenOptions) -> Result<Self, Error> {
        todo!()
    }
    /// Existing files or block devices. Writing needs `consent`: the paths again, said by the user with the flag that names the loss.
    ///
    /// # Errors
    /// contract
    pub fn existing(_paths: &[PathBuf], _consent: &[PathBuf], _options: &OpenOptions) -> Result<Self, Error> {
        todo!()
    }
    /// The same files through another backend.
    ///
    /// # Errors
    /// contract
    pub fn with_backend(&self, _backend: BackendKind) -> Result<Self, Error> {
        todo!()
    }
    /// Which backends work here, best first, with the reason for those that do not.
    pub fn backends(&self) -> Vec<(BackendKind, Result<(), String>)> {
        todo!()
    }
}

impl Device for FileDevice {
    fn geometry(&self) -> &Geometry {
        todo!()
    }
    fn identity(&self) -> &Identity {
        todo!()
    }
    fn open_channel(&self, _options: &ChannelOptions) -> Result<Box<dyn Channel>, Error> {
        todo!()
    }
}
