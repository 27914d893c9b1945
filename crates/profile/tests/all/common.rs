//! A drive in virtual time, for tests of what profiling finds on a drive whose properties are known.
//!
//! Requests wait for one of several servers, which takes a setup time, and then for the link, which takes its
//! time per byte. Everything repeats exactly from the seed.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::{Arc, Mutex, MutexGuard};

use flashgrain_device::{
    Channel, ChannelOptions, Completion, Device, Error, Geometry, Identity, Nanos, Op, Request,
};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;

/// Properties of a test drive.
#[derive(Clone, Debug)]
pub struct Character {
    pub capacity_bytes: u64,
    pub align_bytes: u32,
    /// Requests served at the same time.
    pub servers: usize,
    pub read_setup_s: f64,
    pub write_setup_s: f64,
    pub seconds_per_byte: f64,
    pub flush_s: f64,
    /// Standard deviation of the logarithm of the setup time.
    pub noise: f64,
    /// Reads of one chunk that start at this offset into one are faster by the share beside it: chunk,
    /// offset, share.
    pub hot: Option<(u64, u64, f64)>,
    /// Reads of data that were written with smaller requests than this take longer by the share beside it.
    pub desirable: Option<(u64, f64)>,
    /// Operations that fail, with their errno.
    pub fails: Option<(Op, i32)>,
}

impl Default for Character {
    fn default() -> Self {
        Self {
            capacity_bytes: 256 << 20,
            align_bytes: 512,
            servers: 8,
            read_setup_s: 80e-6,
            write_setup_s: 20e-6,
            seconds_per_byte: 0.5e-9,
            flush_s: 1e-3,
            noise: 0.02,
            hot: None,
            desirable: None,
            fails: None,
        }
    }
}

/// See the module.
pub struct TestDrive {
    character: Character,
    geometry: Geometry,
    identity: Identity,
    state: Arc<Mutex<DriveState>>,
}

struct DriveState {
    now: f64,
    servers_free: Vec<f64>,
    link_free: f64,
    random: Pcg64,
    /// Logarithm of the size of the write that each KiB was made with; 0 where nothing was written.
    written_with: Vec<u8>,
    written_bytes: u64,
    unwritten_reads: u64,
}

impl TestDrive {
    pub fn new(character: Character) -> Self {
        let geometry = Geometry {
            capacity_bytes: character.capacity_bytes,
            offset_align_bytes: character.align_bytes,
            memory_align_bytes: 512,
            preferred_max_transfer_bytes: 1 << 20,
            direct: true,
            writable: true,
            members: 1,
            stripe_unit_bytes: None,
        };
        let identity = Identity {
            target: "test drive".into(),
            kind: "simulated".into(),
            backend: "test".into(),
            backend_reason: "a test".into(),
            ..Identity::default()
        };
        let state = DriveState {
            now: 0.0,
            servers_free: vec![0.0; character.servers],
            link_free: 0.0,
            random: Pcg64::seed_from_u64(7),
            written_with: vec![0; (character.capacity_bytes / 1024) as usize],
            written_bytes: 0,
            unwritten_reads: 0,
        };
        Self { character, geometry, identity, state: Arc::new(Mutex::new(state)) }
    }

    fn state(&self) -> MutexGuard<'_, DriveState> {
        self.state.lock().unwrap()
    }

    /// Bytes of all writes that reached the drive.
    pub fn written_bytes(&self) -> u64 {
        self.state().written_bytes
    }

    /// Reads of places that were never written.
    pub fn unwritten_reads(&self) -> u64 {
        self.state().unwritten_reads
    }

    /// The drive's clock, seconds.
    pub fn now_s(&self) -> f64 {
        self.state().now
    }
}

impl Device for TestDrive {
    fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    fn identity(&self) -> &Identity {
        &self.identity
    }

    fn open_channel(&self, options: &ChannelOptions) -> Result<Box<dyn Channel>, Error> {
        Ok(Box::new(TestChannel {
            character: self.character.clone(),
            state: Arc::clone(&self.state),
            depth: options.depth as usize,
            pending: BinaryHeap::new(),
        }))
    }
}

/// When done, when submitted, tag, errno or 0.
type Pending = Reverse<(u64, u64, u64, i32)>;

struct TestChannel {
    character: Character,
    state: Arc<Mutex<DriveState>>,
    depth: usize,
    pending: BinaryHeap<Pending>,
}

impl TestChannel {
    fn advance(&self, now_s: f64) {
        let mut state = self.state.lock().unwrap();
        state.now = state.now.max(now_s);
    }

