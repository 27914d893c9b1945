//! WiredTiger 3.2: `WiredTiger.config` for the connection, and the string for making tables.
//!
//! The model: a B-tree whose pages are read through the kernel's page cache, which shares the memory with
//! WiredTiger's own, and whose changes are gathered in the part of WiredTiger's own cache that may be dirty.
//! The engine has no log by default; for comparing, the default has the log that the workload's durability
//! needs.

use flashgrain_cost::Interval;
use flashgrain_cost::dictionary::{BTree, Demand, Design, Operation, Situation, WriteBack};
use flashgrain_cost::ranking::{Asked, Engine, ProcessorTimes, asked};
use flashgrain_model::Access;
use flashgrain_settings::Bytes;

use super::tuned::{Configuration, Tuned};
use super::{
    EngineAdvice, EngineName, SAME_MEMORY, Setting, commented, explained, flush_text, half_bandwidth_text,
    head, measured_text,
};
use crate::drive::Drive;
use crate::workload::{Durability, Workload};

const MEBI: f64 = 1_048_576.0;

/// The parts of the configuration that the model knows.
#[derive(Clone, Debug)]
struct WiredTiger {
    cache_bytes: f64,
    leaf_bytes: f64,
}

const DEFAULT: WiredTiger = WiredTiger { cache_bytes: 100.0 * MEBI, leaf_bytes: 32_768.0 };

/// The page cache has the other half; its pages need no request to the drive.
const CACHE_FRACTION: f64 = 0.5;
const CACHE_BYTES_MIN: f64 = MEBI;
/// Memory that the default's cache may take of a workload that has too little for half of it to be as much.
const DEFAULT_FRACTION_MAX: f64 = 0.8;
/// `eviction_dirty_trigger`: clients are made to write when more of the cache is dirty.
const DIRTY_FRACTION: f64 = 0.2;
const LEAF_BYTES: [f64; 6] = [4096.0, 8192.0, 16_384.0, 32_768.0, 65_536.0, 131_072.0];
/// Longer values go to pages of their own.
const RECORDS_PER_LEAF_MIN: f64 = 2.2;
/// Eviction threads, `threads_max` by default.
const EVICTION_THREADS: f64 = 8.0;
const LOG_BYTES_MIN: f64 = 64.0 * MEBI;
const LOG_BYTES_MAX: f64 = 2048.0 * MEBI;

/// The tree, whose changes are gathered in less memory than its pages are read from.
struct Tree {
    tree: BTree,
    dirty_bytes: f64,
}

impl Design for Tree {
    fn name(&self) -> String {
        self.tree.name()
    }

    fn demand(&self, operation: Operation, situation: &Situation) -> Demand {
        let gathered = Situation { cache_bytes: self.dirty_bytes, ..*situation };
        let mut demand = self.tree.demand(operation, situation);
        let writes = self.tree.demand(operation, &gathered).transfers;
        demand.transfers.retain(|transfer| transfer.access == Access::Read);
        writes
            .into_iter()
            .filter(|transfer| transfer.access == Access::Write)
            .for_each(|write| demand.add(write));
        demand
    }

    fn space_amplification(&self, situation: &Situation) -> f64 {
        self.tree.space_amplification(situation)
    }
}

impl Configuration for WiredTiger {
    fn engine(&self, workload: &Workload) -> Engine {
        Engine {
            flushes_per_commit: 1.0,
            group_commit: true,
            commits_exclude_readers: false,
            checkpoint_log_bytes: Some(log_bytes(workload)),
            cache_fraction: 1.0,
            processor: ProcessorTimes::OF_GOOD_STORE,
        }
    }

    fn flush_seconds(&self, drive: &Drive) -> Interval {
        drive.flush_of_growing_file()
    }

    fn asked(&self, workload: &Workload) -> Asked {
        let write_back = WriteBack::Background { concurrency: EVICTION_THREADS };
        let tree = BTree { write_back, ..BTree::new(self.leaf_bytes) };
        let dirty_bytes = self.cache_bytes * DIRTY_FRACTION;
        asked(&Tree { tree, dirty_bytes }, workload, &self.engine(workload))
    }
}

/// Log between two checkpoints.
fn log_bytes(workload: &Workload) -> f64 {
    (workload.memory_bytes as f64 / 4.0).clamp(LOG_BYTES_MIN, LOG_BYTES_MAX)
}

type Tiger<'a> = Tuned<'a, WiredTiger>;

/// Half of the memory. Less than the default only where memory has no room for that: a smaller cache gathers
/// fewer changes.
fn cache_bytes(workload: &Workload) -> f64 {
    let memory = workload.memory_bytes as f64;
    let half = (memory * CACHE_FRACTION).max(CACHE_BYTES_MIN);
    let has_room = DEFAULT.cache_bytes <= memory * DEFAULT_FRACTION_MAX;
    if has_room { half.max(DEFAULT.cache_bytes) } else { half }
}

