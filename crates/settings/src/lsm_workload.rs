//! The design of an LSM-tree for a workload: that which a store makes and which advice predicts.
//!
//! Each candidate is priced as `flashgrain advise` prices it, by the requests and bytes that an operation
//! takes of it ([`LsmTree`]), but with less that is known of the drive: in page times. A page time is that of
//! a read of 4 KiB of a drive that is kept busy. A read takes a setup, which is worth the bytes of the
//! half-bandwidth size, and its bytes (t + αB′ of Eq. 10 of "Multi-Queue SSD I/O Modeling"). Merges read
//! partitions, and write units that take no setups. The price is the mean over sizes around the one that is
//! declared, as a tree grows and shrinks, and levels that are just full are luck. Designs that take far more
//! space than their records are no candidates, however little they write.

use flashgrain_cost::Access;
use flashgrain_cost::dictionary::{Design, Operation, Records, Situation};
use flashgrain_cost::lsm::LsmTree;

use crate::LsmLayout;
use crate::lsm_usual::{self, FILTER, LEVELS_MAX};

/// The operations on a tree, as shares, and the size that it reaches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LsmWorkload {
    /// Of a thousand.
    puts: u32,
    look_ups: u32,
    scans: u32,
    data_bytes: u64,
    record_bytes: u32,
}

/// The drive and the memtables of a tree's store.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LsmSurroundings {
    /// Bytes that a busy drive transfers in the time of a setup of its reads: s/β; 0 if nothing is known of
    /// it, and a read takes the time of its bytes.
    pub half_bandwidth_bytes: f64,
    /// Bytes of a memtable, and of a run of level 0.
    pub memtable_bytes: u64,
}

/// The layout, F and C of a tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LsmDesign {
    /// How runs are arranged in levels.
    pub layout: LsmLayout,
    /// F: how many times as large each level is as the one above it.
    pub fanout: u32,
    /// C: runs of level 0 that are merged at once.
    pub level_zero_runs: u32,
}

impl LsmDesign {
    /// Where no workload is declared. RocksDB takes a fanout of 10: more to rewrite for each byte that comes
    /// down a level, and one level less only in stores of a thousand memtables and more.
    pub const USUAL: Self = Self { layout: LsmLayout::Leveled, fanout: 8, level_zero_runs: 4 };
}

const FANOUTS: [u32; 5] = [2, 4, 8, 16, 32];
const LEVEL_ZERO_RUNS: [u32; 4] = [1, 2, 4, 8];

const PAGE_BYTES: f64 = 4096.0;

/// The part of a page time that asking a run takes where nothing is read.
const ASKING: f64 = 0.02;

/// Bytes that a candidate takes for each byte of its records, while all of these are replaced again and
/// again.
const SPACE_MAX: f64 = 2.5;

/// Bytes of a read of a merge.
const PARTITION_BYTES: f64 = lsm_usual::PARTITION_BYTES as f64;

/// Page times within this factor of each other are alike.
const TIE: f64 = 1.02;

/// Larger weights of an operation count as this one.
const WEIGHT_MAX: f64 = 1e100;

/// Bytes of a tree, and of a record, unless they are given.
const DATA_BYTES: u64 = 64 << 30;
const RECORD_BYTES: u32 = 128;
/// Bytes of a key of usual length.
const KEY_BYTES: f64 = 16.0;

impl LsmDesign {
    /// The tree as its price has it, with memtables and tables of `memtable_bytes`.
    pub fn tree(self, memtable_bytes: u64) -> LsmTree {
        let runs = f64::from(self.level_zero_runs);
        LsmTree {
            fanout: self.fanout.into(),
            file_bytes: memtable_bytes as f64,
            level_one_files: runs,
            level_zero_files: runs / 2.0,
            level_zero_batch_files: runs,
            levels_max: LEVELS_MAX,
            filter_bits_per_key: f64::from(FILTER.0) / 10.0,
            ..LsmTree::new(self.layout)
        }
    }
}

