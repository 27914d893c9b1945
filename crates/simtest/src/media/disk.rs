//! A drive in memory whose changes can be taken back: one image of it serves any number of crash states.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use flashgrain_device::{
    Channel, ChannelOptions, Completion, Device, Error, Geometry, Identity, Nanos, Op, Request, Simulation,
};

use super::SECTOR_BYTES;
use super::failing::{ERROR, FailPlan, Way, refused};

/// Unit in which old content is kept before it changes.
const PAGE_BYTES: usize = 4096;

/// Of striped disks: the least that a store takes.
const STRIPE_UNIT_BYTES: u64 = 16 << 10;

/// See the module. Requests are done at once and answered at the next look; no time passes by that. A clone
/// is the same disk.
#[derive(Clone)]
pub struct Disk {
    geometry: Geometry,
    capacity_bytes: Arc<AtomicU64>,
    identity: Arc<Identity>,
    plan: Option<Arc<FailPlan>>,
    state: Arc<Mutex<DiskState>>,
}

struct DiskState {
    bytes: Vec<u8>,
    /// Pages that have changed since the last [`Disk::mark`], as they were.
    before: Vec<(usize, Box<[u8; PAGE_BYTES]>)>,
    /// Memory for more of them.
    spare: Vec<Box<[u8; PAGE_BYTES]>>,
    is_changed: Vec<bool>,
    /// Sectors that were read since the last [`Disk::take_reads`].
    is_read: Vec<bool>,
    now_ns: u64,
}

impl Disk {
    /// With these bytes, a multiple of 4096.
    pub fn new(bytes: Vec<u8>) -> Self {
        let bytes_in_all = bytes.len() as u64;
        let geometry = Geometry {
            capacity_bytes: bytes_in_all,
            offset_align_bytes: SECTOR_BYTES as u32,
            memory_align_bytes: 1,
            preferred_max_transfer_bytes: 1 << 20,
            direct: true,
            writable: true,
            members: 1,
            stripe_unit_bytes: None,
        };
        let identity =
            Identity { target: "sim:disk".into(), kind: "simulated".into(), ..Identity::default() };
        let is_changed = vec![false; bytes.len().div_ceil(PAGE_BYTES)];
        let is_read = vec![false; bytes.len().div_ceil(SECTOR_BYTES)];
        let state =
            DiskState { bytes, before: Vec::new(), spare: Vec::new(), is_changed, is_read, now_ns: 0 };
        let capacity_bytes = Arc::new(AtomicU64::new(bytes_in_all));
        let (identity, state) = (Arc::new(identity), Arc::new(Mutex::new(state)));
        Self { geometry, capacity_bytes, identity, plan: None, state }
    }

    /// The same disk, but its requests fail as `plan` says; those that are answered with an error or refused
    /// have no effect.
    #[must_use]
    pub fn failing(&self, plan: &Arc<FailPlan>) -> Self {
        Self { plan: Some(Arc::clone(plan)), ..self.clone() }
    }

    /// The same bytes, limited to the first `capacity_bytes` until it grows, as a file does.
    pub fn of_bytes(&self, capacity_bytes: u64) -> Self {
        let geometry = Geometry { capacity_bytes, ..self.geometry.clone() };
        let identity = Arc::new(Identity { kind: "file".into(), ..(*self.identity).clone() });
        Self { geometry, capacity_bytes: Arc::new(AtomicU64::new(capacity_bytes)), identity, ..self.clone() }
    }

    /// The same bytes, as if they were striped over two drives.
    pub fn striped(self) -> Self {
        let geometry = Geometry { members: 2, stripe_unit_bytes: Some(STRIPE_UNIT_BYTES), ..self.geometry };
        Self { geometry, ..self }
    }

    fn check_plan(&self, doing: &str) -> Result<(), Error> {
        self.plan.as_ref().map_or(Ok(()), |plan| plan.check(doing))
    }

    fn state(&self) -> MutexGuard<'_, DiskState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes bytes.
    pub fn put(&self, offset_bytes: usize, bytes: &[u8]) {
        self.state().put(offset_bytes, bytes);
    }

    /// Changes a bit.
    pub fn flip(&self, bit: u64) {
        let mut state = self.state();
        let at = (bit / 8) as usize;
        let byte = state.bytes[at] ^ 1 << (bit % 8);
        state.put(at, &[byte]);
    }

    /// From now on, [`Disk::back`] leads here.
    pub fn mark(&self) {
        let DiskState { before, spare, is_changed, .. } = &mut *self.state();
        for (page, bytes) in before.drain(..) {
            is_changed[page] = false;
            spare.push(bytes);
        }
    }

    /// Undoes the changes since the last mark.
    pub fn back(&self) {
        let DiskState { bytes, before, spare, is_changed, .. } = &mut *self.state();
        for (page, old) in before.drain(..) {
            bytes[page * PAGE_BYTES..(page + 1) * PAGE_BYTES].copy_from_slice(&old[..]);
            is_changed[page] = false;
            spare.push(old);
        }
    }

    /// The sectors that were read since the last call.
    pub fn take_reads(&self) -> Vec<bool> {
        let mut state = self.state();
        let none = vec![false; state.is_read.len()];
        std::mem::replace(&mut state.is_read, none)
    }

    /// All bytes.
    pub fn bytes(&self) -> Vec<u8> {
        self.state().bytes.clone()
    }
}

