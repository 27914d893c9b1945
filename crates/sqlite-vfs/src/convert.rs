//! Copies of databases that are not in use: into a layout, out of it, and what a file says of itself.
//!
//! The first block of a copy is written last, when all others are durable: a copy that was interrupted is no
//! database for anybody.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, Read, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use flashgrain_layout::header::{self, HEADER_BYTES};
use flashgrain_layout::{Error as LayoutError, FRAME_HEADER_BYTES, Layout};

use crate::names;

/// How each SQLite database begins.
const MAGIC: &[u8; 16] = b"SQLite format 3\0";

/// SQLite's own header.
const DATABASE_HEADER_BYTES: usize = 100;

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
    /// Pages have no room for the headers of frames.
    #[error(
        "{path} reserves {reserved_bytes} bytes of each page, and the log of the layout needs 24; open a new database with the layout, and copy with VACUUM INTO"
    )]
    Reserved {
        /// The file.
        path: PathBuf,
        /// The bytes that it reserves.
        reserved_bytes: u8,
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
    /// The copy would be written over something, or beside a journal that is not its own.
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
    /// Somebody wrote to the database while it was copied.
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
            Self::Plain { .. } => "plain",
            Self::InUse { .. } => "in use",
            Self::Exists { .. } => "exists",
            Self::InPlace { .. } => "in place",
            Self::Changed { .. } => "changed",
        }
    }
}

/// What a database's file says of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Description {
    /// How it is laid out; `None` if each byte is where SQLite says.
    pub layout: Option<Layout>,
    /// Its pages' size.
    pub page_bytes: u64,
    /// Bytes of the database: what SQLite sees.
    pub database_bytes: u64,
    /// Bytes of the file.
    pub file_bytes: u64,
    /// Whether it has a write-ahead log instead of a rollback journal.
    pub has_log: bool,
    /// Journals and logs beside it that hold a part of it.
    pub beside: Vec<PathBuf>,
}

/// Says what a database's file says of it.
///
/// # Errors
/// [`Error::Io`], [`Error::Layout`] or [`Error::NotADatabase`].
pub fn describe(path: &Path) -> Result<Description, Error> {
    let source = Source::open(path)?;
    Ok(Description {
        layout: source.layout,
        page_bytes: source.page_bytes(),
        database_bytes: source.database_bytes(),
        file_bytes: source.metadata.len(),
        // The header's version for writers.
        has_log: source.beginning[18] == 2,
        beside: source.beside()?,
    })
}

/// Copies a plain database into a new file with a layout.
///
/// # Errors
/// Any of [`Error`] but [`Error::Plain`].
pub fn import(from: &Path, to: &Path, layout: Layout) -> Result<Description, Error> {
    let mut source = Source::open(from)?;
    if let Some(layout) = source.layout {
        return Err(Error::HasLayout { path: from.to_owned(), layout });
    }
    let reserved_bytes = source.beginning[20];
    if layout.log_stripe_bytes().is_some() && u64::from(reserved_bytes) < FRAME_HEADER_BYTES {
        return Err(Error::Reserved { path: from.to_owned(), reserved_bytes });
    }
    source.is_closed()?;
    source.is_not(to)?;
    let mut target = Target::create(to, true)?;
    let mut block = vec![0; HEADER_BYTES as usize];
    block[..header::ENCODED_BYTES].copy_from_slice(&header::encode(layout));
    target.copy(&mut source, 0, layout.start_bytes())?;
    target.finish(&source, &block)
}

/// Copies a database with a layout into a new plain file.
///
/// # Errors
/// Any of [`Error`] but [`Error::HasLayout`].
pub fn export(from: &Path, to: &Path) -> Result<Description, Error> {
    let mut source = Source::open(from)?;
    let Some(layout) = source.layout else { return Err(Error::Plain { path: from.to_owned() }) };
    source.is_closed()?;
    source.is_not(to)?;
    let mut target = Target::create(to, false)?;
    let mut block = vec![0; source.database_bytes().min(HEADER_BYTES) as usize];
    source.read_exact(layout.start_bytes(), &mut block)?;
    target.copy(&mut source, layout.start_bytes() + block.len() as u64, block.len() as u64)?;
    target.finish(&source, &block)
}

fn io_error(path: &Path) -> impl FnOnce(io::Error) -> Error {
    let path = path.to_owned();
    |source| Error::Io { path, source }
}

/// A database to be read.
struct Source {
    path: PathBuf,
    file: File,
    metadata: Metadata,
    layout: Option<Layout>,
    beginning: [u8; DATABASE_HEADER_BYTES],
}

