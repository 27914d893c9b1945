//! A device whose contents stay as they are: writes are kept in memory, and read from there.
//!
//! For looking at something without changing it, by code that writes when it looks, such as a store that
//! replays its log. Memory for writes is limited; a write beyond that fails with `ENOMEM`.
//!
//! 1. A write is copied, sector by sector, and done at once.
//! 2. A read goes to the device below. When the read is answered, written sectors replace those of the device
//!    below.
//!
//! Invariant: nothing but reads ever reaches the device below.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use crate::{
    Channel, ChannelOptions, ChannelWaker, Completion, Device, Error, Geometry, Identity, Nanos, Op, Request,
};

/// Unit of storage. Offsets and lengths of writes are multiples of it.
const SECTOR_BYTES: usize = 512;

/// See the module.
pub struct OverlayDevice {
    below: Arc<dyn Device>,
    geometry: Geometry,
    written: Arc<Written>,
}

/// Sectors that were written, by number.
struct Written {
    sectors: RwLock<HashMap<u64, Box<[u8; SECTOR_BYTES]>>>,
    /// Number of sectors: with none, reads need no search.
    count: AtomicUsize,
    count_max: usize,
}

impl OverlayDevice {
    /// Over a device that is opened for reading; keeps up to `bytes_max` of writes.
    pub fn new(below: Arc<dyn Device>, bytes_max: u64) -> Self {
        let geometry = Geometry { writable: true, ..below.geometry().clone() };
        let count_max = usize::try_from(bytes_max).unwrap_or(usize::MAX) / SECTOR_BYTES;
        let written = Written { sectors: RwLock::default(), count: AtomicUsize::new(0), count_max };
        Self { below, geometry, written: Arc::new(written) }
    }
}

impl Device for OverlayDevice {
    fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    fn identity(&self) -> &Identity {
        self.below.identity()
    }

    fn shortages(&self) -> Vec<String> {
        self.below.shortages()
    }

    fn open_channel(&self, options: &ChannelOptions) -> Result<Box<dyn Channel>, Error> {
        let below = self.below.open_channel(options)?;
        let slots = below.depth();
        Ok(Box::new(OverlayChannel {
            below,
            geometry: self.geometry.clone(),
            written: Arc::clone(&self.written),
            reads: vec![None; slots],
            free: (0..slots).rev().collect(),
            done: VecDeque::with_capacity(slots),
        }))
    }

    fn capacity_bytes(&self) -> u64 {
        self.below.capacity_bytes()
    }
}

impl Written {
    /// Takes over `bytes` at `offset_bytes`. `false` if there is no room.
    fn put(&self, offset_bytes: u64, bytes: &[u8]) -> bool {
        let first = offset_bytes / SECTOR_BYTES as u64;
        let mut sectors = self.sectors.write().unwrap_or_else(PoisonError::into_inner);
        for (number, sector) in (first..).zip(bytes.chunks_exact(SECTOR_BYTES)) {
            let is_room = sectors.len() < self.count_max || sectors.contains_key(&number);
            let Some(sector) = sector.first_chunk().filter(|_| is_room) else { return false };
            sectors.insert(number, Box::new(*sector));
        }
        self.count.store(sectors.len(), Ordering::Release);
        true
    }

    /// Has the sectors from `offset_bytes` on that were written in `bytes`.
    fn apply(&self, offset_bytes: u64, bytes: &mut [u8]) {
        let first = offset_bytes / SECTOR_BYTES as u64;
        let sectors = self.sectors.read().unwrap_or_else(PoisonError::into_inner);
        for (number, place) in (first..).zip(bytes.chunks_exact_mut(SECTOR_BYTES)) {
            if let Some(sector) = sectors.get(&number) {
                place.copy_from_slice(&sector[..]);
            }
        }
    }
}

struct OverlayChannel {
    below: Box<dyn Channel>,
    geometry: Geometry,
    written: Arc<Written>,
    /// Reads under way, by the tag that the device below has for them.
    reads: Vec<Option<Request>>,
    free: Vec<usize>,
    done: VecDeque<Completion>,
}

impl OverlayChannel {
    /// Does requests at once that do not go below.
    fn carry_out(&self, request: &Request) -> Result<(), i32> {
        let length = request.length_bytes as usize;
        match request.op {
            Op::Write | Op::WriteDsync | Op::WriteThenFlush => {
                // SAFETY: the caller's memory is valid for its length and does not change until the
                // completion.
                let bytes = unsafe { std::slice::from_raw_parts(request.memory, length) };
                if self.written.put(request.offset_bytes, bytes) { Ok(()) } else { Err(libc::ENOMEM) }
            }
            Op::Read | Op::Flush | Op::Discard => Ok(()),
        }
    }

