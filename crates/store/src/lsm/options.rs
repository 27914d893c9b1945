//! The numbers of an LSM-tree.

use flashgrain_device::bytes_text;
use flashgrain_settings::layout::{Decision, Setting};
use flashgrain_settings::lsm_usual::{self, REQUESTS_PER_JOB, REQUESTS_PER_PART};
use flashgrain_settings::{Bytes, Count, FilterBits, LsmDesign, LsmMetadata, LsmSurroundings, LsmWorkload};

use super::flush_batch::FlushBatch;
use super::policy::{LsmLayout, Policy, PolicyOptions, SLOW_FROM, STOP_AT};
use super::table::{KEY_DIVISOR, TableOptions, VALUE_DIVISOR};
use super::throttling::{Controller, LsmThrottling};
use crate::buffered::{Memtable, Room};
use crate::compression::LsmCompression;
use crate::{Error, varint};

/// A memtable has at most this part of the memory and of the log, which keep several of them.
const MEMTABLE_DIVISOR_MIN: u64 = 4;

/// Tables have room for at least this number of blocks, whatever size is given: the end of one takes up to
/// three, and with room for no more each key would have a table of its own.
const TABLE_BLOCKS_MIN: u64 = 8;

const FILTER_TENTHS_MAX: u32 = 300;

/// The most jobs that may be given, and the most parts of one.
const JOBS_MAX: u32 = 64;

/// Follows the numbers of a tree whose metadata is pinned; other trees have nothing in its place.
const PINNED: u8 = 1;

/// The same before the most memtables that a flush merges, of a tree where these are more than one.
const MERGED: u8 = 2;

/// The most memtables that a flush may merge.
const MERGED_MEMTABLES_MAX: u32 = 16;

/// RocksDB's rate of delayed writes, unless it is given.
const DELAYED_BYTES_PER_S: u64 = 16 << 20;

/// Options of an LSM-tree; the store decides those that are not given. Fixed when the tree is created.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LsmOptions {
    layout: Option<LsmLayout>,
    fanout: Option<u32>,
    level_zero_runs: Option<u32>,
    level_zero_by_reads: Option<bool>,
    slowdown_runs: Option<u32>,
    stop_runs: Option<u32>,
    table_bytes: Option<u64>,
    memtable_bytes: Option<u64>,
    filter_tenths: Option<u32>,
    metadata: Option<LsmMetadata>,
    jobs: Option<u32>,
    parts: Option<u32>,
    throttling: Option<LsmThrottling>,
    delayed_bytes_per_s: Option<u64>,
    compression: Option<LsmCompression>,
    last_level_compression: Option<LsmCompression>,
    merged_memtables: Option<u32>,
    workload: Option<LsmWorkload>,
    /// If these are those of a tree: the bits of those that were given when it was made.
    given_before: Option<u64>,
}

impl LsmOptions {
    /// All options as the store decides.
    pub fn new() -> Self {
        Self::default()
    }

    /// The expected workload: layout, F and C follow from it, unless they are given.
    pub fn workload(mut self, workload: LsmWorkload) -> Self {
        self.workload = Some(workload);
        self
    }

    /// How runs are arranged in levels; leveled unless given.
    pub fn layout(mut self, layout: LsmLayout) -> Self {
        self.layout = Some(layout);
        self
    }

    /// F: how many times as large each level is as the one above it, from 2 to 1000.
    pub fn fanout(mut self, fanout: u32) -> Self {
        self.fanout = Some(fanout);
        self
    }

    /// C: runs of level 0 that are merged at once: few are good for look-ups and scans, many for writes.
    pub fn level_zero_runs(mut self, runs: u32) -> Self {
        self.level_zero_runs = Some(runs);
        self
    }

    /// Whether level 0 has runs of memtables of a quarter, and four times as many of them, while writes
    /// prevail, and large ones while reads do (the paper on RocksDB and 3D XPoint, §VI.B).
    pub fn level_zero_by_reads(mut self, by_reads: bool) -> Self {
        self.level_zero_by_reads = Some(by_reads);
        self
    }

    /// Number of runs of level 0 that slows writers down; twice those that are merged unless given.
    pub fn slowdown_runs(mut self, runs: u32) -> Self {
        self.slowdown_runs = Some(runs);
        self
    }

    /// Number of runs of level 0 that stops writers; five times those that are merged unless given.
    pub fn stop_runs(mut self, runs: u32) -> Self {
        self.stop_runs = Some(runs);
        self
    }

