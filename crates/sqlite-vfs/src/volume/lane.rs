//! A thread's channel to the device of a volume, and its memory.
//!
//! Invariant: between two calls only reads ahead are under way, and each of these has its place in the second
//! half of the arena for itself until its completion was reaped.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::Arc;

use flashgrain_device::{Arena, Channel, Completion, Op, Request};

use super::read_ahead::{CHUNK_BYTES, CHUNKS, ReadAhead};
use super::{Error, FileId};

/// Bytes of memory for the data that are read and written at a time.
const TRANSFER_BYTES: usize = 4 << 20;

/// Bytes of the arena.
pub(super) const ARENA_BYTES: usize = TRANSFER_BYTES + CHUNKS * CHUNK_BYTES as usize;

/// Bytes of a request at most.
const REQUEST_BYTES_MAX: usize = 1 << 20;

/// Requests in flight at most.
pub(super) const DEPTH: u32 = 128;

/// Requests in flight other than reads ahead, at most.
const REQUESTS_MAX: usize = 64;

/// Marks the tags of reads ahead; the rest is the chunk's place.
const AHEAD: u64 = 1 << 63;

/// Bytes for the device.
#[derive(Clone, Copy)]
pub(super) struct Transfer<'a> {
    pub device_offset: u64,
    pub bytes: &'a [u8],
}

/// See the module.
pub(super) struct Lane {
    channel: Box<dyn Channel>,
    arena: Arc<Arena>,
    completions: Vec<Completion>,
    ahead: ReadAhead,
    /// The last read's begin.
    read_from: u64,
}

thread_local! {
    static LANES: RefCell<BTreeMap<u64, Lane>> = const { RefCell::new(BTreeMap::new()) };
}

/// Calls with the calling thread's lane to the volume of this number.
pub(super) fn with<T>(
    volume: u64,
    open: impl FnOnce() -> Result<Lane, Error>,
    act: impl FnOnce(&mut Lane) -> Result<T, Error>,
) -> Result<T, Error> {
    let call = |lanes: &RefCell<BTreeMap<u64, Lane>>| {
        let mut lanes = lanes.borrow_mut();
        let lane = match lanes.entry(volume) {
            Entry::Occupied(entry) => entry.into_mut(),
            Entry::Vacant(entry) => entry.insert(open()?),
        };
        let result = act(lane);
        if matches!(result, Err(Error::Device(_))) {
            // Requests that no caller waits for may be under way: the channel waits for them when it is
            // dropped.
            lanes.remove(&volume);
        }
        result
    };
    LANES.try_with(call).unwrap_or_else(|_| Err(Error::ThreadEnds))
}

/// Closes the calling thread's lane. Those of other threads end with these.
pub(super) fn close(volume: u64) {
    // While the thread itself ends, its lanes do anyway.
    let lane = LANES.try_with(|lanes| lanes.borrow_mut().remove(&volume));
    drop(lane);
}

impl Lane {
    pub fn new(channel: Box<dyn Channel>, arena: Arc<Arena>) -> Self {
        let completions = Vec::with_capacity(DEPTH as usize);
        Self { channel, arena, completions, ahead: ReadAhead::default(), read_from: 0 }
    }

