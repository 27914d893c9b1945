//! Volumes by the names under which SQLite finds them: the database `fast/orders` is the file `orders` of the
//! volume that is mounted as `fast`.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use flashgrain_device::{Claim, FileDevice, OpenOptions};

use crate::volume::{Error, Volume, VolumeOptions};

static MOUNTS: Mutex<BTreeMap<String, Arc<Volume>>> = Mutex::new(BTreeMap::new());

fn mounts() -> MutexGuard<'static, BTreeMap<String, Arc<Volume>>> {
    MOUNTS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Gives a volume a name.
///
/// # Errors
/// [`Error::Mounted`] if there is one of this name, [`Error::Name`] if none can have it.
pub fn mount(name: &str, volume: Arc<Volume>) -> Result<(), Error> {
    if name.is_empty() || name.contains('/') {
        return Err(Error::Name(name.into()));
    }
    let mut mounts = mounts();
    if mounts.contains_key(name) {
        return Err(Error::Mounted(name.into()));
    }
    mounts.insert(name.into(), volume);
    Ok(())
}

/// Takes a volume's name away, and gives the volume; databases that are open there stay open.
pub fn unmount(name: &str) -> Option<Arc<Volume>> {
    mounts().remove(name)
}

/// The volume of this name, or an error that names the mounted ones.
pub(crate) fn find(name: &str) -> Result<Arc<Volume>, String> {
    let mounts = mounts();
    mounts.get(name).cloned().ok_or_else(|| {
        let names: Vec<&str> = mounts.keys().map(String::as_str).collect();
        let there =
            if names.is_empty() { "none is".into() } else { format!("there is {}", names.join(", ")) };
        format!("no volume is mounted as `{name}` ({there}); databases are called VOLUME/NAME")
    })
}

/// The volume and the file of a database's full name.
pub(crate) fn split(full_name: &str) -> Option<(&str, &str)> {
    full_name.trim_start_matches('/').split_once('/')
}

/// Opens the volume on these files or block devices, which are striped over if they are several. No other
/// process can open it until it is dropped.
///
/// # Errors
/// [`Error::Twice`], [`Error::Device`] if one is missing or in use, [`Error::Member`] if one is of another
/// volume, [`Error::NoVolume`] if there is none.
pub fn open_files(
    paths: &[PathBuf],
    device: &OpenOptions,
    options: VolumeOptions,
) -> Result<Arc<Volume>, Error> {
    are_distinct(paths)?;
    let claim = Claim::take(&block_devices(paths), false)?;
    let device = OpenOptions { write: true, ..device.clone() };
    Volume::open(Arc::new(FileDevice::open_store(paths, &claim, &device)?), options)
}

/// Makes a volume of `bytes` in new files, or on block devices as they are; then as [`open_files`].
///
/// # Errors
/// [`Error::Twice`], [`Error::Device`] if a file exists or there is no room, [`Error::Small`]. No file
/// remains then.
pub fn create_files(
    paths: &[PathBuf],
    bytes: u64,
    device: &OpenOptions,
    options: VolumeOptions,
) -> Result<Arc<Volume>, Error> {
    are_distinct(paths)?;
    let devices = block_devices(paths);
    let claim = Claim::take(&devices, false)?;
    let made = FileDevice::create_store(paths, &claim, b"Flashgrain volume\n", bytes, device)?;
    Volume::create(Arc::new(made), options).inspect_err(|_| {
        // They were made for this volume. The user is told why there is none, not an error of the removal.
        paths.iter().filter(|path| !devices.contains(path)).for_each(|path| drop(std::fs::remove_file(path)));
    })
}

/// Refuses a file or drive that is named twice, by whatever names.
fn are_distinct(paths: &[PathBuf]) -> Result<(), Error> {
    let mut seen = BTreeSet::new();
    match paths.iter().find(|path| !seen.insert(full(path))) {
        Some(path) => Err(Error::Twice(path.display().to_string())),
        None => Ok(()),
    }
}

/// The full path of a file that is there, or is to be made.
fn full(path: &Path) -> PathBuf {
    let folder = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let made = || Some(folder.canonicalize().ok()?.join(path.file_name()?));
    path.canonicalize().ok().or_else(made).unwrap_or_else(|| path.to_owned())
}

fn block_devices(paths: &[PathBuf]) -> Vec<PathBuf> {
    use std::os::unix::fs::FileTypeExt as _;
    let is_device = |path: &&PathBuf| {
        std::fs::metadata(path).is_ok_and(|metadata| metadata.file_type().is_block_device())
    };
    paths.iter().filter(is_device).cloned().collect()
}

/// Mounts the volumes in a text `NAME=PATH,PATH;NAME=PATH`.
pub(crate) fn mount_all(text: &str) -> Result<(), String> {
    for one in text.split(';').filter(|one| !one.trim().is_empty()) {
        let (name, paths) =
            one.split_once('=').ok_or_else(|| format!("`{one}`: write NAME=FILE, or NAME=FILE,FILE"))?;
        let paths: Vec<PathBuf> = paths.split(',').map(PathBuf::from).collect();
        open_files(&paths, &OpenOptions::default(), VolumeOptions::default())
            .and_then(|volume| mount(name.trim(), volume))
            .map_err(|error| error.to_string())?;
    }
    Ok(())
}
