//! Volumes: the few files that SQLite keeps for its databases, on any [`Device`].
//!
//! ```text
//! 0              512 KiB        1 MiB        2 MiB, with several members more
//! ├ directory ───┼ directory ───┼ labels ────┼ extent 0 ──────┼ extent 1 ─ …
//!   slot 0         slot 1         of members
//! ```
//!
//! Each file or drive that the device is made of has a [`label`]: members of other volumes, and members in
//! another order, are refused. Volumes of version 2 have none, and extents where the labels would be.
//!
//! A file is a list of extents of 1 MiB, so that its offsets lie on the drive's chunks and stripes as those
//! of the device do. The directory says which file has which extents. Life of a change:
//!
//! 1. [`Volume::write`] keeps bytes in the write buffer, which joins neighbours. The buffer holds bytes of
//!    one file at a time, so that files are written in the order in which SQLite writes to them.
//! 2. [`Volume::write_out`] has the device take all of them at once. A killed program loses nothing of it.
//! 3. [`Volume::sync`] writes out, saves a directory that has changed to the slot with the older generation,
//!    and flushes. A power cut loses nothing of it.
//!
//! Invariants:
//! - Extents that a file gave up are free only once a directory without them is durable.
//! - A directory with longer files is written only when their bytes are durable.
//! - A log's recorded length is that of all its extents: SQLite finds the log's end by checksums.
//! - A damaged or half-written slot is no slot; the other one counts.
//!
//! One process uses a volume at a time, by any number of connections and threads.

mod buffer;
mod directory;
mod edges;
mod error;
mod files;
mod label;
mod lane;
mod locks;
mod opening;
mod read_ahead;
mod shared;
mod space;
#[cfg(feature = "testing")]
pub(crate) mod testing;
mod volume_id;

use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use flashgrain_device::{ChannelOptions, Device, Op};

pub use error::Error;
pub(crate) use files::FileId;
pub(crate) use locks::Level;
pub(crate) use shared::{MEMORY_LOCKS, Shared, SharedMemory};

use buffer::WriteBuffer;
use edges::Edges;
use files::Files;
use lane::Transfer;

/// Bytes of an extent.
const EXTENT_BYTES: u64 = 1 << 20;

/// Bytes of a block; requests are whole blocks, as those of file systems are. Most drives map blocks of this
/// size, and have to read the rest of a block that is written in part.
const BLOCK_BYTES: u64 = 4096;

/// Bytes of a directory slot.
const SLOT_BYTES: u64 = 512 << 10;

/// Options for opening a volume.
#[derive(Clone, Copy, Debug)]
pub struct VolumeOptions {
    /// How far scans are read ahead of, in bytes; 0 for not at all.
    pub read_ahead_bytes: u32,
}

impl Default for VolumeOptions {
    fn default() -> Self {
        Self { read_ahead_bytes: 1 << 20 }
    }
}

/// A request that a volume has sent, for callers that record requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sent {
    /// The file.
    pub file: String,
    /// The operation.
    pub op: Op,
    /// First byte in the file; 0 of a flush.
    pub offset_bytes: u64,
    /// Bytes; 0 of a flush.
    pub length_bytes: u64,
    /// The part of a write that SQLite asked for: it is rounded to whole blocks.
    pub asked: Range<u64>,
}

/// See the module.
pub struct Volume {
    number: u64,
    device: Arc<dyn Device>,
    options: VolumeOptions,
    align: u64,
    inner: Mutex<Inner>,
    shared: Shared,
}

/// The mutable state.
struct Inner {
    files: Files,
    buffer: WriteBuffer,
    edges: Edges,
    /// Requests since recording began, if it has.
    sent: Option<Vec<Sent>>,
    /// The first failure of a write or flush, after which nothing is written any more.
    failed: Option<String>,
}

impl std::fmt::Debug for Volume {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "Volume on {}", self.device.identity().target)
    }
}

