//! The cost of a design's requests on a drive, and its bottleneck.
//!
//! 1. The design says which requests each operation makes ([`Demand`]), without a log; [`log_write`] adds the
//!    log's.
//! 2. Each request has the drive's price at its concurrency ([`DriveCosts`]).
//! 3. The lowest of these limits is the rate: the requests that the clients wait for one after the other,
//!    background work at its own concurrency, the drive's time at the sum of concurrencies, the processor,
//!    the bytes that the lifetime budget allows, and the rate that the workload asks for.
//!
//! Commits wait for the flush that is under way and for their own; those that arrive meanwhile share the
//! next. Where a commit excludes readers, their work and the flushes take turns.

use serde::Serialize;

use super::drive::{DriveCosts, Ends, Requests};
use super::workload::{Durability, Workload};
use crate::dictionary::{
    Demand, Design, Durability as Log, Operation, Processor, Records, Situation, Skew, Transfer, log_write,
};
use crate::interference::{gamma_at, time_together};
use crate::{Access, Interval};

/// Processor time of an engine, in seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ProcessorTimes {
    /// Of an operation, without its requests.
    pub operation: Interval,
    /// Time per record that a range query yields, in addition.
    pub scanned_record: Interval,
    /// Time per request to the drive: the system call, the completion, and waking the waiting thread.
    pub request: Interval,
}

impl ProcessorTimes {
    /// Of the fast ones of the stores that `flashgrain bench` runs, whose look-ups in memory take 1 to 8 µs.
    pub const OF_GOOD_STORE: Self = Self {
        operation: Interval { low: 1e-6, value: 2e-6, high: 8e-6 },
        scanned_record: Interval { low: 0.0, value: 0.0, high: 0.2e-6 },
        request: Self::REQUEST,
    };

    /// A request's time where it was not measured.
    pub const REQUEST: Interval = Interval { low: 2e-6, value: 6e-6, high: 12e-6 };
}

const SECONDS_PER_DAY: f64 = 86_400.0;

/// The engine around a design on its way to the drive.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Engine {
    /// Flushes that a commit takes, one after the other.
    pub flushes_per_commit: f64,
    /// Whether commits of several clients share a flush.
    pub group_commit: bool,
    /// Whether readers wait while a commit flushes, as with a rollback journal.
    pub commits_exclude_readers: bool,
    /// Bytes that changes may take in the log between two checkpoints; `None`: the design knows none.
    pub checkpoint_log_bytes: Option<f64>,
    /// Part of the memory that caches data.
    pub cache_fraction: f64,
    /// Its processor times.
    pub processor: ProcessorTimes,
}

impl Engine {
    /// A good engine around any design: for comparing designs.
    pub fn ideal(workload: &Workload) -> Self {
        Self {
            flushes_per_commit: 1.0,
            group_commit: true,
            commits_exclude_readers: false,
            checkpoint_log_bytes: Some((workload.memory_bytes as f64 / 4.0).max(64e6)),
            cache_fraction: 1.0,
            processor: ProcessorTimes::OF_GOOD_STORE,
        }
    }
}

/// The bottleneck.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Bound {
    /// The drive is busy, mostly with reads.
    DeviceReads,
    /// The drive is busy, mostly with writes.
    DeviceWrites,
    /// Clients wait, mostly for reads: more clients would do more.
    ReadLatency,
    /// Clients wait, mostly for writes of their own.
    WriteLatency,
    /// Clients wait, mostly for flushes.
    Flushes,
    /// Background work lags, and clients are throttled.
    Background,
    /// The processor.
    Processor,
    /// The bytes that the lifetime budget allows.
    Lifetime,
    /// Nothing: the rate that the workload asks for is reached.
    Target,
}

impl Bound {
    /// All.
    pub const ALL: [Self; 9] = [
        Self::DeviceReads,
        Self::DeviceWrites,
        Self::ReadLatency,
        Self::WriteLatency,
        Self::Flushes,
        Self::Background,
        Self::Processor,
        Self::Lifetime,
        Self::Target,
    ];