impl LsmWorkload {
    /// Sizes of the tree that a design is priced at, over the one that is declared: a tree grows to it, and
    /// may outgrow it.
    pub const SIZES: [f64; 9] = [0.125, 0.177, 0.25, 0.354, 0.5, 0.707, 1.0, 1.414, 2.0];
    /// Their geometric mean.
    pub const SIZE_MEAN: f64 = 0.5;

    /// Operations in these proportions; each is at least 0 and one above it: others are taken for 0.
    pub fn new(puts: f64, look_ups: f64, scans: f64) -> Self {
        // So that the sum of all is finite, too.
        let known = |share: f64| if share.is_finite() && share > 0.0 { share.min(WEIGHT_MAX) } else { 0.0 };
        let all = known(puts) + known(look_ups) + known(scans);
        let of_a_thousand = |share: f64| (known(share) / all.max(f64::MIN_POSITIVE) * 1000.0).round() as u32;
        Self {
            puts: of_a_thousand(puts),
            look_ups: of_a_thousand(look_ups),
            scans: of_a_thousand(scans),
            data_bytes: DATA_BYTES,
            record_bytes: RECORD_BYTES,
        }
    }

    /// Bytes that the tree will have; 64 GiB unless given.
    pub fn data_bytes(mut self, bytes: u64) -> Self {
        self.data_bytes = bytes.max(1);
        self
    }

    /// Bytes of a key and its value; 128 unless given.
    pub fn record_bytes(mut self, bytes: u32) -> Self {
        self.record_bytes = bytes.max(1);
        self
    }

    /// As numbers for the catalog.
    pub fn numbers(&self) -> [u64; 5] {
        let Self { puts, look_ups, scans, data_bytes, record_bytes } = *self;
        [puts.into(), look_ups.into(), scans.into(), data_bytes, record_bytes.into()]
    }

    /// From the catalog; `None` for numbers that were never written.
    pub fn of_numbers([puts, look_ups, scans, data_bytes, record_bytes]: [u64; 5]) -> Option<Self> {
        let share = |share: u64| u32::try_from(share).ok().filter(|share| *share <= 1000);
        let record_bytes = u32::try_from(record_bytes).ok()?;
        Some(Self {
            puts: share(puts)?,
            look_ups: share(look_ups)?,
            scans: share(scans)?,
            data_bytes,
            record_bytes,
        })
    }

    /// Writes, look-ups and scans of a hundred operations.
    pub fn percentages(&self) -> [f64; 3] {
        [self.puts, self.look_ups, self.scans].map(|share| f64::from(share) / 10.0)
    }

    /// Bytes that the tree will have.
    pub fn data_size(&self) -> u64 {
        self.data_bytes
    }

    /// Bytes of a key and its value.
    pub fn record_size(&self) -> u32 {
        self.record_bytes
    }

    /// In words.
    pub fn text(&self) -> String {
        let [puts, look_ups, scans] = self.percentages();
        format!("{puts} % writes, {look_ups} % look-ups, {scans} % scans")
    }

    /// The situation of an operation on a tree that is `size` times as large as declared, without memory for
    /// its blocks.
    fn situation(&self, size: f64) -> Situation {
        let record_bytes = f64::from(self.record_bytes);
        let key_bytes = KEY_BYTES.min(record_bytes);
        let count = (size * self.data_bytes as f64 / record_bytes).max(1.0);
        Situation::new(Records { count, key_bytes, value_bytes: record_bytes - key_bytes }, 0.0, 1.0)
    }

    /// The mean of a number over the sizes that a design is priced at.
    fn mean(&self, number: impl Fn(&Situation) -> f64) -> f64 {
        Self::SIZES.iter().map(|size| number(&self.situation(*size))).sum::<f64>() / Self::SIZES.len() as f64
    }