    /// T: bytes of a table, rounded up to whole segments. Unless given, the size that lets a merge of level 0
    /// keep the profiled drive busy, at most that of a memtable; without a profile that of a memtable.
    pub fn table_bytes(mut self, bytes: u64) -> Self {
        self.table_bytes = Some(bytes);
        self
    }

    /// Bytes of a memtable, at most a quarter of the cache, where they are counted, and of the log; an eighth
    /// of the cache of each opening, and at most a 128th of a device of fixed size, unless given.
    pub fn memtable_bytes(mut self, bytes: u64) -> Self {
        self.memtable_bytes = Some(bytes);
        self
    }

    /// Most memtables that a flush merges into one run, from 1 to 16 and together at most a quarter of the
    /// cache and of the log; 1 unless given. They are merged where that keeps an eighth less of the versions
    /// than flushes of single ones: where keys are written again soon. Flushes wait for this number of
    /// memtables then (the paper on RocksDB and 3D XPoint, §VI).
    pub fn merged_memtables(mut self, memtables: u32) -> Self {
        self.merged_memtables = Some(memtables);
        self
    }

    /// Bits of the filters for each key, up to 30; with 0 there are no filters.
    pub fn filter_bits_per_key(mut self, bits: f64) -> Self {
        // A value that is no number of bits is refused when the tree is created.
        let is_number = bits.is_finite() && bits >= 0.0;
        self.filter_tenths = Some(if is_number { (bits * 10.0).round() as u32 } else { u32::MAX });
        self
    }

    /// Whether filters and fence pointers that were read stay in memory as long as their table is used. They
    /// then take up to three eighths of the cache. Unless given, they are cached as other blocks. Without
    /// filters a look-up then reads a block of each run (MQSSD paper §5.1.2).
    pub fn metadata(mut self, metadata: LsmMetadata) -> Self {
        self.metadata = Some(metadata);
        self
    }

    /// How data blocks are compressed from level 1 on; not at all unless given. Level 0 is soon merged.
    pub fn compression(mut self, compression: LsmCompression) -> Self {
        self.compression = Some(compression);
        self
    }

    /// The same for the last level, which has most of the data; as the others unless given.
    pub fn last_level_compression(mut self, compression: LsmCompression) -> Self {
        self.last_level_compression = Some(compression);
        self
    }

    /// Most jobs that merge at a time, from 1 to 64. The number that do follows from the merges that are due.
    pub fn jobs(mut self, jobs: u32) -> Self {
        self.jobs = Some(jobs);
        self
    }

    /// Most ranges of keys into which a job is cut, which are merged at the same time, from 1 to 64.
    pub fn parts(mut self, parts: u32) -> Self {
        self.parts = Some(parts);
        self
    }

    /// How writers are slowed down where merges do not keep up; [`LsmThrottling::Graded`] unless given.
    pub fn throttling(mut self, throttling: LsmThrottling) -> Self {
        self.throttling = Some(throttling);
        self
    }

    /// The most bytes of keys and values that writers which are slowed down write in a second, for
    /// [`LsmThrottling::TwoStage`] and [`LsmThrottling::RocksDb`]; RocksDB's 16 MiB unless given.
    pub fn delayed_bytes_per_s(mut self, bytes: u64) -> Self {
        self.delayed_bytes_per_s = Some(bytes);
        self
    }
}

/// Bits of the options that decisions are made about, in the catalog's mask of those that were given.
mod bit {
    pub const LAYOUT: u64 = 1;
    pub const FANOUT: u64 = 1 << 1;
    pub const LEVEL_ZERO_RUNS: u64 = 1 << 2;
    pub const TABLE: u64 = 1 << 3;
    pub const MEMTABLE: u64 = 1 << 4;
    pub const FILTER: u64 = 1 << 5;
    pub const JOBS: u64 = 1 << 6;
    pub const PARTS: u64 = 1 << 7;
    pub const METADATA: u64 = 1 << 8;
}

impl LsmOptions {
    /// The [bits](bit) of those that are given.
    fn given_bits(&self) -> u64 {
        let given = [
            (bit::LAYOUT, self.layout.is_some()),
            (bit::FANOUT, self.fanout.is_some()),
            (bit::LEVEL_ZERO_RUNS, self.level_zero_runs.is_some()),
            (bit::TABLE, self.table_bytes.is_some()),
            (bit::MEMTABLE, self.memtable_bytes.is_some()),
            (bit::FILTER, self.filter_tenths.is_some()),
            (bit::JOBS, self.jobs.is_some()),
            (bit::PARTS, self.parts.is_some()),
            (bit::METADATA, self.metadata.is_some()),
        ];
        given.iter().filter(|(_, is_given)| *is_given).map(|(bit, _)| bit).sum()
    }
}

