//! A die, or a chip whose dies block each other: one operation at a time, and a queue.

use std::collections::VecDeque;

/// Reads that may go before a suspended operation, and times that one operation may be suspended: beyond
/// that, programs would starve.
pub(super) const SUSPENSION_LIMIT: u32 = 16;

/// See the module. Numbers are slots of [`super::Flash`].
#[derive(Debug, Default)]
pub(super) struct Server {
    /// Operations that cannot wait.
    pub urgent: VecDeque<u32>,
    /// Reads other than of garbage collection, if these go first.
    pub reads: VecDeque<u32>,
    /// All others.
    pub others: VecDeque<u32>,
    pub running: Option<Running>,
    pub suspended: Option<Suspended>,
    /// Waiting for the channel to take a command, or for a suspension to be over.
    pub asking: bool,
    /// Time spent on garbage collection, without the running operation.
    collected_ns: u64,
}

/// The operation that a server runs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Running {
    pub slot: u32,
    pub began_ns: u64,
    /// When the cells begin to work.
    pub cells_from_ns: u64,
    /// End of the current part of the operation, and its event.
    pub end_ns: u64,
    pub end_kind: u8,
    /// Command, cells and transfer in all.
    pub medium_ns: u64,
    pub for_collection: bool,
    pub suspensions: u32,
}

/// A program or erase that gave way to reads.
#[derive(Clone, Copy, Debug)]
pub(super) struct Suspended {
    pub running: Running,
    pub remaining_ns: u64,
    pub remaining_reads: u32,
}

impl Server {
    /// Time spent on garbage collection until `now_ns`.
    #[inline]
    pub fn collected_ns(&self, now_ns: u64) -> u64 {
        match &self.running {
            Some(running) if running.for_collection => self.collected_ns + now_ns - running.began_ns,
            _ => self.collected_ns,
        }
    }

    /// Stops the running operation and returns it.
    #[inline]
    pub fn stop(&mut self, now_ns: u64) -> Option<Running> {
        self.collected_ns = self.collected_ns(now_ns);
        self.running.take()
    }

    /// Whether there is something to begin; if not, the suspended operation goes on. Until then only reads
    /// begin: nothing else can be done to cells that are being programmed or erased. Urgent operations wait
    /// for that, and no read goes before them.
    #[inline]
    pub fn has_next(&self) -> bool {
        match &self.suspended {
            Some(suspended) => {
                suspended.remaining_reads > 0 && self.urgent.is_empty() && !self.reads.is_empty()
            }
            None => !self.urgent.is_empty() || !self.reads.is_empty() || !self.others.is_empty(),
        }
    }

    /// The next operation to begin; none if a suspended one is to go on before.
    #[inline]
    pub fn next(&mut self) -> Option<u32> {
        if !self.has_next() {
            return None;
        }
        match &mut self.suspended {
            Some(suspended) => {
                suspended.remaining_reads -= 1;
                self.reads.pop_front()
            }
            None => {
                self.urgent.pop_front().or_else(|| self.reads.pop_front()).or_else(|| self.others.pop_front())
            }
        }
    }
}
