//! Copies of databases that are not in use, into a layout and out of it, and descriptions of files.
//!
//! The first block of a copy is written last, when all others are durable: a copy that was interrupted is no
//! database for anybody.

mod error;
mod source;

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use flashgrain_layout::header::{self, HEADER_BYTES};
use flashgrain_layout::{Layout, open_page, seal_page};

pub use error::Error;

use crate::names;
use crate::page_sums::is_for_locks;
use error::io_error;
use source::Source;

/// Bytes of pages that are copied at a time, a multiple of all their sizes.
const CHUNK_BYTES: u64 = 1 << 20;

/// Zeros of this length become a hole.
const HOLE_BYTES: usize = 4096;

fn is_zero(bytes: &[u8]) -> bool {
    bytes.iter().all(|byte| *byte == 0)
}

/// The description of a database's file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Description {
    /// How it is laid out; `None` if each byte is where SQLite says.
    pub layout: Option<Layout>,
    /// Its pages' size; 0 of an empty database.
    pub page_bytes: u64,
    /// Bytes of the database, as SQLite sees it.
    pub database_bytes: u64,
    /// Bytes of the file.
    pub file_bytes: u64,
    /// Bytes of the database's pages that its header promises and that are not there.
    pub missing_bytes: u64,
    /// Whether it has a write-ahead log instead of a rollback journal.
    pub has_log: bool,
    /// Journals and logs next to it that hold a part of it.
    pub beside: Vec<PathBuf>,
}

