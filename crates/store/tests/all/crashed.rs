//! Copies of stores that are in use: what the end of the process would leave.

use std::fs;
use std::path::Path;

use flashgrain::DATA_FILE;

/// Copies a store's file into an existing folder. A file that has grown meanwhile is copied again: its
/// superblock may name room that the copy lacks.
pub fn copy(store: &Path, to: &Path) {
    let file = store.join(DATA_FILE);
    loop {
        let copied_bytes = fs::copy(&file, to.join(DATA_FILE)).unwrap();
        if fs::metadata(&file).unwrap().len() == copied_bytes {
            return;
        }
    }
}
