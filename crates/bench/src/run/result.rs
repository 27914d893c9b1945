//! Result of a run, for programs: one line of JSON.

use std::collections::BTreeMap;

use flashgrain_device::calendar_seconds;
use flashgrain_profile::schema::Latency;
use serde::{Deserialize, Serialize};

use super::{EngineDriven, Run};
use crate::benchmark::{Check, Contents};
use crate::drive::{Tally, UserBytes};
use crate::engine::{Caching, Durability};
use crate::measure::{BlockCounters, RawLimit, machine};

/// See the module. Rates are per second of the counted span, amounts per operation of it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RunResult {
    /// Description of the machine.
    pub machine: String,
    /// Name of the engine.
    pub engine: String,
    /// Its settings.
    pub settings: BTreeMap<String, String>,
    /// Memory that it caches data in.
    pub caching: Caching,
    /// Name of the workload.
    pub workload: String,
    /// Contents of the engine at the beginning.
    pub contents: Contents,
    /// As in [`Benchmark::data_bytes`](crate::benchmark::Benchmark::data_bytes).
    pub data_bytes: u64,
    /// Memory for its cache.
    pub cache_bytes: u64,
    /// Whether the kernel has bounded the memory of an engine that caches in it; true for others.
    pub is_memory_limited: bool,
    /// Promise of each commit.
    pub durability: Durability,
    /// Clients at a time.
    pub clients: usize,
    /// Processors.
    pub cores: usize,
    /// Operations per second of an open loop.
    pub rate_per_s: Option<f64>,
    /// The same as a share of the engine's rate in a closed loop, if it was chosen so.
    pub load: Option<f64>,
    /// Seed of everything random.
    pub seed: u64,
    /// Round of a suite.
    pub round: u32,
    /// When it ended, seconds since 1970.
    pub ended_s: u64,
    /// The counted span.
    pub elapsed_s: f64,
    /// Operations in it.
    pub operations: u64,
    /// Operations per second.
    pub operations_per_s: f64,
    /// Latency of all operations.
    pub latency: Option<Latency>,
    /// Results by kind of operation.
    pub kinds: BTreeMap<String, KindResult>,
    /// Processor time of the whole process, user and system.
    pub cpu_us_per_operation: f64,
    /// Requests that reached the device; none if they are not counted.
    pub device: Option<DeviceResult>,
    /// Bytes read from the device over those that operations asked for.
    pub read_amplification: Option<f64>,
    /// Bytes written to the device over those that operations wrote.
    pub write_amplification: Option<f64>,
    /// Bytes on the disk at the end.
    pub space_bytes: u64,
    /// Over the bytes of keys and values.
    pub space_amplification: Option<f64>,
    /// The most memory of the process while clients ran, pages of mapped files included.
    pub peak_memory_bytes: u64,
    /// Rates of the drive alone, measured in the same minute.
    pub raw: Option<RawLimit>,
    /// Of an open loop: latency of as many random reads a second by the drive alone, right after.
    #[serde(default)]
    pub raw_latency: Option<Latency>,
    /// Second by second.
    pub seconds: Vec<SecondResult>,
    /// The engine's deferred work after its clients had ended, if the run waited for it.
    #[serde(default)]
    pub drained: Option<DrainedResult>,
    /// Result of the check of the final state.
    pub check: Option<Check>,
    /// It was ended early.
    pub is_interrupted: bool,
}

/// Operations of a kind.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct KindResult {
    /// Operations per second.
    pub operations_per_s: f64,
    /// Records that were read or written by them, per second, where that is known.
    pub records_per_s: f64,
    /// Times that one lost to another and was tried again, per operation.
    pub conflicts: f64,
    /// Latency of each call.
    pub latency: Latency,
}

/// Requests that reached the device, per operation.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[expect(missing_docs, reason = "as in BlockCounters")]
pub struct DeviceResult {
    pub reads: f64,
    pub read_bytes: f64,
    pub writes: f64,
    pub written_bytes: f64,
    pub flushes: f64,
}

/// Deferred work that was done once the clients had ended: a rate that leaves it out is borrowed.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct DrainedResult {
    /// Time that it took.
    pub seconds: f64,
    /// Operations of the counted span per second of that and of this time.
    pub operations_per_s: f64,
    /// Bytes written to the device in both over those that operations wrote.
    pub write_amplification: Option<f64>,
}

/// A second of a run.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct SecondResult {
    /// Operations in it.
    pub operations: u64,
    /// Those of them that wrote.
    #[serde(default)]
    pub writes: u64,
    /// Median latency.
    pub p50_us: f64,
    /// The 99th percentile.
    pub p99_us: f64,
    /// Bytes on the disk.
    pub space_bytes: u64,
}

