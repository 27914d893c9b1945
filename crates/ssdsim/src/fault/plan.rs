//! Assigns faults to commands.

use std::ops::Range;

use flashgrain_device::Op;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;

use super::{Fault, FaultKind, Operation, Repeat, Trigger};
use crate::content::Content;

/// The command is well.
pub(crate) const NO_FAULT: u32 = u32::MAX;

/// Keeps the faults' random numbers apart from the drives'.
const STREAM: u64 = 0x6661_756c_7473;

/// A fault that was injected.
#[derive(Debug)]
struct Armed {
    fault: Fault,
    /// Matching commands so far.
    seen: u64,
    /// Number of times that it happened.
    fired: u64,
    /// Content of the drives when the fault was injected, for stale reads.
    before: Vec<Content>,
}

/// All faults of a device.
#[derive(Debug)]
pub(crate) struct Plan {
    faults: Vec<Armed>,
    /// Those of them that may still happen to a command.
    live: Vec<u32>,
    /// Number of events at which a fault strikes by itself.
    next_event: u64,
    random: Pcg64,
}

impl Armed {
    fn is_spent(&self) -> bool {
        match self.fault.repeat {
            Repeat::Once => self.fired >= 1,
            Repeat::Times(times) => self.fired >= times,
            Repeat::Sticky => false,
        }
    }

    /// Whether it strikes by itself, at an event or a time, and did not.
    fn awaits_no_command(&self) -> bool {
        self.fault.kind.strikes_by_itself()
            && match self.fault.at {
                Trigger::Event(_) | Trigger::TimeNs(_) => true,
                Trigger::Always => self.fault.operation == Operation::Any,
                Trigger::Nth(_) | Trigger::Probability(_) => false,
            }
    }
}

impl Plan {
    /// No fault.
    pub fn new(seed: u64) -> Self {
        let random = Pcg64::seed_from_u64(seed ^ STREAM);
        Self { faults: Vec::new(), live: Vec::new(), next_event: u64::MAX, random }
    }

    /// Adds a fault; its number.
    pub fn add(&mut self, fault: Fault, before: Vec<Content>) -> u32 {
        let index = self.faults.len() as u32;
        let armed = Armed { fault, seen: 0, fired: 0, before };
        if !armed.awaits_no_command() {
            self.live.push(index);
        }
        self.faults.push(armed);
        self.look_ahead();
        index
    }

    /// No fault happens any more; those under way do.
    pub fn disarm(&mut self) {
        for armed in &mut self.faults {
            armed.fault.repeat = Repeat::Times(0);
        }
        self.look_ahead();
    }

    /// Whether [`Plan::choose`] needs to be asked.
    #[inline]
    pub fn is_armed(&self) -> bool {
        !self.live.is_empty()
    }

    /// Number of events at which [`Plan::due`] needs to be asked.
    #[inline]
    pub fn next_event(&self) -> u64 {
        self.next_event
    }

    /// Number of times that the fault happened.
    pub fn fired(&self, index: u32) -> u64 {
        self.faults.get(index as usize).map_or(0, |armed| armed.fired)
    }

    /// Kind of the fault.
    pub fn kind(&self, index: u32) -> &FaultKind {
        &self.faults[index as usize].fault.kind
    }

    /// Range of the fault.
    pub fn range(&self, index: u32) -> Range<u64> {
        self.faults[index as usize].fault.range.clone()
    }

    /// Content of a drive when the fault was injected.
    pub fn before(&self, index: u32, drive: u16) -> Option<&Content> {
        self.faults[index as usize].before.get(usize::from(drive))
    }

    /// Random numbers for faults only.
    pub fn random(&mut self) -> &mut Pcg64 {
        &mut self.random
    }

    /// The fault that happens to a command that is taken up now, or [`NO_FAULT`]. `range` is empty for a
    /// flush.
    pub fn choose(&mut self, op: Op, range: &Range<u64>, now_ns: u64, events: u64) -> u32 {
        let mut chosen = NO_FAULT;
        let Self { faults, live, random, .. } = self;
        for &index in &*live {
            let armed = &mut faults[index as usize];
            if !armed.fault.concerns(op, range) {
                continue;
            }
            armed.seen += 1;
            let due = match armed.fault.at {
                Trigger::Always => true,
                Trigger::Nth(nth) => armed.seen >= nth,
                Trigger::Event(event) => events >= event,
                Trigger::TimeNs(time) => now_ns >= time,
                Trigger::Probability(share) => random.random::<f64>() < share,
            };
            if due && chosen == NO_FAULT {
                armed.fired += 1;
                chosen = index;
            }
        }
        if chosen != NO_FAULT {
            self.look_ahead();
        }
        chosen
    }

    /// A fault that strikes by itself, at this number of events and at this time; each is returned once.
    pub fn due(&mut self, now_ns: u64, events: u64) -> Option<u32> {
        let due = |armed: &Armed| match armed.fault.at {
            Trigger::Event(event) => events >= event,
            Trigger::TimeNs(time) => now_ns >= time,
            _ => true,
        };
        let found = self.faults.iter().position(|armed| {
            armed.awaits_no_command() && armed.fired == 0 && !armed.is_spent() && due(armed)
        });
        if let Some(index) = found {
            self.faults[index].fired = 1;
        }
        self.look_ahead();
        found.map(|index| index as u32)
    }

    /// When something strikes by itself.
    pub fn strike_times(&self) -> Vec<u64> {
        let waiting = self.faults.iter().filter(|armed| armed.awaits_no_command() && armed.fired == 0);
        waiting
            .filter_map(|armed| match armed.fault.at {
                Trigger::TimeNs(time) => Some(time),
                _ => None,
            })
            .collect()
    }

    fn look_ahead(&mut self) {
        let faults = &self.faults;
        self.live.retain(|index| !faults[*index as usize].is_spent());
        let events =
            faults.iter().filter(|armed| armed.awaits_no_command() && armed.fired == 0 && !armed.is_spent());
        self.next_event = events
            .filter_map(|armed| match armed.fault.at {
                Trigger::Event(event) => Some(event),
                _ => None,
            })
            .min()
            .unwrap_or(u64::MAX);
    }
}
