//! A database that is read as a file.

use std::fs::{self, File, Metadata};
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use flashgrain_layout::Layout;
use flashgrain_layout::header::{self, HEADER_BYTES};

use super::error::{Error, io_error};
use crate::{log_shape, names};

/// How each SQLite database begins.
pub(super) const MAGIC: &[u8; 16] = b"SQLite format 3\0";

/// SQLite's own header.
const HEADER_OF_DATABASE_BYTES: usize = 100;

/// A database to be read.
pub(super) struct Source {
    pub path: PathBuf,
    file: File,
    metadata: Metadata,
    pub layout: Option<Layout>,
    beginning: [u8; HEADER_OF_DATABASE_BYTES],
}

/// Length of a file, and its first bytes.
fn beginning_of(path: &Path) -> io::Result<(u64, Vec<u8>)> {
    let file = File::open(path)?;
    let mut beginning = Vec::new();
    (&file).take(header::ENCODED_BYTES as u64).read_to_end(&mut beginning)?;
    Ok((file.metadata()?.len(), beginning))
}

impl Source {
    pub fn open(path: &Path) -> Result<Self, Error> {
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
        // Journals and logs lie next to the file itself, wherever a link to it lies.
        let path = fs::canonicalize(path).map_err(failed())?;
        let mut source = Self { path, file, metadata, layout, beginning: [0; HEADER_OF_DATABASE_BYTES] };
        if source.is_empty() {
            return Ok(source);
        }
        if source.database_bytes() < HEADER_OF_DATABASE_BYTES as u64 {
            return Err(no_database());
        }
        let mut beginning = source.beginning;
        source.read_exact(source.start_bytes(), &mut beginning)?;
        source.beginning = beginning;
        let is_size = (512..=1 << 16).contains(&source.page_bytes()) && source.page_bytes().is_power_of_two();
        if beginning.starts_with(MAGIC) && is_size { Ok(source) } else { Err(no_database()) }
    }

    fn start_bytes(&self) -> u64 {
        self.layout.map_or(0, |layout| layout.start_bytes())
    }

    /// Whether it has no pages yet, as SQLite creates a database until its first write.
    pub fn is_empty(&self) -> bool {
        match self.layout {
            None => self.file_bytes() == 0,
            // Of a file that ends elsewhere, something is missing.
            Some(layout) => [HEADER_BYTES, layout.start_bytes()].contains(&self.file_bytes()),
        }
    }

    pub fn database_bytes(&self) -> u64 {
        self.metadata.len().saturating_sub(self.start_bytes())
    }

    pub fn file_bytes(&self) -> u64 {
        self.metadata.len()
    }

    /// The size of pages; 0 of an empty database.
    pub fn page_bytes(&self) -> u64 {
        match u16::from_be_bytes([self.beginning[16], self.beginning[17]]) {
            // 65536 does not fit.
            1 => 1 << 16,
            bytes => bytes.into(),
        }
    }

    /// Whether the header's version for writers is that of a write-ahead log.
    pub fn has_log(&self) -> bool {
        self.beginning[18] == 2
    }

    /// Bytes at the end of each page that SQLite leaves alone.
    pub fn reserved_bytes(&self) -> u8 {
        self.beginning[20]
    }

    fn number(&self, at: usize) -> u32 {
        u32::from_be_bytes(std::array::from_fn(|byte| self.beginning[at + byte]))
    }

    /// Pages that the database must have. Its header has their number unless a version of SQLite before 3.7.0
    /// was the last to write: it does not update the number's own change counter. A file holds whole pages in
    /// any case.
    pub fn pages(&self) -> u64 {
        if self.is_empty() {
            return 0;
        }
        let is_counted = self.number(28) > 0 && self.number(24) == self.number(92);
        if is_counted { self.number(28).into() } else { self.database_bytes().div_ceil(self.page_bytes()) }
    }

    /// Bytes of pages that are not there.
    pub fn missing_bytes(&self) -> u64 {
        (self.pages() * self.page_bytes()).saturating_sub(self.database_bytes())
    }

    pub fn read_exact(&mut self, offset: u64, buffer: &mut [u8]) -> Result<(), Error> {
        let read = self.from(offset)?.read_exact(buffer);
        read.map_err(io_error(&self.path))
    }

    /// Journals that would be rolled back and logs with content. A journal that begins with a zero is one
    /// that SQLite has kept after a commit, and a log may have a statement alone.
    pub fn beside(&self) -> Result<Vec<PathBuf>, Error> {
        let mut found = Vec::new();
        for path in names::beside(&self.path, self.layout.is_some()) {
            let (bytes, beginning) = match beginning_of(&path) {
                Ok(found) => found,
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(error) => return Err(io_error(&path)(error)),
            };
            let has_statements = self.layout.is_some_and(|layout| layout.log_stripe_bytes().is_some());
            let is_empty = has_statements && log_shape::is_empty(bytes, &beginning);
            if beginning.first().is_some_and(|first| *first != 0) && !is_empty {
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

    /// The file, to be read from an offset on.
    pub fn from(&mut self, offset: u64) -> Result<&mut File, Error> {
        self.file.seek(SeekFrom::Start(offset)).map_err(io_error(&self.path))?;
        Ok(&mut self.file)
    }

    /// Whether all of the database is there, nothing of it is elsewhere, and the copy is to go elsewhere.
    pub fn can_be_copied(&self, to: &Path) -> Result<(), Error> {
        self.has_one_name()?;
        self.is_closed()?;
        self.is_not(to)?;
        match self.missing_bytes() {
            0 => Ok(()),
            missing_bytes => {
                let (pages, page_bytes) = (self.pages(), self.page_bytes());
                Err(Error::CutOff { path: self.path.clone(), pages, page_bytes, missing_bytes })
            }
        }
    }

    /// A journal or log lies next to the name under which the database was opened, which may be any of them.
    fn has_one_name(&self) -> Result<(), Error> {
        match self.metadata.nlink() {
            names @ 2.. => Err(Error::HardLinks { path: self.path.clone(), names }),
            _ => Ok(()),
        }
    }

    /// Whether the copy is to go elsewhere.
    fn is_not(&self, to: &Path) -> Result<(), Error> {
        match fs::metadata(to) {
            Ok(to) if (to.dev(), to.ino()) == (self.metadata.dev(), self.metadata.ino()) => {
                Err(Error::InPlace { path: self.path.clone() })
            }
            _ => Ok(()),
        }
    }

    /// Whether the file has not changed since it was opened, as far as the system says.
    pub fn is_unchanged(&self) -> Result<(), Error> {
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