/// The numbers of a tree, as the catalog has them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Decided {
    policy: PolicyOptions,
    filter_tenths: u32,
    jobs: u32,
    parts: u32,
    throttling: LsmThrottling,
    delayed_bytes_per_s: u64,
    compression: LsmCompression,
    last_level_compression: LsmCompression,
    metadata: LsmMetadata,
    merged_memtables: u32,
    workload: Option<LsmWorkload>,
    /// The [bits](bit) of those that were given.
    given_bits: u64,
}

impl Decided {
    /// The given options, and the rest decided for this room.
    ///
    /// # Errors
    /// [`Error::Options`] names the given option that is wrong.
    pub fn of(given: LsmOptions, room: Room) -> Result<Self, Error> {
        let memtable_bytes = given.memtable_bytes.unwrap_or_else(|| memtable_bytes(room));
        let runs_of = given.table_bytes.map_or(memtable_bytes, |bytes| in_segments(bytes, room));
        let surroundings = surroundings(runs_of, room);
        let is_wanted = |design: &LsmDesign| given.layout.is_none_or(|layout| layout == design.layout);
        let best =
            given.workload.map_or(LsmDesign::USUAL, |workload| workload.best_of(&surroundings, is_wanted).0);
        let design = LsmDesign {
            layout: given.layout.unwrap_or(best.layout),
            fanout: given.fanout.unwrap_or(best.fanout),
            level_zero_runs: given.level_zero_runs.unwrap_or(best.level_zero_runs),
        };
        let LsmDesign { level_zero_runs, .. } = design;
        let parts = given.parts.unwrap_or_else(|| lsm_usual::parts(room.in_flight));
        let table_bytes =
            given.table_bytes.unwrap_or_else(|| design.table_bytes(&surroundings, room.in_flight, parts));
        let slowdown_runs = given.slowdown_runs.unwrap_or(level_zero_runs.saturating_mul(SLOW_FROM as u32));
        let stop_runs = given.stop_runs.unwrap_or_else(|| {
            level_zero_runs.saturating_mul(STOP_AT as u32).max(slowdown_runs.saturating_mul(2))
        });
        let policy = PolicyOptions {
            layout: design.layout,
            fanout: design.fanout,
            level_zero_runs,
            table_bytes: in_segments(table_bytes, room),
            memtable_bytes: given.memtable_bytes.unwrap_or(0),
            slowdown_runs,
            stop_runs,
            level_zero_by_reads: given.level_zero_by_reads.unwrap_or(false),
        };
        let compression = given.compression.unwrap_or_default();
        let decided = Self {
            policy,
            filter_tenths: given.filter_tenths.unwrap_or(lsm_usual::FILTER.0),
            jobs: given.jobs.unwrap_or_else(|| lsm_usual::jobs(room.in_flight)),
            parts,
            throttling: given.throttling.unwrap_or_default(),
            delayed_bytes_per_s: given.delayed_bytes_per_s.unwrap_or(DELAYED_BYTES_PER_S),
            compression,
            last_level_compression: given.last_level_compression.unwrap_or(compression),
            metadata: given.metadata.unwrap_or_default(),
            merged_memtables: given.merged_memtables.unwrap_or(1),
            workload: given.workload,
            given_bits: given.given_before.unwrap_or_else(|| given.given_bits()),
        };
        decided.check(given, room)?;
        policy.validate()?;
        decided.check_build()?;
        Ok(decided)
    }

    /// Whether this build can keep such a tree.
    ///
    /// # Errors
    /// [`Error::Options`] names the compression that this build lacks.
    pub fn check_build(&self) -> Result<(), Error> {
        if self.compression.is_there() && self.last_level_compression.is_there() {
            return Ok(());
        }
        let why = "compression by Zstandard: this build lacks it, build with the feature `zstd`";
        Err(Error::Options(why.into()))
    }

