//! SQLite 3: PRAGMAs.
//!
//! The model: a B-tree with pages in place, cached by the kernel's page cache, one writer at a time, and one
//! flush after the other. With a rollback journal (the default) a commit flushes the journal, its directory,
//! its header and the database, and writes each page twice; with a write-ahead log it flushes the log once,
//! and pages go to the database at checkpoints. A commit with a journal locks the database, and readers wait
//! while it flushes; how long clients sleep for locks is not known.

use flashgrain_cost::Interval;
use flashgrain_cost::dictionary::{BTree, Demand, Design, Operation, Situation, Transfer, WriteBack};
use flashgrain_cost::ranking::{Asked, Engine, ProcessorTimes, asked};
use flashgrain_model::Access;
use flashgrain_settings::{Bytes, SyncMethod};

use super::tuned::{Configuration, Tuned, is_gain};
use super::{
    EngineAdvice, EngineName, Setting, explained, flush_text, half_bandwidth_text, head, measured_text,
};
use crate::drive::Drive;
use crate::workload::{Durability, Workload};

/// A statement that is prepared takes a few microseconds, one that is parsed anew up to 20.
const PROCESSOR: ProcessorTimes = ProcessorTimes {
    operation: Interval { low: 3e-6, value: 8e-6, high: 20e-6 },
    scanned_record: Interval { low: 0.2e-6, value: 0.5e-6, high: 1.5e-6 },
    request: ProcessorTimes::REQUEST,
};

/// The parts of SQLite's configuration that the model knows.
#[derive(Clone, Debug)]
struct Sqlite {
    page_bytes: f64,
    write_ahead: bool,
    /// Pages of the log at which a commit makes a checkpoint.
    checkpoint_pages: f64,
    syncs: bool,
}

const DEFAULT: Sqlite =
    Sqlite { page_bytes: 4096.0, write_ahead: false, checkpoint_pages: 1000.0, syncs: true };

/// Flushes of a commit with a rollback journal, as system calls show them: the journal, its directory, its
/// header, the database.
const JOURNAL_FLUSHES: f64 = 4.0;
/// Bytes that the write-ahead log may grow to: readers search an index of it, 32 KiB for 4096 pages.
const LOG_BYTES_MAX: f64 = (64u64 << 20) as f64;
/// Bytes of a frame's header.
const FRAME_BYTES: f64 = 24.0;
const PAGE_BYTES: [f64; 5] = [4096.0, 8192.0, 16384.0, 32768.0, 65536.0];
const DEFAULT_CACHE_BYTES: f64 = 2_048_000.0;
/// Room in addition to the inner pages, for the pages of a transaction.
const CACHE_ROOM: f64 = 1.5;

/// The tree with its journal or log.
struct Tree {
    tree: BTree,
    write_ahead: bool,
}

impl Design for Tree {
    fn name(&self) -> String {
        self.tree.name()
    }

    fn demand(&self, operation: Operation, situation: &Situation) -> Demand {
        // A rollback journal has every changed page written at each commit.
        let at_once = Situation { changes_per_checkpoint: Some(1.0), ..*situation };
        let surroundings = if self.write_ahead { situation } else { &at_once };
        let mut demand = self.tree.demand(operation, surroundings);
        if operation.is_change() {
            // The journal has the page as it was, the log the page as it is: whole pages either way.
            demand.add(Transfer {
                access: Access::Write,
                requests: 1.0,
                bytes_each: self.tree.node_bytes + FRAME_BYTES,
                random_share: 0.0,
                concurrency: 1.0,
                awaited: true,
            });
        }
        demand
    }

    fn space_amplification(&self, situation: &Situation) -> f64 {
        self.tree.space_amplification(situation)
    }
}

impl Sqlite {
    fn flushes(&self) -> f64 {
        if self.write_ahead { 1.0 } else { JOURNAL_FLUSHES }
    }
}

impl Configuration for Sqlite {
    fn engine(&self, workload: &Workload) -> Engine {
        let record = workload.records.record_bytes() as f64;
        Engine {
            flushes_per_commit: if self.syncs { self.flushes() } else { 0.0 },
            group_commit: false,
            // From before the journal's first flush until the journal is gone; with a log, readers continue.
            commits_exclude_readers: !self.write_ahead,
            // One page of the log for each change of a record.
            checkpoint_log_bytes: Some(self.checkpoint_pages * record),
            cache_fraction: 1.0,
            processor: PROCESSOR,
        }
    }

