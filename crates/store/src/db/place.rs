//! From the places that a user names to devices.

use std::fs::{self, File, TryLockError};
use std::io::Read;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use flashgrain_device::{Device, Error as DeviceError, ErrorKind, FileDevice, OpenOptions};

use crate::Error;
use crate::checkpoint::Shape;
use crate::checkpoint::label::Label;
use crate::checkpoint::slots;
use crate::lane::Devices;

/// The store's file in a directory.
pub const DATA_FILE: &str = "data.flashgrain";
/// The log's file in a directory.
pub const LOG_FILE: &str = "log.flashgrain";

/// Where a device comes from.
#[derive(Clone)]
pub(super) enum Place {
    /// Directories or block devices, one for each member.
    Paths(Vec<PathBuf>),
    /// An opened device.
    Device(Arc<dyn Device>),
}

/// Where a store is.
#[derive(Clone, Debug, Default)]
pub(super) struct Site {
    pub data: Place,
    pub log: Option<Place>,
    /// Whether opened devices may grow.
    pub growable: bool,
    /// Block devices that may be overwritten.
    pub consent: Vec<PathBuf>,
}

impl Default for Place {
    fn default() -> Self {
        Self::Paths(Vec::new())
    }
}

/// What a file has at first; it grows as soon as the layout is known.
const START_BYTES: u64 = 1 << 20;

/// Stripe unit of a new striped store without a profile.
const STRIPE_UNIT_BYTES: u64 = 256 << 10;

/// What creating has made; removed unless the store is complete.
#[derive(Default)]
pub(super) struct Made {
    files: Vec<PathBuf>,
    folders: Vec<PathBuf>,
}

impl Made {
    /// The store is complete.
    pub fn keep(mut self) {
        self.files.clear();
        self.folders.clear();
    }
}

impl Drop for Made {
    fn drop(&mut self) {
        // What cannot be removed is reported by the next attempt.
        self.files.iter().for_each(|file| drop(fs::remove_file(file)));
        self.folders.iter().for_each(|folder| drop(fs::remove_dir(folder)));
    }
}

impl Site {
    /// The devices of a new store.
    pub fn create(&self, stripe_unit_bytes: Option<u64>) -> Result<(Devices, Made), Error> {
        let mut made = Made::default();
        let unit = stripe_unit_bytes.unwrap_or(STRIPE_UNIT_BYTES);
        let data = self.new_device(&self.data, DATA_FILE, unit, &mut made)?;
        let log = match &self.log {
            Some(log) => Some(self.new_device(log, LOG_FILE, unit, &mut made)?),
            None => None,
        };
        Ok((Devices::new(data, log), made))
    }

    /// The devices of a store that is there.
    pub fn open(&self) -> Result<Devices, Error> {
        let open = |place: &Place, name: &str| match place {
            Place::Device(device) => Ok(Arc::clone(device)),
            Place::Paths(paths) => existing(paths, name),
        };
        let log = self.log.as_ref().map(|log| open(log, LOG_FILE)).transpose()?;
        Ok(Devices::new(open(&self.data, DATA_FILE)?, log))
    }

    /// Whether the data device grows when it is full.
    pub fn may_grow(&self) -> bool {
        match &self.data {
            Place::Paths(_) => self.data.is_in_files(),
            Place::Device(_) => self.growable,
        }
    }

    /// Whether the log has files of its own, which take the size that they are given.
    pub fn log_may_grow(&self) -> bool {
        self.log.as_ref().is_some_and(Place::is_in_files)
    }

    fn new_device(
        &self,
        place: &Place,
        name: &str,
        unit: u64,
        made: &mut Made,
    ) -> Result<Arc<dyn Device>, Error> {
        let paths = match place {
            Place::Device(device) => return Ok(Arc::clone(device)),
            Place::Paths(paths) => named(paths)?,
        };
        let mut files = Vec::new();
        for path in paths {
            if is_block_device(path) {
                self.check_consent(path)?;
                files.push(path.clone());
            } else {
                make_folder(path, name, made)?;
                files.push(path.join(name));
            }
        }
        let options = OpenOptions { write: true, stripe_unit_bytes: unit, ..OpenOptions::default() };
        let device = FileDevice::create_store(&files, START_BYTES * files.len() as u64, &options);
        let device = device.map_err(|error| of_device(error, paths))?;
        made.files.extend(files.into_iter().filter(|file| !is_block_device(file)));
        Ok(Arc::new(device))
    }

