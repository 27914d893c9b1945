//! The one loader: it puts in records before a measurement, or as the measurement itself.
//!
//! Clients take records from one counter and put them in by batches: each an equal part, or, where a limit
//! may end it, one stretch of consecutive records after another. A stretch that was begun is completed,
//! unless the loader is interrupted, so that no record is missing before the last one.

use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use clap::ValueEnum;
use flashgrain_device::Nanos;
use hdrhistogram::Histogram;

use crate::drive::{Host, histogram, pass_while, record};
use crate::engine::{Failure, Job, Session, Table};
use crate::keys;
use crate::records::Records;

/// Records of one batch.
const BATCH_RECORDS: u64 = 100;

/// Records that a client inserts in a row, so that leaves become full: they fill some hundred leaves, few of
/// them at the stretch's borders. In [`Order::Stretches`] all of these are in memory at a time.
const STRETCH_RECORDS: u64 = 4096;

/// Between two looks at how much was written.
const WRITES_TICK: Duration = Duration::from_millis(1);

/// The table that is filled.
const TABLE: Table = 0;

/// How a store is filled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Order {
    /// In key order, by every task in a range of its own.
    Sequential,
    /// In an order that looks random.
    Random,
    /// In key order by stretches of some thousand, within which the order is random: pages become as full as
    /// with random, but none has to be read.
    Stretches,
    /// In key order, of keys that are scattered.
    #[value(skip)]
    Scattered,
}

impl Order {
    fn batch_records(self) -> u64 {
        if self == Self::Random { 1 } else { BATCH_RECORDS }
    }
}

/// The records that are put in, and how.
#[derive(Clone, Debug)]
pub struct Filling {
    /// All records, if there is time for them.
    pub records: Records,
    /// The order of their insertion.
    pub order: Order,
    /// Clients at a time.
    pub clients: usize,
    /// No stretch begins later.
    pub length_max: Option<Duration>,
    /// No stretch begins after this number of bytes written.
    pub written_bytes_max: Option<u64>,
}

impl Filling {
    /// Records that a client takes at a time: an equal part of all, or a stretch if there may be no time for
    /// all.
    fn share_records(&self) -> u64 {
        match (self.length_max, self.written_bytes_max) {
            (None, None) => self.records.count.div_ceil(self.clients.max(1) as u64),
            _ => STRETCH_RECORDS,
        }
    }

    /// All records, however long that takes.
    pub fn all(records: Records, order: Order, clients: usize) -> Self {
        Self { records, order, clients, length_max: None, written_bytes_max: None }
    }
}

/// Counts of a filling.
#[derive(Debug)]
pub struct Filled<C> {
    /// Until the last record was in.
    pub elapsed: Duration,
    /// Those that are in, in their order, from the first on.
    pub records: u64,
    /// Latency of each batch.
    pub latency_ns: Histogram<u64>,
    /// Processor time of the host.
    pub cpu: Duration,
    /// The host's counters at the beginning.
    pub before: C,
    /// Counters at the end.
    pub after: C,
    /// It was ended early.
    pub is_interrupted: bool,
}

// How far clients may go on.
const GOING: u8 = 0;
const LAST_STRETCH: u8 = 1;
const STOPPED: u8 = 2;

/// The state that the clients share.
struct Shared {
    filling: Filling,
    sequence: Sequence,
    /// The first record that no client has taken.
    next: AtomicU64,
    done: AtomicU64,
    stop: AtomicU8,
    latency_ns: Mutex<Histogram<u64>>,
}

/// Puts records into the host's first table; `progress` gets the share that is done.
///
/// # Errors
/// The first that a client has met.
pub fn fill<H: Host>(
    host: &mut H,
    filling: &Filling,
    interrupt: &AtomicBool,
    progress: &mut dyn FnMut(f64),
) -> anyhow::Result<Filled<H::Counters>> {
    let records = filling.records.count;
    let shared = Arc::new(Shared {
        filling: filling.clone(),
        sequence: Sequence::new(filling.order, records),
        next: AtomicU64::new(0),
        done: AtomicU64::new(0),
        stop: AtomicU8::new(GOING),
        latency_ns: Mutex::new(histogram()),
    });
    let (before, cpu, began) = (host.counters(), host.cpu(), host.now());
    host.start(filling.clients, job(&shared))?;
    let end = filling.length_max.map_or(Nanos(u64::MAX), |length| began + Nanos::from(length));
    let written_max = filling.written_bytes_max.map(|most| H::written_bytes(&before).saturating_add(most));
    let tick = if written_max.is_some() { WRITES_TICK.min(host.tick()) } else { host.tick() };
    pass_while(host, Nanos(u64::MAX), tick, |host| {
        if interrupt.load(Ordering::Relaxed) {
            shared.stop.store(STOPPED, Ordering::Relaxed);
        }
        let is_at_limit =
            host.now() >= end || written_max.is_some_and(|most| H::written_bytes(&host.counters()) >= most);
        if is_at_limit {
            shared.stop.fetch_max(LAST_STRETCH, Ordering::Relaxed);
        }
        progress(shared.done.load(Ordering::Relaxed) as f64 / records.max(1) as f64);
        true
    });
    host.join()?;
    let latency_ns = shared.latency_ns.lock().unwrap_or_else(PoisonError::into_inner).clone();
    Ok(Filled {
        elapsed: host.now().since(began).into(),
        records: shared.done.load(Ordering::Relaxed),
        latency_ns,
        cpu: host.cpu() - cpu,
        before,
        after: host.counters(),
        is_interrupted: interrupt.load(Ordering::Relaxed),
    })
}

