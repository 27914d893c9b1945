//! The way back: a file of records becomes a plain file with the same bytes, name, owner and permissions.
//!
//! ```text
//! 1  a copy with a name of its own is written         a crash leaves the records, and a copy that is
//! 2  the copy is synchronised                         removed the next time
//! 3  the copy takes the place of the records          a crash leaves one or the other, whole
//! 4  the folder is synchronised
//! ```

use std::ffi::OsString;
use std::fs::{self, File, FileTimes, OpenOptions};
use std::io::{Error, ErrorKind, Result, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};

use crate::lock::have_alone;
use crate::{Kind, Records};

/// Bytes that are copied at a time.
const COPIED_BYTES: usize = 1 << 20;

/// The end of the copy's name.
const SUFFIX: &str = ".flashgrain-unpacked";

/// How often a file is opened anew if another process has replaced it meanwhile.
const ATTEMPTS: u32 = 16;

/// Makes a plain file of a file of records; one that is plain stays as it is. Returns the bytes of records;
/// `None` if there were none.
///
/// # Errors
/// [`ErrorKind::ResourceBusy`] if a program has the file open; [`ErrorKind::InvalidInput`] if it has several
/// names, as the others would keep the layout; those of [`Records::open`], of reading and of writing. The
/// file is then as it was.
pub fn unpack(path: &Path) -> Result<Option<u64>> {
    let path = fs::canonicalize(path)?;
    let (file, kind) = alone(&path)?;
    let place = Place::of(&path)?;
    place.remove_copy()?;
    if kind == Kind::Plain {
        return Ok(None);
    }
    if kind == Kind::Empty {
        // A crash may have left an empty file with the length of its header.
        file.set_len(0)?;
        return Ok(None);
    }
    let metadata = file.metadata()?;
    if metadata.nlink() > 1 {
        let several = format!("it has {} names, and the others would keep the layout", metadata.nlink());
        return Err(Error::new(ErrorKind::InvalidInput, several));
    }
    let Some(records) = Records::open(&file)? else { return Ok(None) };
    let copied = in_order(&Copying { place: &place, records: &records, file: &file });
    // The first error is the one to be told.
    copied.inspect_err(|_| drop(place.remove_copy()))?;
    Ok(Some(records.length_bytes()))
}

/// The file with this path, which no program has open, and its kind.
fn alone(path: &Path) -> Result<(File, Kind)> {
    for _ in 0..ATTEMPTS {
        let file = OpenOptions::new().read(true).write(true).custom_flags(libc::O_NONBLOCK).open(path)?;
        let metadata = file.metadata()?;
        if !metadata.is_file() {
            return Err(Error::new(ErrorKind::InvalidInput, "it is not a regular file"));
        }
        have_alone(&file)?;
        let now = fs::metadata(path)?;
        if (now.dev(), now.ino()) == (metadata.dev(), metadata.ino()) {
            let kind = Records::kind_of(&file)?;
            return Ok((file, kind));
        }
    }
    Err(Error::new(ErrorKind::ResourceBusy, "other programs replace it again and again"))
}

/// Where a file and its copy are.
struct Place<'a> {
    path: &'a Path,
    copy: PathBuf,
    folder: &'a Path,
}

impl<'a> Place<'a> {
    fn of(path: &'a Path) -> Result<Self> {
        let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else {
            return Err(Error::new(ErrorKind::InvalidInput, "it is not a file in a folder"));
        };
        let mut copy = OsString::from(".");
        copy.push(name);
        copy.push(SUFFIX);
        Ok(Self { path, copy: folder.join(copy), folder })
    }

    fn remove_copy(&self) -> Result<()> {
        match fs::remove_file(&self.copy) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }
}

/// The steps of the module.
trait Steps {
    type Copy;
    fn copy(&self) -> Result<Self::Copy>;
    fn sync_copy(&self, copy: Self::Copy) -> Result<()>;
    fn replace(&self) -> Result<()>;
    fn sync_folder(&self) -> Result<()>;
}

fn in_order(steps: &impl Steps) -> Result<()> {
    steps.sync_copy(steps.copy()?)?;
    steps.replace()?;
    steps.sync_folder()
}

/// A file of records, and where it goes.
struct Copying<'a> {
    place: &'a Place<'a>,
    records: &'a Records,
    file: &'a File,
}

impl Steps for Copying<'_> {
    type Copy = File;

    fn copy(&self) -> Result<File> {
        let metadata = self.file.metadata()?;
        let mut options = OpenOptions::new();
        let mut copy = options.write(true).create_new(true).mode(0o600).open(&self.place.copy)?;
        fchown(&copy, Some(metadata.uid()), Some(metadata.gid()))?;
        let mut bytes = vec![0; COPIED_BYTES];
        let mut at = 0;
        while at < self.records.length_bytes() {
            let read = self.records.read_at(self.file, &mut bytes, at)?;
            if read == 0 {
                return Err(Error::from(ErrorKind::UnexpectedEof));
            }
            copy.write_all(&bytes[..read])?;
            at += read as u64;
        }
        copy.set_times(
            FileTimes::new().set_accessed(metadata.accessed()?).set_modified(metadata.modified()?),
        )?;
        copy.set_permissions(PermissionsExt::from_mode(metadata.mode() & 0o7777))?;
        Ok(copy)
    }

    fn sync_copy(&self, copy: File) -> Result<()> {
        copy.sync_all()
    }

    fn replace(&self) -> Result<()> {
        fs::rename(&self.place.copy, self.place.path)
    }

    fn sync_folder(&self) -> Result<()> {
        File::open(self.place.folder)?.sync_all()
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    /// Notes the steps, and fails at one of them.
    struct Noted {
        steps: RefCell<Vec<&'static str>>,
        fails_at: usize,
    }

    impl Noted {
        fn note(&self, step: &'static str) -> Result<()> {
            let mut steps = self.steps.borrow_mut();
            steps.push(step);
            if steps.len() > self.fails_at { Err(ErrorKind::Other.into()) } else { Ok(()) }
        }
    }

    impl Steps for Noted {
        type Copy = ();

        fn copy(&self) -> Result<()> {
            self.note("copy")
        }

        fn sync_copy(&self, (): ()) -> Result<()> {
            self.note("sync the copy")
        }

        fn replace(&self) -> Result<()> {
            self.note("replace")
        }

        fn sync_folder(&self) -> Result<()> {
            self.note("sync the folder")
        }
    }

    #[test]
    fn a_copy_is_durable_before_it_replaces_the_records_and_nothing_follows_an_error() {
        let order = ["copy", "sync the copy", "replace", "sync the folder"];
        for fails_at in 0..=order.len() {
            let noted = Noted { steps: RefCell::default(), fails_at };
            assert_eq!(in_order(&noted).is_ok(), fails_at == order.len());
            assert_eq!(*noted.steps.borrow(), order[..order.len().min(fails_at + 1)]);
        }
    }
}
