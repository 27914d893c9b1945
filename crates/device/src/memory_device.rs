//! Memory as a device: it costs nothing but the copy.
//!
//! For tests, and for benchmarks in which the CPU is to be the limit. Whatever is submitted is done at once;
//! it is answered at the next poll, as on any device.

use std::collections::VecDeque;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use crate::alarm::{self, Alarm};
use crate::{
    Arena, Channel, ChannelOptions, ChannelWaker, Completion, Device, Error, Geometry, Identity, Nanos, Op,
    Request, clock,
};

/// Alignment of offsets and lengths, as most drives have it.
const SECTOR_BYTES: u32 = 512;

/// The unit of memory that the system takes back.
const PAGE_BYTES: usize = 4096;

/// See the module. Its bytes are zero until they are written. The memory is taken from the system when it is
/// first written to.
#[derive(Debug)]
pub struct MemoryDevice {
    geometry: Geometry,
    identity: Identity,
    bytes: Arc<Bytes>,
}

/// The bytes, and how many of them are in use.
#[derive(Debug)]
struct Bytes {
    start: NonNull<u8>,
    reserved_bytes: usize,
    capacity_bytes: AtomicU64,
    /// Held while that changes.
    resizing: Mutex<()>,
}

// SAFETY: plain memory with no thread affinity. It is only copied to and from, through raw pointers. Requests
// in flight that overlap leave unspecified bytes if one of them writes, as on every device; no reference to
// the memory is ever made.
unsafe impl Send for Bytes {}
// SAFETY: as above.
unsafe impl Sync for Bytes {}

impl MemoryDevice {
    /// A device of `capacity_bytes`, rounded up to whole sectors of 512 bytes, that may grow to
    /// `limit_bytes`.
    ///
    /// # Errors
    /// [`Error::Os`] if there is no address space of `limit_bytes`.
    pub fn new(capacity_bytes: u64, limit_bytes: u64) -> Result<Self, Error> {
        let capacity_bytes = capacity_bytes.max(1).next_multiple_of(u64::from(SECTOR_BYTES));
        let bytes = Bytes::new(capacity_bytes, limit_bytes.max(capacity_bytes))?;
        let geometry = Geometry {
            capacity_bytes,
            offset_align_bytes: SECTOR_BYTES,
            memory_align_bytes: 1,
            preferred_max_transfer_bytes: 1 << 20,
            direct: true,
            writable: true,
            members: 1,
            stripe_unit_bytes: None,
        };
        let identity = Identity {
            target: "mem".into(),
            kind: "memory".into(),
            logical_block_bytes: Some(SECTOR_BYTES),
            backend: "memory".into(),
            backend_reason: "copies within memory".into(),
            ..Identity::default()
        };
        Ok(Self { geometry, identity, bytes: Arc::new(bytes) })
    }
}

impl Bytes {
    fn new(capacity_bytes: u64, limit_bytes: u64) -> Result<Self, Error> {
        let doing = || format!("reserve {limit_bytes} bytes of address space for a device in memory");
        let huge_page = 2 << 20;
        let reserved_bytes =
            usize::try_from(limit_bytes).ok().and_then(|bytes| bytes.checked_next_multiple_of(huge_page));
        let Some(reserved_bytes) = reserved_bytes else {
            return Err(Error::Os {
                doing: doing(),
                source: std::io::Error::from_raw_os_error(libc::ENOMEM),
            });
        };
        let (rights, kind) = (
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
        );
        // SAFETY: an anonymous private mapping at an address of the kernel's choice touches nothing that
        // exists.
        let start = unsafe { libc::mmap(std::ptr::null_mut(), reserved_bytes, rights, kind, -1, 0) };
        match NonNull::new(start.cast::<u8>()) {
            Some(start) if start.as_ptr().cast() != libc::MAP_FAILED => {
                // SAFETY: advice on the mapping just made; failure is harmless and ignored.
                unsafe { libc::madvise(start.as_ptr().cast(), reserved_bytes, libc::MADV_HUGEPAGE) };
                Ok(Self {
                    start,
                    reserved_bytes,
                    capacity_bytes: AtomicU64::new(capacity_bytes),
                    resizing: Mutex::new(()),
                })
            }
            _ => Err(Error::last_os(doing())),
        }
    }

    fn capacity(&self) -> u64 {
        self.capacity_bytes.load(Ordering::Acquire)
    }

