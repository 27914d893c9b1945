//! Host queue, command processor and link of one drive.

use std::collections::VecDeque;

use flashgrain_device::Op;

use super::cap::Cap;
use crate::config::HostConfig;
use crate::engine::transfer_ns;

/// Commands that are no whole number of these cost more; the link carries parts of this size.
const UNIT_BYTES: u64 = 4096;

/// See the module.
#[derive(Debug)]
pub(crate) struct Host {
    pub config: HostConfig,
    cap: Option<Cap>,
    /// Commands in the host's queue.
    pub waiting: VecDeque<u32>,
    /// Commands in the drive.
    pub inside: u32,
    processor_free_ns: u64,
    /// To the drive and from the drive; only the first is used on a half-duplex link.
    link_free_ns: [u64; 2],
}

impl Host {
    pub fn new(config: HostConfig) -> Self {
        let cap = config.cap.as_ref().map(Cap::new);
        Self { config, cap, waiting: VecDeque::new(), inside: 0, processor_free_ns: 0, link_free_ns: [0; 2] }
    }

    /// When the host's cap lets a command through that comes at `now_ns`; it has gone through then.
    #[inline]
    pub fn admit(&mut self, now_ns: u64, op: Op, length_bytes: u32) -> u64 {
        match &mut self.cap {
            Some(cap) if matches!(op, Op::Read | Op::Write | Op::WriteDsync) => {
                cap.admit(now_ns, u64::from(length_bytes))
            }
            _ => now_ns,
        }
    }

    /// When a command that is taken up at `now_ns` has been processed.
    #[inline]
    pub fn process(&mut self, now_ns: u64, op: Op, offset_bytes: u64, length_bytes: u32) -> u64 {
        let basic = match (op, self.config.write_command_ns) {
            (Op::Write | Op::WriteDsync, Some(write_ns)) => write_ns,
            _ => self.config.command_ns,
        };
        let whole = (offset_bytes | u64::from(length_bytes)).is_multiple_of(UNIT_BYTES);
        let work = basic + if whole { 0 } else { self.config.partial_command_ns };
        self.processor_free_ns = self.processor_free_ns.max(now_ns) + work;
        self.processor_free_ns + self.config.fetch_ns
    }

    /// When `bytes` that are ready now have crossed the link into the drive.
    #[inline]
    pub fn receive(&mut self, now_ns: u64, bytes: u64) -> u64 {
        self.cross(0, now_ns, bytes)
    }

    /// How long the data of one command take by themselves, if that bounds them rather than the link.
    #[inline]
    pub fn pace_ns(&self, bytes: u64) -> u64 {
        self.config.command_bytes_per_s.map_or(0, |rate| transfer_ns(bytes, rate))
    }

    /// When `bytes` that are ready now have crossed the link to the host.
    #[inline]
    pub fn send(&mut self, now_ns: u64, bytes: u64) -> u64 {
        self.cross(usize::from(self.config.link_full_duplex), now_ns, bytes)
    }

    /// The same for bytes that have been coming in over the last `over_ns` until now: the first of them are
    /// on the link while the others come.
    #[inline]
    pub fn stream(&mut self, now_ns: u64, over_ns: u64, bytes: u64) -> u64 {
        let unit = bytes.min(UNIT_BYTES);
        let first_ns = now_ns - over_ns * (bytes - unit) / bytes.max(1);
        let all_ns = self.send(first_ns, bytes);
        all_ns.max(now_ns + transfer_ns(unit, self.config.link_bytes_per_s))
    }

    #[inline]
    fn cross(&mut self, direction: usize, now_ns: u64, bytes: u64) -> u64 {
        let free = &mut self.link_free_ns[direction];
        *free = (*free).max(now_ns) + transfer_ns(bytes, self.config.link_bytes_per_s);
        *free
    }

    /// The command processor stands still for this span, which begins now or when it has done its pending
    /// work.
    pub fn stall(&mut self, now_ns: u64, span_ns: u64) {
        self.processor_free_ns = self.processor_free_ns.max(now_ns) + span_ns;
    }

    /// The power is gone.
    pub fn power_cycle(&mut self) {
        self.waiting.clear();
        self.inside = 0;
        self.processor_free_ns = 0;
        self.link_free_ns = [0; 2];
    }
}
