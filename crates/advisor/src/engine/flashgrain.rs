//! The store of this project: the command that makes it, and the options that programs open it with.
//!
//! The model: the B-tree with pages out of place of `flashgrain_model`, whose write unit is the profile's.

use flashgrain_model::Access;
use flashgrain_model::dictionary::OutOfPlaceBTree;
use flashgrain_settings::{Bytes, SyncMethod, drive as decided};

use super::tuned::{Configuration, Tuned};
use super::{EngineAdvice, EngineName, Setting, commented, explained};
use crate::drive::Drive;
use crate::interval::Interval;
use crate::price::{Asked, Engine, ProcessorTimes, asked};
use crate::workload::{Durability, Workload};

const KIBI: f64 = 1024.0;

/// The parts of the configuration that the model knows.
#[derive(Clone, Debug)]
struct Store {
    cache_bytes: f64,
    node_bytes: f64,
    write_unit_bytes: f64,
    sync_method: SyncMethod,
    syncs: bool,
}

const DEFAULT: Store = Store {
    cache_bytes: 256.0 * KIBI * KIBI,
    node_bytes: 4.0 * KIBI,
    write_unit_bytes: 64.0 * KIBI,
    sync_method: SyncMethod::Fdatasync,
    syncs: true,
};

/// A store keeps its cache within this budget; logs and requests need a little beside it.
const CACHE_FRACTION: f64 = 0.9;
const CACHE_BYTES_MIN: f64 = KIBI * KIBI;
const NODE_BYTES: [f64; 5] = [4.0 * KIBI, 8.0 * KIBI, 16.0 * KIBI, 32.0 * KIBI, 64.0 * KIBI];
/// Longer records are kept beside the tree.
const RECORDS_PER_NODE_MIN: f64 = 4.0;
/// Log between two checkpoints.
const LOG_BYTES: f64 = 256.0 * KIBI * KIBI;

impl Configuration for Store {
    fn engine(&self, workload: &Workload) -> Engine {
        Engine {
            sync_method: self.sync_method,
            flushes_per_commit: if self.syncs { 1.0 } else { 0.0 },
            log_grows: false,
            group_commit: true,
            checkpoint_log_bytes: Some(LOG_BYTES),
            cache_fraction: self.cache_bytes / workload.memory_bytes as f64,
            processor: ProcessorTimes::OF_GOOD_STORE,
        }
    }

    fn asked(&self, workload: &Workload) -> Asked {
        let tree = OutOfPlaceBTree::new(self.node_bytes, self.write_unit_bytes);
        asked(&tree, workload, &self.engine(workload))
    }
}

type Ours<'a> = Tuned<'a, Store>;

/// Predicted operations per second of a store with nodes of `node_bytes` and the layout that the drive's
/// profile decides, whose cache takes all the memory of the workload.
pub fn predicted_store_rate(workload: &Workload, drive: &Drive, node_bytes: f64) -> Interval {
    let advised = advised(workload, drive);
    let store = Store { cache_bytes: workload.memory_bytes as f64, node_bytes, ..advised.clone() };
    Tuned { default: DEFAULT, advised, workload, drive }.rate(&store)
}

/// The configuration that follows from workload and drive, but for the size of nodes.
fn advised(workload: &Workload, drive: &Drive) -> Store {
    let learned = |setting: Option<(flashgrain_settings::Bytes, bool)>, default: f64| match setting {
        Some((Bytes(bytes), true)) => bytes as f64,
        _ => default,
    };
    let unit = drive.decided(decided::Setting::write_unit).map(|(unit, of)| (unit, !of.from_default));
    let method = drive.decided(decided::Setting::sync_method).map(|(method, _)| method);
    Store {
        cache_bytes: (workload.memory_bytes as f64 * CACHE_FRACTION).max(CACHE_BYTES_MIN),
        write_unit_bytes: learned(unit, DEFAULT.write_unit_bytes),
        sync_method: method.unwrap_or(DEFAULT.sync_method),
        // What a store buffers is bound to no window.
        syncs: workload.durability != Durability::None,
        ..DEFAULT
    }
}

pub(super) fn advise(workload: &Workload, drive: &Drive) -> EngineAdvice {
    let mut tuned = Tuned { default: DEFAULT, advised: advised(workload, drive), workload, drive };
    let record = workload.records.record_bytes() as f64;
    let nodes: Vec<f64> =
        NODE_BYTES.into_iter().filter(|bytes| *bytes >= RECORDS_PER_NODE_MIN * record).collect();
    tuned.advised.node_bytes =
        tuned.best(&nodes, DEFAULT.node_bytes, |store, bytes| store.node_bytes = bytes);
    let (node, cache, durability) = (node(&tuned), cache(&tuned), durability(&tuned));
    let made_with = vec![profile(&tuned), node];
    let opened_with = vec![cache, durability];
    EngineAdvice {
        engine: EngineName::Flashgrain,
        version: env!("CARGO_PKG_VERSION"),
        default_rate_per_second: tuned.rate(&tuned.default),
        advised_rate_per_second: tuned.rate(&tuned.advised),
        default_bound: tuned.bound(&tuned.default),
        advised_bound: tuned.bound(&tuned.advised),
        gain: tuned.gain(),
        file: file(&tuned, &made_with, &opened_with),
        settings: made_with.into_iter().chain(opened_with).collect(),
        notes: vec!["STORE and PROFILE are the places of the store and of the profile".into()],
    }
}