impl Drop for Volume {
    fn drop(&mut self) {
        // Programs that end without syncing lose nothing that they have written. An error can be returned to
        // no caller.
        drop(self.write_out());
        lane::close(self.number);
    }
}

impl Volume {
    /// The device's name.
    pub fn target(&self) -> String {
        self.device.identity().target.clone()
    }

    /// A number that no other volume of this process has.
    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    /// Names of all files, sorted.
    pub fn names(&self) -> Vec<String> {
        self.inner().files.names()
    }

    /// Begins to record all requests, or ends it; gives those that were recorded.
    pub fn record(&self, is_on: bool) -> Vec<Sent> {
        let mut inner = self.inner();
        let new = is_on.then(Vec::new);
        std::mem::replace(&mut inner.sent, new).unwrap_or_default()
    }

    /// Locks and shared memory of its databases.
    pub(crate) fn shared(&self) -> &Shared {
        &self.shared
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        // A panic may have left a change half done in memory: the next write could destroy files.
        self.inner.lock().unwrap_or_else(|poisoned: PoisonError<_>| {
            let mut inner = poisoned.into_inner();
            inner.failed.get_or_insert_with(|| "an operation on the volume has panicked".into());
            inner
        })
    }

    /// Finds a file, or makes it if `making`.
    pub(crate) fn file(&self, name: &str, making: bool) -> Result<Option<FileId>, Error> {
        let mut inner = self.inner();
        match inner.files.find(name) {
            Some(id) => Ok(Some(id)),
            None if making => inner.files.make(name).map(Some),
            None => Ok(None),
        }
    }

    /// Notes that a file is a log, whose end SQLite finds by itself.
    pub(crate) fn note_log(&self, file: FileId) {
        self.inner().files.note_log(file);
    }

    /// The file's length.
    pub(crate) fn length(&self, file: FileId) -> Result<u64, Error> {
        self.inner().files.length(file)
    }

    /// Fills `bytes` from `offset` on, with zeros after the file's end. Whether all bytes were there.
    pub(crate) fn read(&self, file: FileId, offset: u64, bytes: &mut [u8]) -> Result<bool, Error> {
        let mut inner = self.inner();
        let length = inner.files.length(file)?;
        let there = (length.saturating_sub(offset).min(bytes.len() as u64)) as usize;
        let (found, rest) = bytes.split_at_mut(there);
        rest.fill(0);
        if found.is_empty() {
            return Ok(rest.is_empty());
        }
        if inner.buffer.overlaps(file, offset, found.len() as u64) {
            self.write_out_now(&mut inner)?;
        }
        if inner.edges.read(file, offset, found) {
            return Ok(rest.is_empty());
        }
        let begin = offset / self.align * self.align;
        let end = (offset + found.len() as u64).next_multiple_of(self.align);
        let pieces = inner.files.pieces(file, begin, end - begin)?;
        note(&mut inner, file, Op::Read, begin, end - begin, begin..end);
        let version = inner.files.version(file);
        drop(inner);
        if (begin, end) == (offset, offset + found.len() as u64) {
            self.with_lane(|lane| lane.read(file, version, begin, &pieces, found))?;
        } else {
            let mut whole = vec![0; (end - begin) as usize];
            self.with_lane(|lane| lane.read(file, version, begin, &pieces, &mut whole))?;
            found.copy_from_slice(&whole[(offset - begin) as usize..][..there]);
            self.remember_edge(file, version, begin, &whole);
        }
        self.read_ahead(file, end)?;
        Ok(rest.is_empty())
    }

    /// A block that was read in part is read again soon: SQLite's header and its counters.
    fn remember_edge(&self, file: FileId, version: u64, begin: u64, whole: &[u8]) {
        let mut inner = self.inner();
        if whole.len() as u64 == self.align && inner.files.version(file) == version {
            inner.edges.remember(file, begin, whole);
        }
    }

