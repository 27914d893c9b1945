//! RocksDB 7.8: an OPTIONS file.
//!
//! The model: a leveled LSM-tree whose blocks are cached by the kernel's page cache or by RocksDB, whichever
//! has the memory. What it does not know (writers held back, syncs in the middle of files, read-ahead of
//! compactions) follows from the profile by a rule, without a predicted gain. The rules for level 0 and for
//! delayed writes are those of "From Flash to 3D XPoint" §5.

use flashgrain_cost::dictionary::Design;
use flashgrain_cost::lsm::{Layout, LsmTree, Metadata};
use flashgrain_cost::ranking::{Asked, Engine, ProcessorTimes, Requests, asked, situation};
use flashgrain_cost::{End, Interval};
use flashgrain_model::Access;
use flashgrain_settings::Bytes;

use super::tuned::{Configuration, Tuned};
use super::{EngineAdvice, EngineName, Setting, explained, head, measured_text};
use crate::drive::Drive;
use crate::workload::Workload;

const MEBI: f64 = 1_048_576.0;

/// Measured with `db_bench` on records in its cache: 10 µs a look-up, 20 µs a seek, 0.7 µs each record
/// behind it.
const PROCESSOR: ProcessorTimes = ProcessorTimes {
    operation: Interval { low: 3e-6, value: 10e-6, high: 20e-6 },
    scanned_record: Interval { low: 0.3e-6, value: 0.7e-6, high: 1.5e-6 },
    request: ProcessorTimes::REQUEST,
};

/// The parts of RocksDB's configuration that the model knows.
#[derive(Clone, Debug)]
struct RocksDb {
    /// Whether changes have ended, and level 0 is empty.
    is_resting: bool,
    /// Also of a file, as is RocksDB's default.
    memtable_bytes: f64,
    level_zero_files: f64,
    fanout: f64,
    block_bytes: f64,
    filter_bits: f64,
    jobs: f64,
    subcompactions: f64,
}

const DEFAULT: RocksDb = RocksDb {
    is_resting: false,
    memtable_bytes: 64.0 * MEBI,
    level_zero_files: 4.0,
    fanout: 10.0,
    block_bytes: 4096.0,
    filter_bits: 0.0,
    jobs: 2.0,
    subcompactions: 1.0,
};

/// Larger memtables than the default's take at most this part of the memory, two of them.
const MEMTABLES_FRACTION: f64 = 0.25;
const MEMTABLES: f64 = 2.0;
/// Where a memtable of the default's size is larger than the memory, it takes this part.
const SMALL_FRACTION: f64 = 0.25;
const MEMTABLE_BYTES: [f64; 3] = [64.0 * MEBI, 128.0 * MEBI, 256.0 * MEBI];
/// The smallest that is advised where memory has no room for the default's.
const MEMTABLE_BYTES_MIN: f64 = MEBI;
const LEVEL_ZERO_FILES: [f64; 3] = [2.0, 4.0, 8.0];
const FANOUTS: [f64; 6] = [4.0, 6.0, 8.0, 10.0, 12.0, 16.0];
const BLOCK_BYTES: [f64; 4] = [4096.0, 8192.0, 16384.0, 32768.0];
const FILTER_BITS: [f64; 2] = [0.0, 10.0];
/// Two rounds over all settings: each is chosen with the others as they are then.
const ROUNDS: usize = 2;
/// Jobs beyond this need processors that the model does not know.
const JOBS_MAX: f64 = 16.0;
/// Filters and indexes that take more of the memory are in the cache, those in use alone.
const METADATA_FRACTION: f64 = 0.5;
/// Of what memtables, filters and indexes leave: the page cache has the other half.
const BLOCK_CACHE_FRACTION: f64 = 0.5;
/// Sizes from which requests have 90 % of the bandwidth: setup is a ninth of the transfer.
const NINE_TENTHS: f64 = 9.0;

impl RocksDb {
    fn tree(&self) -> LsmTree {
        let flushes = (self.jobs / 4.0).floor().max(1.0);
        LsmTree {
            fanout: self.fanout,
            file_bytes: self.memtable_bytes,
            level_one_files: self.level_zero_files,
            level_zero_files: if self.is_resting { 0.0 } else { self.level_zero_files / 2.0 },
            level_zero_batch_files: self.level_zero_files,
            block_bytes: self.block_bytes,
            filter_bits_per_key: self.filter_bits,
            compaction_threads: (self.jobs - flushes).max(1.0),
            subcompactions: self.subcompactions,
            ..LsmTree::new(Layout::Leveled)
        }
    }