    /// In words.
    pub fn describe(self) -> &'static str {
        match self {
            Self::DeviceReads => "device time of reads",
            Self::DeviceWrites => "device time of writes",
            Self::ReadLatency => "clients wait for reads",
            Self::WriteLatency => "clients wait for writes",
            Self::Flushes => "clients wait for flushes",
            Self::Background => "background writes",
            Self::Processor => "processor",
            Self::Lifetime => "lifetime budget",
            Self::Target => "asked rate reached",
        }
    }
}

/// A design's price at one combination of ends.
#[derive(Clone, Debug, PartialEq)]
pub struct Priced {
    /// Operations per second of all clients.
    pub rate: f64,
    /// Mean latency.
    pub latency_s: f64,
    /// The bottleneck.
    pub bound: Bound,
    /// Requests to read, of an operation.
    pub reads: f64,
    /// Bytes read, of an operation.
    pub read_bytes: f64,
    /// Bytes written, of an operation, log included.
    pub written_bytes: f64,
    /// Bytes of records that an operation changes.
    pub changed_bytes: f64,
    /// Bytes of records that an operation returns.
    pub returned_bytes: f64,
}

impl Priced {
    /// Bytes written per day at that rate.
    pub fn written_per_day(&self) -> f64 {
        self.written_bytes * self.rate * SECONDS_PER_DAY
    }
}

/// The surroundings of a workload's operations.
pub fn situation(workload: &Workload, engine: &Engine) -> Situation {
    let records = Records {
        count: workload.records.count as f64,
        key_bytes: workload.records.key_bytes as f64,
        value_bytes: workload.records.value_bytes as f64,
    };
    let log_bytes_per_change = records.record_bytes();
    let (writes, inserts) = (workload.operations.writes(), workload.operations.inserts);
    Situation {
        records,
        cache_bytes: workload.memory_bytes as f64 * engine.cache_fraction,
        clients: f64::from(workload.clients),
        skew: match workload.skew {
            0.0 => Skew::Uniform,
            exponent => Skew::Zipf { exponent },
        },
        durability: Log::NoLog,
        replaced_share: (writes > 0.0).then(|| 1.0 - inserts / writes),
        changes_per_checkpoint: engine.checkpoint_log_bytes.map(|bytes| bytes / log_bytes_per_change),
        operations_since_empty: None,
        processor: Processor::FREE,
    }
}

/// The operations of a workload with their shares.
fn operations(workload: &Workload) -> [(Operation, f64); 6] {
    let operations = workload.operations;
    [
        (Operation::PointHit, operations.point_hits),
        (Operation::PointMiss, operations.point_misses),
        (Operation::Insert, operations.inserts),
        (Operation::Update, operations.updates),
        (Operation::Delete, operations.deletes),
        (Operation::Range { bytes: operations.range_bytes as f64 }, operations.ranges),
    ]
}

/// The demand of a design on the drive for the average operation of a workload, without the log; and the
/// log's demand.
pub struct Asked {
    data: Demand,
    log: Demand,
}

impl Asked {
    /// Bytes written per byte changed, log included; `None` if nothing is changed.
    pub fn write_amplification(&self) -> Option<f64> {
        let written = self.data.bytes(Access::Write) + self.log.bytes(Access::Write);
        (self.data.changed_bytes > 0.0).then(|| written / self.data.changed_bytes)
    }

    /// Without the log's requests: of engines whose log is no log of operations.
    pub fn without_log(self) -> Self {
        Self { log: Demand::default(), ..self }
    }
}