    /// Not a nanosecond short of it by rounding.
    fn advance_to(&self, until: Nanos) {
        self.advance((until.0 as f64 + 0.5) * 1e-9);
    }

    /// How long a server is busy with a request.
    fn setup_s(&self, state: &mut DriveState, request: &Request) -> f64 {
        let character = &self.character;
        let (offset, length) = (request.offset_bytes, u64::from(request.length_bytes));
        let blocks = (offset / 1024) as usize..((offset + length).div_ceil(1024)) as usize;
        let noise = {
            let sum: f64 = (0..12).map(|_| state.random.random::<f64>()).sum();
            (character.noise * (sum - 6.0)).exp()
        };
        let base = match request.op {
            Op::Read => {
                let mut base = character.read_setup_s;
                if let Some((chunk, hot, share)) = character.hot
                    && length == chunk
                    && offset % chunk == hot
                {
                    base *= 1.0 - share;
                }
                let with = state.written_with[blocks.clone()].iter().copied().min().unwrap_or(0);
                state.unwritten_reads += u64::from(with == 0);
                if let Some((size, share)) = character.desirable
                    && (1_u64 << with) < size
                {
                    base *= 1.0 + share;
                }
                base
            }
            Op::Write | Op::WriteDsync | Op::WriteThenFlush => {
                state.written_bytes += length;
                state.written_with[blocks].fill(length.ilog2() as u8);
                let flush = if request.op == Op::Write { 0.0 } else { character.flush_s };
                character.write_setup_s + flush
            }
            Op::Flush | Op::Discard => character.flush_s,
        };
        base * noise
    }
}

impl Channel for TestChannel {
    unsafe fn submit(&mut self, request: Request) -> Result<(), Error> {
        if self.pending.len() >= self.depth {
            return Err(Error::QueueFull);
        }
        let shared = Arc::clone(&self.state);
        let state = &mut *shared.lock().unwrap();
        assert!(
            !request.op.moves_data()
                || u64::from(request.length_bytes) + request.offset_bytes <= self.character.capacity_bytes
        );
        assert!(request.offset_bytes.is_multiple_of(u64::from(self.character.align_bytes)));
        if let Some((_, errno)) = self.character.fails.filter(|(op, _)| *op == request.op) {
            let now = (state.now * 1e9) as u64;
            self.pending.push(Reverse((now, now, request.tag, errno)));
            return Ok(());
        }
        let setup = self.setup_s(state, &request);
        let now = state.now;
        let server = state.servers_free.iter_mut().min_by(|a, b| a.total_cmp(b)).unwrap();
        let served = server.max(now) + setup;
        *server = served;
        let moved = if request.op.moves_data() { f64::from(request.length_bytes) } else { 0.0 };
        let done = served.max(state.link_free) + moved * self.character.seconds_per_byte;
        state.link_free = if moved > 0.0 { done } else { state.link_free };
        self.pending.push(Reverse(((done * 1e9) as u64, (now * 1e9) as u64, request.tag, 0)));
        Ok(())
    }

    fn poll(&mut self, completions: &mut Vec<Completion>) -> Result<usize, Error> {
        let now = (self.state.lock().unwrap().now * 1e9) as u64 + 1;
        let mut count = 0;
        while completions.len() < completions.capacity()
            && self.pending.peek().is_some_and(|Reverse((done, ..))| *done <= now)
        {
            let Some(Reverse((done, submitted, tag, errno))) = self.pending.pop() else { break };
            completions.push(Completion {
                tag,
                result: if errno == 0 { Ok(()) } else { Err(errno) },
                submitted: Nanos(submitted),
                completed: Nanos(done),
            });
            count += 1;
        }
        Ok(count)
    }

    fn wait(
        &mut self,
        at_least: usize,
        until: Option<Nanos>,
        completions: &mut Vec<Completion>,
    ) -> Result<usize, Error> {
        let mut count = self.poll(completions)?;
        while count < at_least && !self.pending.is_empty() && completions.len() < completions.capacity() {
            let next = self.pending.peek().map_or(0, |Reverse((done, ..))| *done);
            if let Some(until) = until.filter(|until| until.0 < next) {
                self.advance_to(until);
                return Ok(count);
            }
            self.advance(next as f64 * 1e-9);
            count += self.poll(completions)?;
        }
        if let Some(until) = until.filter(|_| count < at_least && self.pending.is_empty()) {
            self.advance_to(until);
        }
        Ok(count)
    }

    fn now(&self) -> Nanos {
        Nanos((self.state.lock().unwrap().now * 1e9) as u64)
    }

    fn in_flight(&self) -> usize {
        self.pending.len()
    }

    fn depth(&self) -> usize {
        self.depth
    }
}