impl DiskState {
    fn put(&mut self, offset_bytes: usize, bytes: &[u8]) {
        let end = offset_bytes + bytes.len();
        for page in offset_bytes / PAGE_BYTES..end.div_ceil(PAGE_BYTES) {
            if !std::mem::replace(&mut self.is_changed[page], true) {
                let mut old = self.spare.pop().unwrap_or_else(|| Box::new([0; PAGE_BYTES]));
                old.copy_from_slice(&self.bytes[page * PAGE_BYTES..(page + 1) * PAGE_BYTES]);
                self.before.push((page, old));
            }
        }
        self.bytes[offset_bytes..end].copy_from_slice(bytes);
    }
}

impl Device for Disk {
    fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    fn identity(&self) -> &Identity {
        &self.identity
    }

    fn capacity_bytes(&self) -> u64 {
        self.capacity_bytes.load(Ordering::Relaxed)
    }

    fn grow(&self, capacity_bytes: u64) -> Result<(), Error> {
        self.check_plan("make the drive larger")?;
        if capacity_bytes > self.state().bytes.len() as u64 {
            let source = std::io::ErrorKind::StorageFull.into();
            return Err(Error::Os { doing: "make the drive larger".into(), source });
        }
        self.capacity_bytes.fetch_max(capacity_bytes, Ordering::Relaxed);
        Ok(())
    }

    fn shrinks(&self) -> bool {
        true
    }

    fn shrink(&self, capacity_bytes: u64) -> Result<(), Error> {
        self.check_plan("make the drive shorter")?;
        self.capacity_bytes.fetch_min(capacity_bytes, Ordering::Relaxed);
        Ok(())
    }

    fn open_channel(&self, options: &ChannelOptions) -> Result<Box<dyn Channel>, Error> {
        self.check_plan("open a channel")?;
        let (disk, depth) = (self.clone(), options.depth as usize);
        Ok(Box::new(DiskChannel {
            disk,
            depth,
            done: VecDeque::new(),
            is_queue_failed: false,
            is_asleep: false,
        }))
    }

    fn simulation(&self) -> Option<&dyn Simulation> {
        Some(self)
    }
}

impl Simulation for Disk {
    fn now(&self) -> Nanos {
        Nanos(self.state().now_ns)
    }

    fn next_event(&self) -> Option<Nanos> {
        None
    }

    fn pass(&self, until: Nanos) -> bool {
        let mut state = self.state();
        state.now_ns = state.now_ns.max(until.0);
        false
    }
}

struct DiskChannel {
    disk: Disk,
    depth: usize,
    /// Requests whose completion has not been returned: tag, result and time of each.
    done: VecDeque<(u64, Result<(), i32>, Nanos)>,
    /// Whether the next poll or wait reports that there is no queue.
    is_queue_failed: bool,
    /// Whether the next wait reports that there is no queue, and polls return no completions before.
    is_asleep: bool,
}

impl Channel for DiskChannel {
    unsafe fn submit(&mut self, request: Request) -> Result<(), Error> {
        if self.done.len() == self.depth {
            return Err(Error::QueueFull);
        }
        let capacity_bytes = self.disk.capacity_bytes();
        Geometry { capacity_bytes, ..self.disk.geometry.clone() }.check(&request)?;
        let mut state = self.disk.state();
        match self.disk.plan.as_ref().and_then(|plan| plan.next()) {
            None | Some(Way::Inside) => {}
            Some(Way::Once | Way::ForEver) => {
                self.done.push_back((request.tag, Err(ERROR), Nanos(state.now_ns)));
                return Ok(());
            }
            Some(Way::Refused) => return Err(refused("submit a request")),
            Some(Way::Queue) => self.is_queue_failed = true,
            Some(Way::Sleep) => self.is_asleep = true,
        }
        let (start, length) = (request.offset_bytes as usize, request.length_bytes as usize);
        match request.op {
            Op::Flush | Op::Discard => {}
            Op::Read => {
                // SAFETY: the caller lends the memory until the request is answered, which is later.
                let into = unsafe { std::slice::from_raw_parts_mut(request.memory, length) };
                into.copy_from_slice(&state.bytes[start..start + length]);
                state.is_read[start / SECTOR_BYTES..(start + length).div_ceil(SECTOR_BYTES)].fill(true);
            }
            Op::Write | Op::WriteDsync | Op::WriteThenFlush => {
                // SAFETY: as above.
                let bytes = unsafe { std::slice::from_raw_parts(request.memory, length) };
                state.put(start, bytes);
            }
        }
        self.done.push_back((request.tag, Ok(()), Nanos(state.now_ns)));
        Ok(())
    }

    fn poll(&mut self, completions: &mut Vec<Completion>) -> Result<usize, Error> {
        if std::mem::take(&mut self.is_queue_failed) {
            return Err(refused("look for answers"));
        }
        if self.is_asleep {
            return Ok(0);
        }
        let count = self.done.len().min(completions.capacity() - completions.len());
        if count > 0 {
            let state = self.disk.state();
            for (tag, result, submitted) in self.done.drain(..count) {
                let completed = Nanos(state.now_ns);
                completions.push(Completion { tag, result, submitted, completed });
            }
        }
        Ok(count)
    }

    fn wait(
        &mut self,
        _at_least: usize,
        until: Option<Nanos>,
        completions: &mut Vec<Completion>,
    ) -> Result<usize, Error> {
        if std::mem::take(&mut self.is_asleep) {
            return Err(refused("wait for answers"));
        }
        let count = self.poll(completions)?;
        if let Some(until) = until.filter(|_| count == 0) {
            self.disk.pass(until);
        }
        Ok(count)
    }

    fn now(&self) -> Nanos {
        self.disk.now()
    }

    fn in_flight(&self) -> usize {
        self.done.len()
    }

    fn depth(&self) -> usize {
        self.depth
    }
}
