//! MariaDB 10.11 with InnoDB: a fragment of `my.cnf`.
//!
//! The model: a B-tree with pages in place, whose pages go to the doublewrite buffer before, a redo log whose
//! size bounds the changes between checkpoints. InnoDB bypasses the page cache by default, so that its buffer
//! pool is all the memory that caches data.

use flashgrain_cost::dictionary::{BTree, Demand, Design, Operation, Situation, Transfer, WriteBack};
use flashgrain_cost::ranking::{Asked, Engine, ProcessorTimes, Requests, asked};
use flashgrain_cost::{End, Interval};
use flashgrain_model::Access;
use flashgrain_settings::{Bytes, SyncMethod};

use super::tuned::{Configuration, Tuned, is_gain};
use super::{
    EngineAdvice, EngineName, SAME_MEMORY, Setting, explained, flush_text, half_bandwidth_text, head,
    measured_text, number_text, partition,
};
use crate::drive::{Drive, LearnedNumber};
use crate::workload::{Durability, Workload};

/// A statement goes to the server and its answer back, which takes client and server together tens of
/// microseconds.
const PROCESSOR: ProcessorTimes = ProcessorTimes {
    operation: Interval { low: 30e-6, value: 70e-6, high: 150e-6 },
    scanned_record: Interval { low: 0.5e-6, value: 1e-6, high: 3e-6 },
    request: ProcessorTimes::REQUEST,
};

/// The parts of InnoDB's configuration that the model knows.
#[derive(Clone, Debug)]
struct InnoDb {
    buffer_pool_bytes: f64,
    log_bytes: f64,
    page_bytes: f64,
    write_threads: f64,
    syncs: bool,
}

const DEFAULT: InnoDb = InnoDb {
    buffer_pool_bytes: (128u64 << 20) as f64,
    log_bytes: (96u64 << 20) as f64,
    page_bytes: 16384.0,
    write_threads: 4.0,
    syncs: true,
};

/// Rest of the memory: buffers of connections, the adaptive hash index's and the pool's own bookkeeping.
const POOL_FRACTION: f64 = 0.75;
const POOL_BYTES_MIN: f64 = (5u64 << 20) as f64;
/// Share of the log that checkpoints may trail by.
const LOG_USED_FRACTION: f64 = 0.8;
const LOG_BYTES_MIN: f64 = (96u64 << 20) as f64;
/// A log is read on recovery, at some hundreds of megabytes a second: within a minute or two.
const LOG_BYTES_MAX: f64 = (16u64 << 30) as f64;
/// InnoDB's write requests in flight are bounded by threads times 256; its flushing submits fewer.
const THREADS_MAX: f64 = 64.0;
/// Flushing once a second is InnoDB's other mode; it fits windows from here on.
const LAZY_WINDOW_US: u64 = 1_000_000;
/// Neighbours are worth their writes where a random page costs at least this multiple of a sequential one.
const NEIGHBOUR_RATIO: f64 = 10.0;
/// None above the default: with 64 KiB, ranges of 50 records of 1 KiB ran half as fast where the model
/// expects a gain of a quarter (docs/advise.md).
const PAGE_BYTES: [f64; 3] = [4096.0, 8192.0, 16384.0];

/// InnoDB's largest pages.
const PAGE_BYTES_MAX: u64 = 64 << 10;

/// Fewer leave much of a page empty, which the model does not know: three of 1 KiB in 4 KiB.
const RECORDS_PER_PAGE_MIN: f64 = 10.0;

/// The tree with its doublewrite buffer.
struct Tree(BTree);

impl Design for Tree {
    fn name(&self) -> String {
        self.0.name()
    }

    fn demand(&self, operation: Operation, situation: &Situation) -> Demand {
        let mut demand = self.0.demand(operation, situation);
        let doubled = |write: &Transfer| Transfer { random_share: 0.0, ..*write };
        let writes = demand.transfers.iter().filter(|transfer| transfer.access == Access::Write);
        let copies: Vec<Transfer> = writes.map(doubled).collect();
        copies.into_iter().for_each(|copy| demand.add(copy));
        demand
    }

    fn space_amplification(&self, situation: &Situation) -> f64 {
        self.0.space_amplification(situation)
    }
}

impl Configuration for InnoDb {
    fn engine(&self, workload: &Workload) -> Engine {
        Engine {
            flushes_per_commit: if self.syncs { 1.0 } else { 0.0 },
            group_commit: true,
            commits_exclude_readers: false,
            checkpoint_log_bytes: Some(self.log_bytes * LOG_USED_FRACTION),
            cache_fraction: self.buffer_pool_bytes / workload.memory_bytes as f64,
            processor: PROCESSOR,
        }
    }

    fn asked(&self, workload: &Workload) -> Asked {
        let tree = Tree(BTree {
            write_back: WriteBack::Background { concurrency: self.write_threads },
            ..BTree::new(self.page_bytes)
        });
        asked(&tree, workload, &self.engine(workload))
    }
}

