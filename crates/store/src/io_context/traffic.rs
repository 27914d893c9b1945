//! Counters of requests to the devices.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use flashgrain_device::{Op, Request};
use serde::Serialize;

/// Requests that were sent to a store's devices since it was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Traffic {
    /// Reads.
    pub reads: u64,
    /// Their bytes.
    pub read_bytes: u64,
    /// Writes.
    pub writes: u64,
    /// Their bytes.
    pub written_bytes: u64,
    /// Flushes, and writes that were to be durable at once.
    pub flushes: u64,
    /// Discards.
    pub discards: u64,
}

/// Counters of one I/O context. Only its own thread writes them, so counting needs no locked instruction.
#[derive(Default)]
#[repr(align(128))]
pub(super) struct Counters {
    reads: AtomicU64,
    read_bytes: AtomicU64,
    writes: AtomicU64,
    written_bytes: AtomicU64,
    flushes: AtomicU64,
    discards: AtomicU64,
    /// Requests with bytes to transfer that have not been answered, and these bytes.
    in_flight: AtomicU64,
    in_flight_bytes: AtomicU64,
}

fn add(counter: &AtomicU64, count: u64) {
    counter.store(counter.load(Ordering::Relaxed) + count, Ordering::Relaxed);
}

fn subtract(counter: &AtomicU64, count: u64) {
    counter.store(counter.load(Ordering::Relaxed).saturating_sub(count), Ordering::Relaxed);
}

/// The requests that all I/O contexts have in flight.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct InFlight {
    pub requests: u64,
    pub bytes: u64,
}

impl Counters {
    #[inline]
    pub fn note(&self, request: &Request) {
        let bytes = u64::from(request.length_bytes);
        match request.op {
            Op::Read => {
                add(&self.reads, 1);
                add(&self.read_bytes, bytes);
            }
            Op::Write | Op::WriteDsync | Op::WriteThenFlush => {
                add(&self.writes, 1);
                add(&self.written_bytes, bytes);
                add(&self.flushes, u64::from(request.op != Op::Write));
            }
            Op::Flush => add(&self.flushes, 1),
            Op::Discard => add(&self.discards, 1),
        }
    }

    /// Notes that a request that transfers `bytes` is in flight.
    #[inline]
    pub fn begin(&self, bytes: u32) {
        if bytes > 0 {
            add(&self.in_flight, 1);
            add(&self.in_flight_bytes, bytes.into());
        }
    }

    /// It was answered.
    #[inline]
    pub fn end(&self, bytes: u32) {
        if bytes > 0 {
            subtract(&self.in_flight, 1);
            subtract(&self.in_flight_bytes, bytes.into());
        }
    }

    fn add_to(&self, sum: &mut Traffic) {
        let get = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        sum.reads += get(&self.reads);
        sum.read_bytes += get(&self.read_bytes);
        sum.writes += get(&self.writes);
        sum.written_bytes += get(&self.written_bytes);
        sum.flushes += get(&self.flushes);
        sum.discards += get(&self.discards);
    }
}

/// The counters of all I/O contexts.
#[derive(Default)]
pub(super) struct Meter {
    contexts: Mutex<(Traffic, Vec<Arc<Counters>>)>,
}

impl Meter {
    /// Counters for one more I/O context.
    pub fn join(&self) -> Arc<Counters> {
        let counters = Arc::default();
        let mut contexts = self.contexts.lock().unwrap_or_else(PoisonError::into_inner);
        contexts.1.push(Arc::clone(&counters));
        counters
    }

    /// The requests in flight of all I/O contexts, at about this time.
    pub fn in_flight(&self) -> InFlight {
        let contexts = self.contexts.lock().unwrap_or_else(PoisonError::into_inner);
        let get = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let add = |sum: InFlight, counters: &Arc<Counters>| InFlight {
            requests: sum.requests + get(&counters.in_flight),
            bytes: sum.bytes + get(&counters.in_flight_bytes),
        };
        let present = contexts.1.iter().filter(|counters| Arc::strong_count(counters) > 1);
        present.fold(InFlight::default(), add)
    }

    /// The sum of all present and past I/O contexts.
    pub fn read(&self) -> Traffic {
        let mut contexts = self.contexts.lock().unwrap_or_else(PoisonError::into_inner);
        let (gone, present) = &mut *contexts;
        present.retain(|counters| {
            let is_present = Arc::strong_count(counters) > 1;
            if !is_present {
                counters.add_to(gone);
            }
            is_present
        });
        let mut sum = *gone;
        present.iter().for_each(|counters| counters.add_to(&mut sum));
        sum
    }
}