    /// Checks the options that the policy does not know. The numbers of a tree that was made elsewhere, or
    /// with another cache, need not suit this room: [`Options::new`] bounds them.
    fn check(&self, given: LsmOptions, room: Room) -> Result<(), Error> {
        let most_bytes = room.cache_bytes.min(room.log_bytes) / MEMTABLE_DIVISOR_MIN;
        let least_bytes = room.segment_bytes.min(most_bytes);
        let is_new = given.given_before.is_none();
        let problem = if self.filter_tenths > FILTER_TENTHS_MAX {
            format!("a filter must have from 0 to {} bits for each key", FILTER_TENTHS_MAX / 10)
        } else if !(1..=JOBS_MAX).contains(&self.jobs) {
            format!("{} jobs at a time: they must be from 1 to {JOBS_MAX}", self.jobs)
        } else if !(1..=JOBS_MAX).contains(&self.parts) {
            format!("jobs of {} parts: they must have from 1 to {JOBS_MAX}", self.parts)
        } else if !(1..=MERGED_MEMTABLES_MAX).contains(&self.merged_memtables) {
            let got = self.merged_memtables;
            format!("flushes of {got} memtables: they must be from 1 to {MERGED_MEMTABLES_MAX}")
        } else if is_new
            && self.merged_memtables > 1
            && u64::from(self.merged_memtables) * given.memtable_bytes.unwrap_or_else(|| memtable_bytes(room))
                > most_bytes
        {
            format!(
                "flushes of {} memtables: these may have {most_bytes} bytes together, a quarter of the cache of {} and of the log of {}",
                self.merged_memtables, room.cache_bytes, room.log_bytes
            )
        } else if self.delayed_bytes_per_s == 0 {
            "a rate of delayed writes of 0 bytes a second: it must be 1 at least".to_owned()
        } else if is_new
            && given.memtable_bytes.is_some_and(|bytes| !(least_bytes..=most_bytes).contains(&bytes))
        {
            format!(
                "memtables of {} bytes: they must have from {least_bytes} (a segment) to {most_bytes} bytes, a quarter of the cache of {} and of the log of {}",
                self.policy.memtable_bytes, room.cache_bytes, room.log_bytes
            )
        } else if is_new && given.table_bytes.is_some() && self.policy.table_bytes > room.device_bytes / 2 {
            format!(
                "tables of {} bytes: they must have at most {}, half of the store's space, as a merge needs room for its output",
                self.policy.table_bytes,
                room.device_bytes / 2
            )
        } else {
            return Ok(());
        };
        Err(Error::Options(problem))
    }

    /// The numbers as options.
    pub fn given(self) -> LsmOptions {
        let policy = self.policy;
        LsmOptions {
            layout: Some(policy.layout),
            fanout: Some(policy.fanout),
            level_zero_runs: Some(policy.level_zero_runs),
            level_zero_by_reads: Some(policy.level_zero_by_reads),
            slowdown_runs: Some(policy.slowdown_runs),
            stop_runs: Some(policy.stop_runs),
            table_bytes: Some(policy.table_bytes),
            memtable_bytes: (policy.memtable_bytes > 0).then_some(policy.memtable_bytes),
            filter_tenths: Some(self.filter_tenths),
            jobs: Some(self.jobs),
            parts: Some(self.parts),
            throttling: Some(self.throttling),
            delayed_bytes_per_s: Some(self.delayed_bytes_per_s),
            compression: Some(self.compression),
            last_level_compression: Some(self.last_level_compression),
            metadata: Some(self.metadata),
            merged_memtables: Some(self.merged_memtables),
            workload: self.workload,
            given_before: Some(self.given_bits),
        }
    }

