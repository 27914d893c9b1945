//! The places of a store, as the user names them, and their devices.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use flashgrain_device::{
    BackendKind, Claim, Device, Error as DeviceError, ErrorKind, FileDevice, OpenOptions, OverlayDevice,
    is_block_device, is_namespace, read_head, total_bytes,
};

use super::parts::{START_BYTES, Survey};
use super::store_files::{DATA_FILE, LOG_FILE, io};
use crate::Error;
use crate::checkpoint::Shape;
use crate::checkpoint::label::Label;
use crate::checkpoint::slots;
use crate::io_context::Devices;

/// Source of a device.
#[derive(Clone)]
pub(super) enum DeviceSource {
    /// Directories or block devices, one for each member.
    Paths(Vec<PathBuf>),
    /// An opened device.
    Device(Arc<dyn Device>),
}

/// The places of a store's data and log.
#[derive(Clone, Debug, Default)]
pub(super) struct Site {
    pub data: DeviceSource,
    pub log: Option<DeviceSource>,
    /// Whether opened devices may grow.
    pub growable: bool,
    /// Block devices that may be overwritten.
    pub consent: Vec<PathBuf>,
    /// How requests to files and block devices reach the kernel, if that is said.
    pub backend: Option<BackendKind>,
    /// Whether completions are polled for where the drive has poll queues.
    pub polled: bool,
}

impl Default for DeviceSource {
    fn default() -> Self {
        Self::Paths(Vec::new())
    }
}

/// Memory for the writes of replaying the log of a store that is opened for reading only and was not closed.
const OVERLAY_BYTES_MAX: u64 = 2 << 30;

/// Stripe unit of a new striped store without a profile.
const STRIPE_UNIT_BYTES: u64 = 256 << 10;

/// Files made while creating a store. Unless the store is completed, they are removed before the claim ends.
pub(super) struct Made {
    files: Vec<PathBuf>,
    claim: Arc<Claim>,
}

impl Made {
    fn new(claim: &Arc<Claim>) -> Self {
        Self { files: Vec::new(), claim: Arc::clone(claim) }
    }

    /// The store is complete.
    pub fn keep(mut self) {
        self.files.clear();
    }
}

impl Drop for Made {
    fn drop(&mut self) {
        // A file that cannot be removed makes the next attempt fail, which reports it.
        self.files.iter().for_each(|file| drop(fs::remove_file(file)));
    }
}

impl Site {
    /// Keeps all others away from the places, before anything in them is looked at. To make a store,
    /// directories that are missing are made.
    ///
    /// # Errors
    /// [`Error::Locked`]; [`Error::NotAStore`] or [`Error::Exists`] for a place that cannot hold a store.
    pub fn claim(&self, making: bool) -> Result<Arc<Claim>, Error> {
        let paths: Vec<PathBuf> = self.places().flat_map(DeviceSource::paths).cloned().collect();
        self.check_places(making)?;
        Claim::take(&paths, making).map_err(|error| of_device(error, &paths))
    }

    /// Keeps writers away from the places, before anything in them is looked at; other readers are let in.
    ///
    /// # Errors
    /// As [`Site::claim`].
    pub fn share(&self) -> Result<Arc<Claim>, Error> {
        let paths: Vec<PathBuf> = self.places().flat_map(DeviceSource::paths).cloned().collect();
        self.check_places(false)?;
        Claim::share(&paths).map_err(|error| of_device(error, &paths))
    }

    /// Refuses places that cannot hold a store. If the store exists, a missing place is a missing member.
    fn check_places(&self, making: bool) -> Result<(), Error> {
        self.check_io()?;
        let named =
            std::iter::once((&self.data, DATA_FILE)).chain(self.log.iter().map(|log| (log, LOG_FILE)));
        for (place, name) in named {
            let paths = place.paths();
            let checked = paths.iter().try_for_each(|path| check_place(path, making));
            checked.map_err(|error| if making { error } else { as_member(error, paths, name) })?;
        }
        Ok(())
    }

