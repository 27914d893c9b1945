//! Profile files: JSON with units in the names of the keys, written whole or not at all, read with suspicion.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::Value;

use crate::schema::{DeviceProfile, FORMAT, SCHEMA_VERSION};
use crate::{Error, ranges};

/// Larger files are no profiles: the largest have a few megabytes.
const FILE_BYTES_MAX: u64 = 256 << 20;

/// Writes `profile` to `path`. A crash at any moment leaves the old file or the new one, and at most one
/// temporary file, which the next writing replaces.
///
/// # Errors
/// [`Error::Write`] with the system's reason.
pub fn write(path: &Path, profile: &DeviceProfile) -> Result<(), Error> {
    write_atomically(path, |file| {
        serde_json::to_writer_pretty(&mut *file, profile)?;
        file.write_all(b"\n")
    })
}

/// Writes `content` to where `path` leads.
///
/// 1. `-` is standard output, and so are `/dev/stdout` and its synonyms.
/// 2. A regular file, or none, is replaced through a temporary one in its folder, whose name depends on
///    `path` only: the temporary file of a killed run is replaced by the next run and never piles up.
/// 3. Any other target (a symbolic link, a FIFO, a terminal, `/dev/null`) may have other users: it is opened
///    and written through, never replaced.
///
/// # Errors
/// [`Error::Write`] with the system's reason.
pub fn write_atomically(
    path: &Path,
    content: impl FnOnce(&mut io::BufWriter<File>) -> io::Result<()>,
) -> Result<(), Error> {
    let written = match Destination::of(path) {
        Destination::Standard(file) => file.and_then(|file| write_through(file, content)),
        Destination::Existing => OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .open(path)
            .and_then(|file| write_through(file, content)),
        Destination::Regular => {
            let temporary = temporary_name(path)?;
            let result = try_write(path, &temporary, content);
            if result.is_err() {
                // Nothing more can be done about a file that cannot be removed either.
                let _ = fs::remove_file(&temporary);
            }
            result
        }
    };
    written.map_err(|source| Error::Write { path: path.to_owned(), source })
}

/// Whether a file can be made at `path`, or the existing target be written to, without changing anything that
/// is there.
///
/// # Errors
/// [`Error::Write`] with the system's reason.
pub fn check_writable(path: &Path) -> Result<(), Error> {
    let checked = match Destination::of(path) {
        Destination::Standard(file) => file.map(drop),
        // A FIFO would wait for its reader, and a link may lead to where nothing is yet.
        Destination::Existing if path.is_dir() => Err(io::ErrorKind::IsADirectory.into()),
        Destination::Existing => Ok(()),
        Destination::Regular => {
            let temporary = temporary_name(path)?;
            File::create(&temporary).and_then(|_| fs::remove_file(&temporary))
        }
    };
    checked.map_err(|source| Error::Write { path: path.to_owned(), source })
}

/// Kind of the target that an output path names.
enum Destination {
    /// Standard output, or standard error, as this process has it.
    Standard(io::Result<File>),
    /// A regular file, or nothing yet.
    Regular,
    /// Anything else that is there.
    Existing,
}

impl Destination {
    fn of(path: &Path) -> Self {
        match path.to_str() {
            Some("-" | "/dev/stdout" | "/dev/fd/1" | "/proc/self/fd/1") => {
                return Self::Standard(io::stdout().as_fd().try_clone_to_owned().map(File::from));
            }
            Some("/dev/stderr" | "/dev/fd/2" | "/proc/self/fd/2") => {
                return Self::Standard(io::stderr().as_fd().try_clone_to_owned().map(File::from));
            }
            _ => {}
        }
        match fs::symlink_metadata(path) {
            Ok(metadata) if !metadata.is_file() => Self::Existing,
            _ => Self::Regular,
        }
    }
}

/// Writes to something that is no file of ours alone. Most of it knows no durability, so that none is asked
/// for.
fn write_through(
    file: File,
    content: impl FnOnce(&mut io::BufWriter<File>) -> io::Result<()>,
) -> io::Result<()> {
    let mut writer = io::BufWriter::new(file);
    content(&mut writer)?;
    writer.flush()
}