/// A shell script that makes the store, with the call that opens it as a comment.
fn file(tuned: &Ours<'_>, made_with: &[Setting], opened_with: &[Setting]) -> String {
    let (workload, drive) = (tuned.workload, tuned.drive);
    let mut text = format!(
        "#!/bin/sh\n# Flashgrain: a store for {}.\n# {}\n# STORE=/data/store PROFILE=flashgrain-out/profile.json sh THIS_FILE\n\n",
        workload.name,
        drive.describe()
    );
    let shown = |setting: &Setting, value: &str| commented(&format!("{} {value}", setting.name), "#");
    text += &explained(made_with, "#", shown);
    text += &explained(opened_with, "#", shown);
    text += &format!(
        "# In Rust: Db::builder().path(store).cache_bytes({:.0}).durability(Durability::{}).open()\n\n",
        tuned.advised.cache_bytes,
        if tuned.advised.syncs { "Sync" } else { "Buffered" }
    );
    text += "exec \"${FLASHGRAIN:-flashgrain}\" db create \"$STORE\"";
    for setting in made_with {
        text += &setting.value.as_ref().map(|value| format!(" {} {value}", setting.name)).unwrap_or_default();
    }
    text.push('\n');
    text
}

fn profile(tuned: &Ours<'_>) -> Setting {
    let unit = tuned.drive.decided(decided::Setting::write_unit);
    let number = match unit {
        Some((unit, decision)) => format!("write unit {unit}: {}", decision.because),
        None => "the profile has decided no write unit".into(),
    };
    let gain = tuned.gain_of(|store, default| {
        store.write_unit_bytes = default.write_unit_bytes;
        store.sync_method = default.sync_method;
    });
    Setting {
        name: "--profile",
        value: Some("\"$PROFILE\"".into()),
        default: "none",
        reason: "write unit, segments, log block and the way to make the log durable come from the profile"
            .into(),
        number,
        gain: Some(gain),
        cost: String::new(),
    }
}

fn node(tuned: &Ours<'_>) -> Setting {
    let bytes = tuned.advised.node_bytes;
    let is_default = bytes == DEFAULT.node_bytes;
    let gain = tuned.gain_of(|store, default| store.node_bytes = default.node_bytes);
    let leaf = tuned.drive.decided(decided::Setting::leaf_size);
    Setting {
        name: "--node-size",
        value: (!is_default).then(|| format!("{:.0}KiB", bytes / KIBI)),
        default: "4KiB",
        reason: match is_default {
            true => "no other node size is predicted to gain 2 % or more without a risk".into(),
            false => "the node size with the best predicted rate for this mix".into(),
        },
        number: match leaf {
            Some((leaf, decision)) => format!("leaf size {leaf}: {}", decision.because),
            None => "the profile has decided no leaf size".into(),
        },
        gain: (!is_default).then_some(gain),
        cost: String::new(),
    }
}

fn cache(tuned: &Ours<'_>) -> Setting {
    let bytes = tuned.advised.cache_bytes;
    let read = tuned.drive.setup(Access::Read, f64::from(tuned.workload.clients));
    Setting {
        name: "cache_bytes",
        value: Some(format!("{bytes:.0}")),
        default: "268435456",
        reason: "the store bypasses the page cache: what is not in its own is read from the drive".into(),
        number: format!(
            "a random read takes {:.1} µs of the drive's time with {} clients",
            read.value * 1e6,
            tuned.workload.clients
        ),
        gain: Some(tuned.gain_of(|store, default| store.cache_bytes = default.cache_bytes)),
        cost: format!("{} of memory", Bytes(bytes as u64)),
    }
}

fn durability(tuned: &Ours<'_>) -> Setting {
    let flush = tuned.drive.flush(tuned.advised.sync_method);
    let lazily = !tuned.advised.syncs;
    Setting {
        name: "durability",
        value: lazily.then(|| "Buffered".to_owned()),
        default: "Sync",
        reason: match lazily {
            true => format!("the workload allows it: {}", tuned.workload.durability.describe()),
            false => format!(
                "the workload wants more than the store's other promises: {}",
                tuned.workload.durability.describe()
            ),
        },
        number: format!(
            "a durable write takes {:.0} µs by {}",
            flush.value * 1e6,
            tuned.advised.sync_method.name()
        ),
        gain: lazily.then(|| tuned.gain_of(|store, default| store.syncs = default.syncs)),
        cost: if lazily { "a power cut takes recent commits".into() } else { String::new() },
    }
}