    /// Page times of an operation.
    pub fn page_times(&self, design: LsmDesign, room: &LsmSurroundings) -> f64 {
        let tree = design.tree(room.memtable_bytes);
        let half = room.half_bandwidth_bytes;
        let [put, look_up, scan] =
            [self.puts, self.look_ups, self.scans].map(|share| f64::from(share) / 1000.0);
        self.mean(|situation| {
            let pages = |operation: Operation| {
                let demand = tree.demand(operation, situation);
                let (read, written) = (demand.bytes(Access::Read), demand.bytes(Access::Write));
                let setups = match operation.is_change() {
                    true => read / PARTITION_BYTES,
                    false => demand.requests(Access::Read),
                };
                (setups * half + read + written) / (half + PAGE_BYTES)
            };
            let runs: f64 = tree.runs(situation).iter().map(|runs| runs.count).sum();
            let asking = ASKING * runs;
            put * pages(Operation::Update)
                + look_up * (pages(Operation::PointHit) + asking)
                + scan * (pages(Operation::Range { bytes: 0.0 }) + asking)
        })
    }

    /// Bytes that a tree takes for each byte of records while all of these are replaced again and again.
    fn space(&self, design: LsmDesign, memtable_bytes: u64) -> f64 {
        self.mean(|situation| design.tree(memtable_bytes).space_amplification(situation))
    }

    /// The candidate of the least page times, and these; the usual one if it takes next to no more.
    pub fn best(&self, room: &LsmSurroundings) -> (LsmDesign, f64) {
        self.best_of(room, |_| true)
    }

