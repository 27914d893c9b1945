//! Why a database was not copied, or nothing is said of it.

use std::io;
use std::path::{Path, PathBuf};

use flashgrain_layout::{Error as LayoutError, Layout};

/// Why a database was not copied, or nothing is said of it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The system refused something.
    #[error("{path}: {source}")]
    Io {
        /// The file.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// The header of the layout cannot be used.
    #[error("{path}: {source}")]
    Layout {
        /// The file.
        path: PathBuf,
        /// The reason.
        source: LayoutError,
    },
    /// There is no SQLite database, with or without a layout.
    #[error("{path} is no SQLite database")]
    NotADatabase {
        /// The file.
        path: PathBuf,
    },
    /// A database that was to be laid out is already.
    #[error("{path} has the layout {layout} already; export it first, or copy the file")]
    HasLayout {
        /// The file.
        path: PathBuf,
        /// Its layout.
        layout: Layout,
    },
    /// Pages have no room for the bytes that the layout reserves.
    #[error(
        "{path} reserves {reserved_bytes} bytes of each page, and the layout needs {needed_bytes}; open a new database with the layout, and copy the tables into it"
    )]
    Reserved {
        /// The file.
        path: PathBuf,
        /// The bytes that it reserves.
        reserved_bytes: u8,
        /// The bytes that the layout needs.
        needed_bytes: u64,
    },
    /// A page differs from its checksum.
    #[error(
        "{path} is damaged: page {page} differs from its checksum; restore a backup, or save the readable data with SQLite after `PRAGMA flashgrain_checksums = off`"
    )]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The page, from 1 on.
        page: u64,
    },
    /// Pages are missing that the database's header promises.
    #[error(
        "{path} is cut off: its header promises {pages} pages of {page_bytes} bytes, and {missing_bytes} bytes of them are missing; copy it again from where it came, or restore a backup"
    )]
    CutOff {
        /// The file.
        path: PathBuf,
        /// Pages that it should have.
        pages: u64,
        /// A page's size.
        page_bytes: u64,
        /// Bytes that are missing.
        missing_bytes: u64,
    },
    /// The database has other names, which may have a journal or log next to them.
    #[error(
        "{path} has {names} names (hard links), and a journal or log that holds a part of it may lie next to another one: find them with `find -samefile {path}`, keep the one by which programs open the database, and remove the others"
    )]
    HardLinks {
        /// The file.
        path: PathBuf,
        /// How many names it has.
        names: u64,
    },
    /// A database that was to be exported is plain.
    #[error("{path} has no layout: any program can open it as it is")]
    Plain {
        /// The file.
        path: PathBuf,
    },
    /// A journal or log holds a part of the database.
    #[error(
        "{path} belongs to a database that is in use or was not closed; close the programs that use it, or open and close it once with its VFS"
    )]
    InUse {
        /// The journal or log.
        path: PathBuf,
    },
    /// The copy would overwrite a file, or lie next to a journal that is not its own.
    #[error("{path} exists; remove it or choose another name")]
    Exists {
        /// The file.
        path: PathBuf,
    },
    /// The copy would be its own source.
    #[error(
        "{path} cannot be converted in place: its pages would be written over each other, and a crash meanwhile would leave no database; name a new file, and rename it afterwards"
    )]
    InPlace {
        /// The file.
        path: PathBuf,
    },
    /// Another program wrote to the database while it was copied.
    #[error("{path} was written to while it was copied; close the programs that use it and try again")]
    Changed {
        /// The file.
        path: PathBuf,
    },
}

impl Error {
    /// A stable word for the kind of error.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Io { .. } => "io",
            Self::Layout { .. } => "layout",
            Self::NotADatabase { .. } => "not a database",
            Self::HasLayout { .. } => "has layout",
            Self::Reserved { .. } => "reserved",
            Self::Damaged { .. } => "damaged",
            Self::CutOff { .. } => "cut off",
            Self::HardLinks { .. } => "hard links",
            Self::Plain { .. } => "plain",
            Self::InUse { .. } => "in use",
            Self::Exists { .. } => "exists",
            Self::InPlace { .. } => "in place",
            Self::Changed { .. } => "changed",
        }
    }
}

pub(super) fn io_error(path: &Path) -> impl FnOnce(io::Error) -> Error {
    let path = path.to_owned();
    |source| Error::Io { path, source }
}
