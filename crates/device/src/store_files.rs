//! The files or block devices of a store: they have names, belong to one store at a time, and files grow.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::claim::{Claim, Lock, is_block_device, sync_directory};
use crate::target::{Target, check_left_free, overwrite_in_place, reserve};
use crate::{Error, FileDevice, OpenOptions as DeviceOptions};

/// Sizes of files are multiples of this, so that any alignment for direct I/O divides them.
const SIZE_STEP_BYTES: u64 = 4096;

impl FileDevice {
    /// Makes a device of at least `bytes` for a store, striped over `paths` if these are several: each is a
    /// file that does not exist yet, or a block device, which is used as it is. A file begins with `mark`,
    /// durably, before it is longer than that. It all belongs to this device until it is dropped: no other
    /// device can open it as a store's. `claim` has the directories and block devices.
    ///
    /// # Errors
    /// [`Error::Locked`] if another store has a block device; [`Error::Os`] if a file exists, its directory
    /// does not, or there is no room (kind `NoSpace`); nothing remains then.
    pub fn create_store(
        paths: &[PathBuf],
        claim: &Arc<Claim>,
        mark: &[u8],
        bytes: u64,
        options: &DeviceOptions,
    ) -> Result<Self, Error> {
        let options = &DeviceOptions { write: true, ..options.clone() };
        let each = member_bytes(bytes, paths.len(), options.stripe_unit_bytes);
        let mut made = Made(Vec::new());
        let mut members = Vec::new();
        for path in paths {
            if !is_block_device(path) {
                let file = create(path)?;
                made.0.push(path.clone());
                overwrite_in_place(&file);
                let marked = file.write_all_at(mark, 0).and_then(|()| file.sync_all());
                marked.map_err(|source| Error::Os { doing: format!("write {}", path.display()), source })?;
                reserve(&file, path, each)?;
                make_durable(&file, path)?;
            }
            members.push(member(path, claim, options)?);
            let size = members.last().map_or(0, |(_, target)| target.size_bytes);
            if size < each {
                let problem = format!("the block device has {size} bytes: the store needs {each} on each");
                return Err(Error::Target { path: path.clone(), problem });
            }
        }
        let device = Self::of_store(members, claim, options)?;
        made.0.clear();
        Ok(device)
    }

    /// Opens a device that [`FileDevice::create_store`] has made, with the paths in the same order. Several
    /// may have it open at a time if none of them is going to write.
    ///
    /// # Errors
    /// [`Error::Locked`] if another process, or another device of this one, has it open; [`Error::Os`] with
    /// the kind `NotFound` if a file is missing.
    pub fn open_store(paths: &[PathBuf], claim: &Arc<Claim>, options: &DeviceOptions) -> Result<Self, Error> {
        let members = paths.iter().map(|path| member(path, claim, options)).collect::<Result<_, _>>()?;
        Self::of_store(members, claim, options)
    }

    fn of_store(
        members: Vec<(Option<Lock>, Target)>,
        claim: &Arc<Claim>,
        options: &DeviceOptions,
    ) -> Result<Self, Error> {
        let (locks, targets): (Vec<_>, _) = members.into_iter().unzip();
        let locks = Locks { _files: locks.into_iter().flatten().collect(), _claim: Arc::clone(claim) };
        Self::assemble(targets, options.write, options).map(|device| device.with_locks(locks))
    }

    /// Makes every member large enough for `capacity_bytes` in total; returns the resulting capacity.
    pub(crate) fn grow_members(&self, capacity_bytes: u64) -> Result<u64, Error> {
        let unit = self.stripes.unit_bytes().unwrap_or(1);
        let each = member_bytes(capacity_bytes, self.targets.len(), unit);
        for target in self.targets.iter() {
            if let Err(error) = grow(target, each) {
                // The new ends are not in use yet.
                let before = member_bytes(self.capacity(), self.targets.len(), unit);
                let files = self.targets.iter().filter(|target| !target.is_block_device);
                files.for_each(|target| drop(target.file.set_len(before.max(target.size_bytes))));
                return Err(error);
            }
        }
        Ok(self.stripes.capacity_bytes(each))
    }
}

impl FileDevice {
    /// Makes every member as short as `capacity_bytes` in total allow; returns the resulting capacity, or
    /// `None` if it stays the same.
    pub(crate) fn shrink_members(&self, capacity_bytes: u64) -> Result<Option<u64>, Error> {
        let unit = self.stripes.unit_bytes().unwrap_or(1);
        let each = member_bytes(capacity_bytes, self.targets.len(), unit);
        let shrunk = self.stripes.capacity_bytes(each);
        if shrunk >= self.capacity() {
            return Ok(None);
        }
        for target in self.targets.iter().filter(|target| target.size_now().is_ok_and(|size| size > each)) {
            target.file.set_len(each).map_err(|source| Error::Os {
                doing: format!("make {} shorter", target.path.display()),
                source,
            })?;
        }
        Ok(Some(shrunk))
    }
}

/// Locks that keep others away from a store's files.
#[derive(Debug)]
pub(crate) struct Locks {
    _files: Vec<Lock>,
    _claim: Arc<Claim>,
}

/// Bytes of each of `members` for `bytes` in total.
fn member_bytes(bytes: u64, members: usize, unit_bytes: u64) -> u64 {
    let members = members.max(1) as u64;
    let step = if members == 1 { 1 } else { unit_bytes.max(1) };
    bytes.div_ceil(members).next_multiple_of(step).next_multiple_of(SIZE_STEP_BYTES)
}

fn grow(target: &Target, bytes: u64) -> Result<(), Error> {
    let size = target.size_now()?;
    if size >= bytes {
        return Ok(());
    }
    if target.is_block_device {
        let problem = format!("the block device has {size} bytes: enlarge it to {bytes} first");
        return Err(Error::Target { path: target.path.clone(), problem });
    }
    check_left_free(&target.file, &target.path, bytes - size)?;
    reserve(&target.file, &target.path, bytes)?;
    make_durable(&target.file, &target.path)
}

/// One member: the lock that keeps others away, and the file for I/O. They are apart so that a channel that
/// outlives its device, on a thread that has not noticed, does not keep the store from being opened again.
fn member(path: &Path, claim: &Claim, options: &DeviceOptions) -> Result<(Option<Lock>, Target), Error> {
    let lock = if claim.has(path) { None } else { Some(Lock::take(path, options.write)?) };
    let target = Target::shared(path, options.write, options.direct)?;
    // Programs that lock the file alone may have replaced it between its lock and its opening.
    if lock.as_ref().is_some_and(|lock| !lock.is_of(path)) {
        return Err(Error::Locked { path: path.into() });
    }
    Ok((lock, target))
}

fn create(path: &Path) -> Result<File, Error> {
    let made = OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(path);
    made.map_err(|source| Error::Os { doing: format!("create {}", path.display()), source })
}

/// A file's size and its name survive a power cut.
fn make_durable(file: &File, path: &Path) -> Result<(), Error> {
    file.sync_all()
        .map_err(|source| Error::Os { doing: format!("make {} durable", path.display()), source })?;
    sync_directory(path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new(".")))
}

/// Files to be removed unless all goes well.
struct Made(Vec<PathBuf>);

impl Drop for Made {
    fn drop(&mut self) {
        for path in &self.0 {
            // The user is told the reason to give up, not an error of the removal.
            drop(std::fs::remove_file(path));
        }
    }
}
