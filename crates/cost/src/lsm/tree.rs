//! The LSM tree as a dictionary: its parameters and the requests of its operations.

use serde::{Deserialize, Serialize};

use super::cache::{CachedRun, Uses, miss_shares};
use super::runs::{FANOUT_MIN, Runs, runs_mean, visits};
use super::scan::further_requests;
use super::{Layout, TouchedLine, false_positive_rate};
use crate::Access;
use crate::dictionary::{Demand, Design, Operation, Situation, Transfer, log_write};

/// Bytes that the index has per block in addition to a key: the block's place and length.
const HANDLE_BYTES: f64 = 8.0;
/// One memtable that takes changes, one that is flushed (RocksDB's `max_write_buffer_number` of 2).
const MEMTABLES: f64 = 2.0;

/// Where filters and fence pointers are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Metadata {
    /// All of them in memory, outside the cache (MQSSD paper §5.1.2).
    Pinned,
    /// In partitions as large as blocks, which compete with blocks for the cache. So do the *tops*, which
    /// lead to partitions as these lead to blocks.
    #[default]
    Cached,
}

impl Metadata {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Pinned, Self::Cached];

    /// In a word.
    pub fn name(self) -> &'static str {
        match self {
            Self::Pinned => "pinned",
            Self::Cached => "cached",
        }
    }
}

/// An LSM tree.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct LsmTree {
    /// Arrangement of the runs.
    pub layout: Layout,
    /// F: size of a level over that of the one above it. Ignored by [`Layout::SingleLevel`].
    pub fanout: f64,
    /// T: bytes of a file, and of a memtable.
    pub file_bytes: f64,
    /// Memory of memtables, in memtables: the maximum, or the mean fill where the rest of their memory caches
    /// blocks.
    pub memtables: f64,
    /// C: files that level 1 may have, as many as level 0 has when it is compacted.
    pub level_one_files: f64,
    /// Files in level 0 that a query looks into, on average: C/2 while changes arrive slower than compactions
    /// can take them, 0 once they have ended.
    pub level_zero_files: f64,
    /// Files of level 0 that are merged at once: C, or more where changes arrive faster than compactions can
    /// take them (RocksDB slows writers down at 20).
    pub level_zero_batch_files: f64,
    /// Levels below level 0 at most: 6 with RocksDB's default `num_levels`, which counts level 0.
    pub levels_max: usize,
    /// B′: bytes of a block, the smallest read.
    pub block_bytes: f64,
    /// Bits per key of the Bloom filters; 0 for none.
    pub filter_bits_per_key: f64,
    /// Where these and the fence pointers are.
    pub metadata: Metadata,
    /// Blocks that a range query reads of a run one by one, before it reads as many as so far at once.
    pub blocks_alone: f64,
    /// Largest read of a range query, in bytes.
    pub read_ahead_bytes: f64,
    /// Compactions that may run at the same time.
    pub compaction_threads: f64,
    /// Threads into which one compaction of level 0 may be split.
    pub subcompactions: f64,
    /// Files that a compaction between full levels touches.
    pub touched: TouchedLine,
}

impl LsmTree {
    /// RocksDB's defaults: F = 10, T = 64 MiB, two memtables, C = 4, B′ = 4 KiB, no filters, metadata in
    /// memory, one compaction at a time.
    pub fn new(layout: Layout) -> Self {
        Self {
            layout,
            fanout: 10.0,
            file_bytes: 64.0 * 1_048_576.0,
            memtables: MEMTABLES,
            level_one_files: 4.0,
            level_zero_files: 2.0,
            level_zero_batch_files: 4.0,
            levels_max: 6,
            block_bytes: 4096.0,
            filter_bits_per_key: 0.0,
            metadata: Metadata::Pinned,
            blocks_alone: 1.0,
            read_ahead_bytes: 262_144.0,
            compaction_threads: 1.0,
            subcompactions: 1.0,
            touched: TouchedLine::FEWEST_OVERLAP,
        }
    }

    /// Compaction threads that have something to do.
    pub fn effective_threads(&self, situation: &Situation) -> f64 {
        self.compaction_work(Operation::Insert, situation).effective_threads(self.compaction_threads)
    }

