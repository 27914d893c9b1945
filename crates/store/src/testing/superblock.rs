//! What crash tests need to know of a superblock.

use crate::checkpoint::superblock::Superblock;
use crate::sector::{Found, SECTOR_BYTES};

/// What a superblock says about its device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeviceUse {
    /// The store uses so many bytes of the device.
    pub data_bytes: u64,
    /// Where the log begins.
    pub log_start_bytes: u64,
}

/// What the superblock says with which a write begins; `None` if it begins with none.
pub fn device_use(bytes: &[u8]) -> Option<DeviceUse> {
    match Superblock::decode(bytes.get(..SECTOR_BYTES)?) {
        Found::Whole(Superblock { data_bytes, layout, .. }) => {
            Some(DeviceUse { data_bytes, log_start_bytes: layout.log.start_bytes })
        }
        _ => None,
    }
}