    /// The numbers that a tree works with in this room, each with its reason.
    pub(super) fn decisions(&self, options: &Options, room: Room) -> Vec<Decision> {
        let Self { policy, .. } = self;
        let design = LsmDesign {
            layout: policy.layout,
            fanout: policy.fanout,
            level_zero_runs: policy.level_zero_runs,
        };
        let is_given = |bit: u64| self.given_bits & bit != 0;
        let runs_of = match is_given(bit::TABLE) {
            true => policy.table_bytes,
            // An opening with less room has smaller memtables than the one that made the tree.
            false => options.memtable_bytes.max(policy.table_bytes),
        };
        let surroundings = surroundings(runs_of, room);
        let of_design = self.design_reason(design, &surroundings, room);
        let requests = |each: u32| {
            format!(
                "{} requests saturate the drive, and each of these keeps {each} under way",
                room.in_flight
            )
        };
        let best_bytes = design.table_bytes(&surroundings, room.in_flight, self.parts);
        let of_table = table_reason(options.table_bytes, runs_of, best_bytes, room);
        let given_memtable = (self.policy.memtable_bytes > 0).then_some(self.policy.memtable_bytes);
        let of_memtable = room.memtable_reason(given_memtable, true, options.memtable_bytes);
        let of_filter = "default: one look-up of 512 passes that the table does not have".to_owned();
        let settings = [
            (bit::LAYOUT, Setting::LsmLayout(policy.layout), of_design.clone()),
            (bit::FANOUT, Setting::Fanout(Count(policy.fanout.into())), of_design.clone()),
            (bit::LEVEL_ZERO_RUNS, Setting::LevelZeroRuns(Count(policy.level_zero_runs.into())), of_design),
            (bit::TABLE, Setting::Table(Bytes(options.table_bytes)), of_table),
            // Its reason says whether it was given.
            (0, Setting::Memtable(Bytes(options.memtable_bytes)), of_memtable),
            (bit::FILTER, Setting::FilterBits(FilterBits(self.filter_tenths)), of_filter),
            (bit::JOBS, Setting::Jobs(Count(self.jobs.into())), requests(REQUESTS_PER_JOB)),
            (bit::PARTS, Setting::Parts(Count(self.parts.into())), requests(REQUESTS_PER_PART)),
        ];
        let with_reason = |(bit, setting, because): (u64, Setting, String)| Decision {
            setting,
            because: if is_given(bit) { "set by hand".to_owned() } else { because },
        };
        let mut decisions: Vec<Decision> = settings.into_iter().map(with_reason).collect();
        if self.metadata == LsmMetadata::Pinned {
            let metadata = (bit::METADATA, Setting::Metadata(self.metadata), String::new());
            decisions.push(with_reason(metadata));
        }
        let because = "the tree's node size, or the store's".to_owned();
        decisions.push(Decision { setting: Setting::Block(Bytes(options.block_bytes() as u64)), because });
        decisions
    }

    /// The reason for layout, F and C.
    fn design_reason(&self, design: LsmDesign, surroundings: &LsmSurroundings, room: Room) -> String {
        let Some(workload) = &self.workload else { return "default: no workload is declared".to_owned() };
        let is_given = self.given_bits & (bit::LAYOUT | bit::FANOUT | bit::LEVEL_ZERO_RUNS) != 0;
        let (best, times) = workload.best(surroundings);
        let comparison = match best == design {
            true => "the least of all candidates",
            false if is_given => "the others being given",
            false => "decided when the tree was made; now the least",
        };
        let own = workload.page_times(design, surroundings);
        let drive = match room.half_bandwidth_bytes {
            0 => String::new(),
            half => format!("; a setup of the busy drive is worth {}", bytes_text(half.into())),
        };
        format!("{}: {own:.2} page times an operation, {comparison} ({times:.2}){drive}", workload.text())
    }

    /// The bytes that the catalog has.
    pub fn encode(self) -> Vec<u8> {
        let mut bytes = self.policy.encode();
        let throttling = LsmThrottling::ALL.iter().position(|other| *other == self.throttling);
        let code = |compression: LsmCompression| u64::from(compression.code());
        for number in [
            self.filter_tenths.into(),
            self.jobs.into(),
            self.parts.into(),
            throttling.unwrap_or_default() as u64,
            self.delayed_bytes_per_s,
            code(self.compression),
            code(self.last_level_compression),
            self.given_bits,
            self.workload.is_some().into(),
        ] {
            varint::put(number, &mut bytes);
        }
        self.workload
            .iter()
            .flat_map(LsmWorkload::numbers)
            .for_each(|number| varint::put(number, &mut bytes));
        if self.metadata == LsmMetadata::Pinned {
            bytes.push(PINNED);
        }
        if self.merged_memtables > 1 {
            bytes.extend([MERGED, self.merged_memtables as u8]);
        }
        bytes
    }

    /// The numbers that the catalog has as bytes; `None` for bytes that were never written.
    pub fn decode(mut bytes: &[u8]) -> Option<Self> {
        let policy = PolicyOptions::take(&mut bytes)?;
        let mut number = || varint::take(&mut bytes);
        let small = |number: u64| u32::try_from(number).ok();
        let mut decided = Self {
            policy,
            metadata: LsmMetadata::Cached,
            merged_memtables: 1,
            filter_tenths: small(number()?)?,
            jobs: small(number()?)?,
            parts: small(number()?)?,
            throttling: *LsmThrottling::ALL.get(usize::try_from(number()?).ok()?)?,
            delayed_bytes_per_s: number()?,
            compression: LsmCompression::of_code(u8::try_from(number()?).ok()?)?,
            last_level_compression: LsmCompression::of_code(u8::try_from(number()?).ok()?)?,
            given_bits: number()?,
            workload: match number()? {
                0 => None,
                1 => Some(LsmWorkload::of_numbers([number()?, number()?, number()?, number()?, number()?])?),
                _ => return None,
            },
        };
        if let [PINNED, rest @ ..] = bytes {
            (decided.metadata, bytes) = (LsmMetadata::Pinned, rest);
        }
        if let [MERGED, memtables @ 2..=u8::MAX, rest @ ..] = bytes {
            (decided.merged_memtables, bytes) = ((*memtables).into(), rest);
        }
        (bytes.is_empty() && decided.check(decided.given(), Room::UNBOUNDED).is_ok()).then_some(decided)
    }
}