    /// The tree, whose filters and indexes are read block by block where memory has no room for all of them:
    /// as partitions, or as pages that were swapped out.
    fn tree_for(&self, workload: &Workload) -> LsmTree {
        let most = workload.memory_bytes as f64 * METADATA_FRACTION;
        let has_room = self.is_resting || self.metadata_bytes(workload) <= most;
        LsmTree { metadata: if has_room { Metadata::Pinned } else { Metadata::Cached }, ..self.tree() }
    }

    /// Bytes of filters and indexes.
    fn metadata_bytes(&self, workload: &Workload) -> f64 {
        let surroundings = situation(workload, &self.engine(workload));
        self.tree().memory_bytes(&surroundings) - MEMTABLES * self.memtable_bytes
    }
}

impl Configuration for RocksDb {
    fn engine(&self, _workload: &Workload) -> Engine {
        Engine {
            flushes_per_commit: 1.0,
            group_commit: true,
            commits_exclude_readers: false,
            checkpoint_log_bytes: None,
            cache_fraction: 1.0,
            processor: PROCESSOR,
        }
    }

    fn flush_seconds(&self, drive: &Drive) -> Interval {
        drive.flush_of_growing_file()
    }

    fn asked(&self, workload: &Workload) -> Asked {
        asked(&self.tree_for(workload), workload, &self.engine(workload))
    }
}

type Rocks<'a> = Tuned<'a, RocksDb>;

/// A leveled tree of RocksDB that has come to rest: nothing is in level 0.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RestingTree {
    /// `max_bytes_for_level_multiplier`.
    pub fanout: f64,
    /// `block_size`, in bytes.
    pub block_bytes: f64,
    /// `write_buffer_size` and `target_file_size_base`, in bytes; level 1 has four times as much.
    pub file_bytes: f64,
}

/// Predicted operations per second of reads from a tree without filters, whose block cache takes all the
/// memory of the workload and that nothing else caches.
pub fn predicted_rocksdb_rate(workload: &Workload, drive: &Drive, tree: &RestingTree) -> Interval {
    let advised = RocksDb {
        is_resting: true,
        memtable_bytes: tree.file_bytes,
        fanout: tree.fanout,
        block_bytes: tree.block_bytes,
        ..DEFAULT
    };
    let mut workload = workload.clone();
    let beside = advised.tree().memory_bytes(&situation(&workload, &advised.engine(&workload)));
    workload.memory_bytes += beside as u64;
    Tuned { default: DEFAULT, advised: advised.clone(), workload: &workload, drive }.rate(&advised)
}

/// Section of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Section {
    Database,
    Family,
    Table,
}

impl Section {
    const ALL: [Self; 3] = [Self::Database, Self::Family, Self::Table];

    fn head(self) -> &'static str {
        match self {
            Self::Database => "[DBOptions]",
            Self::Family => "[CFOptions \"default\"]",
            Self::Table => "[TableOptions/BlockBasedTable \"default\"]",
        }
    }
}

pub(super) fn advise(workload: &Workload, drive: &Drive) -> EngineAdvice {
    let mut tuned = Tuned { default: DEFAULT, advised: DEFAULT, workload, drive };
    (0..ROUNDS).for_each(|_| choose(&mut tuned));
    let sectioned = settings(&tuned);
    let mut file = head("RocksDB 7.8", "#", workload, drive);
    file += "\n[Version]\nrocksdb_version=7.8.3\noptions_file_version=1.1\n\n";
    for section in Section::ALL {
        let own = sectioned.iter().filter(|(of, _)| *of == section);
        let own: Vec<Setting> = own.map(|(_, setting)| setting.clone()).collect();
        file += section.head();
        file.push('\n');
        file += &explained(&own, "#", |setting, value| format!("{}={value}\n", setting.name));
    }
    EngineAdvice {
        engine: EngineName::Rocksdb,
        version: "7.8",
        default_rate_per_second: tuned.rate(&tuned.default),
        advised_rate_per_second: tuned.rate(&tuned.advised),
        default_bound: tuned.bound(&tuned.default),
        advised_bound: tuned.bound(&tuned.advised),
        gain: tuned.gain(),
        settings: sectioned.into_iter().map(|(_, setting)| setting).collect(),
        trees: Vec::new(),
        notes: vec![
            "every write says by WriteOptions::sync whether it waits for the log; no file can say it"
                .to_owned(),
            "compression stays at the default: a profile does not know how well records compress".to_owned(),
        ],
        file,
    }
}

