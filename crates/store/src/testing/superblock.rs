//! The fields of a superblock that crash tests need.

use crate::checkpoint::superblock::Superblock;
use crate::sector::{Found, SECTOR_BYTES};

/// The fields of a superblock about its device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeviceUse {
    /// Bytes of the device that the store uses.
    pub data_bytes: u64,
    /// Where the log begins.
    pub log_start_bytes: u64,
}

/// The fields of the superblock that a write begins with; `None` if it begins with none.
pub fn device_use(bytes: &[u8]) -> Option<DeviceUse> {
    match Superblock::decode(bytes.get(..SECTOR_BYTES)?) {
        Found::Whole(Superblock { data_bytes, layout, .. }) => {
            Some(DeviceUse { data_bytes, log_start_bytes: layout.log.start_bytes })
        }
        _ => None,
    }
}
