//! Costs of a drive with their intervals: setup and transfer of either kind of access over concurrency.

use serde::{Deserialize, Serialize};

use crate::neighbours::neighbours;
use crate::{Access, End, Interval};

/// Writes that background work keeps outstanding where it is unknown how many the drive rewards.
const WRITE_CONCURRENCY: f64 = 4.0;

/// All that a ranking takes of a drive.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DriveCosts {
    /// Reads.
    pub reads: CostsOfKind,
    /// Writes.
    pub writes: CostsOfKind,
    /// Seconds that a write of the log takes until it is durable.
    pub flush_seconds: Interval,
    /// Requests that the drive serves in the time of one; `None`: undetermined.
    pub parallelism: Option<Interval>,
    /// [γ](crate::interference) of reads and writes together at rising concurrency; none: their times add up.
    #[serde(default)]
    pub interference: Vec<(f64, f64)>,
}

/// Costs of one kind of access.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CostsOfKind {
    /// Seconds per access at rising concurrency.
    pub setup: Vec<(f64, Interval)>,
    /// Seconds per byte at rising concurrency.
    pub transfer: Vec<(f64, Interval)>,
}

/// Requests of one kind, as predictions describe them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Requests {
    /// Their kind.
    pub access: Access,
    /// Bytes of each.
    pub bytes: f64,
    /// Whether each begins at a place of its own, rather than where the one before it ended.
    pub random: bool,
    /// In flight at a time.
    pub concurrency: f64,
}

/// The ends of intervals at which a prediction is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ends {
    /// Of the costs of reads.
    pub reads: End,
    /// Of the costs of writes.
    pub writes: End,
    /// Of flushes and of the processor's times.
    pub flushes: End,
}

impl Ends {
    /// No ends, but the values.
    pub const VALUE: Self = Self { reads: End::Value, writes: End::Value, flushes: End::Value };

    /// All combinations of the ends.
    pub fn corners() -> impl Iterator<Item = Self> {
        const ENDS: [End; 2] = [End::Low, End::High];
        ENDS.into_iter().flat_map(|reads| {
            ENDS.into_iter()
                .flat_map(move |writes| ENDS.into_iter().map(move |flushes| Self { reads, writes, flushes }))
        })
    }
}

impl DriveCosts {
    /// Costs of one kind of access.
    pub fn of_kind(&self, access: Access) -> &CostsOfKind {
        match access {
            Access::Read => &self.reads,
            Access::Write => &self.writes,
        }
    }

    /// Device time of one request at its concurrency: the inverse of the rate.
    pub fn seconds(&self, requests: &Requests, end: End) -> f64 {
        let costs = self.of_kind(requests.access);
        let at_end = |costs| between(costs, requests.concurrency, |cost| cost.at(end));
        let setup = if requests.random { at_end(&costs.setup) } else { 0.0 };
        setup + at_end(&costs.transfer) * requests.bytes
    }

    /// Setup cost of one access.
    pub fn setup(&self, access: Access, concurrency: f64) -> Interval {
        self.of_kind(access).setup(concurrency)
    }

    /// Writes that background work keeps outstanding: as many as the drive serves at a time.
    pub fn write_concurrency(&self) -> f64 {
        self.parallelism.map_or(WRITE_CONCURRENCY, |parallelism| parallelism.value.max(1.0).ceil())
    }

    /// Random reads that the drive serves in the time of one: PDAM's P, or the value that follows from its
    /// setup costs.
    pub fn read_parallelism(&self) -> f64 {
        const DEEP: f64 = 64.0;
        let of_costs = || self.setup(Access::Read, 1.0).value / self.setup(Access::Read, DEEP).value;
        self.parallelism.map_or_else(of_costs, |parallelism| parallelism.value).clamp(1.0, DEEP).round()
    }

    /// Bytes of a request whose transfer takes as long as its setup.
    pub fn half_bandwidth_bytes(&self, access: Access, concurrency: f64) -> f64 {
        let costs = self.of_kind(access);
        costs.setup(concurrency).value / costs.transfer(concurrency).value
    }
}

impl CostsOfKind {
    /// Seconds per access.
    pub fn setup(&self, concurrency: f64) -> Interval {
        interval_between(&self.setup, concurrency)
    }

    /// Seconds per byte.
    pub fn transfer(&self, concurrency: f64) -> Interval {
        interval_between(&self.transfer, concurrency)
    }

    /// The same with other intervals or values.
    pub fn map(&self, setup: impl Fn(Interval) -> Interval, transfer: impl Fn(Interval) -> Interval) -> Self {
        Self {
            setup: self.setup.iter().map(|(k, cost)| (*k, setup(*cost))).collect(),
            transfer: self.transfer.iter().map(|(k, cost)| (*k, transfer(*cost))).collect(),
        }
    }
}

fn interval_between(costs: &[(f64, Interval)], concurrency: f64) -> Interval {
    let at = |end| between(costs, concurrency, |cost| cost.at(end));
    Interval { low: at(End::Low), value: at(End::Value), high: at(End::High) }
}

/// Costs between measured concurrencies follow a power of k; beyond them they stay.
fn between(costs: &[(f64, Interval)], concurrency: f64, of: impl Fn(Interval) -> f64) -> f64 {
    // An access without a cost at any concurrency is impossible.
    let Some((low, high, place)) = neighbours(costs, concurrency) else { return f64::INFINITY };
    let (low, high) = (of(*low), of(*high));
    if place < 1.0 { low * (high / low).powf(place) } else { high }
}
