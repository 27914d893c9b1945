//! A survey of the files at a store's places, made under the claim. `create`, `open` and `open_or_create` all
//! use it, so that they agree on the meaning of an unfinished store.
//!
//! 1. A file is *cut off* if a crash left it while its member was being made: see [`slots::is_cut_off`].
//! 2. A store is unfinished if some of its files are cut off and none is anything else. It cannot be opened,
//!    and making it again removes the files.
//! 3. If only some of the files are cut off, the store was complete. A cut-off file is either a member that
//!    has kept its mark, or does not belong to the store; opening finds out.

use std::fs::{self, File, TryLockError};
use std::io::Read;
use std::path::{Path, PathBuf};

use flashgrain_device::is_block_device;

use super::store_files::{DATA_FILE, LOG_FILE, io};
use crate::Error;
use crate::checkpoint::area::END_BYTES;
use crate::checkpoint::slots;

/// Initial length of a file; it grows as soon as the layout is known.
pub(super) const START_BYTES: u64 = 1 << 20;

/// See the module.
#[derive(Default)]
pub(super) struct Survey {
    cut_off: Vec<PathBuf>,
    is_anything_else: bool,
}

impl Survey {
    /// Looks at the file `name` of each of these places.
    pub fn add(&mut self, places: &[PathBuf], name: &str) -> Result<(), Error> {
        for place in places {
            let file = place.join(name);
            if is_block_device(place) {
                self.is_anything_else = true;
            } else if file.symlink_metadata().is_err() {
                // Nothing is there: a crash can have left the others alone.
            } else if is_cut_off(&file, name == LOG_FILE)? {
                self.cut_off.push(file);
            } else {
                self.is_anything_else = true;
            }
        }
        Ok(())
    }

    /// A file of the store, if it is unfinished.
    pub fn cut_off(&self) -> Option<&Path> {
        if self.is_anything_else { None } else { self.cut_off.first().map(PathBuf::as_path) }
    }

    /// Removes the files of an unfinished store. Nothing is removed unless all `directories` have room for a
    /// new store then.
    ///
    /// # Errors
    /// [`Error::Exists`] if there is anything else; [`Error::Locked`] if another process has one of the
    /// files.
    pub fn make_room(self, directories: &[PathBuf]) -> Result<(), Error> {
        for directory in directories {
            let entries = fs::read_dir(directory);
            let entries =
                entries.map_err(|error| io(format!("look into {}", directory.display()), &error))?;
            for entry in entries {
                let entry =
                    entry.map_err(|error| io(format!("look into {}", directory.display()), &error))?;
                if !self.cut_off.contains(&directory.join(entry.file_name())) {
                    return Err(exists(directory));
                }
            }
        }
        let locks = self.cut_off.iter().map(|file| lock(file)).collect::<Result<Vec<_>, _>>()?;
        for file in &self.cut_off {
            fs::remove_file(file).map_err(|error| io(format!("remove {}", file.display()), &error))?;
        }
        drop(locks);
        Ok(())
    }
}

fn exists(directory: &Path) -> Error {
    let why = match [DATA_FILE, LOG_FILE].into_iter().find(|name| directory.join(name).exists()) {
        Some(name) => {
            format!("{name} is there already: if it is a store, open it; if not, name another place")
        }
        None => "the directory is not empty: a store wants one of its own".into(),
    };
    Error::Exists { path: directory.to_owned(), why }
}

/// Programs that lock the file alone may be making a store of it.
fn lock(file: &Path) -> Result<File, Error> {
    let doing = || format!("remove {}", file.display());
    let opened = File::open(file).map_err(|error| io(doing(), &error))?;
    match opened.try_lock() {
        Ok(()) => Ok(opened),
        Err(TryLockError::WouldBlock) => Err(Error::Locked { path: file.to_owned() }),
        Err(TryLockError::Error(error)) => Err(io(doing(), &error)),
    }
}

/// Whether a file is a member whose creation a crash has cut off: blank and as short as at first, or marked.
fn is_cut_off(file: &Path, is_log: bool) -> Result<bool, Error> {
    let mut head = Vec::new();
    let read = File::open(file).and_then(|file| {
        let bytes = file.metadata()?.len();
        file.take(END_BYTES).read_to_end(&mut head)?;
        Ok(bytes)
    });
    let bytes = read.map_err(|error| io(format!("open {}", file.display()), &error))?;
    let is_blank = head.iter().all(|byte| *byte == 0);
    Ok(bytes <= START_BYTES && is_blank || slots::is_cut_off(&head, is_log))
}