/// Pages that the drive writes per second.
fn page_writes_per_s(drive: &Drive, page_bytes: f64, concurrency: f64) -> f64 {
    let write = |random| {
        let requests = Requests { access: Access::Write, bytes: page_bytes, random, concurrency };
        drive.costs().seconds(&requests, End::Value)
    };
    // Each page is written to its place and, in sequence, to the doublewrite buffer.
    (write(true) + write(false)).recip()
}

fn threads(drive: &Drive) -> Option<f64> {
    // Enough for 90 % of the drive's rate, with a quarter of it as InnoDB's threads have several in flight.
    let depth = drive.depth_90().value()?;
    Some((depth / 4.0).ceil().clamp(4.0, THREADS_MAX))
}

fn configured(workload: &Workload, drive: &Drive) -> InnoDb {
    let memory = workload.memory_bytes as f64;
    let log_bytes = (memory / 4.0).clamp(LOG_BYTES_MIN, LOG_BYTES_MAX);
    let write_threads = threads(drive).unwrap_or(DEFAULT.write_threads);
    let lazily = match workload.durability {
        Durability::Sync => false,
        Durability::Group { window_us } => window_us >= LAZY_WINDOW_US,
        Durability::None => true,
    };
    InnoDb {
        buffer_pool_bytes: (memory * POOL_FRACTION).max(POOL_BYTES_MIN),
        log_bytes: if workload.operations.writes() > 0.0 { log_bytes } else { DEFAULT.log_bytes },
        page_bytes: DEFAULT.page_bytes,
        write_threads,
        syncs: !lazily,
    }
}

