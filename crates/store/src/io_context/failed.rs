//! Requests that failed.

use flashgrain_device::Error as DeviceError;

use crate::Error;

/// Why a request failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failed {
    /// The device answered with this errno.
    #[error("the device answered {}", std::io::Error::from_raw_os_error(*.0))]
    Errno(i32),
    /// The request did not reach the device.
    #[error(transparent)]
    Device(#[from] DeviceError),
}

impl Failed {
    /// As the store's error; `doing` describes the request.
    pub fn error(self, doing: impl Into<String>) -> Error {
        match self {
            Self::Errno(errno) => Error::io(doing, errno),
            Self::Device(error) => error.into(),
        }
    }
}