/// Requests of the average operation.
pub fn asked(design: &dyn Design, workload: &Workload, engine: &Engine) -> Asked {
    let whole = situation(workload, engine);
    let logged_records = design.logged_records(&whole);
    let bytes_per_change = logged_records.record_bytes();
    let changes_per_checkpoint = engine.checkpoint_log_bytes.map(|bytes| bytes / bytes_per_change);
    let situation = Situation { changes_per_checkpoint, ..whole };
    let asked = || operations(workload).into_iter().filter(|(_, share)| *share > 0.0);
    let demands = asked().map(|(operation, share)| (share, design.demand(operation, &situation)));
    let data = summed(Demand::mix(demands));
    let changes_per_write = match workload.durability {
        Durability::Sync if engine.group_commit => {
            (situation.clients * workload.operations.writes() / 2.0).max(1.0)
        }
        Durability::Sync => 1.0,
        Durability::Group { .. } | Durability::None => 0.0,
    };
    let durability = match changes_per_write {
        0.0 => Log::Buffered,
        changes_per_write => Log::Synced { changes_per_write },
    };
    let logged = Situation { durability, records: logged_records, ..situation };
    let log = Demand::mix(asked().map(|(operation, share)| {
        let mut demand = Demand::default();
        demand.add(log_write(operation, &logged).map(|write| Transfer { awaited: false, ..write }));
        (share, demand)
    }));
    Asked { data, log: summed(log) }
}

/// The same with one transfer for all that differ in numbers and sizes of requests only: a drive's time is
/// linear in both.
fn summed(demand: Demand) -> Demand {
    let mut sums: Vec<Transfer> = Vec::new();
    for transfer in demand.transfers {
        let same = |own: &&mut Transfer| {
            Transfer { requests: transfer.requests, bytes_each: transfer.bytes_each, ..**own } == transfer
        };
        match sums.iter_mut().find(same) {
            Some(own) => {
                let (requests, bytes) = (own.requests + transfer.requests, own.bytes() + transfer.bytes());
                (own.requests, own.bytes_each) = (requests, bytes / requests);
            }
            None => sums.push(transfer),
        }
    }
    Demand { transfers: sums, ..demand }
}

/// Seconds of device time by kind.
#[derive(Clone, Copy, Debug, Default)]
struct Seconds {
    reads: f64,
    writes: f64,
}

impl Seconds {
    /// Of reads and writes together at a concurrency.
    fn together(self, drive: &DriveCosts, concurrency: f64) -> f64 {
        time_together(self.reads, self.writes, gamma_at(&drive.interference, concurrency.max(1.0)))
    }
}

fn seconds<'a>(
    transfers: impl Iterator<Item = &'a Transfer>,
    drive: &DriveCosts,
    ends: Ends,
    concurrency: impl Fn(&Transfer) -> f64,
) -> Seconds {
    let mut sum = Seconds::default();
    for transfer in transfers {
        let (end, part) = match transfer.access {
            Access::Read => (ends.reads, &mut sum.reads),
            Access::Write => (ends.writes, &mut sum.writes),
        };
        let at = |random| Requests {
            access: transfer.access,
            bytes: transfer.bytes_each,
            random,
            concurrency: concurrency(transfer).max(1.0),
        };
        let random = transfer.random_share.clamp(0.0, 1.0);
        let each = random * drive.seconds(&at(true), end) + (1.0 - random) * drive.seconds(&at(false), end);
        *part += transfer.requests * each;
    }
    sum
}

/// Requests that are outstanding on average while the transfers of a group take turns.
fn outstanding(demand: &Demand, awaited: bool) -> f64 {
    let group = || demand.transfers.iter().filter(move |transfer| transfer.awaited == awaited);
    let requests: f64 = group().map(|transfer| transfer.requests).sum();
    let weighted: f64 = group().map(|transfer| transfer.requests * transfer.concurrency).sum();
    if requests > 0.0 { weighted / requests } else { 0.0 }
}