fn record_bytes_max(block_bytes: usize) -> u64 {
    (block_bytes / KEY_DIVISOR + block_bytes / VALUE_DIVISOR) as u64
}

/// The reason for T of `table_bytes`, where a run has `runs_bytes` and the least time would have
/// `best_bytes`.
fn table_reason(table_bytes: u64, runs_bytes: u64, best_bytes: u64, room: Room) -> String {
    match best_bytes < runs_bytes {
        false if table_bytes == in_segments(runs_bytes, room) => {
            "a memtable, in whole segments, so that no table needs to be cleaned".to_owned()
        }
        true if table_bytes == in_segments(best_bytes, room) => format!(
            "in whole segments of {}: a merge of level 0 keeps the drive busy with parts of {} tables; {} reads of 4 KiB do, and a setup is worth {} (Eq. 9)",
            bytes_text(room.segment_bytes),
            lsm_usual::TABLES_PER_PART,
            room.in_flight,
            bytes_text(room.half_bandwidth_bytes.into())
        ),
        _ => "decided when the tree was made".to_owned(),
    }
}

/// The surroundings of a tree in this room whose runs of level 0 have `memtable_bytes`.
fn surroundings(memtable_bytes: u64, room: Room) -> LsmSurroundings {
    LsmSurroundings { half_bandwidth_bytes: f64::from(room.half_bandwidth_bytes), memtable_bytes }
}

/// `bytes` rounded up to whole segments.
fn in_segments(bytes: u64, room: Room) -> u64 {
    bytes.checked_next_multiple_of(room.segment_bytes).filter(|whole| *whole > 0).unwrap_or(bytes)
}

/// Bytes of a memtable, as many as whole segments have: the rest of a table's last segment is lost.
fn memtable_bytes(room: Room) -> u64 {
    room.usual_memtable().0.max(1).next_multiple_of(room.segment_bytes)
}

/// The numbers that a tree works with.
pub(super) struct Options {
    pub memtable_bytes: u64,
    /// Memtables of a quarter are enough while writes prevail.
    pub level_zero_by_reads: bool,
    /// T: the most bytes of a table, a multiple of a segment's, unless one key has more.
    pub table_bytes: u64,
    table: TableOptions,
    last_level_compression: LsmCompression,
    pub policy: Box<dyn Policy>,
    pub policy_options: PolicyOptions,
    pub jobs: u32,
    pub parts: u32,
    batch_bytes: u64,
    pub segment_bytes: u64,
}

impl Options {
    /// Bytes of the runs of level 0 that are merged at once.
    pub fn batch_bytes(&self) -> u64 {
        self.batch_bytes
    }

    /// Bytes of a data block.
    pub fn block_bytes(&self) -> usize {
        self.table.block_bytes
    }

    /// Bytes of the longest key and value together.
    pub fn record_bytes_max(&self) -> u64 {
        record_bytes_max(self.block_bytes())
    }

    /// How filters and fence pointers are kept.
    pub fn metadata(&self) -> LsmMetadata {
        self.table.metadata
    }

    /// How the tables of a level are made.
    pub fn table_of(&self, level: usize, is_last: bool) -> TableOptions {
        let compression = match (level, is_last) {
            (0, _) => LsmCompression::None,
            (_, true) => self.last_level_compression,
            (_, false) => self.table.compression,
        };
        TableOptions { compression, ..self.table }
    }