impl Source {
    fn open(path: &Path) -> Result<Self, Error> {
        let failed = || io_error(path);
        let file = File::open(path).map_err(failed())?;
        let metadata = file.metadata().map_err(failed())?;
        let no_database = || Error::NotADatabase { path: path.to_owned() };
        if !metadata.is_file() {
            return Err(no_database());
        }
        let mut start = Vec::new();
        (&file).take(HEADER_BYTES).read_to_end(&mut start).map_err(failed())?;
        let layout =
            header::decode(&start).map_err(|source| Error::Layout { path: path.to_owned(), source })?;
        // Journals and logs lie beside the file itself, wherever a link to it lies.
        let path = fs::canonicalize(path).map_err(failed())?;
        let mut source = Self { path, file, metadata, layout, beginning: [0; DATABASE_HEADER_BYTES] };
        if source.database_bytes() < DATABASE_HEADER_BYTES as u64 {
            return Err(no_database());
        }
        let mut beginning = source.beginning;
        source.read_exact(source.start_bytes(), &mut beginning)?;
        source.beginning = beginning;
        if beginning.starts_with(MAGIC) { Ok(source) } else { Err(no_database()) }
    }

    fn start_bytes(&self) -> u64 {
        self.layout.map_or(0, |layout| layout.start_bytes())
    }

    fn database_bytes(&self) -> u64 {
        self.metadata.len().saturating_sub(self.start_bytes())
    }

    fn page_bytes(&self) -> u64 {
        match u16::from_be_bytes([self.beginning[16], self.beginning[17]]) {
            // 65536 does not fit.
            1 => 1 << 16,
            bytes => bytes.into(),
        }
    }

    fn read_exact(&mut self, offset: u64, buffer: &mut [u8]) -> Result<(), Error> {
        self.file.seek(SeekFrom::Start(offset)).map_err(io_error(&self.path))?;
        self.file.read_exact(buffer).map_err(io_error(&self.path))
    }

    /// Journals that would be rolled back and logs with content. A journal that begins with a zero is one
    /// that SQLite has kept after a commit.
    fn beside(&self) -> Result<Vec<PathBuf>, Error> {
        let mut found = Vec::new();
        for path in names::beside(&self.path, self.layout.is_some()) {
            let mut first = [0];
            let read = match File::open(&path) {
                Ok(mut file) => file.read(&mut first).map_err(io_error(&path))?,
                Err(error) if error.kind() == io::ErrorKind::NotFound => 0,
                Err(error) => return Err(io_error(&path)(error)),
            };
            if read > 0 && first != [0] {
                found.push(path);
            }
        }
        Ok(found)
    }

    fn is_closed(&self) -> Result<(), Error> {
        match self.beside()?.into_iter().next() {
            Some(path) => Err(Error::InUse { path }),
            None => Ok(()),
        }
    }

    /// Whether the copy is to go elsewhere.
    fn is_not(&self, to: &Path) -> Result<(), Error> {
        match std::fs::metadata(to) {
            Ok(to) if (to.dev(), to.ino()) == (self.metadata.dev(), self.metadata.ino()) => {
                Err(Error::InPlace { path: self.path.clone() })
            }
            _ => Ok(()),
        }
    }

    /// Whether the file is what it was when it was opened, as far as the system says.
    fn is_unchanged(&self) -> Result<(), Error> {
        self.is_closed()?;
        let now = self.file.metadata().map_err(io_error(&self.path))?;
        let modified = |metadata: &Metadata| metadata.modified().ok();
        if now.len() == self.metadata.len() && modified(&now) == modified(&self.metadata) {
            Ok(())
        } else {
            Err(Error::Changed { path: self.path.clone() })
        }
    }
}

/// A copy that is being written; removed if it is not finished.
struct Target {
    path: PathBuf,
    file: File,
    is_finished: bool,
}

impl Target {
    fn create(path: &Path, is_laid_out: bool) -> Result<Self, Error> {
        for beside in names::beside(path, is_laid_out) {
            if beside.exists() {
                return Err(Error::Exists { path: beside });
            }
        }
        match OpenOptions::new().write(true).create_new(true).open(path) {
            Ok(file) => Ok(Self { path: path.to_owned(), file, is_finished: false }),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                Err(Error::Exists { path: path.to_owned() })
            }
            Err(error) => Err(io_error(path)(error)),
        }
    }

    /// Copies the source from an offset on to where it belongs here.
    fn copy(&mut self, source: &mut Source, from: u64, to: u64) -> Result<(), Error> {
        source.file.seek(SeekFrom::Start(from)).map_err(io_error(&source.path))?;
        self.file.seek(SeekFrom::Start(to)).map_err(io_error(&self.path))?;
        // It does not say which of the two files failed; the target may be full.
        io::copy(&mut source.file, &mut self.file).map_err(io_error(&self.path)).map(drop)
    }

    /// Makes the copy durable, and a database.
    fn finish(mut self, source: &Source, block: &[u8]) -> Result<Description, Error> {
        source.is_unchanged()?;
        let written = self
            .file
            .sync_all()
            .and_then(|()| self.file.seek(SeekFrom::Start(0)))
            .and_then(|_| self.file.write_all(block))
            .and_then(|()| self.file.sync_all());
        written.map_err(io_error(&self.path))?;
        self.is_finished = true;
        describe(&self.path)
    }
}