    /// Blocks that a point query reads, cached or not: the runs of Eq. 10, with filters and until the key is
    /// found.
    pub fn blocks_per_query(&self, is_hit: bool, situation: &Situation) -> f64 {
        let false_positives = false_positive_rate(self.filter_bits_per_key);
        visits(&self.runs(situation), false_positives, is_hit).iter().sum()
    }

    /// Share of each run's reads that the cache does not answer, for an operation that uses `used` of each
    /// run's blocks and partitions.
    fn misses(&self, runs: &[Runs], used: &[Used], situation: &Situation) -> Vec<Misses> {
        let record_bytes = situation.records.record_bytes();
        let of_partitions = self.metadata_bytes_per_record(situation);
        let of_tops = of_partitions * self.fence_bytes(situation) / self.block_bytes;
        let cached = |used_bytes: f64, runs: &Runs, bytes_per_record: f64| CachedRun {
            bytes: runs.bytes() / record_bytes * bytes_per_record,
            used_bytes,
            record_bytes: bytes_per_record,
        };
        let pairs = || runs.iter().zip(used);
        let mut all: Vec<CachedRun> =
            pairs().map(|(runs, used)| cached(used.data_bytes, runs, record_bytes)).collect();
        if self.metadata == Metadata::Cached {
            all.extend(pairs().map(|(runs, used)| cached(used.partition_bytes, runs, of_partitions)));
            all.extend(pairs().map(|(runs, used)| cached(used.runs * self.block_bytes, runs, of_tops)));
        }
        let uses = Uses { skew: situation.skew, block_bytes: self.block_bytes };
        let cache_bytes = (situation.cache_bytes - self.memory_bytes(situation)).max(0.0);
        let shares = miss_shares(&all, &uses, cache_bytes);
        let share = |position: usize| shares.get(position).copied().unwrap_or(0.0);
        let of_run = |run: usize| Misses {
            data: share(run),
            partitions: share(runs.len() + run),
            tops: share(2 * runs.len() + run),
        };
        (0..runs.len()).map(of_run).collect()
    }

    /// One block of each run that a point query looks into: t(k) + B′α(k)/B each (Eq. 10). Metadata that is
    /// cached is asked of each run first.
    fn point_reads(&self, is_hit: bool, situation: &Situation) -> [Transfer; 2] {
        let runs = self.runs(situation);
        let visits = visits(&runs, false_positive_rate(self.filter_bits_per_key), is_hit);
        let asked = super::runs::visits(&runs, 1.0, is_hit);
        let used = |(visits, asked): (&f64, &f64)| Used {
            data_bytes: visits * self.read_bytes(situation),
            partition_bytes: asked * self.block_bytes,
            runs: *asked,
        };
        let used: Vec<Used> = visits.iter().zip(&asked).map(used).collect();
        let misses = self.misses(&runs, &used, situation);
        let blocks = visits.iter().zip(&misses).map(|(visits, miss)| visits * miss.data).sum();
        let metadata = asked.iter().zip(&misses).map(|(asked, miss)| asked * miss.metadata()).sum();
        [
            self.read(blocks, self.read_bytes(situation), situation),
            self.read(metadata, self.block_bytes, situation),
        ]
    }

    /// Bytes of a block: a record that is longer has a block of its own.
    fn read_bytes(&self, situation: &Situation) -> f64 {
        self.block_bytes.max(situation.records.record_bytes())
    }

    fn read(&self, requests: f64, bytes_each: f64, situation: &Situation) -> Transfer {
        Transfer::reads(requests, bytes_each, situation.clients)
    }

