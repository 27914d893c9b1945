//! What the journal and the write-ahead log of a database are called.
//!
//! Those of a database with a layout have other names than SQLite's. A program without this VFS that opens
//! such a database says that it is none; but before, it would roll a journal back that it finds beside it,
//! into places that are the wrong ones, and afterwards remove a log. Under their own names, it finds neither.
//!
//! SQLite asks for these files by name alone, so the databases that are open are noted here.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use flashgrain_layout::{FRAME_HEADER_BYTES, Layout};

use crate::shape::Shape;

/// SQLite's endings, and ours.
const ENDINGS: [(&[u8], &[u8]); 2] = [(b"-journal", b"-grainjournal"), (b"-wal", b"-grainwal")];

/// Databases that are open in this process, by their full paths.
#[derive(Debug, Default)]
pub(crate) struct Names(Mutex<BTreeMap<Vec<u8>, Opened>>);

#[derive(Debug)]
struct Opened {
    layout: Option<Layout>,
    connections: usize,
    /// Bytes at the end of each page that SQLite leaves alone, once they are known.
    reserved_bytes: u8,
}

impl Names {
    fn opened(&self) -> MutexGuard<'_, BTreeMap<Vec<u8>, Opened>> {
        // Each change of the map is a single step, so that a panic leaves it whole.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes one more connection to a database, and returns its shape: all connections of this process to an
    /// empty file want for it what the first one does, so that all agree on the journal's name.
    pub fn open(&self, database: &[u8], shape: Shape) -> Shape {
        let mut opened = self.opened();
        let entry = opened.entry(database.to_vec()).or_insert_with(|| Opened {
            layout: shape.layout(),
            connections: 0,
            reserved_bytes: 0,
        });
        entry.connections += 1;
        match shape {
            Shape::Undecided(_) => Shape::Undecided(entry.layout),
            Shape::Plain | Shape::Laid(_) => {
                entry.layout = shape.layout();
                shape
            }
        }
    }

    /// Notes what an open database has become.
    pub fn decide(&self, database: &[u8], layout: Option<Layout>) {
        if let Some(entry) = self.opened().get_mut(database) {
            entry.layout = layout;
        }
    }

    /// Notes how many bytes of each page a database reserves.
    pub fn reserves(&self, database: &[u8], reserved_bytes: u8) {
        if let Some(entry) = self.opened().get_mut(database) {
            entry.reserved_bytes = reserved_bytes;
        }
    }

    /// Stripes to which the frames of a database's log are to be aligned, and whether its pages have room for
    /// their headers; none if its log is to be as SQLite says.
    pub fn log(&self, database: &[u8]) -> Option<(u64, bool)> {
        let opened = self.opened();
        let entry = opened.get(database)?;
        let has_room = u64::from(entry.reserved_bytes) >= FRAME_HEADER_BYTES;
        Some((entry.layout?.log_stripe_bytes()?, has_room))
    }

    /// Notes that a connection has ended.
    pub fn close(&self, database: &[u8]) {
        let mut opened = self.opened();
        if let Some(entry) = opened.get_mut(database) {
            entry.connections -= 1;
            if entry.connections == 0 {
                opened.remove(database);
            }
        }
    }

    /// What a file is really called that SQLite calls `name`.
    pub fn of(&self, name: &[u8]) -> Name {
        let Some((database, ending)) = split(name) else { return Name::Same };
        let ours = || [database, ending].concat();
        match self.opened().get(database) {
            Some(Opened { layout: Some(_), .. }) => Name::Ours(ours()),
            Some(_) => Name::Same,
            None => Name::Unknown(ours()),
        }
    }
}

/// What a file is really called.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Name {
    /// SQLite says so.
    Same,
    /// Otherwise.
    Ours(Vec<u8>),
    /// It belongs to a database that is not open here: as SQLite says, or otherwise if there is no such file.
    Unknown(Vec<u8>),
}

/// What may lie beside a database that is not in use: SQLite's journal and log, or ours.
pub(crate) fn beside(database: &Path, is_laid_out: bool) -> [PathBuf; 2] {
    ENDINGS.map(|(theirs, ours)| {
        let ending = if is_laid_out { ours } else { theirs };
        let name = [database.as_os_str().as_bytes(), ending].concat();
        OsString::from_vec(name).into()
    })
}

/// The database that a log lies beside, by SQLite's name for it.
pub(crate) fn database_of_log(name: &[u8]) -> Option<&[u8]> {
    name.strip_suffix(ENDINGS[1].0)
}

/// The database that a file lies beside, and our ending for it.
fn split(name: &[u8]) -> Option<(&[u8], &'static [u8])> {
    ENDINGS.iter().find_map(|(theirs, ours)| Some((name.strip_suffix(*theirs)?, *ours)))
}

#[cfg(test)]
mod tests {
    use flashgrain_layout::HotLocations;

    use super::*;

    fn layout() -> Layout {
        HotLocations::new(4096, 0).unwrap().into()
    }

    #[test]
    fn only_files_beside_a_layout_have_other_names() {
        let names = Names::default();
        names.open(b"/laid", Shape::Laid(layout()));
        names.open(b"/plain", Shape::Plain);
        assert_eq!(names.of(b"/laid-journal"), Name::Ours(b"/laid-grainjournal".to_vec()));
        assert_eq!(names.of(b"/laid-wal"), Name::Ours(b"/laid-grainwal".to_vec()));
        assert_eq!(names.of(b"/plain-journal"), Name::Same);
        assert_eq!(names.of(b"/other-journal"), Name::Unknown(b"/other-grainjournal".to_vec()));
        assert_eq!(names.of(b"/laid"), Name::Same);
        assert_eq!(names.of(b"/laid-shm"), Name::Same);
    }

    #[test]
    fn names_last_as_long_as_a_connection() {
        let names = Names::default();
        names.open(b"/laid", Shape::Laid(layout()));
        names.open(b"/laid", Shape::Laid(layout()));
        names.close(b"/laid");
        assert!(matches!(names.of(b"/laid-wal"), Name::Ours(_)));
        names.close(b"/laid");
        assert!(matches!(names.of(b"/laid-wal"), Name::Unknown(_)));
        names.close(b"/laid");
    }

    #[test]
    fn connections_to_an_empty_file_agree() {
        let names = Names::default();
        assert_eq!(names.open(b"/new", Shape::Undecided(None)), Shape::Undecided(None));
        assert_eq!(names.open(b"/new", Shape::Undecided(Some(layout()))), Shape::Undecided(None));
        names.decide(b"/new", Some(layout()));
        assert!(matches!(names.of(b"/new-journal"), Name::Ours(_)));
    }
}