fn try_write(
    path: &Path,
    temporary: &Path,
    content: impl FnOnce(&mut io::BufWriter<File>) -> io::Result<()>,
) -> io::Result<()> {
    let mut writer = io::BufWriter::new(File::create(temporary)?);
    content(&mut writer)?;
    let file = writer.into_inner().map_err(io::IntoInnerError::into_error)?;
    file.sync_all()?;
    fs::rename(temporary, path)?;
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    File::open(folder)?.sync_all()
}

fn temporary_name(path: &Path) -> Result<PathBuf, Error> {
    let Some(name) = path.file_name() else {
        return Err(file_error(path, "is no name for a file".into()));
    };
    let mut temporary = std::ffi::OsString::from(".");
    temporary.push(name);
    temporary.push(".tmp");
    Ok(path.with_file_name(temporary))
}

/// The remedy for a profile that is missing.
const HOW_TO_MAKE_ONE: &str =
    "`flashgrain tune DIR` or `flashgrain profile DIR` measures the drive of a directory and writes one";

/// Reads a profile of this schema version or an older one.
///
/// # Errors
/// [`Error::File`] if the file cannot be read, is no profile, is cut off or damaged, or comes from a newer
/// version of Flashgrain.
pub fn read(path: &Path) -> Result<DeviceProfile, Error> {
    let unreadable = |error: io::Error| {
        let problem = match error.kind() {
            io::ErrorKind::NotFound => format!("does not exist ({error}); {HOW_TO_MAKE_ONE}"),
            _ => format!("cannot be read: {error}"),
        };
        file_error(path, problem)
    };
    let length = fs::metadata(path).map_err(unreadable)?.len();
    if length > FILE_BYTES_MAX {
        return Err(file_error(
            path,
            format!("is not a Flashgrain profile: {length} bytes are too many for one"),
        ));
    }
    parse(path, &fs::read(path).map_err(unreadable)?)
}

/// A profile from the bytes of its file, which `path` names in messages.
///
/// # Errors
/// As [`read`].
pub fn parse(path: &Path, bytes: &[u8]) -> Result<DeviceProfile, Error> {
    decode(bytes).map_err(|problem| file_error(path, problem))
}

/// The part of a profile that tells its format and version.
#[derive(Deserialize)]
struct Head {
    format: String,
    schema_version: u32,
}

/// A profile from the bytes of its file; otherwise a text with the problem and a remedy.
fn decode(bytes: &[u8]) -> Result<DeviceProfile, String> {
    let value: Value = serde_json::from_slice(bytes).map_err(|error| match error.classify() {
        serde_json::error::Category::Eof if starts_like_a_profile(bytes) => {
            format!("is cut off ({error}); make the profile again")
        }
        _ => format!("is not a Flashgrain profile: it is no JSON ({error})"),
    })?;
    let head: Head = Head::deserialize(&value)
        .map_err(|_| format!("is not a Flashgrain profile: its key `format` does not say \"{FORMAT}\""))?;
    if head.format != FORMAT {
        return Err(format!("is not a Flashgrain profile: its key `format` does not say \"{FORMAT}\""));
    }
    if head.schema_version > SCHEMA_VERSION {
        return Err(format!(
            "has schema version {}, this Flashgrain ({}) reads up to {SCHEMA_VERSION}; use the newer Flashgrain that made it, or make the \
             profile again",
            head.schema_version,
            env!("CARGO_PKG_VERSION")
        ));
    }
    let value = migrate(value, head.schema_version)?;
    ranges::check(&value).map_err(|problem| format!("is damaged: {problem}; make the profile again"))?;
    serde_json::from_value(value).map_err(|error| format!("is damaged: {error}; make the profile again"))
}

fn starts_like_a_profile(bytes: &[u8]) -> bool {
    let start = bytes.get(..bytes.len().min(200)).unwrap_or_default();
    String::from_utf8_lossy(start).contains(FORMAT)
}

/// Brings an older profile to this schema, version by version. Keys that were added with a default need
/// nothing here.
fn migrate(mut value: Value, from: u32) -> Result<Value, String> {
    for version in from..SCHEMA_VERSION {
        let step = MIGRATIONS.iter().find(|(of, _)| *of == version).ok_or_else(|| {
            format!("has schema version {from}, which was never released; make the profile again")
        })?;
        value = (step.1)(value);
    }
    Ok(value)
}