    /// A block of every run, and the data itself out of each run in proportion to its size, with the
    /// metadata that lies between the data.
    ///
    /// Every request counts as a random access, since other clients' requests come between those of one range
    /// query; the paper's X·t/T counts one access per file.
    fn range_reads(&self, bytes: f64, situation: &Situation) -> [Transfer; 3] {
        let runs = self.runs(situation);
        let block = self.read_bytes(situation);
        let total: f64 = runs.iter().map(Runs::bytes).sum();
        // On average half of the first block lies in the range.
        let beyond = |runs: &Runs| (bytes * runs.bytes_each / total - block / 2.0).max(0.0);
        let partition_share = self.metadata_bytes_per_record(situation) / situation.records.record_bytes();
        let used = |runs: &Runs| Used {
            data_bytes: runs.count * (block + beyond(runs)),
            partition_bytes: runs.count * (self.block_bytes + partition_share * beyond(runs)),
            runs: runs.count,
        };
        let used: Vec<Used> = runs.iter().map(used).collect();
        let misses = self.misses(&runs, &used, situation);
        let (mut firsts, mut metadata, mut further, mut further_bytes) = (0.0, 0.0, 0.0, 0.0);
        for (runs, miss) in runs.iter().zip(&misses) {
            let beyond = beyond(runs);
            firsts += runs.count * miss.data;
            metadata += runs.count * miss.metadata();
            let requests = further_requests(beyond, block, self.blocks_alone, self.read_ahead_bytes);
            further += runs.count * miss.data * requests;
            further_bytes += runs.count * beyond * (miss.data + partition_share * miss.partitions);
        }
        let each = if further > 0.0 { further_bytes / further } else { block };
        [
            self.read(firsts, block, situation),
            self.read(metadata, self.block_bytes, situation),
            self.read(further, each, situation),
        ]
    }

    /// The flush and the compactions that a change causes: X·(t + s + T(α + β)/B) for X files (Eq. 9, 11).
    fn background(&self, operation: Operation, situation: &Situation) -> [Transfer; 3] {
        let changed_bytes = operation.changed_bytes(&situation.records);
        let work = self.compaction_work(operation, situation);
        let concurrency = work.effective_threads(self.compaction_threads);
        let files = |access: Access, bytes: f64, concurrency: f64| Transfer {
            access,
            requests: changed_bytes * bytes / self.file_bytes,
            bytes_each: self.file_bytes,
            random_share: 1.0,
            concurrency,
            awaited: false,
        };
        [
            files(Access::Write, work.flushed, 1.0),
            files(Access::Read, work.read(), concurrency),
            files(Access::Write, work.written(), concurrency),
        ]
    }

    /// Older versions that are kept for each record, while all are replaced again and again.
    pub(super) fn older_versions(&self, situation: &Situation) -> f64 {
        let runs = self.runs(situation);
        let last = runs.last().map_or(1.0, |runs| runs.count);
        match self.layout {
            Layout::Leveled | Layout::SingleLevel => {
                let newer: f64 = runs.iter().rev().skip(1).map(Runs::bytes).sum();
                newer / situation.records.total_bytes()
            }
            // An endless tier has as many runs as it has had time for.
            _ if self.fanout.is_infinite() => last - 1.0,
            layout => {
                let levels = self.level_bytes(situation).len();
                let windows = self.windows(situation);
                // All of the last level's runs but one.
                let levels = if layout == Layout::Tiered { levels + 1 } else { levels - 1 };
                let keys = situation.changed_keys(Operation::Update);
                let newer: f64 = windows.take(levels).map(|changes| keys.distinct(changes)).sum();
                let files = self.level_zero(situation).count;
                let of_level_zero = files * keys.distinct(self.memtable(situation));
                (runs_mean(self.fanout.max(FANOUT_MIN)) * newer + of_level_zero) / situation.records.count
            }
        }
    }

    /// Bytes of a fence pointer.
    fn fence_bytes(&self, situation: &Situation) -> f64 {
        situation.records.key_bytes + HANDLE_BYTES
    }

    /// Bytes of filters and fence pointers for each record.
    fn metadata_bytes_per_record(&self, situation: &Situation) -> f64 {
        let blocks = situation.records.record_bytes() / self.read_bytes(situation);
        self.filter_bits_per_key / 8.0 + blocks * self.fence_bytes(situation)
    }

    /// The same of all records.
    fn metadata_bytes(&self, situation: &Situation) -> f64 {
        situation.records.count * self.metadata_bytes_per_record(situation)
    }
}

/// Bytes that an operation uses of a run, cached or not.
struct Used {
    data_bytes: f64,
    partition_bytes: f64,
    /// Runs that it looks into: one top each.
    runs: f64,
}

/// Shares of the reads of a run that the cache does not answer.
struct Misses {
    data: f64,
    partitions: f64,
    tops: f64,
}

impl Misses {
    /// Reads of metadata for each run that is asked.
    fn metadata(&self) -> f64 {
        self.partitions + self.tops
    }
}