    /// # Safety
    /// As [`Channel::submit`], and the request lies within the capacity.
    #[inline]
    unsafe fn carry_out(&self, request: &Request) {
        let (offset, length) = (request.offset_bytes as usize, request.length_bytes as usize);
        // SAFETY: the request lies within the capacity, which lies within the mapping.
        let place = unsafe { self.start.as_ptr().add(offset) };
        match request.op {
            // SAFETY: the caller's memory is valid for `length` bytes, and a caller's buffer is not part of
            // this private mapping.
            Op::Read => unsafe { place.copy_to_nonoverlapping(request.memory, length) },
            // SAFETY: as above.
            Op::Write | Op::WriteDsync | Op::WriteThenFlush => unsafe {
                place.copy_from_nonoverlapping(request.memory, length);
            },
            Op::Flush => {}
            // SAFETY: within the mapping; afterwards its bytes are zero.
            Op::Discard => unsafe { place.write_bytes(0, length) },
        }
    }
}

impl Bytes {
    /// Returns the memory after this byte to the system: it reads as zeros.
    fn give_back_from(&self, from: usize) {
        let from = from.next_multiple_of(PAGE_BYTES).min(self.reserved_bytes);
        // SAFETY: the range lies within this private mapping, which lives as long as `self`. A concurrent
        // read of it gets the old bytes or zeros: after its end a device promises neither.
        unsafe {
            libc::madvise(
                self.start.as_ptr().add(from).cast(),
                self.reserved_bytes - from,
                libc::MADV_DONTNEED,
            );
        }
    }
}

impl Drop for Bytes {
    fn drop(&mut self) {
        // SAFETY: the mapping made in `new`; the last owner is going.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.reserved_bytes) };
    }
}

impl Device for MemoryDevice {
    fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    fn identity(&self) -> &Identity {
        &self.identity
    }

    fn open_channel(&self, options: &ChannelOptions) -> Result<Box<dyn Channel>, Error> {
        let depth = options.depth as usize;
        Ok(Box::new(MemoryChannel {
            bytes: Arc::clone(&self.bytes),
            geometry: self.geometry.clone(),
            depth,
            done: VecDeque::with_capacity(depth),
            submitted: Nanos(0),
            alarm: None,
            _arena: options.arena.clone(),
        }))
    }

    fn capacity_bytes(&self) -> u64 {
        self.bytes.capacity()
    }

    fn grow(&self, capacity_bytes: u64) -> Result<(), Error> {
        let wanted = capacity_bytes.next_multiple_of(u64::from(SECTOR_BYTES));
        if wanted > self.bytes.reserved_bytes as u64 {
            let doing = format!("grow a device in memory to {capacity_bytes} bytes");
            return Err(Error::Os { doing, source: std::io::Error::from_raw_os_error(libc::ENOSPC) });
        }
        let _alone = self.bytes.resizing.lock().unwrap_or_else(PoisonError::into_inner);
        self.bytes.capacity_bytes.fetch_max(wanted, Ordering::AcqRel);
        Ok(())
    }

    fn shrinks(&self) -> bool {
        true
    }

    fn shrink(&self, capacity_bytes: u64) -> Result<(), Error> {
        let wanted = capacity_bytes.next_multiple_of(u64::from(SECTOR_BYTES));
        let _alone = self.bytes.resizing.lock().unwrap_or_else(PoisonError::into_inner);
        if self.bytes.capacity_bytes.fetch_min(wanted, Ordering::AcqRel) > wanted {
            self.bytes.give_back_from(wanted as usize);
        }
        Ok(())
    }
}

/// Requests are done when they are submitted and handed back when they are asked for.
struct MemoryChannel {
    bytes: Arc<Bytes>,
    geometry: Geometry,
    depth: usize,
    /// Tags of requests that are done.
    done: VecDeque<u64>,
    /// When the first of them was submitted: one reading of the clock serves the batch.
    submitted: Nanos,
    /// Ends waits; made by the first call of [`Channel::waker`].
    alarm: Option<Alarm>,
    _arena: Option<Arc<Arena>>,
}

