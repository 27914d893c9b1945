//! Snapshots.

use flashgrain::Snapshot;

use super::database::Database;
use crate::call::{catching, quietly};

/// A database as it was at one moment.
pub struct SnapshotHandle(pub Snapshot);

/// Takes a snapshot; null if the store takes none, as after a write that failed half-way.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_create_snapshot(database: Option<&Database>) -> Option<Box<SnapshotHandle>> {
    let taken = catching(|| database?.db.snapshot().ok()).ok()??;
    Some(Box::new(SnapshotHandle(taken)))
}

/// Frees a snapshot.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_release_snapshot(
    _database: Option<&Database>,
    snapshot: Option<Box<SnapshotHandle>>,
) {
    quietly(|| drop(snapshot));
}