/// Describes a database's file.
///
/// # Errors
/// [`Error::Io`], [`Error::Layout`] or [`Error::NotADatabase`].
pub fn describe(path: &Path) -> Result<Description, Error> {
    let source = Source::open(path)?;
    Ok(Description {
        layout: source.layout,
        page_bytes: source.page_bytes(),
        database_bytes: source.database_bytes(),
        file_bytes: source.file_bytes(),
        missing_bytes: source.missing_bytes(),
        has_log: source.has_log(),
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
    let reserved_bytes = source.reserved_bytes();
    let needed_bytes = layout.reserved_bytes();
    if u64::from(reserved_bytes) < needed_bytes && !source.is_empty() {
        return Err(Error::Reserved { path: from.to_owned(), reserved_bytes, needed_bytes });
    }
    source.can_be_copied(to)?;
    let mut target = Target::create(to, true)?;
    let mut block = vec![0; HEADER_BYTES as usize];
    block[..header::ENCODED_BYTES].copy_from_slice(&header::encode(layout));
    if layout.has_checksums() {
        let seal = |page: &mut [u8], offset| {
            // One that was never written has none.
            if !is_zero(page) {
                seal_page(page, offset);
            }
            true
        };
        target.copy_pages(&mut source, 0, (layout.start_bytes(), 0), seal)?;
    } else {
        target.copy(&mut source, 0, layout.start_bytes())?;
    }
    target.finish(&source, &block)
}

/// Copies a database with a layout into a new plain file.
///
/// # Errors
/// Any of [`Error`] but [`Error::HasLayout`].
pub fn export(from: &Path, to: &Path) -> Result<Description, Error> {
    let mut source = Source::open(from)?;
    let Some(layout) = source.layout else { return Err(Error::Plain { path: from.to_owned() }) };
    source.can_be_copied(to)?;
    let mut target = Target::create(to, false)?;
    let mut block = vec![0; source.database_bytes().min(HEADER_BYTES) as usize];
    if layout.has_checksums() {
        block = target.copy_pages(&mut source, layout.start_bytes(), (0, block.len()), open_page)?;
    } else {
        source.read_exact(layout.start_bytes(), &mut block)?;
        target.copy(&mut source, layout.start_bytes() + block.len() as u64, block.len() as u64)?;
    }
    target.finish(&source, &block)
}

/// A copy that is being written; removed if it is not finished.
struct Target {
    path: PathBuf,
    file: File,
    length_bytes: u64,
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
            Ok(file) => Ok(Self { path: path.to_owned(), file, length_bytes: 0, is_finished: false }),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                Err(Error::Exists { path: path.to_owned() })
            }
            Err(error) => Err(io_error(path)(error)),
        }
    }

    /// Copies the source from an offset on to where it belongs here.
    fn copy(&mut self, source: &mut Source, from: u64, mut to: u64) -> Result<(), Error> {
        let source_path = source.path.clone();
        let file = source.from(from)?;
        let mut chunk = Vec::new();
        loop {
            chunk.clear();
            let read = (&*file).take(CHUNK_BYTES).read_to_end(&mut chunk);
            if read.map_err(io_error(&source_path))? == 0 {
                return Ok(());
            }
            self.write(&chunk, to)?;
            to += chunk.len() as u64;
        }
    }

    /// Writes bytes; zeros become holes, as they are in a sparse source.
    fn write(&mut self, bytes: &[u8], offset: u64) -> Result<(), Error> {
        for (block, at) in bytes.chunks(HOLE_BYTES).zip((offset..).step_by(HOLE_BYTES)) {
            if !is_zero(block) {
                self.file.write_all_at(block, at).map_err(io_error(&self.path))?;
            }
        }
        self.length_bytes = self.length_bytes.max(offset + bytes.len() as u64);
        Ok(())
    }

    /// Copies the source from an offset on to where it belongs here, with a change of each page, to which its
    /// offset in the database is told, and which says whether the page is whole. The first bytes are given
    /// back instead of being written, as many as are held back.
    fn copy_pages(
        &mut self,
        source: &mut Source,
        from: u64,
        (to, held_back): (u64, usize),
        change: impl Fn(&mut [u8], u64) -> bool,
    ) -> Result<Vec<u8>, Error> {
        let (pages, page_bytes) = (source.pages(), source.page_bytes());
        let source_path = source.path.clone();
        let file = source.from(from)?;
        let (mut chunk, mut at, mut held) = (Vec::new(), 0, Vec::new());
        loop {
            chunk.clear();
            let read = (&*file).take(CHUNK_BYTES).read_to_end(&mut chunk);
            if read.map_err(io_error(&source_path))? == 0 {
                return Ok(held);
            }
            for (page, number) in chunk.chunks_exact_mut(page_bytes as usize).zip(at / page_bytes..pages) {
                let offset = number * page_bytes;
                if !is_for_locks(offset, page_bytes) && !change(page, offset) {
                    return Err(Error::Damaged { path: source_path, page: number + 1 });
                }
            }
            let begin = if at == 0 { held_back.min(chunk.len()) } else { 0 };
            held.extend_from_slice(&chunk[..begin]);
            let offset = to + at + begin as u64;
            self.write(&chunk[begin..], offset)?;
            at += chunk.len() as u64;
        }
    }

    /// Makes the copy durable, and a database, also by its name.
    fn finish(mut self, source: &Source, block: &[u8]) -> Result<Description, Error> {
        source.is_unchanged()?;
        let written = self
            .file
            .set_len(self.length_bytes.max(block.len() as u64))
            .and_then(|()| self.file.sync_all())
            .and_then(|()| self.file.write_all_at(block, 0))
            .and_then(|()| self.file.sync_all())
            .and_then(|()| sync_folder(&self.path));
        written.map_err(io_error(&self.path))?;
        self.is_finished = true;
        describe(&self.path)
    }
}

/// Makes the name of a new file durable, so that its source may be removed.
fn sync_folder(path: &Path) -> io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    File::open(folder)?.sync_all()
}