    /// The same of the wanted candidates, and the usual one.
    pub fn best_of(
        &self,
        room: &LsmSurroundings,
        is_wanted: impl Fn(&LsmDesign) -> bool,
    ) -> (LsmDesign, f64) {
        let of_layout = |layout: LsmLayout| {
            let fanouts: &[u32] = if layout == LsmLayout::SingleLevel { &FANOUTS[2..3] } else { &FANOUTS };
            fanouts.iter().map(move |fanout| (layout, *fanout))
        };
        let designs = LsmLayout::ALL.into_iter().flat_map(of_layout).flat_map(|(layout, fanout)| {
            LEVEL_ZERO_RUNS.map(|level_zero_runs| LsmDesign { layout, fanout, level_zero_runs })
        });
        let small = designs
            .filter(|design| is_wanted(design) && self.space(*design, room.memtable_bytes) <= SPACE_MAX);
        let priced = small.map(|design| (design, self.page_times(design, room)));
        let usual = (LsmDesign::USUAL, self.page_times(LsmDesign::USUAL, room));
        let best = priced.fold(usual, |best, next| if next.1 < best.1 { next } else { best });
        if usual.1 <= TIE * best.1 { usual } else { best }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn room(half_bandwidth_bytes: f64) -> LsmSurroundings {
        LsmSurroundings { half_bandwidth_bytes, memtable_bytes: 8 << 20 }
    }

    const UNKNOWN: f64 = 0.0;

    #[test]
    fn the_largest_weights_are_shares_too() {
        assert_eq!(LsmWorkload::new(1e308, 1e308, 1.0), LsmWorkload::new(1.0, 1.0, 0.0));
    }

    fn best(puts: f64, look_ups: f64, scans: f64) -> LsmDesign {
        LsmWorkload::new(puts, look_ups, scans).best(&room(UNKNOWN)).0
    }

    #[test]
    fn writes_collect_runs_and_reads_have_few() {
        assert!(matches!(best(1.0, 0.0, 0.0).layout, LsmLayout::Tiered | LsmLayout::LazyLeveled));
        assert!(matches!(best(0.9, 0.1, 0.0).layout, LsmLayout::Tiered | LsmLayout::LazyLeveled));
        assert_eq!(best(0.0, 0.0, 1.0).layout, LsmLayout::SingleLevel, "nothing is ever rewritten");
        assert_eq!(best(0.3, 0.0, 0.7).layout, LsmLayout::Leveled);
        let runs = |puts: f64| {
            let LsmDesign { level_zero_runs, .. } = best(puts, 1.0 - puts, 0.0);
            level_zero_runs
        };
        assert!(runs(0.05) <= runs(0.95));
    }

    /// A design that is priced at one size alone may fit this one by luck.
    #[test]
    fn what_is_chosen_for_a_size_is_near_the_best_of_others() {
        for [puts, look_ups, scans] in [[1.0, 0.0, 0.0], [0.5, 0.5, 0.0], [0.3, 0.0, 0.7]] {
            let of = |gigabytes: u64| LsmWorkload::new(puts, look_ups, scans).data_bytes(gigabytes << 30);
            let (chosen, _) = of(64).best(&room(UNKNOWN));
            for gigabytes in [45, 55, 64, 80, 90] {
                let (times, best) =
                    (of(gigabytes).page_times(chosen, &room(UNKNOWN)), of(gigabytes).best(&room(UNKNOWN)));
                assert!(times < 1.15 * best.1, "{chosen:?} at {gigabytes} GiB: {times}, {best:?}");
            }
        }
    }

    /// The fanout at which the sum of equations 9 and 10 is least, of levels whose number is no whole one:
    /// (m·(a + bF) + r) / ln F has its minimum where F·(ln F - 1) = (a + r/m) / b. A level costs the bytes m
    /// for each table that a merge of one touches there, a + bF of them, and r for its run.
    fn least(scans: f64, half: f64) -> f64 {
        let (intercept, slope) = (1.39, 0.391);
        let moved = (1.0 - scans) * f64::from(RECORD_BYTES) * (2.0 + half / PARTITION_BYTES);
        let read = scans * (half + PAGE_BYTES) * (1.0 + ASKING);
        let right = (intercept + read / moved) / slope;
        (1..10_000).map(f64::from).find(|fanout| fanout * (fanout.ln() - 1.0) >= right).unwrap()
    }

    #[test]
    fn the_drives_setups_decide_the_fanout_as_in_equations_9_and_10() {
        let is_leveled = |design: &LsmDesign| LsmDesign { fanout: 8, ..*design } == LsmDesign::USUAL;
        let fanouts = [UNKNOWN, 4e3, 64e3, 1e6].map(|half| {
            let best = LsmWorkload::new(0.8, 0.0, 0.2).best_of(&room(half), is_leveled).0.fanout;
            let nearest = least(0.2, half).log2().round().exp2().min(32.0);
            assert!((f64::from(best) / nearest - 1.0).abs() < 0.01, "{half}: {best}, {nearest}");
            best
        });
        assert_eq!(fanouts, [8, 16, 32, 32]);
    }

    #[test]
    fn drives_with_long_setups_have_fewer_runs_to_read() {
        let mixed = LsmWorkload::new(0.95, 0.0, 0.05);
        let layout = |half: f64| mixed.best(&room(half)).0.layout;
        assert_eq!([UNKNOWN, 64e3].map(layout), [LsmLayout::LazyLeveled, LsmLayout::Leveled]);
        let scans = LsmWorkload::new(0.2, 0.0, 0.8);
        assert_eq!(scans.best(&room(4e3)).0.layout, LsmLayout::Leveled);
        assert_eq!(scans.best(&room(256e3)).0.layout, LsmLayout::SingleLevel);
    }

    #[test]
    fn what_no_share_can_be_is_none() {
        let nonsense = LsmWorkload::new(f64::NAN, -1.0, f64::INFINITY);
        assert_eq!(nonsense.text(), "0 % writes, 0 % look-ups, 0 % scans");
        assert_eq!(nonsense.best(&room(UNKNOWN)).0.layout, LsmLayout::Leveled);
        assert_eq!(LsmWorkload::new(3.0, 1.0, 0.0).text(), "75 % writes, 25 % look-ups, 0 % scans");
    }

    #[test]
    fn it_comes_back() {
        let workload = LsmWorkload::new(0.5, 0.4, 0.1).data_bytes(7).record_bytes(9);
        assert_eq!(LsmWorkload::of_numbers(workload.numbers()), Some(workload));
        assert_eq!(LsmWorkload::of_numbers([1001, 0, 0, 1, 1]), None);
    }
}