    fn places(&self) -> impl Iterator<Item = &DeviceSource> {
        std::iter::once(&self.data).chain(&self.log)
    }

    /// Surveys the files at the store's places.
    fn survey(&self) -> Result<Survey, Error> {
        let mut survey = Survey::default();
        survey.add(self.data.paths(), DATA_FILE)?;
        if let Some(log) = &self.log {
            survey.add(log.paths(), LOG_FILE)?;
        }
        Ok(survey)
    }

    /// The devices of a new store.
    pub fn create(
        &self,
        claim: &Arc<Claim>,
        stripe_unit_bytes: Option<u64>,
    ) -> Result<(Devices, Made), Error> {
        let survey = self.survey()?;
        let directories: Vec<PathBuf> = self
            .places()
            .flat_map(DeviceSource::paths)
            .filter(|path| !is_block_device(path))
            .cloned()
            .collect();
        for path in self.places().flat_map(DeviceSource::paths).filter(|path| is_block_device(path)) {
            self.check_consent(path)?;
        }
        if directories.len() > 1 && claim.places() < self.places().flat_map(DeviceSource::paths).count() {
            let why =
                "the same place twice: each member, and the log, wants a directory or a device of its own";
            return Err(Error::Options(why.into()));
        }
        survey.make_room(&directories)?;
        let mut made = Made::new(claim);
        let unit = stripe_unit_bytes.unwrap_or(STRIPE_UNIT_BYTES);
        let options = self.open_options(unit, true);
        let data = new_device(&self.data, DATA_FILE, &options, &mut made)?;
        let log = match &self.log {
            Some(log) => Some(new_device(log, LOG_FILE, &options, &mut made)?),
            None => None,
        };
        Ok((Devices::new(data, log), made))
    }

    /// The devices of an existing store. If read only, they keep writes in memory.
    pub fn open(&self, claim: &Arc<Claim>, read_only: bool) -> Result<Devices, Error> {
        if let Some(path) = self.survey()?.cut_off() {
            let why = "a store that was being made when that was cut off; create it again".into();
            return Err(Error::NotAStore { path: path.to_owned(), why });
        }
        let open = |place: &DeviceSource, name: &str| {
            let device = match place {
                DeviceSource::Device(device) => Arc::clone(device),
                DeviceSource::Paths(paths) => {
                    existing(paths, name, claim, &self.open_options(STRIPE_UNIT_BYTES, !read_only))?
                }
            };
            Ok::<_, Error>(match read_only {
                true => Arc::new(OverlayDevice::new(device, OVERLAY_BYTES_MAX)),
                false => device,
            })
        };
        let log = self.log.as_ref().map(|log| open(log, LOG_FILE)).transpose()?;
        Ok(Devices::new(open(&self.data, DATA_FILE)?, log))
    }

    /// Whether the data device grows when it is full.
    pub fn may_grow(&self) -> bool {
        match &self.data {
            DeviceSource::Paths(_) => self.data.is_in_files(),
            DeviceSource::Device(_) => self.growable,
        }
    }

    /// Bytes of the file systems of a store in files, as far as its members can fill them: each takes as much
    /// as the smallest of them has. `None` for devices, or if a file system does not say.
    pub fn room_bytes(&self) -> Option<u64> {
        let DeviceSource::Paths(paths) = &self.data else { return None };
        let least = paths.iter().map(|path| total_bytes(path).ok()).min()??;
        self.data.is_in_files().then(|| least.saturating_mul(paths.len() as u64))
    }

    /// Whether the log has files of its own, which take the size that they are given.
    pub fn log_may_grow(&self) -> bool {
        self.log.as_ref().is_some_and(DeviceSource::is_in_files)
    }

    /// How its devices are opened.
    fn open_options(&self, stripe_unit_bytes: u64, write: bool) -> OpenOptions {
        let Self { backend, polled, .. } = *self;
        OpenOptions { backend, write, stripe_unit_bytes, polled, ..OpenOptions::default() }
    }

