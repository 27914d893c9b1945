//! Options of reads.

use flashgrain::Snapshot;

use super::snapshot::SnapshotHandle;
use crate::call::quietly;

/// Options of reads.
#[derive(Default)]
pub struct ReadOptionsHandle {
    /// The state that is read, if it is not that of now.
    pub snapshot: Option<Snapshot>,
}

/// New options.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_readoptions_create() -> Box<ReadOptionsHandle> {
    Box::default()
}

/// Frees options.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_readoptions_destroy(options: Option<Box<ReadOptionsHandle>>) {
    quietly(|| drop(options));
}

/// No effect: checksums are always verified.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_readoptions_set_verify_checksums(
    _options: Option<&mut ReadOptionsHandle>,
    _verified: u8,
) {
}

/// No effect: the cache finds out by itself which pages are not read again.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_readoptions_set_fill_cache(_options: Option<&mut ReadOptionsHandle>, _filled: u8) {}

/// The snapshot that is read; null for the state of now.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_readoptions_set_snapshot(
    options: Option<&mut ReadOptionsHandle>,
    snapshot: Option<&SnapshotHandle>,
) {
    quietly(|| {
        if let Some(options) = options {
            options.snapshot = snapshot.map(|snapshot| snapshot.0.clone());
        }
    });
}