/// Chooses each setting with the others as they are.
fn choose(tuned: &mut Rocks<'_>) {
    let memory = tuned.workload.memory_bytes as f64;
    let most = memory * MEMTABLES_FRACTION / MEMTABLES;
    let memtables: Vec<f64> = MEMTABLE_BYTES.into_iter().filter(|bytes| *bytes <= most).collect();
    tuned.advised.filter_bits =
        tuned.best(&FILTER_BITS, DEFAULT.filter_bits, |rocks, bits| rocks.filter_bits = bits);
    // Less than the default only where there is no room for it: the sizes of levels follow from it, and
    // many small ones are merged more often than the cache that is spared is worth. With memtables of a
    // quarter of the default's size, updates ran at 0.5 to 0.9 of its rate (docs/advise.md). Both memtables
    // are full only for moments.
    tuned.advised.memtable_bytes = match DEFAULT.memtable_bytes > memory {
        true => (memory * SMALL_FRACTION).log2().floor().exp2().max(MEMTABLE_BYTES_MIN),
        false => tuned.best(&memtables, DEFAULT.memtable_bytes, |rocks, bytes| rocks.memtable_bytes = bytes),
    };
    tuned.advised.level_zero_files =
        tuned
            .best(&LEVEL_ZERO_FILES, DEFAULT.level_zero_files, |rocks, files| rocks.level_zero_files = files);
    tuned.advised.fanout = tuned.best(&FANOUTS, DEFAULT.fanout, |rocks, fanout| rocks.fanout = fanout);
    tuned.advised.block_bytes =
        tuned.best(&BLOCK_BYTES, DEFAULT.block_bytes, |rocks, bytes| rocks.block_bytes = bytes);
    if let Some(most) = jobs_max(tuned.drive) {
        let jobs: Vec<f64> = [4.0, 6.0, 8.0, 12.0, 16.0].into_iter().filter(|jobs| *jobs <= most).collect();
        tuned.advised.jobs = tuned.best(&jobs, DEFAULT.jobs, |rocks, jobs| rocks.jobs = jobs);
        let parts: Vec<f64> = [2.0, 4.0, 8.0].into_iter().filter(|parts| *parts <= most).collect();
        tuned.advised.subcompactions =
            tuned.best(&parts, DEFAULT.subcompactions, |rocks, parts| rocks.subcompactions = parts);
    }
}

/// Background jobs that the drive can reward; `None` if the profile does not know what writes cost.
fn jobs_max(drive: &Drive) -> Option<f64> {
    drive
        .is_measured(Access::Write)
        .then(|| (drive.costs().write_concurrency() * 4.0 / 3.0).ceil().clamp(2.0, JOBS_MAX))
}

fn settings(tuned: &Rocks<'_>) -> Vec<(Section, Setting)> {
    let mut settings = vec![
        (Section::Database, jobs(tuned)),
        (Section::Database, subcompactions(tuned)),
        (Section::Database, bytes_per_sync(tuned)),
        (Section::Database, read_ahead(tuned)),
        (Section::Database, delayed_rate(tuned)),
        (Section::Family, memtable(tuned)),
        (Section::Family, file_bytes(tuned)),
        (Section::Family, level_one(tuned)),
        (Section::Family, trigger(tuned)),
        (Section::Family, slowdown(tuned)),
        (Section::Family, multiplier(tuned)),
        (Section::Table, block(tuned)),
        (Section::Table, filter(tuned)),
        (Section::Table, cache(tuned)),
    ];
    if tuned.advised.tree_for(tuned.workload).metadata == Metadata::Cached {
        settings.extend(cached_metadata(tuned).map(|setting| (Section::Table, setting)));
    }
    settings
}

/// Filters and indexes that memory has no room for.
fn cached_metadata(tuned: &Rocks<'_>) -> [Setting; 3] {
    let bytes = tuned.advised.metadata_bytes(tuned.workload);
    let setting = |name, value: &str, default, reason: &str| Setting {
        name,
        value: Some(value.into()),
        default,
        reason: reason.into(),
        number: format!("none; filters and indexes of all records have {}", Bytes(bytes as u64)),
        gain: None,
        cost: "reads of filters and indexes that are not in the cache".into(),
    };
    let partitioned = "a read takes a block of them, instead of those of a whole file";
    [
        setting(
            "cache_index_and_filter_blocks",
            "true",
            "false",
            "by default all filters and indexes are in memory beside the cache: more than half of memory_bytes",
        ),
        setting("index_type", "kTwoLevelIndexSearch", "kBinarySearch", partitioned),
        setting("partition_filters", "true", "false", partitioned),
    ]
}

