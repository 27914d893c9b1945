//! A file on a disk that others fill.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use flashgrain_device::{Channel, ChannelOptions, Device, Error, Geometry, Identity, MemoryDevice};

/// Grows in memory, but no further than the disk has room for now.
pub(crate) struct Crowded {
    file: MemoryDevice,
    room_until_bytes: AtomicU64,
}

impl Crowded {
    /// So long, and may never be longer than `bytes_max`; the disk is full.
    pub fn new(bytes: u64, bytes_max: u64) -> Arc<Self> {
        let file = MemoryDevice::new(bytes, bytes_max).unwrap();
        Arc::new(Self { file, room_until_bytes: AtomicU64::new(bytes) })
    }

    /// There is room for a file so long.
    pub fn make_room_until(&self, bytes: u64) {
        self.room_until_bytes.store(bytes, Ordering::Relaxed);
    }
}

impl Device for Crowded {
    fn geometry(&self) -> &Geometry {
        self.file.geometry()
    }

    fn identity(&self) -> &Identity {
        self.file.identity()
    }

    fn open_channel(&self, options: &ChannelOptions) -> Result<Box<dyn Channel>, Error> {
        self.file.open_channel(options)
    }

    fn capacity_bytes(&self) -> u64 {
        self.file.capacity_bytes()
    }

    fn grow(&self, capacity_bytes: u64) -> Result<(), Error> {
        if capacity_bytes > self.room_until_bytes.load(Ordering::Relaxed) {
            let source = io::Error::from_raw_os_error(libc::ENOSPC);
            return Err(Error::Os { doing: "grow".into(), source });
        }
        self.file.grow(capacity_bytes)
    }
}