    fn check_consent(&self, path: &Path) -> Result<(), Error> {
        if self.consent.iter().any(|consent| consent == path) {
            return Ok(());
        }
        let why = "a block device, all contents of which a new store destroys: if that is meant, say so with --destroy-contents-of \
                   (Builder::destroy_contents_of) and the same path";
        Err(Error::Exists { path: path.to_owned(), why: why.into() })
    }
}

fn named(paths: &[PathBuf]) -> Result<&[PathBuf], Error> {
    match paths {
        [] => Err(Error::Options("no place for the store: name a directory or a device".into())),
        paths => Ok(paths),
    }
}

fn is_block_device(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|metadata| metadata.file_type().is_block_device())
}

fn io(doing: String, error: &std::io::Error) -> Error {
    Error::Io { doing, errno: error.raw_os_error().unwrap_or(5) }
}

/// A directory of the store's own: it is made, or it is empty, or has nothing but what a crash has left of a store that was being made there.
fn make_folder(path: &Path, name: &str, made: &mut Made) -> Result<(), Error> {
    match fs::read_dir(path) {
        Ok(entries) => match entries.count() {
            0 => Ok(()),
            1 if remove_cut_off(&path.join(name))? => Ok(()),
            _ => {
                let store = path.join(DATA_FILE).exists() || path.join(LOG_FILE).exists();
                let why = if store {
                    "there is a store already: open it"
                } else {
                    "the directory is not empty: a store wants one of its own"
                };
                Err(Error::Exists { path: path.to_owned(), why: why.into() })
            }
        },
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            fs::create_dir_all(path)
                .map_err(|error| io(format!("make the directory {}", path.display()), &error))?;
            made.folders.push(path.to_owned());
            Ok(())
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotADirectory => Err(Error::Exists {
            path: path.to_owned(),
            why: "it is a file: a store wants a directory".into(),
        }),
        Err(error) => Err(io(format!("look into {}", path.display()), &error)),
    }
}

/// The device of a store that is there. What its members say about themselves is looked at first, so that they are put together as they belong.
fn existing(paths: &[PathBuf], name: &str) -> Result<Arc<dyn Device>, Error> {
    let paths = named(paths)?;
    let files = paths.iter().map(|path| file_of(path, name)).collect::<Result<Vec<_>, _>>();
    let files = files.map_err(|error| as_member(error, paths, name))?;
    for (path, file) in paths.iter().zip(&files) {
        if !is_block_device(file) && is_cut_off(file)? {
            let why = "a store that was being made when that was cut off; create it again".into();
            return Err(Error::NotAStore { path: path.clone(), why });
        }
    }
    let labels = files.iter().map(|file| label_of(file)).collect::<Result<Vec<_>, _>>()?;
    let (files, shape) = in_order(paths, files, &labels)?;
    let unit = shape.map_or(STRIPE_UNIT_BYTES, |shape| shape.stripe_unit_bytes.max(1));
    let options = OpenOptions { write: true, stripe_unit_bytes: unit, ..OpenOptions::default() };
    Ok(Arc::new(FileDevice::open_store(&files, &options).map_err(|error| of_device(error, paths))?))
}

/// The members in the order in which they make up their store, and how they do. Without labels as they are: opening will tell.
fn in_order(
    paths: &[PathBuf],
    files: Vec<PathBuf>,
    labels: &[Option<Label>],
) -> Result<(Vec<PathBuf>, Option<Shape>), Error> {
    let Some(first) = labels.iter().flatten().next() else { return Ok((files, None)) };
    let wrong = |path: &PathBuf, why: String| Err(Error::Member { path: path.clone(), why });
    let mut members = Vec::new();
    for ((path, file), label) in paths.iter().zip(files).zip(labels) {
        match label {
            None => return wrong(path, "it has no label of a store".into()),
            Some(label) if label.store != first.store => {
                return wrong(path, "it belongs to another store than the first one named".into());
            }
            Some(label) => members.push((label.member, file)),
        }
    }
    members.sort();
    members.dedup_by_key(|(member, _)| *member);
    if members.len() != first.shape.members as usize {
        let (expected, got) = (first.shape.members, members.len());
        let why = format!("its store has {expected} members, {got} of them were named: name them all");
        return paths.first().map_or_else(|| Ok((Vec::new(), None)), |path| wrong(path, why));
    }
    Ok((members.into_iter().map(|(_, file)| file).collect(), Some(first.shape)))
}