/// Stops all clients when dropped, as by an error or a panic of one; a client that ends well forgets it.
struct StopsUnlessEnded<'a>(&'a AtomicU8);

impl Drop for StopsUnlessEnded<'_> {
    fn drop(&mut self) {
        self.0.store(STOPPED, Ordering::Relaxed);
    }
}

/// The job of each client.
fn job(shared: &Arc<Shared>) -> Job {
    let shared = Arc::clone(shared);
    Arc::new(move |_, session: &mut dyn Session| {
        let unless_ended = StopsUnlessEnded(&shared.stop);
        let mut latency_ns = histogram();
        shared.put_stretches(session, &mut latency_ns)?;
        std::mem::forget(unless_ended);
        *shared.latency_ns.lock().unwrap_or_else(PoisonError::into_inner) += &latency_ns;
        Ok(())
    })
}

impl Shared {
    fn put_stretches(
        &self,
        session: &mut dyn Session,
        latency_ns: &mut Histogram<u64>,
    ) -> anyhow::Result<()> {
        let Filling { records, order, .. } = &self.filling;
        let share = self.filling.share_records();
        let mut buffers = (vec![0; records.key_bytes], vec![0; records.value_bytes]);
        while self.stop.load(Ordering::Relaxed) == GOING {
            let start = self.next.fetch_add(share, Ordering::Relaxed);
            if start >= records.count {
                break;
            }
            let end = records.count.min(start + share);
            for first in (start..end).step_by(order.batch_records() as usize) {
                if self.stop.load(Ordering::Relaxed) == STOPPED {
                    return Ok(());
                }
                let batch = first..end.min(first + order.batch_records());
                let (count, began) = (batch.end - batch.start, session.now());
                while !self.put(session, batch.clone(), &mut buffers)? {}
                record(latency_ns, session.now().since(began).0);
                self.done.fetch_add(count, Ordering::Relaxed);
            }
        }
        Ok(())
    }

    /// Puts records in together. `false` if another transaction was faster.
    fn put(
        &self,
        session: &mut dyn Session,
        batch: std::ops::Range<u64>,
        (key, value): &mut (Vec<u8>, Vec<u8>),
    ) -> anyhow::Result<bool> {
        let mut put = || -> Result<(), Failure> {
            session.begin_writing()?;
            for number in batch.clone() {
                let record = self.sequence.record(number);
                match self.filling.order {
                    Order::Scattered => keys::scattered_key(record, key),
                    _ => keys::key(record, key),
                }
                keys::value(record, 0, value);
                session.put(TABLE, key, value)?;
            }
            session.commit()
        };
        match put() {
            Ok(()) => Ok(true),
            Err(Failure::Conflict) => Ok(false),
            Err(Failure::Broken(error)) => Err(error),
        }
    }
}

/// The order of the records.
struct Sequence {
    /// Records of a stretch; their order within it is random.
    stretch: u64,
    /// Coprime to that, so that every record has its turn once.
    stride: u64,
    records: u64,
    /// The order of scattered keys; empty for all others.
    by_key: Vec<u64>,
}

impl Sequence {
    fn new(order: Order, records: u64) -> Self {
        let stretch = match order {
            Order::Sequential | Order::Scattered => 1,
            Order::Random => records,
            Order::Stretches => STRETCH_RECORDS,
        };
        let by_key = if order == Order::Scattered { keys::by_scattered_key(records) } else { Vec::new() };
        Self { stretch, stride: coprime(stretch), records, by_key }
    }

    /// The `number`-th record.
    fn record(&self, number: u64) -> u64 {
        if let Some(record) = self.by_key.get(number as usize) {
            return *record;
        }
        let within = number % self.stretch;
        let start = number - within;
        if start + self.stretch > self.records {
            return number;
        }
        start + (u128::from(within) * u128::from(self.stride) % u128::from(self.stretch)) as u64
    }
}

/// A number near the golden section of `records` without a common factor.
fn coprime(records: u64) -> u64 {
    let gcd = |mut a: u64, mut b: u64| {
        while b > 0 {
            (a, b) = (b, a % b);
        }
        a
    };
    let start = ((records as f64 * 0.618_033_988_75) as u64).max(1);
    (start..).find(|stride| gcd(*stride, records) == 1).unwrap_or(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_order_puts_each_record_in_once() {
        for order in [Order::Sequential, Order::Random, Order::Stretches, Order::Scattered] {
            for records in [1_u64, 2, 10, 97, 1000, 3 * STRETCH_RECORDS + 1] {
                let sequence = Sequence::new(order, records);
                let mut seen: Vec<u64> = (0..records).map(|number| sequence.record(number)).collect();
                seen.sort_unstable();
                assert_eq!(seen, (0..records).collect::<Vec<_>>(), "{order:?} {records}");
            }
        }
    }

    #[test]
    fn stretches_stay_together_and_are_mixed_within() {
        let sequence = Sequence::new(Order::Stretches, 2 * STRETCH_RECORDS);
        let second: Vec<u64> =
            (STRETCH_RECORDS..2 * STRETCH_RECORDS).map(|number| sequence.record(number)).collect();
        assert!(second.iter().all(|record| *record >= STRETCH_RECORDS));
        let ascending = second.windows(2).filter(|pair| pair[0] < pair[1]).count();
        assert!(ascending < second.len() * 3 / 4, "{ascending} of {}", second.len());
    }
}
