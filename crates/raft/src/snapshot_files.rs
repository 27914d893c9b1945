//! The files of a group's snapshots.
//!
//! `GROUP.snapshot` is the current one, whole and durable. `GROUP.building` and `GROUP.receiving` are under
//! way; renaming one of them to `GROUP.snapshot` makes it the current one and removes the one before. A crash
//! leaves the old one or the new one.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::error::Error;

/// Paths of a group's snapshots, and the lock under which the current one changes.
pub struct SnapshotFiles {
    folder: PathBuf,
    group: String,
    publishing: Mutex<()>,
}

impl SnapshotFiles {
    /// The files in `folder`; those that were under way at the end of the last process are removed.
    ///
    /// # Errors
    /// [`Error::File`].
    pub fn open(folder: &Path, group: &str) -> Result<Self, Error> {
        let files = Self { folder: folder.to_owned(), group: group.to_owned(), publishing: Mutex::default() };
        remove(&files.path("building"))?;
        remove(&files.path("receiving"))?;
        Ok(files)
    }

    /// The path of the current snapshot, if there is one or not.
    pub fn current_path(&self) -> PathBuf {
        self.path("snapshot")
    }

    /// The current snapshot, from its beginning.
    ///
    /// # Errors
    /// [`Error::File`].
    pub fn current(&self) -> Result<Option<File>, Error> {
        let path = self.current_path();
        match File::open(&path) {
            Ok(file) => Ok(Some(file)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(source) => Err(Error::File { action: "open", path, source }),
        }
    }

    /// A new file for a snapshot of one's own, and its path.
    ///
    /// # Errors
    /// [`Error::File`].
    pub fn build(&self) -> Result<(PathBuf, File), Error> {
        self.make("building")
    }

    /// A new file for a snapshot of another node. One that is still open keeps its own file.
    ///
    /// # Errors
    /// [`Error::File`].
    pub fn receive(&self) -> Result<File, Error> {
        Ok(self.make("receiving")?.1)
    }

    /// The path of a received snapshot, durable: of `file` if that was made by [`SnapshotFiles::receive`],
    /// otherwise of a copy.
    ///
    /// # Errors
    /// [`Error::File`].
    pub fn adopt(&self, mut file: File) -> Result<PathBuf, Error> {
        let path = self.path("receiving");
        let failed = |source| Error::File { action: "save", path: path.clone(), source };
        let given = file.metadata().map_err(failed)?;
        let is_ours =
            fs::metadata(&path).is_ok_and(|own| (own.dev(), own.ino()) == (given.dev(), given.ino()));
        if is_ours {
            file.sync_all().map_err(failed)?;
        } else {
            let mut copy = self.receive()?;
            io::Seek::rewind(&mut file).map_err(failed)?;
            io::copy(&mut file, &mut copy).map_err(failed)?;
            copy.sync_all().map_err(failed)?;
        }
        Ok(path)
    }

    /// Lets one caller at a time decide which snapshot is the current one.
    pub fn publishing(&self) -> MutexGuard<'_, ()> {
        self.publishing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes the durable file at `path` the current snapshot, durably.
    ///
    /// # Errors
    /// [`Error::File`].
    pub fn publish(&self, _publishing: &MutexGuard<'_, ()>, path: &Path) -> Result<(), Error> {
        let failed =
            |source| Error::File { action: "make the current snapshot of", path: path.into(), source };
        fs::rename(path, self.current_path()).map_err(failed)?;
        File::open(&self.folder).and_then(|folder| folder.sync_all()).map_err(failed)
    }

    /// Removes a file that does not become the current snapshot, if it is still there.
    ///
    /// # Errors
    /// [`Error::File`].
    pub fn discard(&self, path: &Path) -> Result<(), Error> {
        remove(path)
    }

    fn make(&self, kind: &str) -> Result<(PathBuf, File), Error> {
        let path = self.path(kind);
        remove(&path)?;
        let made = OpenOptions::new().read(true).write(true).create_new(true).open(&path);
        match made {
            Ok(file) => Ok((path, file)),
            Err(source) => Err(Error::File { action: "make", path, source }),
        }
    }

    fn path(&self, kind: &str) -> PathBuf {
        self.folder.join(format!("{}.{kind}", self.group))
    }
}

fn remove(path: &Path) -> Result<(), Error> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(Error::File { action: "remove", path: path.to_owned(), source: error })
        }
        _ => Ok(()),
    }
}
