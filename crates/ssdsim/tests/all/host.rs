//! Small drives, and a host that uses them.

use flashgrain_device::{Channel, ChannelOptions, Completion, Device, Nanos, Op, Request};
use flashgrain_ssdsim::{SimConfig, SimDevice};

/// A drive that loses nothing that has arrived in it.
pub const XPOINT: &str = include_str!("../drives/xpoint.toml");

/// A drive with a volatile write cache.
pub const DISK: &str = include_str!("../drives/disk.toml");

/// One with few channels and dies, small blocks, and a volatile write cache.
pub const NAND: &str = include_str!("../drives/nand.toml");

/// The description of a drive.
pub fn config(toml: &str) -> SimConfig {
    SimConfig::from_toml(toml, "test").unwrap()
}

/// A device with one channel.
pub struct Host {
    pub device: SimDevice,
    pub channel: Box<dyn Channel>,
    completions: Vec<Completion>,
}

/// The tag of requests that are waited for at once.
const LONE: u64 = u64::MAX;

/// Requests that a [`Host`] has in flight at most.
const DEPTH: u32 = 64;

impl Host {
    pub fn new(toml: &str) -> Self {
        Self::of(&config(toml), 1)
    }

    pub fn of(config: &SimConfig, seed: u64) -> Self {
        let device = SimDevice::new(config, "sim:test", seed).unwrap();
        let channel =
            device.open_channel(&ChannelOptions { depth: DEPTH, arena: None, polled: false }).unwrap();
        Self { device, channel, completions: Vec::with_capacity(DEPTH as usize) }
    }

    /// Hands a request in. The memory stays with the caller until it is reaped.
    pub fn submit(&mut self, op: Op, offset_bytes: u64, memory: &mut [u8], tag: u64) {
        let length_bytes = memory.len() as u32;
        let request = Request { op, offset_bytes, length_bytes, memory: memory.as_mut_ptr(), tag };
        // SAFETY: every caller keeps the memory alive and leaves it alone until the request is reaped.
        unsafe { self.channel.submit(request) }.unwrap();
    }

    /// Waits for `count` completions.
    pub fn reap(&mut self, count: usize) -> Vec<Completion> {
        let mut reaped = Vec::new();
        while reaped.len() < count {
            self.completions.clear();
            self.channel.wait(1, None, &mut self.completions).unwrap();
            assert!(!self.completions.is_empty(), "{} of {count} requests were answered", reaped.len());
            reaped.extend_from_slice(&self.completions);
        }
        reaped
    }

    /// One request from beginning to end.
    pub fn request(&mut self, op: Op, offset_bytes: u64, memory: &mut [u8]) -> Completion {
        self.submit(op, offset_bytes, memory, LONE);
        let completion = self.reap(1).remove(0);
        assert_eq!(completion.tag, LONE, "another request was answered before");
        completion
    }

    pub fn try_write(&mut self, offset_bytes: u64, bytes: &[u8]) -> Result<(), i32> {
        self.request(Op::Write, offset_bytes, &mut bytes.to_vec()).result
    }

    pub fn write(&mut self, offset_bytes: u64, bytes: &[u8]) {
        self.try_write(offset_bytes, bytes).unwrap();
    }

    pub fn write_durably(&mut self, offset_bytes: u64, bytes: &[u8]) {
        self.request(Op::WriteDsync, offset_bytes, &mut bytes.to_vec()).result.unwrap();
    }

    pub fn try_read(&mut self, offset_bytes: u64, bytes: &mut [u8]) -> Result<(), i32> {
        self.request(Op::Read, offset_bytes, bytes).result
    }

    pub fn read(&mut self, offset_bytes: u64, length: usize) -> Vec<u8> {
        let mut bytes = vec![0xee; length];
        self.try_read(offset_bytes, &mut bytes).unwrap();
        bytes
    }

    pub fn try_flush(&mut self) -> Result<(), i32> {
        self.request(Op::Flush, 0, &mut []).result
    }

    pub fn flush(&mut self) {
        self.try_flush().unwrap();
    }

    pub fn discard(&mut self, offset_bytes: u64, length: usize) {
        self.request(Op::Discard, offset_bytes, &mut vec![0; length]).result.unwrap();
    }

    pub fn now(&self) -> Nanos {
        self.channel.now()
    }
}

/// Bytes that tell where they belong and in which round they were written.
pub fn pattern(offset_bytes: u64, length: usize, round: u8) -> Vec<u8> {
    (offset_bytes..offset_bytes + length as u64)
        .map(|at| ((at / 512).wrapping_mul(37) as u8) ^ (at as u8) ^ round.wrapping_mul(101))
        .collect()
}