    /// With blocks of `block_bytes` bytes, in this room.
    pub fn new(decided: Decided, block_bytes: usize, room: Room) -> Self {
        let filter_bits_per_key = f64::from(decided.filter_tenths) / 10.0;
        let least_bytes = (TABLE_BLOCKS_MIN * block_bytes as u64).next_multiple_of(room.segment_bytes);
        // The cache may have been larger when the tree was made.
        let most_bytes = (room.cache_bytes / MEMTABLE_DIVISOR_MIN).max(room.segment_bytes);
        let policy = PolicyOptions {
            table_bytes: decided.policy.table_bytes.max(least_bytes),
            memtable_bytes: match decided.policy.memtable_bytes {
                0 => memtable_bytes(room),
                bytes => bytes.min(most_bytes),
            }
            .max(Memtable::bytes_min(record_bytes_max(block_bytes))),
            ..decided.policy
        };
        Self {
            memtable_bytes: policy.memtable_bytes,
            level_zero_by_reads: policy.level_zero_by_reads,
            table_bytes: policy.table_bytes,
            table: TableOptions {
                block_bytes,
                filter_bits_per_key,
                compression: decided.compression,
                metadata: decided.metadata,
            },
            last_level_compression: decided.last_level_compression,
            policy: policy.policy(),
            policy_options: policy,
            jobs: decided.jobs,
            parts: decided.parts,
            batch_bytes: policy.batch_bytes() as u64,
            segment_bytes: room.segment_bytes.max(1),
        }
    }

    /// How many memtables flushes merge.
    pub fn flush_batch(decided: Decided) -> FlushBatch {
        FlushBatch::new(decided.merged_memtables)
    }