/// A setting that the model chose.
struct Chosen<'a> {
    name: &'static str,
    default: &'static str,
    /// `None`: no other value gains enough.
    value: Option<String>,
    because: &'a str,
    number: String,
    cost: String,
}

fn chosen(chosen: Chosen<'_>, gain: Interval) -> Setting {
    let Chosen { name, default, value, because, number, cost } = chosen;
    let is_changed = value.is_some();
    Setting {
        name,
        default,
        reason: match is_changed {
            true => because.to_owned(),
            false => "no other value is predicted to gain 2 % or more without a risk".into(),
        },
        number,
        gain: is_changed.then_some(gain),
        cost: if is_changed { cost } else { String::new() },
        value,
    }
}

fn changed(value: f64, default: f64) -> Option<String> {
    (value != default).then(|| format!("{value:.0}"))
}

fn transfer_number(drive: &Drive, access: Access) -> String {
    let rate = |concurrency| {
        let requests = Requests { access, bytes: MEBI, random: true, concurrency };
        MEBI / drive.costs().seconds(&requests, End::Value) / 1e6
    };
    let kind = if access == Access::Read { "read" } else { "write" };
    let text = format!("1 MiB {kind}s: {:.0} MB/s by one stream, {:.0} MB/s by 4", rate(1.0), rate(4.0));
    measured_text(drive, access, text)
}

fn random_read_number(tuned: &Rocks<'_>) -> String {
    let clients = f64::from(tuned.workload.clients);
    let read = |bytes| {
        let requests = Requests { access: Access::Read, bytes, random: true, concurrency: clients };
        tuned.drive.costs().seconds(&requests, End::Value) * 1e6
    };
    measured_text(
        tuned.drive,
        Access::Read,
        format!(
            "a random read takes {:.1} µs of the drive's time with 4 KiB, {:.1} µs with 16 KiB, at {clients} in flight",
            read(4096.0),
            read(16384.0)
        ),
    )
}

fn unknown_jobs() -> String {
    "the profile does not know what writes cost".into()
}

fn jobs(tuned: &Rocks<'_>) -> Setting {
    let gain = tuned.gain_of(|rocks, default| rocks.jobs = default.jobs);
    let setting = Chosen {
        name: "max_background_jobs",
        default: "2",
        value: changed(tuned.advised.jobs, DEFAULT.jobs),
        because: "the drive moves more bytes with several compactions at a time",
        number: transfer_number(tuned.drive, Access::Write),
        cost: "as many processor cores while compactions run".into(),
    };
    let setting = chosen(setting, gain);
    match jobs_max(tuned.drive) {
        Some(_) => setting,
        None => Setting { reason: unknown_jobs(), ..setting },
    }
}

fn subcompactions(tuned: &Rocks<'_>) -> Setting {
    let gain = tuned.gain_of(|rocks, default| rocks.subcompactions = default.subcompactions);
    let setting = Chosen {
        name: "max_subcompactions",
        default: "1",
        value: changed(tuned.advised.subcompactions, DEFAULT.subcompactions),
        because: "a compaction of level 0, which is alone in its level, is split among threads",
        number: transfer_number(tuned.drive, Access::Write),
        cost: "as many processor cores while level 0 is compacted".into(),
    };
    let setting = chosen(setting, gain);
    match jobs_max(tuned.drive) {
        Some(_) => setting,
        None => Setting { reason: unknown_jobs(), ..setting },
    }
}

/// The size of one stream's requests that reach nine tenths of the bandwidth.
fn good_request_bytes(drive: &Drive, access: Access, min: f64, max: f64) -> f64 {
    let half = drive.costs().half_bandwidth_bytes(access, 1.0);
    ((NINE_TENTHS * half).max(1.0).log2().round().exp2()).clamp(min, max)
}

