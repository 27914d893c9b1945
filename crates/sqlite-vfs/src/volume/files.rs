//! The files of a volume in memory, and where their bytes are.

use std::collections::BTreeMap;

use super::directory::{Directory, Entry, NAME_BYTES_MAX, Run};
use super::space::Space;
use super::volume_id::VolumeId;
use super::{EXTENT_BYTES, Error};

/// A file as long as the volume is open; numbers are not used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct FileId(u64);

impl FileId {
    /// No file: the device itself.
    pub(super) const NONE: Self = Self(0);

    /// Its number.
    pub fn number(self) -> u64 {
        self.0
    }
}

/// The extents of a device.
#[derive(Clone, Copy, Debug)]
pub(super) struct Extents {
    /// Where the first one is, in bytes.
    pub begin: u64,
    pub count: u32,
}

/// A file grows by this part of itself, so that it is in few pieces.
const GROWTH_DIVISOR: u64 = 8;

/// Extents that a file grows by at a time, at most.
const GROWTH_EXTENTS_MAX: u64 = 256;

#[derive(Debug, Default)]
struct File {
    entry: Entry,
    /// SQLite finds its end by checksums.
    is_log: bool,
    /// Goes up with each write, so that bytes read before are known to be old.
    version: u64,
    /// Behind it, nothing was ever written to this file's extents by the file.
    on_device: u64,
}

/// See the module.
#[derive(Debug)]
pub(super) struct Files {
    files: BTreeMap<FileId, File>,
    next: u64,
    space: Space,
    /// Where the first extent is on the device.
    extents_begin: u64,
    volume: Option<VolumeId>,
    generation: u64,
    is_changed: bool,
    /// The directory that was saved last is durable.
    is_durable: bool,
    /// Files have become longer by bytes that are not durable.
    has_grown: bool,
}

impl Files {
    /// The files of a directory, in extents on a device.
    pub fn new(directory: Directory, extents: Extents) -> Self {
        let runs = directory.entries.iter().flat_map(|entry| entry.runs.iter().copied());
        let space = Space::new(extents.count, runs);
        let (mut files, mut next) = (BTreeMap::new(), 1);
        for entry in directory.entries {
            let on_device = entry.length_bytes;
            files.insert(FileId(next), File { entry, on_device, ..File::default() });
            next += 1;
        }
        Self {
            files,
            next,
            space,
            extents_begin: extents.begin,
            volume: directory.volume,
            generation: directory.generation,
            is_changed: false,
            is_durable: true,
            has_grown: false,
        }
    }

    pub fn names(&self) -> Vec<String> {
        let mut names: Vec<String> = self.files.values().map(|file| file.entry.name.clone()).collect();
        names.sort();
        names
    }

    pub fn find(&self, name: &str) -> Option<FileId> {
        self.files.iter().find(|(_, file)| file.entry.name == name).map(|(id, _)| *id)
    }

    pub fn name(&self, id: FileId) -> String {
        self.files.get(&id).map(|file| file.entry.name.clone()).unwrap_or_default()
    }

    pub fn make(&mut self, name: &str) -> Result<FileId, Error> {
        if name.is_empty() || name.len() > NAME_BYTES_MAX || name.contains('/') {
            return Err(Error::Name(name.chars().take(NAME_BYTES_MAX).collect()));
        }
        let id = FileId(self.next);
        self.next += 1;
        let entry = Entry { name: name.into(), ..Entry::default() };
        self.files.insert(id, File { entry, ..File::default() });
        self.is_changed = true;
        Ok(id)
    }

    fn file(&self, id: FileId) -> Result<&File, Error> {
        self.files.get(&id).ok_or(Error::Removed)
    }

    fn file_mut(&mut self, id: FileId) -> Result<&mut File, Error> {
        self.files.get_mut(&id).ok_or(Error::Removed)
    }

    pub fn note_log(&mut self, id: FileId) {
        if let Some(file) = self.files.get_mut(&id) {
            file.is_log = true;
        }
    }

    pub fn length(&self, id: FileId) -> Result<u64, Error> {
        Ok(self.file(id)?.entry.length_bytes)
    }

    pub fn version(&self, id: FileId) -> u64 {
        self.files.get(&id).map_or(0, |file| file.version)
    }

    pub fn on_device(&self, id: FileId) -> u64 {
        self.files.get(&id).map_or(0, |file| file.on_device)
    }

    /// Its bytes on the device have changed.
    pub fn written(&mut self, id: FileId) {
        if let Some(file) = self.files.get_mut(&id) {
            file.version += 1;
            file.on_device = file.on_device.max(file.entry.length_bytes);
        }
    }