    fn asked(&self, workload: &Workload) -> Asked {
        let tree = BTree {
            // The kernel writes dirty pages, one file at a time; a checkpoint is a commit's own work.
            write_back: WriteBack::Background { concurrency: 1.0 },
            ..BTree::new(self.page_bytes)
        };
        asked(&Tree { tree, write_ahead: self.write_ahead }, workload, &self.engine(workload)).without_log()
    }
}

pub(super) fn advise(workload: &Workload, drive: &Drive) -> EngineAdvice {
    let writes = workload.operations.writes() > 0.0;
    let syncs = workload.durability != Durability::None;
    let advised = Sqlite { write_ahead: writes, syncs, ..DEFAULT };
    let mut tuned = Tuned { default: DEFAULT, advised, workload, drive };
    tuned.advised.page_bytes =
        tuned.best(&PAGE_BYTES, DEFAULT.page_bytes, |sqlite, bytes| sqlite.page_bytes = bytes);
    let pages_max = (LOG_BYTES_MAX / tuned.advised.page_bytes).floor();
    let checkpoints = [DEFAULT.checkpoint_pages, 2000.0, 4000.0, 8000.0, pages_max];
    tuned.advised.checkpoint_pages =
        tuned.best(&checkpoints, DEFAULT.checkpoint_pages, |sqlite, pages| sqlite.checkpoint_pages = pages);
    let settings = vec![
        page(&tuned),
        journal(&tuned),
        synchronous(&tuned),
        checkpoint(&tuned),
        cache(&tuned),
        mapping(),
    ];
    let notes = vec![
        "page_size takes effect before the first table is made, or by VACUUM outside WAL mode".to_owned(),
        "journal_mode and page_size are kept in the database; the other PRAGMAs are run on each connection"
            .to_owned(),
        "SQLite has one writer at a time: transactions of several changes share a flush, single ones do not"
            .to_owned(),
    ];
    let settings_text =
        explained(&settings, "--", |setting, value| format!("PRAGMA {} = {value};\n", setting.name));
    let file = format!("{}\n{settings_text}", head("SQLite 3", "--", workload, drive));
    EngineAdvice {
        engine: EngineName::Sqlite,
        version: "3.40",
        default_rate_per_second: tuned.rate(&tuned.default),
        advised_rate_per_second: tuned.rate(&tuned.advised),
        default_bound: tuned.bound(&tuned.default),
        advised_bound: tuned.bound(&tuned.advised),
        gain: tuned.gain(),
        settings,
        trees: Vec::new(),
        notes,
        file,
    }
}

fn page(tuned: &Tuned<'_, Sqlite>) -> Setting {
    let bytes = tuned.advised.page_bytes;
    let is_default = bytes == DEFAULT.page_bytes;
    let gain = tuned.gain_of(|sqlite, default| sqlite.page_bytes = default.page_bytes);
    Setting {
        name: "page_size",
        value: (!is_default).then(|| format!("{bytes:.0}")),
        default: "4096",
        reason: match is_default {
            true => "no other page size is predicted to gain 2 % or more".into(),
            false => "the page size with the best predicted rate for this mix".into(),
        },
        number: half_bandwidth_text(tuned.drive),
        gain: (!is_default).then_some(gain),
        cost: if is_default { String::new() } else { "a new database, or a VACUUM of the old one".into() },
    }
}

fn journal(tuned: &Tuned<'_, Sqlite>) -> Setting {
    let flush = tuned.drive.flush(SyncMethod::Fdatasync);
    let gain = tuned.gain_of(|sqlite, default| sqlite.write_ahead = default.write_ahead);
    let on = tuned.advised.write_ahead;
    Setting {
        name: "journal_mode",
        value: on.then(|| "WAL".to_owned()),
        default: "DELETE",
        reason: match on {
            true => "a commit flushes one log instead of a journal, its directory, its header and the database; readers do not wait for the writer".into(),
            false => "without writes a log gains nothing".into(),
        },
        number: flush_text(tuned.drive, "", flush),
        gain: on.then_some(gain),
        cost: if on {
            "two files next to the database; all processes must be on one machine".into()
        } else {
            String::new()
        },
    }
}