    /// Hands over completed requests, as far as there is room, with the caller's tags.
    fn hand_over(&mut self, from: usize, completions: &mut Vec<Completion>) -> usize {
        for completion in completions.iter_mut().skip(from) {
            let slot = completion.tag as usize;
            let Some(request) = self.reads.get_mut(slot).and_then(Option::take) else { continue };
            self.free.push(slot);
            completion.tag = request.tag;
            if self.written.count.load(Ordering::Acquire) > 0 {
                // SAFETY: the device below is done with the caller's memory, and the caller does not touch it
                // before the answer.
                let bytes =
                    unsafe { std::slice::from_raw_parts_mut(request.memory, request.length_bytes as usize) };
                self.written.apply(request.offset_bytes, bytes);
            }
        }
        let room = completions.capacity() - completions.len();
        completions.extend(self.done.drain(..self.done.len().min(room)));
        completions.len() - from
    }
}

/// Whether a request is about whole sectors.
fn is_whole(request: &Request) -> bool {
    let sector = SECTOR_BYTES as u64;
    request.offset_bytes.is_multiple_of(sector) && u64::from(request.length_bytes).is_multiple_of(sector)
}

impl Channel for OverlayChannel {
    unsafe fn submit(&mut self, request: Request) -> Result<(), Error> {
        if self.in_flight() == self.depth() {
            return Err(Error::QueueFull);
        }
        self.geometry.check(&request)?;
        if request.op == Op::Read && is_whole(&request) {
            let Some(slot) = self.free.pop() else { return Err(Error::QueueFull) };
            // SAFETY: passed on from the caller.
            let submitted = unsafe { self.below.submit(Request { tag: slot as u64, ..request }) };
            match submitted {
                Ok(()) => self.reads[slot] = Some(request),
                Err(_) => self.free.push(slot),
            }
            return submitted;
        }
        if request.op != Op::Flush && !is_whole(&request) {
            let problem = format!("offset and length must be multiples of {SECTOR_BYTES} bytes");
            return Err(Error::Request(problem));
        }
        let now = self.below.now();
        let result = self.carry_out(&request);
        self.done.push_back(Completion { tag: request.tag, result, submitted: now, completed: now });
        Ok(())
    }

    fn poll(&mut self, completions: &mut Vec<Completion>) -> Result<usize, Error> {
        let from = completions.len();
        self.below.poll(completions)?;
        Ok(self.hand_over(from, completions))
    }

    fn wait(
        &mut self,
        at_least: usize,
        until: Option<Nanos>,
        completions: &mut Vec<Completion>,
    ) -> Result<usize, Error> {
        if !self.done.is_empty() {
            return self.poll(completions);
        }
        let from = completions.len();
        self.below.wait(at_least, until, completions)?;
        Ok(self.hand_over(from, completions))
    }

    fn waker(&mut self) -> Option<ChannelWaker> {
        self.below.waker()
    }

    fn now(&self) -> Nanos {
        self.below.now()
    }

    fn in_flight(&self) -> usize {
        self.below.in_flight() + self.done.len()
    }

    fn depth(&self) -> usize {
        self.below.depth()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MemoryDevice;

    /// A device over one that is full of sevens; and that one.
    fn over_sevens(bytes_max: u64) -> (OverlayDevice, Arc<MemoryDevice>) {
        let below = Arc::new(MemoryDevice::new(1 << 20, 0).unwrap());
        ask(&*below, Op::Write, 0, &mut [7; 8192]).unwrap();
        (OverlayDevice::new(Arc::clone(&below) as _, bytes_max), below)
    }

    fn ask(device: &dyn Device, op: Op, offset_bytes: u64, memory: &mut [u8]) -> Result<(), i32> {
        let options = ChannelOptions { depth: 2, arena: None, polled: false };
        let mut channel = device.open_channel(&options).unwrap();
        let length_bytes = memory.len() as u32;
        let request = Request { op, offset_bytes, length_bytes, memory: memory.as_mut_ptr(), tag: 99 };
        // SAFETY: the memory outlives the request, which is waited for.
        unsafe { channel.submit(request) }.unwrap();
        let mut completions = Vec::with_capacity(2);
        while completions.is_empty() {
            channel.wait(1, None, &mut completions).unwrap();
        }
        assert_eq!((completions[0].tag, channel.in_flight()), (99, 0));
        completions[0].result
    }

    #[test]
    fn what_is_written_is_read_back_and_the_device_below_stays() {
        let (device, below) = over_sevens(1 << 20);
        ask(&device, Op::Write, 1024, &mut [1; 512]).unwrap();
        ask(&device, Op::WriteThenFlush, 2048, &mut [2; 1024]).unwrap();
        ask(&device, Op::Flush, 0, &mut []).unwrap();
        let mut found = [0; 4096];
        ask(&device, Op::Read, 0, &mut found).unwrap();
        let sector = |number: usize| found[number * 512];
        assert_eq!((0..8).map(sector).collect::<Vec<_>>(), [7, 7, 1, 7, 2, 2, 7, 7]);
        ask(&*below, Op::Read, 0, &mut found).unwrap();
        assert_eq!(found, [7; 4096]);
    }

    #[test]
    fn memory_for_writes_is_limited() {
        let (device, _) = over_sevens(1024);
        ask(&device, Op::Write, 0, &mut [1; 1024]).unwrap();
        ask(&device, Op::Write, 512, &mut [2; 512]).unwrap();
        assert_eq!(ask(&device, Op::Write, 4096, &mut [1; 512]), Err(libc::ENOMEM));
    }
}