    /// Refuses a way of I/O that one of the places cannot have: it would be ignored.
    fn check_io(&self) -> Result<(), Error> {
        let has_paths = self.places().any(|place| matches!(place, DeviceSource::Paths(_)));
        if !has_paths && (self.backend.is_some() || self.polled) {
            let why = "the store is on an opened device, which has its own way of I/O: leave Builder::backend and Builder::poll_completions out";
            return Err(Error::Options(why.into()));
        }
        let polls = |backend| !matches!(backend, BackendKind::Libaio | BackendKind::Sync);
        if let Some(backend) = self.backend.filter(|backend| self.polled && !polls(*backend)) {
            let why = format!(
                "{} does not poll for completions: name a backend with rings, or leave Builder::poll_completions out",
                backend.name()
            );
            return Err(Error::Options(why));
        }
        let Some(backend) = self.backend else { return Ok(()) };
        let mut paths = self.places().flat_map(DeviceSource::paths);
        paths.try_for_each(|path| check_backend(backend, path, is_namespace(path)))
    }

    fn check_consent(&self, path: &Path) -> Result<(), Error> {
        if self.consent.iter().any(|consent| consent == path) {
            return Ok(());
        }
        let why = "a block device: a new store destroys all of its contents; if that is meant, say so with --destroy-contents-of \
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

/// Whether a path can be a place of a store: a directory, a block device, or nothing yet.
fn check_place(path: &Path, making: bool) -> Result<(), Error> {
    let not = |why: &str| Err(Error::NotAStore { path: path.to_owned(), why: why.into() });
    match fs::metadata(path) {
        Ok(metadata) if metadata.is_dir() || is_block_device(path) => Ok(()),
        Ok(_) if making => Err(Error::Exists {
            path: path.to_owned(),
            why: "it is a file: a store wants a directory".into(),
        }),
        Ok(_) => not("neither a directory nor a block device; name another place"),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            if making {
                Ok(())
            } else {
                not("there is nothing; name another place, or create a store there first")
            }
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotADirectory => {
            not("it lies below a file; name another place")
        }
        Err(error) => Err(io(format!("open {}", path.display()), &error)),
    }
}

/// Refuses a backend that a path cannot have. NVMe namespaces have passthrough alone, and it has them alone.
fn check_backend(backend: BackendKind, path: &Path, is_namespace: bool) -> Result<(), Error> {
    let passthrough = BackendKind::NvmePassthrough;
    if is_namespace == (backend == passthrough) {
        return Ok(());
    }
    let path = path.display();
    Err(Error::Options(match is_namespace {
        true => format!(
            "{path} is the character device of an NVMe namespace, which {} cannot reach: name its block device, /dev/nvme..., or leave Builder::backend out",
            backend.name()
        ),
        false => format!(
            "{path} is no character device of an NVMe namespace, /dev/ng..., and {} reaches nothing else",
            passthrough.name()
        ),
    }))
}

/// A device for a new store; nothing is in its places.
fn new_device(
    place: &DeviceSource,
    name: &str,
    options: &OpenOptions,
    made: &mut Made,
) -> Result<Arc<dyn Device>, Error> {
    let paths = match place {
        DeviceSource::Device(device) => return Ok(Arc::clone(device)),
        DeviceSource::Paths(paths) => named(paths)?,
    };
    let file = |path: &PathBuf| if is_block_device(path) { path.clone() } else { path.join(name) };
    let files: Vec<PathBuf> = paths.iter().map(file).collect();
    let bytes = START_BYTES * files.len() as u64;
    let device = FileDevice::create_store(&files, &made.claim, &slots::MAKING, bytes, options);
    let device = device.map_err(|error| of_device(error, paths))?;
    made.files.extend(files.into_iter().filter(|file| !is_block_device(file)));
    Ok(Arc::new(device))
}

/// The device of an existing store. The labels of its members are read first, and put them in order.
fn existing(
    paths: &[PathBuf],
    name: &str,
    claim: &Arc<Claim>,
    options: &OpenOptions,
) -> Result<Arc<dyn Device>, Error> {
    let paths = named(paths)?;
    let files = paths.iter().map(|path| file_of(path, name)).collect::<Result<Vec<_>, _>>();
    let files = files.map_err(|error| as_member(error, paths, name))?;
    let labels = files.iter().map(|file| label_of(file)).collect::<Result<Vec<_>, _>>()?;
    let (files, shape) = in_order(paths, files, &labels)?;
    let unit = shape.map_or(options.stripe_unit_bytes, |shape| shape.stripe_unit_bytes.max(1));
    let options = OpenOptions { stripe_unit_bytes: unit, ..options.clone() };
    Ok(Arc::new(FileDevice::open_store(&files, claim, &options).map_err(|error| of_device(error, paths))?))
}

/// The members in the order that their store has them in, and its shape. Without labels they keep their
/// order: opening will tell.
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

/// If another one of the named paths is a member of a store, a path without a store is reported as a missing
/// member.
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
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            not("there is nothing; name another place, or create a store there first".into())
        }
        Err(error) => Err(io(format!("open {}", path.display()), &error)),
        Ok(metadata) if !metadata.is_dir() => {
            not("neither a directory nor a block device; name another place".into())
        }
        Ok(_) if !path.join(name).exists() => not(format!(
            "the directory has no file {name}; name another place, or create a store there first"
        )),
        Ok(_) => Ok(path.join(name)),
    }
}

