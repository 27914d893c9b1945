//! Options of writes.

use flashgrain::Durability;

use crate::call::quietly;

/// Options of writes.
#[derive(Default)]
pub struct WriteOptionsHandle {
    is_synced: bool,
}

impl WriteOptionsHandle {
    /// How durable a write is when it returns. One that is not synced survives the end of the process.
    pub fn durability(&self) -> Durability {
        if self.is_synced { Durability::Sync } else { Durability::Buffered }
    }
}

/// New options.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_writeoptions_create() -> Box<WriteOptionsHandle> {
    Box::default()
}

/// Frees options.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_writeoptions_destroy(options: Option<Box<WriteOptionsHandle>>) {
    quietly(|| drop(options));
}

/// Whether a write survives a power cut when it returns.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_writeoptions_set_sync(options: Option<&mut WriteOptionsHandle>, is_synced: u8) {
    if let Some(options) = options {
        options.is_synced = is_synced != 0;
    }
}