    /// Has the calling thread's channel read on if it is in a scan.
    fn read_ahead(&self, file: FileId, end: u64) -> Result<(), Error> {
        let wanted = match self.options.read_ahead_bytes {
            0 => return Ok(()),
            bytes => self.with_lane(|lane| Ok(lane.ahead_wanted(file, end, bytes)))?,
        };
        for (offset, bytes) in wanted {
            let mut inner = self.inner();
            let there =
                inner.files.length(file)?.next_multiple_of(self.align).saturating_sub(offset).min(bytes);
            if there == 0 || inner.buffer.overlaps(file, offset, there) {
                return Ok(());
            }
            let pieces = inner.files.pieces(file, offset, there)?;
            note(&mut inner, file, Op::Read, offset, there, offset..offset + there);
            let version = inner.files.version(file);
            drop(inner);
            self.with_lane(|lane| lane.send_ahead(file, version, offset, &pieces))?;
        }
        Ok(())
    }

    /// Puts bytes into the write buffer.
    pub(crate) fn write(&self, file: FileId, offset: u64, bytes: &[u8]) -> Result<(), Error> {
        let mut inner = self.inner();
        check(&inner)?;
        let length = inner.files.length(file)?;
        let end = offset.checked_add(bytes.len() as u64).ok_or(Error::TooLong)?;
        self.reserve(&mut inner, file, end)?;
        if offset > length {
            self.fill_gap(&mut inner, file, length, offset)?;
        }
        self.put(&mut inner, file, offset, bytes)?;
        inner.files.grown(file, end)
    }

    /// Makes room for `end` bytes of a file, if need be in the places of removed files.
    fn reserve(&self, inner: &mut Inner, file: FileId, end: u64) -> Result<(), Error> {
        match inner.files.reserve(file, end) {
            Err(Error::Full) if inner.files.has_leaving() => {
                self.write_out_now(inner)?;
                self.save(inner)?;
                self.flush(inner, FileId::NONE)?;
                inner.files.reserve(file, end)
            }
            result => result,
        }
    }

    /// The bytes between the file's end and a write after it are zero.
    fn fill_gap(&self, inner: &mut Inner, file: FileId, from: u64, to: u64) -> Result<(), Error> {
        let zeros = vec![0; 64 << 10];
        let mut at = from;
        while at < to {
            let bytes = (to - at).min(zeros.len() as u64);
            self.put(inner, file, at, &zeros[..bytes as usize])?;
            at += bytes;
            inner.files.grown(file, at)?;
        }
        Ok(())
    }

    fn put(&self, inner: &mut Inner, file: FileId, offset: u64, bytes: &[u8]) -> Result<(), Error> {
        if !inner.buffer.takes(file, offset, bytes.len() as u64) {
            self.write_out_now(inner)?;
        }
        inner.buffer.put(file, offset, bytes);
        Ok(())
    }

    /// Makes a file shorter.
    pub(crate) fn truncate(&self, file: FileId, length: u64) -> Result<(), Error> {
        let mut inner = self.inner();
        check(&inner)?;
        if inner.files.length(file)? > length {
            self.write_out_now(&mut inner)?;
            inner.edges.forget(file);
            inner.files.truncate(file, length)?;
        }
        Ok(())
    }

    /// Removes a file; with `durably`, it is gone for good when this returns.
    pub(crate) fn remove(&self, name: &str, durably: bool) -> Result<bool, Error> {
        let mut inner = self.inner();
        check(&inner)?;
        let Some(file) = inner.files.find(name) else { return Ok(false) };
        // Writes to other files go before, as they would on a file system.
        if inner.buffer.file() == Some(file) {
            inner.buffer.clear();
        }
        self.write_out_now(&mut inner)?;
        inner.edges.forget(file);
        inner.files.remove(file);
        self.save(&mut inner)?;
        if durably {
            self.flush(&mut inner, FileId::NONE)?;
        }
        Ok(true)
    }