impl Drop for Target {
    fn drop(&mut self) {
        if !self.is_finished {
            // Without its first block, the rest is no database in any case.
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use flashgrain_layout::HotLocations;

    use super::source::MAGIC;
    use super::*;

    /// So many bytes that SQLite would take for a database of pages of 512 bytes at a first glance.
    fn database(bytes: usize) -> Vec<u8> {
        let mut database: Vec<u8> = (0..bytes).map(|at| (at % 251) as u8).collect();
        database[..16].copy_from_slice(MAGIC);
        database[16..20].copy_from_slice(&[2, 0, 1, 1]);
        count_pages(&mut database, bytes as u32 / 512);
        database
    }

    /// Has the header say how many pages there are, or not.
    fn count_pages(database: &mut [u8], pages: u32) {
        database[28..32].copy_from_slice(&pages.to_be_bytes());
        let changes: [u8; 4] = database[24..28].first_chunk().copied().unwrap();
        database[92..96].copy_from_slice(&changes);
    }

    fn layout() -> Layout {
        HotLocations::new(64 << 10, 32 << 10).unwrap().into()
    }

    #[test]
    fn there_and_back_is_the_same() {
        let folder = tempfile::tempdir().unwrap();
        let [plain, laid, back] = ["plain", "laid", "back"].map(|name| folder.path().join(name));
        for bytes in [512, 4096, 100_352, 1 << 20] {
            fs::write(&plain, database(bytes)).unwrap();
            let found = import(&plain, &laid, layout()).unwrap();
            assert_eq!((found.layout, found.database_bytes), (Some(layout()), bytes as u64));
            assert_eq!(found.file_bytes, bytes as u64 + (32 << 10));
            assert_eq!((found.page_bytes, found.has_log, found.missing_bytes), (512, false, 0));
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
        let kind = |result: Result<Description, Error>| result.unwrap_err().kind();
        assert_eq!(kind(import(&laid, &copy, layout())), "has layout");
        assert_eq!(kind(export(&plain, &copy)), "plain");
        assert_eq!(kind(import(&path("text"), &copy, layout())), "not a database");
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
    fn empty_databases_are_copied_as_such() {
        let folder = tempfile::tempdir().unwrap();
        let [plain, laid, back] = ["plain", "laid", "back"].map(|name| folder.path().join(name));
        fs::write(&plain, b"").unwrap();
        let with_log = Layout::new(layout().hot(), Some(4096)).unwrap();
        for layout in [layout(), layout().with_checksums(), with_log] {
            let made = import(&plain, &laid, layout).unwrap();
            assert_eq!((made.layout, made.database_bytes, made.page_bytes), (Some(layout), 0, 0));
            assert_eq!(export(&laid, &back).unwrap().file_bytes, 0);
            fs::remove_file(&back).unwrap();
            // As SQLite leaves it after a first transaction that was rolled back.
            fs::File::options().write(true).open(&laid).unwrap().set_len(32 << 10).unwrap();
            assert_eq!(describe(&laid).unwrap().database_bytes, 0);
            fs::remove_file(&laid).unwrap();
        }
    }

    /// Pages that were never written stay holes, also where others have checksums.
    #[test]
    fn sparse_databases_stay_sparse() {
        use std::os::unix::fs::MetadataExt as _;
        let folder = tempfile::tempdir().unwrap();
        let [plain, laid, back] = ["plain", "laid", "back"].map(|name| folder.path().join(name));
        let (bytes, middle) = (16_u64 << 20, 10 << 20);
        let mut beginning = database(8192);
        beginning[20] = 8;
        count_pages(&mut beginning, (bytes / 512) as u32);
        beginning.chunks_exact_mut(512).for_each(|page| page[504..].fill(0));
        fs::write(&plain, &beginning).unwrap();
        let file = fs::File::options().write(true).open(&plain).unwrap();
        file.set_len(bytes).unwrap();
        file.write_all_at(&beginning[512..1024], middle).unwrap();
        for layout in [layout(), layout().with_checksums()] {
            import(&plain, &laid, layout).unwrap();
            export(&laid, &back).unwrap();
            for path in [&laid, &back] {
                let metadata = fs::metadata(path).unwrap();
                assert!(metadata.blocks() * 512 < 1 << 20, "{layout}: {} blocks", metadata.blocks());
                assert!(metadata.len() >= bytes);
            }
            let copy = fs::File::open(&back).unwrap();
            let mut page = [0; 512];
            copy.read_exact_at(&mut page, middle).unwrap();
            assert_eq!((&page[..], copy.metadata().unwrap().len()), (&beginning[512..1024], bytes));
            fs::remove_file(&laid).unwrap();
            fs::remove_file(&back).unwrap();
        }
    }

    #[test]
    fn checksums_go_in_and_out() {
        let folder = tempfile::tempdir().unwrap();
        let [plain, laid, back] = ["plain", "laid", "back"].map(|name| folder.path().join(name));
        let with = layout().with_checksums();
        for (bytes, size) in [(512, 512), (8192, 512), (3 << 20, 512), (192 << 10, 1 << 16)] {
            let mut database = database(bytes);
            database[16..18].copy_from_slice(if size == 512 { &[2, 0] } else { &[0, 1] });
            database[20] = 8;
            count_pages(&mut database, (bytes / size) as u32);
            // The reserved bytes, in which something may be.
            database.chunks_exact_mut(size).for_each(|page| page[size - 8..].fill(0));
            fs::write(&plain, &database).unwrap();
            assert_eq!(import(&plain, &laid, with).unwrap().layout, Some(with));
            export(&laid, &back).unwrap();
            assert!(fs::read(&back).unwrap() == database, "{bytes}");
            fs::remove_file(&back).unwrap();
            let mut damaged = fs::read(&laid).unwrap();
            let last = damaged.len() - size / 2;
            damaged[last] ^= 1;
            fs::write(&laid, &damaged).unwrap();
            let error = export(&laid, &back).unwrap_err();
            assert!(error.to_string().contains(&format!("page {} differs", bytes / size)), "{error}");
            assert!(!back.exists());
            fs::remove_file(&laid).unwrap();
        }
        let mut without = database(8192);
        without[20] = 0;
        fs::write(&plain, &without).unwrap();
        let error = import(&plain, &back, with).unwrap_err();
        assert_eq!(error.kind(), "reserved");
        assert!(error.to_string().contains("needs 8"), "{error}");
    }

    #[test]
    fn a_database_that_is_cut_off_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let [plain, laid, copy] = ["plain", "laid", "copy"].map(|name| folder.path().join(name));
        let mut whole = database(8192);
        fs::write(&plain, &whole).unwrap();
        import(&plain, &laid, layout()).unwrap();
        let laid_out = fs::read(&laid).unwrap();
        for missing in [1, 512, 8000] {
            fs::write(&plain, &whole[..8192 - missing]).unwrap();
            let error = import(&plain, &copy, layout()).unwrap_err();
            assert_eq!(error.kind(), "cut off");
            assert!(error.to_string().contains(&format!("{missing} bytes of them are missing")), "{error}");
            fs::write(&laid, &laid_out[..laid_out.len() - missing]).unwrap();
            assert_eq!(export(&laid, &copy).unwrap_err().kind(), "cut off");
            for path in [&plain, &laid] {
                assert_eq!(describe(path).unwrap().missing_bytes, missing as u64);
            }
            assert!(!copy.exists());
        }
        // A version of SQLite that does not count pages: the file itself counts, and holds whole ones.
        whole[92] ^= 1;
        fs::write(&plain, &whole[..8192 - 512]).unwrap();
        assert_eq!(import(&plain, &copy, layout()).unwrap().database_bytes, 8192 - 512);
        fs::remove_file(&copy).unwrap();
        fs::write(&plain, &whole[..8191]).unwrap();
        assert_eq!(import(&plain, &copy, layout()).unwrap_err().kind(), "cut off");
        // Pages that SQLite has not cut off yet are copied as they are.
        count_pages(&mut whole, 8);
        fs::write(&plain, &whole).unwrap();
        assert_eq!(import(&plain, &copy, layout()).unwrap().database_bytes, 8192);
        // Pages of a size that there is not.
        whole[16..18].copy_from_slice(&[3, 0]);
        fs::write(&plain, &whole).unwrap();
        assert_eq!(describe(&plain).unwrap_err().kind(), "not a database");
    }

    /// The log is next to one name only, and belongs to the database under each.
    #[test]
    fn a_database_with_two_names_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let [plain, laid, other, copy] =
            ["plain", "laid", "other", "copy"].map(|name| folder.path().join(name));
        fs::write(&plain, database(8192)).unwrap();
        import(&plain, &laid, layout()).unwrap();
        fs::hard_link(&plain, &other).unwrap();
        fs::write(folder.path().join("plain-wal"), b"frames").unwrap();
        for name in [&plain, &other] {
            let error = import(name, &copy, layout()).unwrap_err();
            assert_eq!(error.kind(), "hard links");
            assert!(error.to_string().contains("has 2 names"), "{error}");
        }
        fs::hard_link(&laid, folder.path().join("second")).unwrap();
        assert_eq!(export(&laid, &copy).unwrap_err().kind(), "hard links");
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
        fs::write(&laid, &bytes[..(32 << 10) - 1]).unwrap();
        assert_eq!(describe(&laid).unwrap_err().kind(), "not a database");
    }
}
