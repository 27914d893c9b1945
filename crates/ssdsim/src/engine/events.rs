//! The event queue, the clock that it moves, and the digest of all that happened.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use flashgrain_device::Nanos;

/// An event at a point in virtual time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// A cap of the host lets a command through.
    Admitted { command: u32 },
    /// A command has been fetched and processed.
    Start { command: u32 },
    /// The data of a write have arrived in the drive.
    DataIn { command: u32 },
    /// A command's answer is at the host.
    Done { command: u32 },
    /// Something goes wrong by itself.
    Strike,
    /// Something inside a drive's medium; the medium defines `kind` and `index`.
    Medium { drive: u16, kind: u8, index: u32 },
}

impl Event {
    const START: u64 = 0;
    const DATA_IN: u64 = 1;
    const DONE: u64 = 2;
    const MEDIUM: u64 = 3;
    const STRIKE: u64 = 4;
    const ADMITTED: u64 = 5;

    /// As one number: tag, drive, kind, index.
    fn pack(self) -> u64 {
        match self {
            Self::Admitted { command } => Self::ADMITTED << 60 | u64::from(command),
            Self::Start { command } => Self::START << 60 | u64::from(command),
            Self::DataIn { command } => Self::DATA_IN << 60 | u64::from(command),
            Self::Done { command } => Self::DONE << 60 | u64::from(command),
            Self::Strike => Self::STRIKE << 60,
            Self::Medium { drive, kind, index } => {
                Self::MEDIUM << 60 | u64::from(drive) << 40 | u64::from(kind) << 32 | u64::from(index)
            }
        }
    }

    fn unpack(number: u64) -> Self {
        let index = number as u32;
        match number >> 60 {
            Self::START => Self::Start { command: index },
            Self::DATA_IN => Self::DataIn { command: index },
            Self::DONE => Self::Done { command: index },
            Self::STRIKE => Self::Strike,
            Self::ADMITTED => Self::Admitted { command: index },
            _ => Self::Medium { drive: (number >> 40) as u16, kind: (number >> 32) as u8, index },
        }
    }
}

/// Events in the order of their times; those of the same time in the order in which they were scheduled.
#[derive(Debug, Default)]
pub(crate) struct Events {
    queue: BinaryHeap<Reverse<(u64, u64, u64)>>,
    now_ns: u64,
    scheduled: u64,
    happened: u64,
    digest: u64,
}

impl Events {
    /// Virtual time.
    #[inline]
    pub fn now(&self) -> u64 {
        self.now_ns
    }

    /// Schedules `event` at `at_ns`, which is not before now.
    #[inline]
    pub fn at(&mut self, at_ns: u64, event: Event) {
        debug_assert!(at_ns >= self.now_ns, "an event in the past");
        self.queue.push(Reverse((at_ns, self.scheduled, event.pack())));
        self.scheduled += 1;
    }

    /// Takes the next event that happens until `until_ns` and moves the clock to it.
    #[inline]
    pub fn next(&mut self, until_ns: u64) -> Option<Event> {
        let Reverse((at_ns, ..)) = *self.queue.peek()?;
        if at_ns > until_ns {
            return None;
        }
        let Reverse((_, _, packed)) = self.queue.pop()?;
        self.now_ns = at_ns;
        self.happened += 1;
        let mixed = (self.digest ^ at_ns).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.digest = (mixed.rotate_left(29) ^ packed).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        Some(Event::unpack(packed))
    }

    /// When the next event happens.
    pub fn next_at(&self) -> Option<u64> {
        self.queue.peek().map(|Reverse((at_ns, ..))| *at_ns)
    }

    /// Lets time pass until `until_ns` when nothing happens before.
    pub fn pass(&mut self, until_ns: u64) {
        debug_assert!(self.queue.peek().is_none_or(|Reverse((at_ns, ..))| *at_ns >= until_ns));
        self.now_ns = self.now_ns.max(until_ns);
    }

    /// Events so far.
    pub fn happened(&self) -> u64 {
        self.happened
    }

    /// A number that depends on every event so far, its time and its place in the order.
    pub fn digest(&self) -> u64 {
        self.digest
    }

    /// Forgets all events to come: the power is gone.
    pub fn clear(&mut self) {
        self.queue.clear();
    }
}

/// Nanoseconds of `us` microseconds, rounded.
pub(crate) fn nanos_of_us(us: f64) -> u64 {
    (us * 1e3).round() as u64
}

/// Nanoseconds that `bytes` take at `bytes_per_s`, rounded up.
#[inline]
pub(crate) fn transfer_ns(bytes: u64, bytes_per_s: u64) -> u64 {
    (u128::from(bytes) * 1_000_000_000).div_ceil(u128::from(bytes_per_s)) as u64
}

impl From<&Events> for Nanos {
    fn from(events: &Events) -> Self {
        Self(events.now_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_come_back_as_they_went_in() {
        for event in [
            Event::Admitted { command: 5 },
            Event::Start { command: u32::MAX },
            Event::DataIn { command: 3 },
            Event::Done { command: 7 },
            Event::Strike,
            Event::Medium { drive: 1023, kind: 255, index: u32::MAX },
        ] {
            assert_eq!(Event::unpack(event.pack()), event);
        }
    }

    #[test]
    fn equal_times_keep_their_order_and_the_digest_sees_it() {
        let run = |order: [u32; 2]| {
            let mut events = Events::default();
            for command in order {
                events.at(5, Event::Start { command });
            }
            assert_eq!(events.next(4), None);
            assert_eq!(events.next(5), Some(Event::Start { command: order[0] }));
            assert_eq!(events.next(5), Some(Event::Start { command: order[1] }));
            assert_eq!(events.now(), 5);
            events.digest()
        };
        assert_eq!(run([1, 2]), run([1, 2]));
        assert_ne!(run([1, 2]), run([2, 1]));
    }

    #[test]
    fn transfers_round_up() {
        assert_eq!(transfer_ns(4096, 4_096_000_000), 1000);
        assert_eq!(transfer_ns(1, 3_000_000_000), 1);
    }
}