/// Prices the demand of a design.
pub fn price(asked: &Asked, workload: &Workload, engine: &Engine, drive: &DriveCosts, ends: Ends) -> Priced {
    let clients = f64::from(workload.clients);
    let data = &asked.data;
    let of_group = |awaited: bool| {
        let group = data.transfers.iter().filter(move |transfer| transfer.awaited == awaited);
        seconds(group, drive, ends, |transfer| transfer.concurrency)
    };
    let (awaited, background) = (of_group(true), of_group(false));
    let together = outstanding(data, true) + outstanding(data, false);
    let all = || data.transfers.iter().chain(&asked.log.transfers);
    let device = seconds(all(), drive, ends, |_| together);
    let flush_s = flush_seconds(workload, engine, drive, ends);
    let requests: f64 = all().map(|transfer| transfer.requests).sum();
    let ProcessorTimes { operation, scanned_record, request } = engine.processor;
    let processor_s = operation.at(ends.flushes)
        + scanned_records(workload) * scanned_record.at(ends.flushes)
        + requests * request.at(ends.flushes);

    // A client's own requests are served together with those of the other clients.
    let (wait_reads, wait_writes) = (clients * awaited.reads, clients * awaited.writes);
    let path_s = wait_reads + wait_writes + flush_s.waited + processor_s;
    let waits_for = [
        (Bound::ReadLatency, wait_reads),
        (Bound::WriteLatency, wait_writes),
        (Bound::Flushes, flush_s.waited),
        (Bound::Processor, processor_s),
    ];
    let busy_with = [(Bound::DeviceReads, device.reads), (Bound::DeviceWrites, device.writes)];
    let written_bytes = data.bytes(Access::Write) + asked.log.bytes(Access::Write);
    let mut limits = vec![
        (most(&busy_with, Bound::DeviceReads), device.together(drive, together)),
        (Bound::Background, background.together(drive, outstanding(data, false))),
    ];
    limits.extend(workload.cores.map(|cores| (Bound::Processor, processor_s / f64::from(cores))));
    if engine.commits_exclude_readers && flush_s.serial > 0.0 {
        // Whatever limits the readers goes on between flushes alone.
        let path = (most(&waits_for[..2], Bound::Processor), (path_s - flush_s.waited) / clients);
        let between = limits.iter().fold(path, |found, limit| if limit.1 > found.1 { *limit } else { found });
        let bound = if flush_s.serial > between.1 { Bound::Flushes } else { between.0 };
        limits.push((bound, flush_s.serial + between.1));
    }
    limits.push((most(&waits_for, Bound::ReadLatency), path_s / clients));
    limits.push((Bound::Flushes, flush_s.serial));
    limits.extend(workload.lifetime.map(|lifetime| {
        let bytes_per_s = lifetime.drive_writes_per_day * lifetime.drive_bytes as f64 / SECONDS_PER_DAY;
        (Bound::Lifetime, written_bytes / bytes_per_s)
    }));
    limits.extend(workload.rate_per_second.map(|rate| (Bound::Target, rate.recip())));
    let (bound, seconds) =
        limits.into_iter().fold((Bound::Processor, processor_s / clients), |found, limit| {
            if limit.1 > found.1 { limit } else { found }
        });
    // Of an open loop the operations do not queue as long as the rate is reached.
    let latency_s = if bound == Bound::Target { path_s } else { (clients * seconds).max(path_s) };
    Priced {
        rate: seconds.recip(),
        latency_s,
        bound,
        reads: data.requests(Access::Read),
        read_bytes: data.bytes(Access::Read),
        written_bytes,
        changed_bytes: data.changed_bytes,
        returned_bytes: data.returned_bytes,
    }
}

/// Records that the average operation's range query yields.
fn scanned_records(workload: &Workload) -> f64 {
    let operations = workload.operations;
    operations.ranges * operations.range_bytes as f64 / workload.records.record_bytes() as f64
}

fn most(parts: &[(Bound, f64)], otherwise: Bound) -> Bound {
    parts.iter().fold((otherwise, 0.0), |found, part| if part.1 > found.1 { *part } else { found }).0
}

/// Time for flushes per average operation: the client's wait, and the part that cannot be shared.
struct FlushSeconds {
    waited: f64,
    serial: f64,
}

fn flush_seconds(workload: &Workload, engine: &Engine, drive: &DriveCosts, ends: Ends) -> FlushSeconds {
    if workload.durability != Durability::Sync {
        return FlushSeconds { waited: 0.0, serial: 0.0 };
    }
    let writes = workload.operations.writes();
    let flush = drive.flush_seconds.at(ends.flushes) * engine.flushes_per_commit;
    if !engine.group_commit {
        return FlushSeconds { waited: writes * flush, serial: writes * flush };
    }
    // A commit arrives somewhere in the flush before its own, unless it is alone.
    let company = 1.0 - f64::from(workload.clients).recip();
    FlushSeconds { waited: writes * flush * (1.0 + 0.5 * company), serial: 0.0 }
}