/// State of the engine after a run.
pub(super) struct Left {
    pub drained: Option<super::Drained>,
    pub settings: Vec<(String, String)>,
    pub space_bytes: u64,
    /// Of all keys and values, unless the run was ended early.
    pub user_bytes: Option<u64>,
    pub peak_memory_bytes: u64,
    pub check: Option<Check>,
}

impl RunResult {
    pub(super) fn new(run: &Run, driven: &EngineDriven, left: Left, is_memory_limited: bool) -> Self {
        let elapsed_s = driven.elapsed.as_secs_f64();
        let (tally, block) = (&driven.tally, block(driven));
        let operations = tally.operations();
        let latency_ns = tally.latency_ns();
        let UserBytes { read, written } = tally.user();
        let over = |bytes: u64, user: u64| (user > 0).then(|| bytes as f64 / user as f64);
        Self {
            machine: machine(),
            engine: run.engine.to_string(),
            settings: left.settings.into_iter().collect(),
            caching: run.engine.caching(),
            workload: run.benchmark.name().to_owned(),
            contents: run.benchmark.contents(),
            data_bytes: run.benchmark.data_bytes(),
            cache_bytes: run.cache_bytes,
            is_memory_limited,
            durability: run.durability,
            clients: run.span.clients,
            cores: run.cores,
            rate_per_s: run.span.rate_per_s,
            load: run.load,
            seed: run.span.seed,
            round: run.round,
            ended_s: calendar_seconds(),
            elapsed_s,
            operations,
            operations_per_s: operations as f64 / elapsed_s,
            latency: (!latency_ns.is_empty()).then(|| Latency::of(&latency_ns)),
            kinds: kinds(tally, elapsed_s),
            cpu_us_per_operation: driven.cpu.as_secs_f64() * 1e6 / operations.max(1) as f64,
            device: device(driven),
            read_amplification: block.and_then(|block| over(block.read_bytes, read)),
            write_amplification: block.and_then(|block| over(block.written_bytes, written)),
            space_bytes: left.space_bytes,
            space_amplification: left.user_bytes.and_then(|user| over(left.space_bytes, user)),
            peak_memory_bytes: left.peak_memory_bytes,
            raw: None,
            raw_latency: None,
            seconds: seconds(driven),
            drained: left.drained.map(|drained| {
                let seconds = drained.took.as_secs_f64();
                let block = drained.after.zip(driven.before).map(|(after, before)| after.since(&before));
                DrainedResult {
                    seconds,
                    operations_per_s: operations as f64 / (elapsed_s + seconds),
                    write_amplification: block.and_then(|block| over(block.written_bytes, written)),
                }
            }),
            check: left.check,
            is_interrupted: driven.is_interrupted,
        }
    }
}

fn kinds(tally: &Tally, elapsed_s: f64) -> BTreeMap<String, KindResult> {
    let of = |kind: &crate::drive::Kind| KindResult {
        operations_per_s: kind.count as f64 / elapsed_s,
        records_per_s: kind.records as f64 / elapsed_s,
        conflicts: kind.conflicts as f64 / kind.count.max(1) as f64,
        latency: Latency::of(&kind.latency_ns),
    };
    tally.kinds().iter().map(|kind| (kind.name.to_owned(), of(kind))).collect()
}

/// Requests to the block device in the span, if they are counted.
fn block(driven: &EngineDriven) -> Option<BlockCounters> {
    driven.after.zip(driven.before).map(|(after, before)| after.since(&before))
}

fn device(driven: &EngineDriven) -> Option<DeviceResult> {
    let block = block(driven)?;
    let each = |amount: u64| amount as f64 / driven.tally.operations().max(1) as f64;
    Some(DeviceResult {
        reads: each(block.reads),
        read_bytes: each(block.read_bytes),
        writes: each(block.writes),
        written_bytes: each(block.written_bytes),
        flushes: each(block.flushes),
    })
}

fn seconds(driven: &EngineDriven) -> Vec<SecondResult> {
    let of = |(second, space_bytes): (&crate::drive::Second, &u64)| SecondResult {
        operations: second.count,
        writes: second.writes,
        p50_us: second.latency_ns.value_at_quantile(0.5) as f64 * 1e-3,
        p99_us: second.latency_ns.value_at_quantile(0.99) as f64 * 1e-3,
        space_bytes: *space_bytes,
    };
    driven.tally.seconds().iter().zip(&driven.space).map(of).collect()
}