pub(super) fn advise(workload: &Workload, drive: &Drive) -> EngineAdvice {
    let advised = WiredTiger { cache_bytes: cache_bytes(workload), ..DEFAULT };
    let default = WiredTiger { cache_bytes: advised.cache_bytes, ..DEFAULT };
    let mut tuned = Tuned { default, advised, workload, drive };
    let record = workload.records.record_bytes() as f64;
    let room = |bytes: &f64| *bytes >= RECORDS_PER_LEAF_MIN * record;
    let leaves: Vec<f64> = LEAF_BYTES.into_iter().filter(room).collect();
    tuned.advised.leaf_bytes =
        tuned.best(&leaves, DEFAULT.leaf_bytes, |tiger, bytes| tiger.leaf_bytes = bytes);
    let connection = vec![cache(&tuned), log(&tuned), sync(&tuned), checkpoint(&tuned)];
    let table = vec![leaf(&tuned)];
    let of_table: Vec<String> = table
        .iter()
        .filter_map(|setting| Some(format!("{}={}", setting.name, setting.value.as_ref()?)))
        .collect();
    let mut file = head("WiredTiger 3.2", "#", workload, drive);
    file += "# Put this file into the database's home as WiredTiger.config.\n\n";
    file += &explained(&connection, "#", |setting, value| format!("{}={value}\n", setting.name));
    file += &explained(&table, "#", |setting, value| {
        commented(&format!("{}={value} is given to WT_SESSION::create, below.", setting.name), "#")
    });
    file += &format!("# WT_SESSION::create: key_format=u,value_format=u,{}\n", of_table.join(","));
    EngineAdvice {
        engine: EngineName::Wiredtiger,
        version: "3.2",
        default_rate_per_second: tuned.rate(&tuned.default),
        advised_rate_per_second: tuned.rate(&tuned.advised),
        default_bound: tuned.bound(&tuned.default),
        advised_bound: tuned.bound(&tuned.advised),
        gain: tuned.gain(),
        settings: connection.into_iter().chain(table).collect(),
        trees: Vec::new(),
        notes: vec![
            "WiredTiger has no log by default; the predicted default has the one that the durability needs"
                .into(),
            "block_compressor stays at the default: a profile does not know how well records compress".into(),
        ],
        file,
    }
}

fn mebibytes(bytes: f64) -> String {
    format!("{:.0}MB", (bytes / MEBI).floor().max(1.0))
}

fn cache(tuned: &Tiger<'_>) -> Setting {
    let bytes = tuned.advised.cache_bytes;
    let is_default = bytes == DEFAULT.cache_bytes;
    let write = tuned.drive.costs().setup(Access::Write, EVICTION_THREADS);
    Setting {
        name: "cache_size",
        value: (!is_default).then(|| mebibytes(bytes)),
        default: "100MB",
        reason: match is_default {
            true => "half of memory_bytes is less, and a smaller cache gathers fewer changes",
            false => "a fifth of it gathers changes, so that a page that is changed again is written once; the page cache has the other half of memory_bytes",
        }
        .into(),
        number: measured_text(tuned.drive, Access::Write, format!("a random write takes {:.1} µs of the drive's time with {EVICTION_THREADS} in flight", write.value * 1e6)),
        gain: None,
        cost: match is_default {
            true => String::new(),
            false => format!("{} of memory, {SAME_MEMORY}", Bytes(bytes as u64)),
        },
    }
}

fn writes(tuned: &Tiger<'_>) -> bool {
    tuned.workload.operations.writes() > 0.0
}

fn log(tuned: &Tiger<'_>) -> Setting {
    let on = writes(tuned);
    Setting {
        name: "log",
        value: on.then(|| "(enabled=true,file_max=128MB)".to_owned()),
        default: "(enabled=false)",
        reason: match on {
            true => "without a log a crash takes every commit since the last checkpoint".into(),
            false => "nothing is written".into(),
        },
        number: "none".into(),
        gain: None,
        cost: if on { "every change is written to the log, too".into() } else { String::new() },
    }
}

fn sync(tuned: &Tiger<'_>) -> Setting {
    let flush = tuned.drive.flush_of_growing_file();
    // With a window, syncing each commit is the only way that WiredTiger has to keep it.
    let on = writes(tuned) && tuned.workload.durability != Durability::None;
    Setting {
        name: "transaction_sync",
        value: on.then(|| "(enabled=true,method=fsync)".to_owned()),
        default: "(enabled=false)",
        reason: match on {
            true => format!("the workload's durability: {}", tuned.workload.durability.describe()),
            false => "the workload does not ask for it".into(),
        },
        number: flush_text(tuned.drive, "to a file that grows ", flush),
        gain: None,
        cost: if on {
            "commits wait for the drive; those of several clients together".into()
        } else {
            String::new()
        },
    }
}

fn checkpoint(tuned: &Tiger<'_>) -> Setting {
    let on = writes(tuned);
    let bytes = log_bytes(tuned.workload);
    let write = tuned.drive.costs().setup(Access::Write, EVICTION_THREADS);
    Setting {
        name: "checkpoint",
        value: on.then(|| format!("(log_size={})", mebibytes(bytes))),
        default: "(wait=0)",
        reason: match on {
            true => {
                "a checkpoint after this amount of log bounds a recovery; by default there is none".into()
            }
            false => "nothing is written".into(),
        },
        number: measured_text(
            tuned.drive,
            Access::Write,
            format!("a random write takes {:.1} µs of the drive's time", write.value * 1e6),
        ),
        gain: None,
        cost: if on { format!("{} of log on the drive", Bytes(bytes as u64)) } else { String::new() },
    }
}

fn leaf(tuned: &Tiger<'_>) -> Setting {
    let bytes = tuned.advised.leaf_bytes;
    let is_default = bytes == DEFAULT.leaf_bytes;
    let gain = tuned.gain_of(|tiger, default| tiger.leaf_bytes = default.leaf_bytes);
    Setting {
        name: "leaf_page_max",
        value: (!is_default).then(|| format!("{:.0}KB", bytes / 1024.0)),
        default: "32KB",
        reason: match is_default {
            true => "no other page size is predicted to gain 2 % or more without a risk".into(),
            false => "the page size with the best predicted rate for this mix".into(),
        },
        number: half_bandwidth_text(tuned.drive),
        gain: (!is_default).then_some(gain),
        cost: if is_default { String::new() } else { "new tables only".into() },
    }
}