impl Design for LsmTree {
    fn name(&self) -> String {
        match self.layout {
            Layout::SingleLevel => "LSM tree, single-level".into(),
            layout => format!("LSM tree, {layout}, fanout {}", self.fanout),
        }
    }

    fn demand(&self, operation: Operation, situation: &Situation) -> Demand {
        let mut demand = Demand::of(operation, &situation.records);
        match operation {
            Operation::PointHit | Operation::PointMiss => {
                let is_hit = operation == Operation::PointHit;
                self.point_reads(is_hit, situation).into_iter().for_each(|transfer| demand.add(transfer));
            }
            Operation::Range { bytes } => {
                self.range_reads(bytes, situation).into_iter().for_each(|transfer| demand.add(transfer));
            }
            Operation::Insert | Operation::Update | Operation::Delete => {
                self.background(operation, situation).into_iter().for_each(|transfer| demand.add(transfer));
                demand.add(log_write(operation, situation));
            }
        }
        demand
    }

    /// Changes of records that are there leave older versions in the runs below, besides filters and fence
    /// pointers.
    fn space_amplification(&self, situation: &Situation) -> f64 {
        let total = situation.records.total_bytes();
        let replaced = situation.replaced_share.unwrap_or(0.0);
        1.0 + replaced * self.older_versions(situation) + self.metadata_bytes(situation) / total
    }