impl Channel for MemoryChannel {
    unsafe fn submit(&mut self, request: Request) -> Result<(), Error> {
        if self.done.len() == self.depth {
            return Err(Error::QueueFull);
        }
        self.geometry.capacity_bytes = self.bytes.capacity();
        self.geometry.check(&request)?;
        if self.done.is_empty() {
            self.submitted = clock::now();
        }
        // SAFETY: passed on from the caller; the range was checked.
        unsafe { self.bytes.carry_out(&request) };
        self.done.push_back(request.tag);
        Ok(())
    }

    fn poll(&mut self, completions: &mut Vec<Completion>) -> Result<usize, Error> {
        let count = self.done.len().min(completions.capacity() - completions.len());
        if count > 0 {
            let (submitted, completed) = (self.submitted, clock::now());
            let done = self.done.drain(..count);
            completions.extend(done.map(|tag| Completion { tag, result: Ok(()), submitted, completed }));
            // The remaining requests, and those that join them before all have completed, were hardly
            // submitted earlier.
            self.submitted = completed;
        }
        Ok(count)
    }

    fn wait(
        &mut self,
        _at_least: usize,
        until: Option<Nanos>,
        completions: &mut Vec<Completion>,
    ) -> Result<usize, Error> {
        let count = self.poll(completions)?;
        if let Some(until) = until.filter(|_| count == 0) {
            alarm::sleep(self.alarm.as_ref(), until);
        }
        Ok(count)
    }

    fn waker(&mut self) -> Option<ChannelWaker> {
        if self.alarm.is_none() {
            self.alarm = Alarm::new().ok();
        }
        self.alarm.as_ref().map(Alarm::waker)
    }

    fn now(&self) -> Nanos {
        clock::now()
    }

    fn in_flight(&self) -> usize {
        self.done.len()
    }

    fn depth(&self) -> usize {
        self.depth
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ErrorKind;

    fn channel(device: &MemoryDevice) -> Box<dyn Channel> {
        device.open_channel(&ChannelOptions { depth: 4, arena: None, polled: false }).unwrap()
    }

    fn submit(channel: &mut dyn Channel, op: Op, offset_bytes: u64, memory: &mut [u8]) -> Result<(), Error> {
        let length_bytes = memory.len() as u32;
        let request =
            Request { op, offset_bytes, length_bytes, memory: memory.as_mut_ptr(), tag: offset_bytes };
        // SAFETY: a device in memory is done with the buffer when `submit` returns.
        unsafe { channel.submit(request) }
    }

    #[test]
    fn what_was_written_is_read_through_another_channel_in_order() {
        let device = MemoryDevice::new(1 << 20, 0).unwrap();
        let (mut one, mut other) = (channel(&device), channel(&device));
        for place in 0..4u64 {
            submit(&mut *one, Op::Write, place * 512, &mut [place as u8 + 1; 512]).unwrap();
        }
        assert_eq!(submit(&mut *one, Op::Write, 0, &mut [0; 512]).unwrap_err().kind(), ErrorKind::QueueFull);
        let mut completions = Vec::with_capacity(3);
        assert_eq!(one.poll(&mut completions).unwrap(), 3);
        assert_eq!((one.in_flight(), one.poll(&mut Vec::with_capacity(8)).unwrap()), (1, 1));
        assert_eq!(completions.iter().map(|done| done.tag).collect::<Vec<_>>(), [0, 512, 1024]);
        let mut found = [0; 2048];
        submit(&mut *other, Op::Read, 0, &mut found).unwrap();
        assert!((0..2048).all(|byte| found[byte] as usize == byte / 512 + 1));
        submit(&mut *other, Op::Discard, 512, &mut found[..512]).unwrap();
        submit(&mut *other, Op::Read, 0, &mut found).unwrap();
        assert!(found[512..1024].iter().all(|byte| *byte == 0) && found[1024] == 3);
    }

    #[test]
    fn open_channels_see_that_it_has_grown() {
        let device = MemoryDevice::new(4096, 1 << 20).unwrap();
        let mut channel = channel(&device);
        let mut block = [7; 4096];
        let refused = submit(&mut *channel, Op::Write, 4096, &mut block).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Request);
        device.grow(8192).unwrap();
        assert_eq!(device.capacity_bytes(), 8192);
        submit(&mut *channel, Op::Write, 4096, &mut block).unwrap();
        assert_eq!(device.grow(1 << 30).unwrap_err().kind(), ErrorKind::NoSpace);
        assert_eq!(device.capacity_bytes(), 8192);
    }
}