    /// Hands everything that is written to the device: from here on, a kill loses nothing of it.
    pub(crate) fn write_out(&self) -> Result<(), Error> {
        let mut inner = self.inner();
        self.write_out_now(&mut inner)?;
        if inner.files.is_changed() {
            check(&inner)?;
            self.save(&mut inner)?;
        }
        Ok(())
    }

    /// Makes everything that is written durable.
    pub(crate) fn sync(&self, file: FileId) -> Result<(), Error> {
        let mut inner = self.inner();
        check(&inner)?;
        self.write_out_now(&mut inner)?;
        if inner.files.is_changed() {
            self.save(&mut inner)?;
        }
        self.flush(&mut inner, file)
    }

    fn write_out_now(&self, inner: &mut Inner) -> Result<(), Error> {
        let Some(file) = inner.buffer.file() else { return Ok(()) };
        check(inner)?;
        let ranges = inner.buffer.take();
        let done = self.send(inner, file, ranges);
        fail(inner, done)
    }

    /// Has the device take ranges of a file.
    fn send(&self, inner: &mut Inner, file: FileId, ranges: Vec<(u64, Vec<u8>)>) -> Result<(), Error> {
        let images = self.images(inner, file, ranges)?;
        let mut transfers = Vec::new();
        for Image { begin, bytes, asked } in &images {
            note(inner, file, Op::Write, *begin, bytes.len() as u64, asked.clone());
            let mut at = 0;
            for (device_offset, length) in inner.files.pieces(file, *begin, bytes.len() as u64)? {
                transfers.push(Transfer { device_offset, bytes: &bytes[at..at + length as usize] });
                at += length as usize;
            }
        }
        inner.files.written(file);
        self.with_lane(|lane| lane.write(&transfers))
    }

    /// Ranges as whole blocks: bytes around them come from the device.
    fn images(
        &self,
        inner: &mut Inner,
        file: FileId,
        ranges: Vec<(u64, Vec<u8>)>,
    ) -> Result<Vec<Image>, Error> {
        let mut images: Vec<Image> = Vec::new();
        for (offset, bytes) in ranges {
            let (begin, end) = (offset / self.align * self.align, offset + bytes.len() as u64);
            if images.last().is_none_or(|last| last.end() <= begin) {
                // Of a block that is written as a whole, nothing is to be kept.
                let is_kept = offset > begin || end < begin + self.align;
                let bytes = if is_kept { self.block(inner, file, begin)? } else { Vec::new() };
                images.push(Image { begin, bytes, asked: offset..end });
            }
            let Some(image) = images.last_mut() else { continue };
            let until = end.next_multiple_of(self.align);
            let is_kept = end < until && image.end() < until;
            image.bytes.resize(image.end().max(until) as usize - image.begin as usize, 0);
            if is_kept {
                let last = self.block(inner, file, until - self.align)?;
                image.put(until - self.align, &last);
            }
            image.put(offset, &bytes);
            image.asked.end = end;
            if end < until {
                // The next write begins in this block.
                inner.edges.remember(file, until - self.align, image.from(until - self.align));
            }
        }
        for image in &images {
            inner.edges.written(file, image.begin, &image.bytes);
        }
        Ok(images)
    }

    /// A block as it is on the device.
    fn block(&self, inner: &mut Inner, file: FileId, offset: u64) -> Result<Vec<u8>, Error> {
        let mut bytes = vec![0; self.align as usize];
        if inner.edges.read(file, offset, &mut bytes) {
            return Ok(bytes);
        }
        // Beyond the bytes that were ever written there is nothing to keep.
        if offset < inner.files.on_device(file) {
            let pieces = inner.files.pieces(file, offset, self.align)?;
            note(inner, file, Op::Read, offset, self.align, offset..offset + self.align);
            let version = inner.files.version(file);
            self.with_lane(|lane| lane.read(file, version, offset, &pieces, &mut bytes))?;
        }
        Ok(bytes)
    }