fn bytes_per_sync(tuned: &Rocks<'_>) -> Setting {
    let is_known = tuned.drive.is_measured(Access::Write) && tuned.workload.operations.writes() > 0.0;
    let bytes = good_request_bytes(tuned.drive, Access::Write, MEBI / 2.0, 4.0 * MEBI);
    Setting {
        name: "bytes_per_sync",
        value: is_known.then(|| format!("{bytes:.0}")),
        default: "0",
        reason: match is_known {
            true => "files are written as they grow, in requests of 90 % of the bandwidth, so that no sync at their end holds up the log".into(),
            false => "nothing is written, or the profile does not know what writes cost".into(),
        },
        number: measured_text(tuned.drive, Access::Write, format!(
            "writes of one stream have half of the bandwidth with {}",
            Bytes(tuned.drive.costs().half_bandwidth_bytes(Access::Write, 1.0) as u64)
        )),
        gain: None,
        cost: String::new(),
    }
}

fn read_ahead(tuned: &Rocks<'_>) -> Setting {
    let is_known = tuned.drive.is_measured(Access::Read) && tuned.workload.operations.writes() > 0.0;
    let bytes = good_request_bytes(tuned.drive, Access::Read, MEBI / 4.0, 8.0 * MEBI);
    Setting {
        name: "compaction_readahead_size",
        value: is_known.then(|| format!("{bytes:.0}")),
        default: "0",
        reason: match is_known {
            true => {
                "compactions read in requests of 90 % of the bandwidth instead of the kernel's 128 KiB".into()
            }
            false => "nothing is compacted, or the profile does not know what reads cost".into(),
        },
        number: measured_text(
            tuned.drive,
            Access::Read,
            format!(
                "reads of one stream have half of the bandwidth with {}",
                Bytes(tuned.drive.costs().half_bandwidth_bytes(Access::Read, 1.0) as u64)
            ),
        ),
        gain: None,
        cost: if is_known {
            format!("{} of memory per compacted file", Bytes(bytes as u64))
        } else {
            String::new()
        },
    }
}

/// What the drive writes behind level 0, by write amplification: writers that are delayed go at this rate.
fn delayed_rate(tuned: &Rocks<'_>) -> Setting {
    let writes = tuned.workload.operations.writes();
    let amplification = tuned.advised.asked(tuned.workload).write_amplification();
    let stream = Requests {
        access: Access::Write,
        bytes: MEBI,
        random: true,
        concurrency: tuned.advised.tree().compaction_threads,
    };
    let drive_rate = MEBI / tuned.drive.costs().seconds(&stream, End::Value);
    let rate = amplification.map(|amplification| drive_rate / amplification / 2.0);
    let value = rate.filter(|rate| tuned.drive.is_measured(Access::Write) && *rate > 16.0 * MEBI);
    Setting {
        name: "delayed_write_rate",
        value: value.map(|rate| format!("{:.0}", (rate / MEBI).floor() * MEBI)),
        default: "0 (16 MiB/s)",
        reason: match value {
            Some(_) => "writers that level 0 delays go half as fast as compactions can follow, instead of nearly stopping (3D XPoint paper, two stages)".into(),
            None if writes == 0.0 => "nothing is written".into(),
            None => "the drive is not known to follow faster than the default".into(),
        },
        number: measured_text(tuned.drive, Access::Write, format!(
            "the drive writes {:.0} MB/s, at a predicted write amplification of {}",
            drive_rate / 1e6,
            amplification.map_or("none".into(), |amplification| format!("{amplification:.1}"))
        )),
        gain: None,
        cost: if value.is_some() { "level 0 grows longer in bursts, and reads with it".into() } else { String::new() },
    }
}

fn memtable(tuned: &Rocks<'_>) -> Setting {
    let bytes = tuned.advised.memtable_bytes;
    let gain = tuned.gain_of(|rocks, default| rocks.memtable_bytes = default.memtable_bytes);
    chosen(
        Chosen {
            name: "write_buffer_size",
            default: "67108864",
            value: changed(bytes, DEFAULT.memtable_bytes),
            because: match tuned.advised.memtable_bytes < DEFAULT.memtable_bytes {
                true => "a memtable of the default's size is larger than memory_bytes",
                false => {
                    "larger memtables and files have fewer levels below them, at the best predicted rate"
                }
            },
            number: transfer_number(tuned.drive, Access::Write),
            cost: format!("{} of memory for {MEMTABLES} memtables", Bytes((bytes * MEMTABLES) as u64)),
        },
        gain,
    )
}

