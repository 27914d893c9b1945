//! What a run found, for programs: one line of JSON.

use std::collections::BTreeMap;

use flashgrain_device::calendar_seconds;
use flashgrain_profile::schema::Latency;
use serde::{Deserialize, Serialize};

use super::Run;
use crate::drive::Driven;
use crate::engine::Durability;
use crate::measure::{RawLimit, peak_memory_bytes};

/// See the module. Rates are per second of the counted span, amounts per operation of it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RunResult {
    /// Which engine.
    pub engine: String,
    /// Its settings.
    pub settings: BTreeMap<String, String>,
    /// Which workload.
    pub workload: String,
    /// Records at the beginning.
    pub records: u64,
    /// Bytes of a key and of a value.
    pub record_bytes: (usize, usize),
    /// Memory for its cache.
    pub cache_bytes: u64,
    /// Whether the kernel has bounded the memory of an engine that caches in it; true for others.
    pub is_memory_limited: bool,
    /// What commits promise.
    pub durability: Durability,
    /// Clients at a time.
    pub clients: usize,
    /// Processors.
    pub cores: usize,
    /// Of an open loop.
    pub rate_per_s: Option<f64>,
    /// The same as a share of what the engine does in a closed loop, if it was chosen so.
    pub load: Option<f64>,
    /// Of everything random.
    pub seed: u64,
    /// Of a suite.
    pub round: u32,
    /// When it ended, seconds since 1970.
    pub ended_s: u64,
    /// The counted span.
    pub elapsed_s: f64,
    /// Operations in it.
    pub operations: u64,
    /// Per second.
    pub operations_per_s: f64,
    /// Of all operations.
    pub latency: Option<Latency>,
    /// By kind.
    pub kinds: BTreeMap<String, KindResult>,
    /// Processor time of the whole process, user and system.
    pub cpu_us_per_operation: f64,
    /// Requests that reached the device; none where nobody counts them.
    pub device_reads_per_operation: Option<f64>,
    /// As above.
    pub device_writes_per_operation: Option<f64>,
    /// Bytes read from the device over those that operations asked for.
    pub read_amplification: Option<f64>,
    /// Bytes written to the device over those that operations wrote.
    pub write_amplification: Option<f64>,
    /// On the disk at the end.
    pub space_bytes: u64,
    /// Over the bytes of keys and values.
    pub space_amplification: f64,
    /// The most memory of the process.
    pub peak_memory_bytes: u64,
    /// What the drive did alone in the same minute.
    pub raw: Option<RawLimit>,
    /// Second by second.
    pub seconds: Vec<SecondResult>,
    /// It was ended early.
    pub is_interrupted: bool,
}

/// Operations of a kind.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct KindResult {
    /// Per second.
    pub operations_per_s: f64,
    /// Of each call.
    pub latency: Latency,
}

/// A second of a run.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct SecondResult {
    /// In it.
    pub operations: u64,
    /// Median latency.
    pub p50_us: f64,
    /// The 99th percentile.
    pub p99_us: f64,
    /// On the disk.
    pub space_bytes: u64,
}

impl RunResult {
    /// Of a run that has left so many records, and files of so many bytes.
    pub fn new(
        run: &Run,
        driven: Driven,
        records: u64,
        space_bytes: u64,
        settings: Vec<(String, String)>,
        is_memory_limited: bool,
    ) -> Self {
        let elapsed_s = driven.elapsed.as_secs_f64();
        let operations = driven.tally.operations();
        let per_operation = |amount: f64| amount / operations.max(1) as f64;
        let kinds: BTreeMap<String, KindResult> = driven
            .tally
            .kinds()
            .map(|(name, count, latency_ns)| {
                let operations_per_s = count as f64 / elapsed_s;
                (name.to_owned(), KindResult { operations_per_s, latency: Latency::of(latency_ns) })
            })
            .collect();
        let count_of = |names: &[&str]| -> u64 {
            let counts = driven.tally.kinds().filter(|(name, ..)| names.contains(name));
            counts.map(|(_, count, _)| count).sum()
        };
        let asked_for = run.user_bytes(count_of(&["read", "scan", "modify"]));
        let written = run.user_bytes(count_of(&["update", "insert", "modify"]));
        let over = |bytes: u64, user: u64| (user > 0).then(|| bytes as f64 / user as f64);
        let block = driven.block;
        let latency_ns = driven.tally.latency_ns();
        let seconds = driven.tally.seconds().iter().enumerate();
        let seconds = seconds.map(|(index, second)| SecondResult {
            operations: second.count,
            p50_us: second.latency_ns.value_at_quantile(0.5) as f64 * 1e-3,
            p99_us: second.latency_ns.value_at_quantile(0.99) as f64 * 1e-3,
            space_bytes: driven.space.get(index).copied().unwrap_or(0),
        });
        Self {
            engine: run.engine.to_string(),
            settings: settings.into_iter().collect(),
            workload: run.workload.name.clone(),
            records: run.records.count,
            record_bytes: (run.records.key_bytes, run.records.value_bytes),
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
            kinds,
            cpu_us_per_operation: per_operation(driven.cpu.as_secs_f64() * 1e6),
            device_reads_per_operation: block.map(|block| per_operation(block.reads as f64)),
            device_writes_per_operation: block.map(|block| per_operation(block.writes as f64)),
            read_amplification: block.and_then(|block| over(block.read_bytes, asked_for)),
            write_amplification: block.and_then(|block| over(block.written_bytes, written)),
            space_bytes,
            space_amplification: space_bytes as f64 / run.user_bytes(records).max(1) as f64,
            peak_memory_bytes: peak_memory_bytes(),
            raw: None,
            seconds: seconds.collect(),
            is_interrupted: driven.is_interrupted,
        }
    }
}