    /// Writes all of it, as many at a time as there is room for.
    pub fn write(&mut self, transfers: &[Transfer<'_>]) -> Result<(), Error> {
        let parts = transfers.iter().flat_map(|transfer| {
            let offsets = (transfer.device_offset..).step_by(REQUEST_BYTES_MAX);
            offsets.zip(transfer.bytes.chunks(REQUEST_BYTES_MAX))
        });
        let (mut used, mut requests) = (0, 0);
        for (device_offset, bytes) in parts {
            if used + bytes.len() > TRANSFER_BYTES || requests == REQUESTS_MAX {
                self.finish(requests, "write")?;
                (used, requests) = (0, 0);
            }
            let place = self.arena.as_ptr().wrapping_add(used);
            // SAFETY: the part of the arena is not in use: all requests there are finished before it is
            // filled again.
            unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), place, bytes.len()) };
            self.submit(Op::Write, device_offset, place, bytes.len(), 0)?;
            (used, requests) = (used + bytes.len(), requests + 1);
        }
        self.finish(requests, "write")
    }

    /// Makes all that was written durable.
    pub fn flush(&mut self) -> Result<(), Error> {
        self.submit(Op::Flush, 0, std::ptr::null_mut(), 0, 0)?;
        self.finish(1, "flush")
    }

    /// Reads a range of a file that is at these places of the device.
    pub fn read(
        &mut self,
        file: FileId,
        version: u64,
        begin: u64,
        pieces: &[(u64, u64)],
        bytes: &mut [u8],
    ) -> Result<(), Error> {
        self.read_from = begin;
        if self.read_from_ahead(file, version, begin, bytes)? {
            return Ok(());
        }
        let parts = pieces.iter().flat_map(|(offset, length)| {
            (0..*length).step_by(REQUEST_BYTES_MAX).map(move |at| {
                let part = (length - at).min(REQUEST_BYTES_MAX as u64) as usize;
                (offset + at, part)
            })
        });
        // One wait for each arena full of requests.
        let (mut done, mut used, mut requests) = (0, 0, 0);
        for (device_offset, length) in parts {
            if used + length > TRANSFER_BYTES || requests == REQUESTS_MAX {
                self.finish(requests, "read")?;
                self.copy_out(0, &mut bytes[done..done + used]);
                (done, used, requests) = (done + used, 0, 0);
            }
            let place = self.arena.as_ptr().wrapping_add(used);
            self.submit(Op::Read, device_offset, place, length, 0)?;
            (used, requests) = (used + length, requests + 1);
        }
        self.finish(requests, "read")?;
        self.copy_out(0, &mut bytes[done..done + used]);
        Ok(())
    }

    /// Fills `bytes` from the reads ahead, if they have all of it.
    fn read_from_ahead(
        &mut self,
        file: FileId,
        version: u64,
        begin: u64,
        bytes: &mut [u8],
    ) -> Result<bool, Error> {
        let (mut at, end) = (begin, begin + bytes.len() as u64);
        while at < end {
            let Some(chunk) = self.ahead.find(file, version, at) else { return Ok(false) };
            if chunk.in_flight > 0 {
                self.wait()?;
                continue;
            }
            let within = at - chunk.offset;
            let count = (chunk.bytes - within).min(end - at) as usize;
            let from = TRANSFER_BYTES + chunk.place * CHUNK_BYTES as usize + within as usize;
            self.copy_out(from, &mut bytes[(at - begin) as usize..][..count]);
            at += count as u64;
        }
        self.ahead.pass(file, version, end);
        Ok(true)
    }

    fn copy_out(&self, from: usize, bytes: &mut [u8]) {
        let place = self.arena.as_ptr().wrapping_add(from);
        // SAFETY: the range lies in the arena, and all requests there are finished.
        unsafe { std::ptr::copy_nonoverlapping(place, bytes.as_mut_ptr(), bytes.len()) };
    }

    /// Ranges to read ahead, after a read that ended at `end`.
    pub fn ahead_wanted(&mut self, file: FileId, end: u64, bytes_max: u32) -> Vec<(u64, u64)> {
        self.ahead.wanted(file, self.read_from, end, u64::from(bytes_max))
    }

    /// Asks for a range without waiting for it.
    pub fn send_ahead(
        &mut self,
        file: FileId,
        version: u64,
        offset: u64,
        pieces: &[(u64, u64)],
    ) -> Result<(), Error> {
        let bytes = pieces.iter().map(|(_, length)| length).sum();
        let Some(place) = self.ahead.add(file, version, offset, bytes, pieces.len() as u32) else {
            return Ok(());
        };
        let mut at = TRANSFER_BYTES + place * CHUNK_BYTES as usize;
        for (device_offset, length) in pieces {
            let memory = self.arena.as_ptr().wrapping_add(at);
            self.submit(Op::Read, *device_offset, memory, *length as usize, AHEAD | place as u64)?;
            at += *length as usize;
        }
        // They reach the device now, and not with the next read.
        self.completions.clear();
        self.channel.poll(&mut self.completions)?;
        self.reap_ahead();
        Ok(())
    }

    fn submit(
        &mut self,
        op: Op,
        offset_bytes: u64,
        memory: *mut u8,
        bytes: usize,
        tag: u64,
    ) -> Result<(), Error> {
        let length_bytes = bytes as u32;
        let request = Request { op, offset_bytes, length_bytes, memory, tag };
        // SAFETY: the memory is a part of the arena, which the channel outlives neither: both are dropped
        // with this lane, the channel first. No other code uses the part until the request is finished.
        Ok(unsafe { self.channel.submit(request) }?)
    }

    /// Waits for `requests` requests that are not reads ahead.
    fn finish(&mut self, requests: usize, op: &'static str) -> Result<(), Error> {
        let (mut left, mut failed) = (requests, None);
        while left > 0 {
            self.completions.clear();
            self.channel.wait(1, None, &mut self.completions)?;
            for completion in self.completions.iter().filter(|completion| completion.tag & AHEAD == 0) {
                left -= 1;
                failed = failed.or(completion.result.err());
            }
            self.reap_ahead();
        }
        match failed {
            Some(errno) => Err(Error::Request { op, source: std::io::Error::from_raw_os_error(errno) }),
            None => Ok(()),
        }
    }

    /// Waits for some read ahead.
    fn wait(&mut self) -> Result<(), Error> {
        self.completions.clear();
        self.channel.wait(1, None, &mut self.completions)?;
        self.reap_ahead();
        Ok(())
    }

    fn reap_ahead(&mut self) {
        for completion in self.completions.iter().filter(|completion| completion.tag & AHEAD != 0) {
            self.ahead.done((completion.tag & !AHEAD) as usize, completion.result.is_err());
        }
    }
}