fn follows(name: &'static str, default: &'static str, bytes: f64, of: &str) -> Setting {
    let is_default = bytes == default.parse().unwrap_or(0.0);
    Setting {
        name,
        value: (!is_default).then(|| format!("{bytes:.0}")),
        default,
        reason: format!("follows {of}"),
        number: format!("see {of}"),
        gain: None,
        cost: String::new(),
    }
}

fn file_bytes(tuned: &Rocks<'_>) -> Setting {
    follows("target_file_size_base", "67108864", tuned.advised.memtable_bytes, "write_buffer_size")
}

fn level_one(tuned: &Rocks<'_>) -> Setting {
    let bytes = tuned.advised.memtable_bytes * tuned.advised.level_zero_files;
    follows(
        "max_bytes_for_level_base",
        "268435456",
        bytes,
        "write_buffer_size x level0_file_num_compaction_trigger",
    )
}

fn trigger(tuned: &Rocks<'_>) -> Setting {
    let gain = tuned.gain_of(|rocks, default| rocks.level_zero_files = default.level_zero_files);
    chosen(
        Chosen {
            name: "level0_file_num_compaction_trigger",
            default: "4",
            value: changed(tuned.advised.level_zero_files, DEFAULT.level_zero_files),
            because: "every file of level 0 is looked into by reads; more of them are merged at once (3D XPoint paper, level-0 management)",
            number: random_read_number(tuned),
            cost: "level 1 is larger or smaller with it".into(),
        },
        gain,
    )
}

/// The 3D XPoint paper's stages lie between the trigger and a stop; RocksDB's own distance is kept.
fn slowdown(tuned: &Rocks<'_>) -> Setting {
    let files = (tuned.advised.level_zero_files * 5.0).max(20.0);
    follows("level0_slowdown_writes_trigger", "20", files, "level0_file_num_compaction_trigger")
}

fn multiplier(tuned: &Rocks<'_>) -> Setting {
    let gain = tuned.gain_of(|rocks, default| rocks.fanout = default.fanout);
    chosen(
        Chosen {
            name: "max_bytes_for_level_multiplier",
            default: "10",
            value: changed(tuned.advised.fanout, DEFAULT.fanout),
            because: "the fanout with the best predicted rate: fewer levels for reads against fewer rewrites of each",
            number: transfer_number(tuned.drive, Access::Write),
            cost: "an existing database moves to it by compactions".into(),
        },
        gain,
    )
}

fn block(tuned: &Rocks<'_>) -> Setting {
    let gain = tuned.gain_of(|rocks, default| rocks.block_bytes = default.block_bytes);
    chosen(
        Chosen {
            name: "block_size",
            default: "4096",
            value: changed(tuned.advised.block_bytes, DEFAULT.block_bytes),
            because: "larger blocks have a smaller index and cost this drive little more",
            number: random_read_number(tuned),
            cost: "each cached record brings more neighbours into the cache".into(),
        },
        gain,
    )
}

fn filter(tuned: &Rocks<'_>) -> Setting {
    let bits = tuned.advised.filter_bits;
    let gain = tuned.gain_of(|rocks, default| rocks.filter_bits = default.filter_bits);
    let bytes = tuned.workload.records.count as f64 * bits / 8.0;
    chosen(
        Chosen {
            name: "filter_policy",
            default: "nullptr",
            value: (bits > 0.0).then(|| format!("bloomfilter:{bits:.0}:false")),
            because: "reads skip files that do not have the key",
            number: random_read_number(tuned),
            cost: format!("{} of memory", Bytes(bytes as u64)),
        },
        gain,
    )
}

fn cache(tuned: &Rocks<'_>) -> Setting {
    let surroundings = situation(tuned.workload, &tuned.advised.engine(tuned.workload));
    let left = surroundings.cache_bytes - tuned.advised.tree_for(tuned.workload).memory_bytes(&surroundings);
    let bytes = (left * BLOCK_CACHE_FRACTION / MEBI).floor() * MEBI;
    let larger = bytes > 8.0 * MEBI;
    Setting {
        name: "block_cache",
        value: larger.then(|| format!("{bytes:.0}")),
        default: "8388608",
        reason: match larger {
            true => "half of what memtables, filters and indexes leave of memory_bytes; the page cache has the rest: no call and no check of a checksum for the hottest blocks".into(),
            false => "memtables, filters and indexes leave no more".into(),
        },
        number: "none; it saves processor time, not device time".into(),
        gain: None,
        cost: if larger { format!("{} of memory", Bytes(bytes as u64)) } else { String::new() },
    }
}