fn synchronous(tuned: &Tuned<'_, Sqlite>) -> Setting {
    let flush = tuned.drive.flush(SyncMethod::Fdatasync);
    let lazily = !tuned.advised.syncs && tuned.advised.write_ahead;
    Setting {
        name: "synchronous",
        // FULL is written out: distributions build SQLite with other defaults for WAL.
        value: Some(if lazily { "NORMAL" } else { "FULL" }.to_owned()),
        default: "FULL",
        reason: match (lazily, tuned.workload.durability) {
            (true, durability) => format!("the workload allows it: {}", durability.describe()),
            (false, Durability::Group { .. }) => {
                "NORMAL may lose everything since the last checkpoint, which no time bounds".into()
            }
            (false, _) => "the workload wants every commit to survive a power cut; written out because builds of SQLite differ".into(),
        },
        number: flush_text(tuned.drive, "", flush),
        gain: lazily.then(|| tuned.gain_of(|sqlite, default| sqlite.syncs = default.syncs)),
        cost: if lazily {
            "a power cut takes the commits since the last checkpoint; the database stays consistent".into()
        } else {
            String::new()
        },
    }
}

fn checkpoint(tuned: &Tuned<'_, Sqlite>) -> Setting {
    let pages = tuned.advised.checkpoint_pages;
    let gain = tuned.gain_of(|sqlite, default| sqlite.checkpoint_pages = default.checkpoint_pages);
    let gains = tuned.advised.write_ahead && pages != DEFAULT.checkpoint_pages && is_gain(gain);
    let write = tuned.drive.costs().setup(Access::Write, 1.0);
    Setting {
        name: "wal_autocheckpoint",
        value: gains.then(|| format!("{pages:.0}")),
        default: "1000",
        reason: match gains {
            true => "pages that are changed again before a checkpoint go to the database once".into(),
            false => "a longer log is not predicted to save writes of this workload".into(),
        },
        number: measured_text(
            tuned.drive,
            Access::Write,
            format!("a random write takes {:.1} µs plus its transfer", write.value * 1e6),
        ),
        gain: gains.then_some(gain),
        cost: if gains {
            let bytes = pages * tuned.advised.page_bytes;
            format!(
                "a log of {} on the drive, which readers search and a recovery reads",
                Bytes(bytes as u64)
            )
        } else {
            String::new()
        },
    }
}

/// Memory of each connection for the tree's inner pages.
fn cache(tuned: &Tuned<'_, Sqlite>) -> Setting {
    let records = tuned.workload.records;
    let page = tuned.advised.page_bytes;
    let per_page = (page * 0.69).max(1.0);
    let leaves = (records.data_bytes() / per_page).max(1.0);
    let inner = leaves * (records.key_bytes as f64 + 12.0) / 0.69;
    let share = tuned.workload.memory_bytes as f64 / 2.0 / f64::from(tuned.workload.clients);
    let bytes = (inner * CACHE_ROOM).min(share);
    let larger = bytes > DEFAULT_CACHE_BYTES;
    Setting {
        name: "cache_size",
        value: larger.then(|| format!("-{:.0}", (bytes / 1024.0).floor())),
        default: "-2000",
        reason: match larger {
            true => "each connection keeps the tree's inner pages, within half of memory_bytes for all; the page cache has the rest".into(),
            false => "the default holds the inner pages, or memory_bytes does not allow more for each connection".into(),
        },
        number: format!("none; inner pages take {}", Bytes(inner as u64)),
        gain: None,
        cost: if larger { format!("{} of memory per connection", Bytes(bytes as u64)) } else { String::new() },
    }
}

fn mapping() -> Setting {
    Setting {
        name: "mmap_size",
        value: None,
        default: "0",
        reason: "mapping saves copies, not device time, and turns read errors into crashes".into(),
        number: "none".into(),
        gain: None,
        cost: String::new(),
    }
}