impl Drop for Target {
    fn drop(&mut self) {
        if !self.is_finished {
            // Without its first block, what is left is no database in any case.
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use flashgrain_layout::HotLocations;

    use super::*;

    /// So many bytes that SQLite would take for a database at a first glance.
    fn database(bytes: usize) -> Vec<u8> {
        let mut database: Vec<u8> = (0..bytes).map(|at| (at % 251) as u8).collect();
        database[..16].copy_from_slice(MAGIC);
        database[16..20].copy_from_slice(&[16, 0, 1, 1]);
        database
    }

    fn layout() -> Layout {
        HotLocations::new(64 << 10, 32 << 10).unwrap().into()
    }

    #[test]
    fn there_and_back_is_the_same() {
        let folder = tempfile::tempdir().unwrap();
        let [plain, laid, back] = ["plain", "laid", "back"].map(|name| folder.path().join(name));
        for bytes in [512, 4096, 100_000, 1 << 20] {
            fs::write(&plain, database(bytes)).unwrap();
            let found = import(&plain, &laid, layout()).unwrap();
            assert_eq!((found.layout, found.database_bytes), (Some(layout()), bytes as u64));
            assert_eq!(found.file_bytes, bytes as u64 + (32 << 10));
            assert_eq!((found.page_bytes, found.has_log), (4096, false));
            let found = export(&laid, &back).unwrap();
            assert_eq!((found.layout, found.database_bytes), (None, bytes as u64));
            assert_eq!(fs::read(&plain).unwrap(), fs::read(&back).unwrap());
            fs::remove_file(&laid).unwrap();
            fs::remove_file(&back).unwrap();
        }
    }

    #[test]
    fn what_cannot_be_copied_is_refused_and_leaves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        let [plain, laid, copy] = ["plain", "laid", "copy"].map(path);
        fs::write(&plain, database(8192)).unwrap();
        import(&plain, &laid, layout()).unwrap();
        fs::write(path("text"), vec![b'x'; 8192]).unwrap();
        fs::write(path("empty"), b"").unwrap();
        let kind = |result: Result<Description, Error>| result.unwrap_err().kind();
        assert_eq!(kind(import(&laid, &copy, layout())), "has layout");
        assert_eq!(kind(export(&plain, &copy)), "plain");
        assert_eq!(kind(import(&path("text"), &copy, layout())), "not a database");
        assert_eq!(kind(import(&path("empty"), &copy, layout())), "not a database");
        assert_eq!(kind(import(folder.path(), &copy, layout())), "not a database");
        assert_eq!(kind(import(&path("none"), &copy, layout())), "io");
        assert_eq!(kind(import(&plain, &laid, layout())), "exists");
        assert_eq!(kind(import(&plain, &plain, layout())), "in place");
        assert_eq!(kind(export(&laid, &laid)), "in place");
        let with_log = Layout::new(layout().hot(), Some(4096)).unwrap();
        assert_eq!(kind(import(&plain, &copy, with_log)), "reserved");
        fs::write(path("laid-grainwal"), b"frames").unwrap();
        assert_eq!(kind(export(&laid, &copy)), "in use");
        fs::write(path("plain-journal"), b"\xd9journal").unwrap();
        assert_eq!(kind(import(&plain, &copy, layout())), "in use");
        fs::write(path("plain-journal"), b"\0kept").unwrap();
        fs::write(path("copy-grainjournal"), b"\xd9of another").unwrap();
        assert_eq!(kind(import(&plain, &copy, layout())), "exists");
        assert!(!copy.exists());
    }

    #[test]
    fn a_damaged_layout_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let [plain, laid] = ["plain", "laid"].map(|name| folder.path().join(name));
        fs::write(&plain, database(8192)).unwrap();
        import(&plain, &laid, layout()).unwrap();
        let mut bytes = fs::read(&laid).unwrap();
        bytes[30] ^= 1;
        fs::write(&laid, &bytes).unwrap();
        assert_eq!(describe(&laid).unwrap_err().kind(), "layout");
        bytes[30] ^= 1;
        fs::write(&laid, &bytes[..32 << 10]).unwrap();
        assert_eq!(describe(&laid).unwrap_err().kind(), "not a database");
    }
}