    /// Memtables and pinned data.
    fn memory_bytes(&self, situation: &Situation) -> f64 {
        let pinned = match self.metadata {
            Metadata::Pinned => self.metadata_bytes(situation),
            Metadata::Cached => 0.0,
        };
        self.memtables * self.file_bytes + pinned
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::AffineCosts;
    use crate::dictionary::{Binding, Durability, Records, price};

    const PAGE: f64 = 4096.0;
    const SETUP: f64 = 1e-4;

    fn drive() -> AffineCosts {
        AffineCosts::from_alpha(SETUP, 0.05, PAGE)
    }

    fn situation() -> Situation {
        Situation::new(Records { count: 1e8, key_bytes: 16.0, value_bytes: 1008.0 }, 0.0, 1.0)
    }

    /// Nothing in level 0, so that the formulas of the paper are met without its constants.
    fn tree(layout: Layout, fanout: f64) -> LsmTree {
        LsmTree { fanout, level_zero_files: 0.0, ..LsmTree::new(layout) }
    }

    #[test]
    fn an_affine_drive_prices_equation_10_and_12() {
        let situation = situation();
        let seconds = |tree: LsmTree| {
            let demand = tree.demand(Operation::PointMiss, &situation);
            price(&demand, &drive(), &situation).unwrap().latency_seconds
        };
        // Without filters a miss reads t + B′α/B of each run.
        let block = SETUP * 1.05;
        let runs = tree(Layout::Leveled, 8.0).level_bytes(&situation).len() as f64;
        assert!((seconds(tree(Layout::Leveled, 8.0)) / (runs * block) - 1.0).abs() < 1e-9);
        assert!((seconds(tree(Layout::SingleLevel, 8.0)) / block - 1.0).abs() < 1e-9);
    }

    #[test]
    fn an_affine_drive_prices_equation_9_and_11() {
        let situation = situation();
        for tree in [tree(Layout::Leveled, 8.0), tree(Layout::SingleLevel, 8.0)] {
            let demand = tree.demand(Operation::Insert, &situation);
            let cost = price(&demand, &drive(), &situation).unwrap();
            // X files are read and written per file inserted, and one is flushed; a record has its share of
            // it.
            let touched = tree.compaction_work(Operation::Insert, &situation).read();
            let file = SETUP * (1.0 + 0.05 * tree.file_bytes / PAGE);
            let expected = (2.0 * touched + 1.0) * file * 1024.0 / tree.file_bytes;
            assert!((cost.device_seconds / expected - 1.0).abs() < 1e-9, "{cost:?} {expected}");
            assert_eq!(demand.write_amplification(), Some(touched + 1.0));
            // An affine drive does one thing at a time, for any number of waiting clients.
            assert_eq!(cost.binding, Binding::Device);
        }
        // Eq. 11: each new file rewrites all files, C of them at once.
        let single = tree(Layout::SingleLevel, 8.0);
        let files = situation.records.total_bytes() / single.file_bytes;
        assert!(
            (single.compaction_work(Operation::Insert, &situation).read() - (1.0 + files / 4.0)).abs() < 1e-9
        );
    }

    #[test]
    fn layouts_trade_writes_for_reads() {
        let situation = situation();
        let writes = |layout| tree(layout, 8.0).demand(Operation::Update, &situation).bytes(Access::Write);
        let reads = |layout| tree(layout, 8.0).demand(Operation::PointMiss, &situation).bytes(Access::Read);
        let space = |layout| tree(layout, 8.0).space_amplification(&situation);
        let (writes, reads) = (Layout::ALL.map(writes), Layout::ALL.map(reads));
        let [leveled, tiered, lazy, single] = [0, 1, 2, 3];
        println!("writes {writes:?}, reads {reads:?}, space {:?}", Layout::ALL.map(space));
        assert!(writes[tiered] < writes[lazy] && writes[lazy] < writes[leveled]);
        assert!(writes[leveled] < writes[single]);
        assert!(
            reads[tiered] > reads[lazy] && reads[lazy] > reads[leveled] && reads[leveled] > reads[single]
        );
        let [of_leveled, of_tiered, _, of_single] = Layout::ALL.map(space);
        assert!(of_tiered > of_leveled && of_leveled > of_single && of_single >= 1.0);
    }

    #[test]
    fn filters_spare_misses_their_reads_and_hits_those_of_newer_runs() {
        let situation = situation();
        let without = tree(Layout::Leveled, 8.0);
        let with = LsmTree { filter_bits_per_key: 10.0, ..without };
        assert!(
            with.blocks_per_query(false, &situation) < 0.01 * without.blocks_per_query(false, &situation)
        );
        let hit = with.blocks_per_query(true, &situation);
        assert!(hit > 1.0 && hit < 1.03, "{hit}");
        // They need ten bits of memory per record.
        let more = with.memory_bytes(&situation) - without.memory_bytes(&situation);
        assert!((more / (situation.records.count * 10.0 / 8.0) - 1.0).abs() < 1e-9);
    }

    #[test]
    fn a_cache_holds_most_of_the_small_runs_and_at_last_everything() {
        let bare = situation();
        let tree = tree(Layout::Leveled, 8.0);
        let reads = |extra: f64| {
            let situation = Situation { cache_bytes: tree.memory_bytes(&bare) + extra, ..bare };
            tree.demand(Operation::PointMiss, &situation).requests(Access::Read)
        };
        let levels = tree.level_bytes(&bare);
        let whole: f64 = levels.iter().sum();
        let count = levels.len() as f64;
        assert_eq!(reads(0.0), count);
        // Each of the four levels passes as many blocks through the cache, which is as large as the first
        // one: a block of it stays for the time of a quarter of its uses, and 1 - 1/e^(1/4) is 0.22.
        let spared = count - reads(levels[0]);
        assert!((0.22..0.3).contains(&spared), "{spared}");
        assert!(count - reads(levels[0] + levels[1]) > 1.0);
        assert_eq!(reads(1.001 * whole), 0.0);
    }

    #[test]
    fn changes_wait_for_the_log_alone() {
        let durability = Durability::Synced { changes_per_write: 1.0 };
        let situation = Situation { durability, ..situation() };
        let demand = tree(Layout::Leveled, 8.0).demand(Operation::Delete, &situation);
        let awaited: Vec<_> = demand.transfers.iter().filter(|transfer| transfer.awaited).collect();
        assert_eq!(awaited.len(), 1);
        assert_eq!(awaited[0].requests, 1.0);
        assert_eq!(demand.changed_bytes, 16.0);
    }

    #[test]
    fn longer_ranges_read_more_and_in_larger_requests() {
        let situation = situation();
        let tree = tree(Layout::Leveled, 8.0);
        let demand = |bytes| tree.demand(Operation::Range { bytes }, &situation);
        let (short, long) = (demand(1e4), demand(1e7));
        assert!(long.read_amplification().unwrap() < short.read_amplification().unwrap());
        assert!((long.read_amplification().unwrap() - 1.0).abs() < 0.01);
        let each = |demand: &Demand| demand.bytes(Access::Read) / demand.requests(Access::Read);
        assert!(each(&long) > 10.0 * each(&short));
        assert!(short.requests(Access::Read) >= tree.level_bytes(&situation).len() as f64);
    }
}
