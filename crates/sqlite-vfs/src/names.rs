//! The names of a database's journal and write-ahead log.
//!
//! Those of a database with a layout have other names than SQLite's. A program without this VFS that opens
//! such a database says that it is none; but before, it would roll a journal back that it finds next to it,
//! into the wrong places, and afterwards remove a log. Under their own names, it finds neither.
//!
//! SQLite asks for these files by name alone, so the databases that are open are noted here. A name belongs
//! to the file that was opened by it last: one that was removed or renamed while it is open has no journals
//! any more, and SQLite refuses to begin one for it.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use flashgrain_layout::{FRAME_HEADER_BYTES, Layout};

use crate::shape::Shape;

/// SQLite's endings, and ours.
const ENDINGS: [(&[u8], &[u8]); 2] = [(b"-journal", b"-grainjournal"), (b"-wal", b"-grainwal")];

/// Which file a database is, whatever names it has; `None` where that cannot be said.
pub(crate) type Identity = Option<[u64; 2]>;

/// A database that a connection has opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Database {
    /// The full path under which it was opened.
    pub path: Vec<u8>,
    pub identity: Identity,
}

/// Databases that are open in this process, by their full paths.
#[derive(Debug, Default)]
pub(crate) struct Names(Mutex<BTreeMap<Vec<u8>, Opened>>);

#[derive(Debug)]
struct Opened {
    identity: Identity,
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

    /// Changes the entry of a database, if its name is still its own.
    fn change<T>(&self, database: &Database, act: impl FnOnce(&mut Opened) -> T) -> Option<T> {
        let mut opened = self.opened();
        let entry = opened.get_mut(&database.path).filter(|entry| entry.identity == database.identity)?;
        Some(act(entry))
    }

    /// Notes one more connection to a database, and returns its shape: all connections of this process to an
    /// empty file share the wish of the first one, so that all agree on the journal's name.
    pub fn open(&self, database: &Database, shape: Shape) -> Shape {
        let mut opened = self.opened();
        let new = || Opened {
            identity: database.identity,
            layout: shape.layout(),
            connections: 0,
            reserved_bytes: 0,
        };
        let entry = opened.entry(database.path.clone()).or_insert_with(new);
        if entry.identity != database.identity {
            *entry = new();
        }
        entry.connections += 1;
        match shape {
            Shape::Undecided(_) => Shape::Undecided(entry.layout),
            Shape::Plain | Shape::Laid(_) => {
                entry.layout = shape.layout();
                shape
            }
        }
    }

    /// Records the shape that an open database has got.
    pub fn decide(&self, database: &Database, layout: Option<Layout>) {
        self.change(database, |entry| entry.layout = layout);
    }

    /// Notes how many bytes of each page a database reserves.
    pub fn reserves(&self, database: &Database, reserved_bytes: u8) {
        self.change(database, |entry| entry.reserved_bytes = reserved_bytes);
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
    pub fn close(&self, database: &Database) {
        let ended = self.change(database, |entry| {
            entry.connections -= 1;
            entry.connections == 0
        });
        if ended == Some(true) {
            self.opened().retain(|_, entry| entry.connections > 0);
        }
    }

    /// The real name of the file that SQLite calls `name`.
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

/// The real name of a file.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Name {
    /// SQLite says so.
    Same,
    /// Otherwise.
    Ours(Vec<u8>),
    /// It belongs to a database that is not open here: as SQLite says, or otherwise if there is no such file.
    Unknown(Vec<u8>),
}

/// The files that may lie next to a database that is not in use: SQLite's journal and log, or ours.
pub(crate) fn beside(database: &Path, is_laid_out: bool) -> [PathBuf; 2] {
    ENDINGS.map(|(theirs, ours)| {
        let ending = if is_laid_out { ours } else { theirs };
        let name = [database.as_os_str().as_bytes(), ending].concat();
        OsString::from_vec(name).into()
    })
}

/// The database that a log belongs to, by SQLite's name for it.
pub(crate) fn database_of_log(name: &[u8]) -> Option<&[u8]> {
    name.strip_suffix(ENDINGS[1].0)
}

/// The database that a file belongs to, and our ending for it.
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

    fn database(path: &[u8]) -> Database {
        Database { path: path.to_vec(), identity: None }
    }

    #[test]
    fn only_files_beside_a_layout_have_other_names() {
        let names = Names::default();
        names.open(&database(b"/laid"), Shape::Laid(layout()));
        names.open(&database(b"/plain"), Shape::Plain);
        assert_eq!(names.of(b"/laid-journal"), Name::Ours(b"/laid-grainjournal".to_vec()));
        assert_eq!(names.of(b"/laid-wal"), Name::Ours(b"/laid-grainwal".to_vec()));
        assert_eq!(names.of(b"/plain-journal"), Name::Same);
        assert_eq!(names.of(b"/other-journal"), Name::Unknown(b"/other-grainjournal".to_vec()));
        assert_eq!(names.of(b"/laid"), Name::Same);
        assert_eq!(names.of(b"/laid-shm"), Name::Same);
    }

    #[test]
    fn names_last_as_long_as_a_connection() {
        let (names, laid) = (Names::default(), database(b"/laid"));
        names.open(&laid, Shape::Laid(layout()));
        names.open(&laid, Shape::Laid(layout()));
        names.close(&laid);
        assert!(matches!(names.of(b"/laid-wal"), Name::Ours(_)));
        names.close(&laid);
        assert!(matches!(names.of(b"/laid-wal"), Name::Unknown(_)));
        names.close(&laid);
    }

    #[test]
    fn connections_to_an_empty_file_agree() {
        let (names, new) = (Names::default(), database(b"/new"));
        assert_eq!(names.open(&new, Shape::Undecided(None)), Shape::Undecided(None));
        assert_eq!(names.open(&new, Shape::Undecided(Some(layout()))), Shape::Undecided(None));
        names.decide(&new, Some(layout()));
        assert!(matches!(names.of(b"/new-journal"), Name::Ours(_)));
    }

    #[test]
    fn a_name_belongs_to_the_file_that_was_opened_last() {
        let names = Names::default();
        let [removed, new] =
            [1, 2].map(|inode| Database { identity: Some([0, inode]), ..database(b"/same") });
        names.open(&removed, Shape::Laid(layout()));
        names.reserves(&removed, 24);
        assert_eq!(names.open(&new, Shape::Undecided(None)), Shape::Undecided(None));
        assert_eq!(names.of(b"/same-journal"), Name::Same);
        names.decide(&removed, Some(layout()));
        assert_eq!(names.of(b"/same-journal"), Name::Same);
        names.decide(&new, Some(Layout::new(layout().hot(), Some(4096)).unwrap()));
        names.reserves(&removed, 24);
        assert_eq!(names.log(b"/same"), Some((4096, false)), "the other one's pages have room");
        names.close(&removed);
        assert!(matches!(names.of(b"/same-journal"), Name::Ours(_)), "the new one is still open");
        names.close(&new);
        assert!(matches!(names.of(b"/same-journal"), Name::Unknown(_)));
    }
}