pub(super) fn advise(workload: &Workload, drive: &Drive) -> EngineAdvice {
    let advised = configured(workload, drive);
    let default = InnoDb { buffer_pool_bytes: advised.buffer_pool_bytes, ..DEFAULT };
    let mut tuned = Tuned { default, advised, workload, drive };
    let room = |bytes: &f64| *bytes >= RECORDS_PER_PAGE_MIN * workload.records.record_bytes() as f64;
    let page_bytes: Vec<f64> = PAGE_BYTES.into_iter().filter(room).collect();
    tuned.advised.page_bytes =
        tuned.best(&page_bytes, DEFAULT.page_bytes, |innodb, bytes| innodb.page_bytes = bytes);
    let settings = vec![
        pool(&tuned),
        page(&tuned),
        log(&tuned),
        capacity(),
        neighbours(&tuned),
        read_threads(&tuned),
        write_threads(&tuned),
        commit(&tuned),
        doublewrite(),
    ];
    let mut notes = vec![
        "innodb_page_size holds for a new data directory only: mariadb-install-db must be given the same value"
            .to_owned(),
        "sync_binlog and the binary log are not looked at: with log_bin on, each commit flushes that, too"
            .to_owned(),
    ];
    let page_bytes = tuned.advised.page_bytes as u64;
    notes.extend(partition::note(drive, "innodb_page_size", page_bytes, PAGE_BYTES_MAX));
    let settings_text = explained(&settings, "#", |setting, value| format!("{} = {value}\n", setting.name));
    let file =
        format!("{}\n[mariadbd]\n{settings_text}", head("MariaDB 10.11, InnoDB", "#", workload, drive));
    EngineAdvice {
        engine: EngineName::Mariadb,
        version: "10.11",
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

type Innodb<'a> = Tuned<'a, InnoDb>;

fn mebibytes(bytes: f64) -> String {
    format!("{}M", (bytes / 1_048_576.0).floor().max(1.0) as u64)
}

fn pool(tuned: &Innodb<'_>) -> Setting {
    let bytes = tuned.advised.buffer_pool_bytes;
    let read = tuned.drive.costs().setup(Access::Read, f64::from(tuned.workload.clients));
    Setting {
        name: "innodb_buffer_pool_size",
        value: Some(mebibytes(bytes)),
        default: "128M",
        reason: "InnoDB bypasses the page cache, so that pages outside the pool are read from the drive"
            .into(),
        number: measured_text(
            tuned.drive,
            Access::Read,
            format!(
                "a random read takes {:.1} µs of the drive's time with {} clients",
                read.value * 1e6,
                tuned.workload.clients
            ),
        ),
        gain: None,
        cost: format!("{} of memory, 75 % of memory_bytes, {SAME_MEMORY}", Bytes(bytes as u64)),
    }
}

fn page(tuned: &Innodb<'_>) -> Setting {
    let bytes = tuned.advised.page_bytes;
    let gain = tuned.gain_of(|innodb, default| innodb.page_bytes = default.page_bytes);
    let is_default = bytes == DEFAULT.page_bytes;
    Setting {
        name: "innodb_page_size",
        value: (!is_default).then(|| format!("{}k", bytes / 1024.0)),
        default: "16k",
        reason: match is_default {
            true => "no other page size is predicted to gain 2 % or more".into(),
            false => "the page size with the best predicted rate for this mix".into(),
        },
        number: half_bandwidth_text(tuned.drive),
        gain: (!is_default).then_some(gain),
        cost: if is_default { String::new() } else { "a new data directory".into() },
    }
}

fn log(tuned: &Innodb<'_>) -> Setting {
    let bytes = tuned.advised.log_bytes;
    let gain = tuned.gain_of(|innodb, default| innodb.log_bytes = default.log_bytes);
    let gains = bytes > DEFAULT.log_bytes && is_gain(gain);
    Setting {
        name: "innodb_log_file_size",
        value: gains.then(|| mebibytes(bytes)),
        default: "96M",
        reason: match gains {
            true => "a page that is changed again before the log's end comes round is written once".into(),
            false => "a longer log is not predicted to save writes of this workload".into(),
        },
        number: measured_text(
            tuned.drive,
            Access::Write,
            format!(
                "a random 16 KiB page write takes {:.1} µs of the drive's time",
                page_writes_per_s(tuned.drive, 16384.0, tuned.advised.write_threads).recip() * 1e6
            ),
        ),
        gain: gains.then_some(gain),
        cost: if gains {
            format!("{} on the drive, and as much to read on recovery", Bytes(bytes as u64))
        } else {
            String::new()
        },
    }
}

/// Measured: docs/advise.md.
fn capacity() -> Setting {
    Setting {
        name: "innodb_io_capacity",
        value: None,
        default: "200",
        reason: "with three quarters of the pages that the drive writes a second, innodb_io_capacity_max included, half updates and inserts \
                 ran at 0.66 to 0.92 of the default's rate: pages are written early that change again"
            .into(),
        number: "none".into(),
        gain: None,
        cost: String::new(),
    }
}

fn neighbours(tuned: &Innodb<'_>) -> Setting {
    let write = |random| {
        let requests = Requests {
            access: Access::Write,
            bytes: tuned.advised.page_bytes,
            random,
            concurrency: tuned.advised.write_threads,
        };
        tuned.drive.costs().seconds(&requests, End::Value)
    };
    let ratio = write(true) / write(false);
    let is_measured = tuned.drive.is_measured(Access::Write);
    let off = is_measured && ratio < NEIGHBOUR_RATIO;
    Setting {
        name: "innodb_flush_neighbors",
        value: off.then(|| "0".to_owned()),
        default: "1",
        reason: match (is_measured, off) {
            (true, true) => "a page next to a dirty one is as cheap to write later at its own time".into(),
            (true, false) => "writing in sequence is much cheaper than at random places here".into(),
            (false, _) => "the profile has no costs of writes".into(),
        },
        number: measured_text(
            tuned.drive,
            Access::Write,
            format!("a random page write takes {ratio:.1} times a sequential one"),
        ),
        gain: None,
        cost: String::new(),
    }
}

fn io_threads(
    tuned: &Innodb<'_>,
    name: &'static str,
    use_of: &str,
    gain: Option<crate::Interval>,
) -> Setting {
    let depth = tuned.drive.depth_90();
    let known = threads(tuned.drive).filter(|threads| *threads != DEFAULT.write_threads);
    Setting {
        name,
        value: known.map(|threads| format!("{threads:.0}")),
        default: "4",
        reason: match (depth, known) {
            (LearnedNumber::Known(_), Some(_)) => {
                format!("enough {use_of} in flight for the drive's parallelism")
            }
            (LearnedNumber::Known(_), None) => "the default keeps enough in flight".into(),
            (LearnedNumber::Unknown(_), _) => "the profile does not know how many the drive rewards".into(),
        },
        number: number_text(depth, |depth| format!("90 % of the plateau at depth {depth:.0}")),
        gain: known.and(gain),
        cost: String::new(),
    }
}

fn read_threads(tuned: &Innodb<'_>) -> Setting {
    io_threads(tuned, "innodb_read_io_threads", "reads ahead", None)
}

fn write_threads(tuned: &Innodb<'_>) -> Setting {
    let gain = tuned.gain_of(|innodb, default| innodb.write_threads = default.write_threads);
    io_threads(tuned, "innodb_write_io_threads", "page writes", Some(gain))
}

fn commit(tuned: &Innodb<'_>) -> Setting {
    let lazily = !tuned.advised.syncs;
    let flush = tuned.drive.flush(SyncMethod::Fdatasync);
    Setting {
        name: "innodb_flush_log_at_trx_commit",
        value: lazily.then(|| "2".to_owned()),
        default: "1",
        reason: match (lazily, tuned.workload.durability) {
            (true, _) => format!("the workload allows it: {}", tuned.workload.durability.describe()),
            (false, Durability::Group { .. }) => {
                "the workload's window is shorter than the second that InnoDB's other mode may lose".into()
            }
            (false, _) => "the workload wants every commit to survive a power cut".into(),
        },
        number: flush_text(tuned.drive, "", flush),
        gain: lazily.then(|| tuned.gain_of(|innodb, default| innodb.syncs = default.syncs)),
        cost: if lazily {
            "a power cut takes the commits of about the last second".into()
        } else {
            String::new()
        },
    }
}

fn doublewrite() -> Setting {
    Setting {
        name: "innodb_doublewrite",
        value: None,
        default: "1",
        reason: "without it a power cut can tear pages, and no profile shows that a drive writes them whole"
            .into(),
        number: "none".into(),
        gain: None,
        cost: String::new(),
    }
}