/// The label of a member, if there is one.
fn label_of(file: &Path) -> Result<Option<Label>, Error> {
    let doing = || format!("open {}", file.display());
    let first = read_head(file, Label::HEAD_BYTES).map_err(|error| io(doing(), &error))?;
    Ok(Label::of_member(&first))
}

/// The place of `paths` that a file is in.
fn place_of(file: PathBuf, paths: &[PathBuf]) -> PathBuf {
    paths.iter().find(|path| file.starts_with(path)).cloned().unwrap_or(file)
}

/// An error of opening, in the words of the store.
pub(super) fn of_device(error: DeviceError, paths: &[PathBuf]) -> Error {
    let path = paths.first().cloned().unwrap_or_default();
    match (error.kind(), error) {
        (_, DeviceError::Locked { path: file }) => Error::Locked { path: place_of(file, paths) },
        (_, DeviceError::OpenHere { path: file }) => Error::OpenHere { path: place_of(file, paths) },
        (ErrorKind::NoSpace, error) => {
            Error::Full { why: format!("{error}; make room there, or take another place") }
        }
        (ErrorKind::Exists, error) => Error::Exists { path, why: error.to_string() },
        (_, error) => error.into(),
    }
}

impl DeviceSource {
    fn paths(&self) -> &[PathBuf] {
        match self {
            Self::Paths(paths) => paths,
            Self::Device(_) => &[],
        }
    }

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

impl std::fmt::Debug for DeviceSource {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Paths(paths) => paths.fmt(formatter),
            Self::Device(device) => write!(formatter, "{}", device.identity().target),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passthrough_and_namespaces_have_only_each_other() {
        let namespace = Path::new("/dev/ng0n1");
        for backend in BackendKind::FOR_FILES {
            check_backend(backend, Path::new("folder"), false).unwrap();
            let error = check_backend(backend, namespace, true).unwrap_err().to_string();
            assert!(error.contains("/dev/ng0n1") && error.contains(backend.name()), "{error}");
        }
        check_backend(BackendKind::NvmePassthrough, namespace, true).unwrap();
        let error = check_backend(BackendKind::NvmePassthrough, Path::new("folder"), false).unwrap_err();
        assert!(error.to_string().contains("folder"), "{error}");
    }
}