/// The version of a profile, and the function that turns it into one of the next version.
type Migration = (u32, fn(Value) -> Value);

/// All migrations. Version 1 is the first, so that there are none yet.
const MIGRATIONS: &[Migration] = &[];

fn file_error(path: &Path, problem: String) -> Error {
    Error::File { path: path.to_owned(), problem }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn each_kind_of_wrong_file_is_called_by_its_name() {
        let problem = |bytes: &[u8]| decode(bytes).unwrap_err();
        assert!(problem(b"").contains("not a Flashgrain profile"));
        assert!(problem(b"not json").contains("not a Flashgrain profile"));
        assert!(problem(b"\xff\xfe\x00").contains("not a Flashgrain profile"));
        assert!(
            problem(br#"{"format": "something else", "schema_version": 1}"#)
                .contains("not a Flashgrain profile")
        );
        assert!(problem(br#"[1, 2, 3]"#).contains("not a Flashgrain profile"));
        assert!(problem(br#"{"format": "flashgrain device profile", "schema"#).contains("cut off"));
        let damaged = problem(br#"{"format": "flashgrain device profile", "schema_version": 1}"#);
        assert!(damaged.contains("damaged"), "{damaged}");
        let newer = problem(br#"{"format": "flashgrain device profile", "schema_version": 7, "novelty": 1}"#);
        assert!(newer.contains("schema version 7") && newer.contains("up to 1"), "{newer}");
        let never = problem(br#"{"format": "flashgrain device profile", "schema_version": 0}"#);
        assert!(never.contains("never released"), "{never}");
    }

    #[test]
    fn what_is_no_regular_file_is_written_through() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::write(at("file"), b"old and long").unwrap();
        std::os::unix::fs::symlink("file", at("link")).unwrap();
        std::os::unix::fs::symlink("made", at("dangling")).unwrap();
        std::os::unix::fs::symlink("/dev/null", at("nothing")).unwrap();
        for name in ["link", "dangling", "nothing"] {
            check_writable(&at(name)).unwrap();
            write_atomically(&at(name), |file| file.write_all(b"new")).unwrap();
            assert!(fs::symlink_metadata(at(name)).unwrap().is_symlink(), "{name} was replaced");
        }
        assert_eq!(fs::read(at("file")).unwrap(), b"new");
        assert_eq!(fs::read(at("made")).unwrap(), b"new");
        assert!(fs::read(at("nothing")).unwrap().is_empty());
        let made = std::process::Command::new("mkfifo").arg(at("fifo")).status().unwrap();
        assert!(made.success());
        let fifo = at("fifo");
        let reader = std::thread::spawn(move || fs::read(fifo).unwrap());
        write_atomically(&at("fifo"), |file| file.write_all(b"through")).unwrap();
        assert_eq!(reader.join().unwrap(), b"through");
    }

    #[test]
    fn what_cannot_be_written_is_found_without_writing() {
        let folder = tempfile::tempdir().unwrap();
        check_writable(&folder.path().join("new")).unwrap();
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
        assert!(check_writable(&folder.path().join("none/new")).is_err());
        let refused = check_writable(folder.path()).unwrap_err().to_string();
        assert!(refused.contains("cannot be written") && refused.contains("directory"), "{refused}");
    }

    #[test]
    fn a_failed_write_leaves_nothing_and_a_left_over_is_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("profile.json");
        fs::write(folder.path().join(".profile.json.tmp"), b"left by a killed run").unwrap();
        fs::write(&path, b"old").unwrap();
        let failed = write_atomically(&path, |_| Err(io::Error::other("no")));
        assert!(failed.unwrap_err().to_string().contains("cannot be written: no"));
        assert_eq!(fs::read(&path).unwrap(), b"old");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
        fs::write(folder.path().join(".profile.json.tmp"), b"left by a killed run").unwrap();
        write_atomically(&path, |file| file.write_all(b"new")).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"new");
        let names: Vec<_> =
            fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(names, ["profile.json"]);
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
            prop_assert!(decode(&bytes).is_err());
        }
    }
}