    /// Bytes with zeros after them, up to whole blocks.
    fn whole(&self, mut bytes: Vec<u8>) -> Vec<u8> {
        bytes.resize(bytes.len().next_multiple_of(self.align as usize), 0);
        bytes
    }

    /// Writes the directory to the slot with the older generation.
    fn save(&self, inner: &mut Inner) -> Result<(), Error> {
        // Of two slots that are written to, none might be whole after a power cut. And the extents that a
        // file has just got may hold an older journal, which SQLite would take for the new one.
        if !inner.files.is_durable() || inner.files.has_grown() {
            self.flush(inner, FileId::NONE)?;
        }
        let (generation, bytes) = inner.files.encode()?;
        let bytes = self.whole(bytes);
        let transfer = Transfer { device_offset: generation % 2 * SLOT_BYTES, bytes: &bytes };
        let asked = transfer.device_offset..transfer.device_offset + bytes.len() as u64;
        note(inner, FileId::NONE, Op::Write, asked.start, bytes.len() as u64, asked);
        let done = self.with_lane(|lane| lane.write(&[transfer]));
        fail(inner, done)
    }

    fn flush(&self, inner: &mut Inner, file: FileId) -> Result<(), Error> {
        note(inner, file, Op::Flush, 0, 0, 0..0);
        let done = self.with_lane(|lane| lane.flush());
        fail(inner, done)?;
        let is_all = inner.buffer.file().is_none();
        inner.files.flushed(is_all);
        Ok(())
    }

    fn read_device(&self, offset: u64, bytes: &mut [u8]) -> Result<(), Error> {
        let pieces = [(offset, bytes.len() as u64)];
        self.with_lane(|lane| lane.read(FileId::NONE, 0, offset, &pieces, bytes))
    }

    /// Calls with the calling thread's channel to this device.
    fn with_lane<T>(&self, act: impl FnOnce(&mut lane::Lane) -> Result<T, Error>) -> Result<T, Error> {
        lane::with(self.number, || self.open_lane(), act)
    }

    fn open_lane(&self) -> Result<lane::Lane, Error> {
        let arena = Arc::new(flashgrain_device::Arena::new(lane::ARENA_BYTES)?);
        let options = ChannelOptions { depth: lane::DEPTH, arena: Some(Arc::clone(&arena)), polled: false };
        Ok(lane::Lane::new(self.device.open_channel(&options)?, arena))
    }
}

/// Whole blocks that are written together.
struct Image {
    begin: u64,
    bytes: Vec<u8>,
    /// From the first to the last byte that was asked for.
    asked: Range<u64>,
}

impl Image {
    fn end(&self) -> u64 {
        self.begin + self.bytes.len() as u64
    }

    fn from(&self, offset: u64) -> &[u8] {
        &self.bytes[(offset - self.begin) as usize..]
    }

    fn put(&mut self, offset: u64, bytes: &[u8]) {
        self.bytes[(offset - self.begin) as usize..][..bytes.len()].copy_from_slice(bytes);
    }
}

fn check(inner: &Inner) -> Result<(), Error> {
    match &inner.failed {
        Some(why) => Err(Error::Failed(why.clone())),
        None => Ok(()),
    }
}

/// Notes a failed write: the content of its range on the device is unknown.
fn fail(inner: &mut Inner, result: Result<(), Error>) -> Result<(), Error> {
    if let Err(error) = &result {
        inner.failed.get_or_insert_with(|| error.to_string());
    }
    result
}

fn note(inner: &mut Inner, file: FileId, op: Op, offset_bytes: u64, length_bytes: u64, asked: Range<u64>) {
    let Inner { sent: Some(sent), files, .. } = inner else { return };
    let file = if file == FileId::NONE { "the directory".into() } else { files.name(file) };
    sent.push(Sent { file, op, offset_bytes, length_bytes, asked });
}