/// Where others that were named belong to a store, what is no store is a member that is missing.
fn as_member(error: Error, paths: &[PathBuf], name: &str) -> Error {
    let belongs = |path: &PathBuf| {
        file_of(path, name).is_ok_and(|file| label_of(&file).is_ok_and(|label| label.is_some()))
    };
    match (error, paths.iter().find(|path| belongs(path))) {
        (Error::NotAStore { path, why }, Some(other)) => {
            let other = other.display();
            let why = format!(
                "this member of the store that {other} belongs to is missing: {why}; bring it back, or name where it is now"
            );
            Error::Member { path, why }
        }
        (error, _) => error,
    }
}

fn file_of(path: &Path, name: &str) -> Result<PathBuf, Error> {
    let not = |why: String| Err(Error::NotAStore { path: path.to_owned(), why });
    if is_block_device(path) {
        return Ok(path.to_owned());
    }
    match fs::metadata(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => not("there is nothing".into()),
        Err(error) => Err(io(format!("open {}", path.display()), &error)),
        Ok(metadata) if !metadata.is_dir() => not("neither a directory nor a block device".into()),
        Ok(_) if !path.join(name).exists() => not(format!("the directory has no file {name}")),
        Ok(_) => Ok(path.join(name)),
    }
}

/// Whether a file is what a crash has left of a store that was being made: blank and as short as at first, or marked.
fn is_cut_off(file: &Path) -> Result<bool, Error> {
    let mut head = Vec::new();
    let read = File::open(file).and_then(|file| {
        let bytes = file.metadata()?.len();
        file.take(slots::END_BYTES).read_to_end(&mut head)?;
        Ok(bytes)
    });
    let bytes = read.map_err(|error| io(format!("open {}", file.display()), &error))?;
    let is_blank = head.iter().all(|byte| *byte == 0);
    Ok(bytes <= START_BYTES && is_blank || slots::is_cut_off(&head))
}

/// Removes a file that is no store yet and that nobody is making one of; whether it was one.
fn remove_cut_off(file: &Path) -> Result<bool, Error> {
    let doing = || format!("remove {}", file.display());
    let locked = match File::open(file) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(false),
        opened => opened.map_err(|error| io(doing(), &error))?,
    };
    // As whoever has a store open keeps others away: see `FileDevice::create_store`.
    match locked.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => return Err(Error::Locked { path: file.to_owned() }),
        Err(TryLockError::Error(error)) => return Err(io(doing(), &error)),
    }
    let is_cut_off = is_cut_off(file)?;
    if is_cut_off {
        fs::remove_file(file).map_err(|error| io(doing(), &error))?;
    }
    Ok(is_cut_off)
}

/// What a member says about itself, if it can be read.
fn label_of(file: &Path) -> Result<Option<Label>, Error> {
    let doing = || format!("open {}", file.display());
    let mut first = Vec::new();
    let read = File::open(file).and_then(|file| file.take(Label::HEAD_BYTES).read_to_end(&mut first));
    read.map_err(|error| io(doing(), &error))?;
    Ok(Label::of_member(&first))
}

/// An error of opening, in the words of the store.
pub(super) fn of_device(error: DeviceError, paths: &[PathBuf]) -> Error {
    let path = paths.first().cloned().unwrap_or_default();
    match (error.kind(), error) {
        (_, DeviceError::Locked { path: file }) => {
            let own = paths.iter().find(|path| file.starts_with(path)).cloned();
            Error::Locked { path: own.unwrap_or(file) }
        }
        (ErrorKind::NoSpace, error) => {
            Error::Full { why: format!("{error}; make room there, or take another place") }
        }
        (ErrorKind::Exists, error) => Error::Exists { path, why: error.to_string() },
        (_, error) => error.into(),
    }
}

impl Place {
    fn is_in_files(&self) -> bool {
        matches!(self, Self::Paths(paths) if !paths.iter().any(|path| is_block_device(path)))
    }

    /// One more member.
    pub fn add_path(&mut self, path: &Path) {
        match self {
            Self::Paths(paths) => paths.push(path.to_owned()),
            Self::Device(_) => *self = Self::Paths(vec![path.to_owned()]),
        }
    }
}

impl std::fmt::Debug for Place {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Paths(paths) => paths.fmt(formatter),
            Self::Device(device) => write!(formatter, "{}", device.identity().target),
        }
    }
}