    /// Makes room for `bytes` bytes.
    pub fn reserve(&mut self, id: FileId, bytes: u64) -> Result<(), Error> {
        loop {
            let file = self.files.get_mut(&id).ok_or(Error::Removed)?;
            let room = file.entry.room_bytes();
            if room >= bytes {
                return Ok(());
            }
            let missing = (bytes - room).div_ceil(EXTENT_BYTES);
            let ahead = (room / EXTENT_BYTES / GROWTH_DIVISOR).min(GROWTH_EXTENTS_MAX);
            let wanted = u32::try_from(missing.max(ahead)).map_err(|_| Error::Full)?;
            let last = file.entry.runs.last().copied();
            let run = self.space.take(last, wanted).ok_or(Error::Full)?;
            match file.entry.runs.last_mut() {
                Some(last) if last.first + last.count == run.first => last.count += run.count,
                _ => file.entry.runs.push(run),
            }
            (self.is_changed, self.has_grown) = (true, true);
        }
    }

    /// The file is at least so long.
    pub fn grown(&mut self, id: FileId, length: u64) -> Result<(), Error> {
        let file = self.file_mut(id)?;
        if file.entry.length_bytes < length {
            file.entry.length_bytes = length;
            let is_recorded = !file.is_log;
            self.is_changed |= is_recorded;
            self.has_grown |= is_recorded;
        }
        Ok(())
    }

    pub fn truncate(&mut self, id: FileId, length: u64) -> Result<(), Error> {
        let file = self.files.get_mut(&id).ok_or(Error::Removed)?;
        file.entry.length_bytes = length;
        file.on_device = file.on_device.min(length);
        file.version += 1;
        let mut spare = (file.entry.room_bytes() - length) / EXTENT_BYTES;
        while let Some(last) = file.entry.runs.last_mut().filter(|_| spare > 0) {
            let count = u64::from(last.count).min(spare) as u32;
            last.count -= count;
            spare -= u64::from(count);
            self.space.leave(Run { first: last.first + last.count, count });
            if last.count == 0 {
                file.entry.runs.pop();
            }
        }
        self.is_changed = true;
        Ok(())
    }

    pub fn remove(&mut self, id: FileId) {
        if let Some(file) = self.files.remove(&id) {
            file.entry.runs.into_iter().for_each(|run| self.space.leave(run));
            self.is_changed = true;
        }
    }

    /// Where a range within a file's extents is on the device, as offsets and lengths.
    pub fn pieces(&self, id: FileId, offset: u64, length: u64) -> Result<Vec<(u64, u64)>, Error> {
        let (mut at, mut left, mut begin) = (offset, length, 0);
        let mut pieces = Vec::new();
        for run in &self.file(id)?.entry.runs {
            let bytes = u64::from(run.count) * EXTENT_BYTES;
            if at < begin + bytes && left > 0 {
                let within = at - begin;
                let count = left.min(bytes - within);
                pieces.push((self.extents_begin + u64::from(run.first) * EXTENT_BYTES + within, count));
                (at, left) = (at + count, left - count);
            }
            begin += bytes;
        }
        if left > 0 { Err(Error::TooLong) } else { Ok(pieces) }
    }

    /// Something is to be saved.
    pub fn touch(&mut self) {
        self.is_changed = true;
    }

    pub fn is_changed(&self) -> bool {
        self.is_changed
    }

    /// Whether extents become free when the directory is durable.
    pub fn has_leaving(&self) -> bool {
        self.space.has_leaving()
    }

    /// The next directory, with its generation.
    pub fn encode(&mut self) -> Result<(u64, Vec<u8>), Error> {
        self.generation += 1;
        let entry = |file: &File| {
            let length_bytes = if file.is_log { file.entry.room_bytes() } else { file.entry.length_bytes };
            Entry { length_bytes, ..file.entry.clone() }
        };
        let entries = self.files.values().map(entry).collect();
        let directory = Directory { generation: self.generation, volume: self.volume, entries };
        let bytes = directory.encode(self.space.extents()).ok_or(Error::Fragmented)?;
        (self.is_changed, self.is_durable) = (false, false);
        Ok((self.generation, bytes))
    }

    pub fn is_durable(&self) -> bool {
        self.is_durable
    }

    pub fn has_grown(&self) -> bool {
        self.has_grown
    }

    /// All that was encoded is durable, and with `is_all` the bytes of all files.
    pub fn flushed(&mut self, is_all: bool) {
        self.is_durable = true;
        self.has_grown &= !is_all;
        if !self.is_changed {
            self.space.release();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extents_are_free_when_no_durable_directory_has_them() {
        let mut files = Files::new(Directory::default(), Extents { begin: 0, count: 2 });
        let old = files.make("old").unwrap();
        files.reserve(old, 2 * EXTENT_BYTES).unwrap();
        files.encode().unwrap();
        files.flushed(true);
        files.remove(old);
        let new = files.make("new").unwrap();
        // The directory without the old file is not written yet, or not durable.
        files.flushed(true);
        assert!(files.reserve(new, EXTENT_BYTES).is_err());
        files.encode().unwrap();
        assert!(files.reserve(new, EXTENT_BYTES).is_err());
        files.flushed(true);
        files.reserve(new, 2 * EXTENT_BYTES).unwrap();
    }
}