    /// How writers are slowed down.
    pub fn controller(decided: Decided) -> Controller {
        Controller::new(decided.throttling, decided.delayed_bytes_per_s)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROOM: Room = Room {
        cache_bytes: 64 << 20,
        log_bytes: 64 << 20,
        segment_bytes: 1 << 20,
        unit_bytes: 256 << 10,
        device_bytes: 1 << 30,
        device_name: "a device",
        in_flight: 64,
        half_bandwidth_bytes: 0,
    };

    #[test]
    fn tables_have_room_for_several_blocks() {
        let small = Room { segment_bytes: 16 << 10, ..ROOM };
        let decided = Decided::of(LsmOptions::new().table_bytes(1), small).unwrap();
        let bytes = |block_bytes| Options::new(decided, block_bytes, small).table_bytes;
        assert_eq!((bytes(1 << 10), bytes(8 << 10)), (16 << 10, 64 << 10));
    }

    #[test]
    fn what_is_decided_comes_back_and_nonsense_is_refused() {
        let given = LsmOptions::new().layout(LsmLayout::Tiered).fanout(5).filter_bits_per_key(7.5);
        let decided = Decided::of(given, ROOM).unwrap();
        assert_eq!(Decided::decode(&decided.encode()), Some(decided));
        let with = decided.given();
        assert_eq!(
            with,
            with.layout(LsmLayout::Tiered)
                .fanout(5)
                .filter_bits_per_key(7.5)
                .table_bytes(8 << 20)
                .jobs(4)
                .parts(8)
        );
        assert_eq!(Decided::of(with, Room { cache_bytes: 1 << 20, ..ROOM }).unwrap(), decided);
        let packed = Decided::of(given.compression(LsmCompression::Lz4), ROOM).unwrap();
        assert_eq!(Decided::decode(&packed.encode()), Some(packed));
        let lz4 = LsmCompression::Lz4;
        assert_eq!(
            packed.given(),
            with.compression(lz4).last_level_compression(lz4),
            "only the codec differs"
        );
        let same = |one: LsmOptions, other: LsmOptions| {
            assert_eq!(one, LsmOptions { given_before: one.given_before, ..other })
        };
        let rounded = Decided::of(given.table_bytes(3_000_000), ROOM).unwrap();
        same(rounded.given(), with.table_bytes(3 << 20));
        let memtables = Decided::of(given.memtable_bytes(2 << 20), ROOM).unwrap();
        same(memtables.given(), with.memtable_bytes(2 << 20).table_bytes(2 << 20));
        let pinned = Decided::of(given.metadata(LsmMetadata::Pinned), ROOM).unwrap();
        assert_eq!(Decided::decode(&pinned.encode()), Some(pinned));
        same(pinned.given(), with.metadata(LsmMetadata::Pinned));
        let merged = with.metadata(LsmMetadata::Pinned).merged_memtables(2);
        let both = Decided::of(merged, ROOM).unwrap();
        assert_eq!(Decided::decode(&both.encode()), Some(both));
        same(both.given(), merged);
        let bytes = decided.encode();
        assert!((0..bytes.len()).all(|length| Decided::decode(&bytes[..length]).is_none()));
        assert!(Decided::decode(&[bytes.as_slice(), &[0]].concat()).is_none());
    }

    #[test]
    fn the_workload_decides_the_design_and_the_drive_how_much_runs_beside() {
        let writes = LsmWorkload::new(1.0, 0.0, 0.0);
        let decided = Decided::of(LsmOptions::new().workload(writes).level_zero_runs(3), ROOM).unwrap();
        assert_eq!((decided.policy.layout, decided.policy.level_zero_runs), (LsmLayout::LazyLeveled, 3));
        assert_eq!(Decided::decode(&decided.encode()), Some(decided));
        let decisions = decided.decisions(&Options::new(decided, 4096, ROOM), ROOM);
        let because = |name: &str| {
            let one = decisions.iter().find(|one| one.setting.name() == name).unwrap();
            (one.setting.value(), one.because.as_str())
        };
        assert_eq!(because("layout of runs").0, "lazy leveled");
        assert!(because("layout of runs").1.starts_with("100 % writes"), "{decisions:?}");
        assert_eq!(because("runs of level 0"), ("3".to_owned(), "set by hand"));
        assert_eq!(because("parts of a job").0, "8");
        let slow = Decided::of(LsmOptions::new(), Room { in_flight: 1, ..ROOM }).unwrap();
        assert_eq!((slow.jobs, slow.parts), (1, 1));
        let again = Decided::of(decided.given(), Room { in_flight: 1, ..ROOM }).unwrap();
        assert_eq!(again, decided, "reasons, too");
    }

    #[test]
    fn the_drives_setups_decide_the_fanout_and_the_tables() {
        let of = |given: LsmOptions, half_bandwidth_bytes| {
            let room = Room { half_bandwidth_bytes, in_flight: 128, ..ROOM };
            let decided = Decided::of(given, room).unwrap();
            let decisions = decided.decisions(&Options::new(decided, 4096, room), room);
            let one = |name: &str| decisions.iter().find(|one| one.setting.name() == name).unwrap().clone();
            (
                decided.policy.fanout,
                decided.policy.table_bytes >> 20,
                one("fanout").because,
                one("table").because,
            )
        };
        let scans = LsmOptions::new().workload(LsmWorkload::new(0.8, 0.0, 0.2)).layout(LsmLayout::Leveled);
        let scans = scans.level_zero_runs(4);
        let (fanout, table, because, of_table) = of(scans, 0);
        assert!(fanout < 32 && table == 8, "{fanout} {table}");
        assert!(
            !because.contains("setup") && of_table.starts_with("a memtable, in whole segments"),
            "{because}"
        );
        let (fanout, table, because, of_table) = of(scans, 64 << 10);
        assert_eq!((fanout, table), (32, 4));
        assert!(because.contains("a setup of the busy drive is worth 64 KiB"), "{because}");
        assert!(
            of_table.contains("keeps the drive busy") && of_table.contains("128 reads of 4 KiB"),
            "{of_table}"
        );
        let (fanout, table, because, of_table) = of(scans.fanout(5).table_bytes(3 << 20), 64 << 10);
        assert_eq!((fanout, table), (5, 3));
        assert_eq!([because, of_table], ["set by hand"; 2]);
    }

    #[test]
    fn nonsense_is_refused_with_its_range() {
        let given = LsmOptions::new();
        let problem = |given| Decided::of(given, ROOM).unwrap_err().to_string();
        for bits in [30.1, -1.0, f64::NAN, f64::INFINITY] {
            assert!(problem(given.filter_bits_per_key(bits)).contains("from 0 to 30 bits"), "{bits}");
        }
        assert!(problem(given.fanout(1)).contains("a fanout of 1"));
        assert!(problem(given.table_bytes(0)).contains("tables of 0 bytes"));
        assert!(problem(given.table_bytes(u64::MAX)).contains("tables of"));
        assert!(problem(given.table_bytes(600 << 20)).contains("at most 536870912, half of the"));
        assert!(problem(given.jobs(0)).contains("from 1 to 64"));
        assert!(problem(given.parts(65)).contains("from 1 to 64"));
        assert!(problem(given.merged_memtables(0)).contains("from 1 to 16"));
        assert!(problem(given.merged_memtables(17)).contains("from 1 to 16"));
        assert!(problem(given.merged_memtables(3)).contains("16777216 bytes together"));
        assert!(problem(given.delayed_bytes_per_s(0)).contains("1 at least"));
        for bytes in [0, 1000, 17 << 20] {
            let told = "from 1048576 (a segment) to 16777216 bytes, a quarter of the cache";
            assert!(problem(given.memtable_bytes(bytes)).contains(told), "{bytes}");
        }
    }
}
