//! The design of an LSM-tree for a workload: that which a store makes and which advice predicts.
//!
//! Each candidate is priced in page times: what a page of 4 KiB takes of a drive that is kept busy, be it
//! read or written. This is the arithmetic of the LSM literature (Dayan and Idreos, "Dostoevsky", 2018, Table
//! 1; the MQSSD paper, §5): a version is written about F / 2 times for each leveled level and once for each
//! that collects runs, merges read what they write, a look-up reads a block of the run that has the key and
//! of one in so many others that the filter lets pass, and a scan reads a block of each run. What a drive
//! makes of large and small requests is priced by `flashgrain advise`, which knows its profile. Designs that
//! take far more space than their records are no candidates, however little they write.

use crate::LsmLayout;

/// What is done to a tree, in shares of its operations, and how large it becomes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LsmWorkload {
    /// Of a thousand.
    puts: u32,
    look_ups: u32,
    scans: u32,
    data_bytes: u64,
    record_bytes: u32,
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

/// What one in so many runs that do not have the key has to be read for.
const FILTER_PASSES: f64 = 1.0 / 512.0;

/// Bytes of a tree, and of a record, unless they are given.
const DATA_BYTES: u64 = 64 << 30;
const RECORD_BYTES: u32 = 128;

impl LsmDesign {
    /// Bytes that are taken, on average, for each byte of records while all of these are replaced again and
    /// again. A level that collects runs has from one to F of them, and in the last one each has all keys.
    fn space(self) -> f64 {
        let fanout = f64::from(self.fanout);
        // Of as many bytes in each level as in F of the one above it.
        let with_levels_above = fanout / (fanout - 1.0);
        match self.layout {
            LsmLayout::Leveled => with_levels_above,
            LsmLayout::Tiered => (fanout + 1.0) / 2.0,
            LsmLayout::LazyLeveled => 1.0 + with_levels_above / 2.0,
            LsmLayout::SingleLevel => 1.0,
        }
    }
}

impl LsmWorkload {
    /// Operations in these proportions, of which each is at least 0 and one above it: others are taken for 0.
    pub fn new(puts: f64, look_ups: f64, scans: f64) -> Self {
        let known = |share: f64| if share.is_finite() && share > 0.0 { share } else { 0.0 };
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

    /// From the catalog; `None` for what was never written.
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

    /// Page times of an operation, with level 0 of tables of so many bytes.
    pub fn page_times(&self, design: LsmDesign, table_bytes: u64) -> f64 {
        let LsmDesign { layout, fanout, level_zero_runs } = design;
        let (fanout, runs) = (f64::from(fanout), f64::from(level_zero_runs));
        let batch_bytes = table_bytes as f64 * runs;
        let data = (self.data_bytes as f64 / batch_bytes).max(1.0);
        let levels = (data.ln() / fanout.ln()).ceil().max(1.0);
        // Runs below level 0 that a look-up asks, and how often a version is written there.
        let (below, written) = match layout {
            LsmLayout::Leveled => (levels, levels * fanout / 2.0),
            LsmLayout::Tiered => (levels * fanout / 2.0, levels),
            LsmLayout::LazyLeveled => ((levels - 1.0) * fanout / 2.0 + 1.0, levels - 1.0 + fanout / 2.0),
            LsmLayout::SingleLevel => (1.0, data / 2.0),
        };
        let runs_asked = below + runs / 2.0;
        let put = 2.0 * (1.0 + written) * f64::from(self.record_bytes) / PAGE_BYTES;
        let look_up = 1.0 + (runs_asked - 1.0).max(0.0) * FILTER_PASSES + runs_asked * ASKING;
        let scan = runs_asked * (1.0 + ASKING);
        let shares = [(self.puts, put), (self.look_ups, look_up), (self.scans, scan)];
        shares.iter().map(|(share, times)| f64::from(*share) / 1000.0 * times).sum()
    }

    /// The candidate of the least page times, and these.
    pub fn best(&self, table_bytes: u64) -> (LsmDesign, f64) {
        let of_layout = |layout: LsmLayout| {
            let fanouts: &[u32] = if layout == LsmLayout::SingleLevel { &FANOUTS[2..3] } else { &FANOUTS };
            fanouts.iter().map(move |fanout| (layout, *fanout))
        };
        let designs = LsmLayout::ALL.into_iter().flat_map(of_layout).flat_map(|(layout, fanout)| {
            LEVEL_ZERO_RUNS.map(|level_zero_runs| LsmDesign { layout, fanout, level_zero_runs })
        });
        let small = designs.filter(|design| design.space() <= SPACE_MAX);
        let priced = small.map(|design| (design, self.page_times(design, table_bytes)));
        let usual = (LsmDesign::USUAL, self.page_times(LsmDesign::USUAL, table_bytes));
        priced.fold(usual, |best, next| if next.1 < best.1 { next } else { best })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE_BYTES: u64 = 8 << 20;

    fn best(puts: f64, look_ups: f64, scans: f64) -> LsmDesign {
        LsmWorkload::new(puts, look_ups, scans).best(TABLE_BYTES).0
    }

    #[test]
    fn writes_collect_runs_and_reads_have_few() {
        assert_eq!((best(1.0, 0.0, 0.0).layout, best(1.0, 0.0, 0.0).fanout), (LsmLayout::Tiered, 4));
        assert!(matches!(best(0.9, 0.1, 0.0).layout, LsmLayout::Tiered | LsmLayout::LazyLeveled));
        assert_eq!(best(0.0, 0.0, 1.0).layout, LsmLayout::SingleLevel, "nothing is ever rewritten");
        assert_eq!(best(0.3, 0.0, 0.7).layout, LsmLayout::Leveled);
        let runs = |puts: f64| {
            let LsmDesign { level_zero_runs, .. } = best(puts, 1.0 - puts, 0.0);
            level_zero_runs
        };
        assert!(runs(0.05) <= runs(0.95));
    }

    #[test]
    fn what_no_share_can_be_is_none() {
        let nonsense = LsmWorkload::new(f64::NAN, -1.0, f64::INFINITY);
        assert_eq!(nonsense.text(), "0 % writes, 0 % look-ups, 0 % scans");
        assert_eq!(nonsense.best(TABLE_BYTES).0.layout, LsmLayout::Leveled);
        assert_eq!(LsmWorkload::new(3.0, 1.0, 0.0).text(), "75 % writes, 25 % look-ups, 0 % scans");
    }

    #[test]
    fn it_comes_back() {
        let workload = LsmWorkload::new(0.5, 0.4, 0.1).data_bytes(7).record_bytes(9);
        assert_eq!(LsmWorkload::of_numbers(workload.numbers()), Some(workload));
        assert_eq!(LsmWorkload::of_numbers([1001, 0, 0, 1, 1]), None);
    }
}
