//! The numbers of a policy, as the catalog keeps them.

pub use flashgrain_settings::LsmLayout;
use flashgrain_settings::lsm_usual::LEVELS_MAX;

use super::Policy;
use super::lazy::LazyLeveled;
use super::leveled::Leveled;
use super::single::SingleLevel;
use super::tiered::Tiered;
use crate::lsm::levels::{Levels, Run, bytes_of};
use crate::{Error, varint};

/// See the module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::lsm) struct PolicyOptions {
    pub layout: LsmLayout,
    /// F. A single level has none.
    pub fanout: u32,
    /// Runs of level 0 that are merged at once.
    pub level_zero_runs: u32,
    /// T: bytes of a table.
    pub table_bytes: u64,
    /// Bytes of a memtable; in the catalog 0 says that the cache of each opening decides.
    pub memtable_bytes: u64,
    /// Numbers of runs of level 0 that slow writers down, and that stop them.
    pub slowdown_runs: u32,
    pub stop_runs: u32,
    /// Whether level 0 has few large runs or many small ones, as reads or writes prevail.
    pub level_zero_by_reads: bool,
}

/// The version, which [`PolicyOptions::encode`] writes first.
const VERSION: u64 = 2;

/// Number of small runs of level 0 that are merged at once in place of one large one (24 and 6 in the paper
/// on RocksDB and 3D XPoint, §VI.B).
pub(in crate::lsm) const SMALL_RUNS: u32 = 4;

/// Tables of the run below that a new one overlaps in a shortage of room.
const OVERLAP_IN_SHORTAGE: u32 = 4;

/// A run of less than this part of a memtable's bytes is a small one: that of a memtable of a quarter.
const SMALL_RUN_FRACTION: f64 = 0.4;

pub(super) const FANOUT_MIN: u32 = 2;
pub(super) const FANOUT_MAX: u32 = 1000;
pub(super) const LEVEL_ZERO_RUNS_MAX: u32 = 1000;
const TABLE_BYTES_MAX: u64 = 1 << 40;

const STOP_RUNS_MAX: u32 = 100 * LEVEL_ZERO_RUNS_MAX;

impl PolicyOptions {
    /// Such options, with the rest as usual.
    #[cfg(test)]
    pub fn of(layout: LsmLayout, fanout: u32, level_zero_runs: u32, table_bytes: u64) -> Self {
        let (slowdown_runs, stop_runs) = (2 * level_zero_runs, 5 * level_zero_runs);
        let level_zero_by_reads = false;
        let memtable_bytes = table_bytes;
        Self {
            layout,
            fanout,
            level_zero_runs,
            table_bytes,
            memtable_bytes,
            slowdown_runs,
            stop_runs,
            level_zero_by_reads,
        }
    }

    /// # Errors
    /// [`Error::Options`] names the option that is wrong.
    pub fn validate(&self) -> Result<(), Error> {
        let Self { layout, fanout, level_zero_runs, table_bytes, slowdown_runs, stop_runs, .. } = *self;
        let problem = if layout != LsmLayout::SingleLevel && !(FANOUT_MIN..=FANOUT_MAX).contains(&fanout) {
            format!("a fanout of {fanout}: it must be from {FANOUT_MIN} to {FANOUT_MAX}")
        } else if !(1..=LEVEL_ZERO_RUNS_MAX).contains(&level_zero_runs) {
            format!(
                "merging level 0 at {level_zero_runs} runs: it must be from 1 to {LEVEL_ZERO_RUNS_MAX} runs"
            )
        } else if !(1..=TABLE_BYTES_MAX).contains(&table_bytes) {
            format!("tables of {table_bytes} bytes: they must have from 1 to {TABLE_BYTES_MAX} bytes")
        } else if slowdown_runs < level_zero_runs {
            format!(
                "slowing writers from {slowdown_runs} runs of level 0 on: it must be from the {level_zero_runs} on at which they are merged"
            )
        } else if stop_runs <= slowdown_runs || stop_runs > STOP_RUNS_MAX {
            format!(
                "stopping writers at {stop_runs} runs of level 0: it must be from {} to {STOP_RUNS_MAX}, above the {slowdown_runs} from which on they are slowed",
                slowdown_runs + 1
            )
        } else {
            return Ok(());
        };
        Err(Error::Options(problem))
    }

    /// The options as at most 40 bytes.
    pub fn encode(&self) -> Vec<u8> {
        let layout = LsmLayout::ALL.iter().position(|other| *other == self.layout).unwrap_or_default();
        let mut bytes = Vec::new();
        for number in [
            VERSION,
            layout as u64,
            self.fanout.into(),
            self.level_zero_runs.into(),
            self.table_bytes,
            self.memtable_bytes,
            self.slowdown_runs.into(),
            self.stop_runs.into(),
            self.level_zero_by_reads.into(),
        ] {
            varint::put(number, &mut bytes);
        }
        bytes
    }

    /// Decodes options from the front of these bytes; `None` if they are not the encoding of valid options.
    pub fn take(rest: &mut &[u8]) -> Option<Self> {
        let mut number = || varint::take(rest);
        let (version, layout) = (number()?, number()?);
        let layout = *LsmLayout::ALL.get(usize::try_from(layout).ok()?)?;
        let small = |number: u64| u32::try_from(number).ok();
        let (fanout, level_zero_runs) = (small(number()?)?, small(number()?)?);
        let (table_bytes, memtable_bytes) = (number()?, number()?);
        let (slowdown_runs, stop_runs) = (small(number()?)?, small(number()?)?);
        let level_zero_by_reads = match number()? {
            0 => false,
            1 => true,
            _ => return None,
        };
        let options = Self {
            layout,
            fanout,
            level_zero_runs,
            table_bytes,
            memtable_bytes,
            slowdown_runs,
            stop_runs,
            level_zero_by_reads,
        };
        (version == VERSION && options.validate().is_ok()).then_some(options)
    }

    /// The policy that picks the jobs.
    pub fn policy(self) -> Box<dyn Policy> {
        match self.layout {
            LsmLayout::Leveled => Box::new(Leveled(self)),
            LsmLayout::Tiered => Box::new(Tiered(self)),
            LsmLayout::LazyLeveled => Box::new(LazyLeveled(self)),
            LsmLayout::SingleLevel => Box::new(SingleLevel(self)),
        }
    }

    /// The run below a level into which its tables are merged one by one.
    pub(in crate::lsm) fn run_below(&self, levels: &Levels, level: usize) -> Run {
        match (self.layout, levels.level(level + 1)) {
            (LsmLayout::Leveled, [run]) if level > 0 => run.clone(),
            _ => Run::new(),
        }
    }

    /// Bytes of the run below that a new table overlaps at most: somewhat more than most do, and fewer in a
    /// shortage, where a merge has to do with little room.
    pub(in crate::lsm) fn overlap_bytes_max(&self, lacks_room: bool) -> u64 {
        let tables = if lacks_room { OVERLAP_IN_SHORTAGE.min(self.fanout) } else { self.fanout + 2 };
        self.table_bytes.saturating_mul(tables.into())
    }

    /// Bytes that the runs of level 0 which are merged at once have at most: C memtables.
    pub(in crate::lsm) fn batch_bytes(&self) -> f64 {
        self.memtable_bytes as f64 * f64::from(self.level_zero_runs)
    }

    /// Bytes that make level `level` too large, where each has F times as many as the one above it and level
    /// 1 has as many as a batch of level 0. For level 0 it is the least that level 1 has.
    pub(super) fn capacity(&self, level: usize) -> f64 {
        self.batch_bytes() * f64::from(self.fanout).powi(level as i32 - 1)
    }

    /// The first level, from this one on, that is not too large with `bytes` more.
    pub(super) fn level_with_room(&self, levels: &Levels, from: usize, bytes: u64) -> usize {
        let has_room = |level: &usize| (levels.bytes(*level) + bytes) as f64 <= self.capacity(*level);
        (from..LEVELS_MAX).find(has_room).unwrap_or(LEVELS_MAX)
    }

    /// How full a level is that collects runs: from 1 on they are merged.
    pub(super) fn fill(&self, levels: &Levels, level: usize) -> f64 {
        match level {
            0 => self.level_zero_count(levels) / f64::from(self.level_zero_runs),
            _ => levels.level(level).len() as f64 / f64::from(self.fanout),
        }
    }

    /// Number of runs of level 0; a small one counts as a part of one.
    fn level_zero_count(&self, levels: &Levels) -> f64 {
        let small_bytes = SMALL_RUN_FRACTION * self.memtable_bytes as f64;
        let weight = |run: &Run| match self.level_zero_by_reads && (bytes_of(run) as f64) < small_bytes {
            true => 1.0 / f64::from(SMALL_RUNS),
            false => 1.0,
        };
        levels.level(0).iter().map(weight).sum()
    }

    /// How much writers are slowed down for the runs of level 0: from 0 on, and at 1 they are stopped.
    pub(super) fn graded(&self, levels: &Levels) -> f64 {
        let (from, to) = (f64::from(self.slowdown_runs), f64::from(self.stop_runs));
        (self.level_zero_count(levels) - from) / (to - from)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const GOOD: PolicyOptions = PolicyOptions {
        layout: LsmLayout::Leveled,
        fanout: 10,
        level_zero_runs: 4,
        table_bytes: 64 << 20,
        memtable_bytes: 32 << 20,
        slowdown_runs: 8,
        stop_runs: 20,
        level_zero_by_reads: false,
    };

    fn any_options() -> impl Strategy<Value = PolicyOptions> {
        let layout = proptest::sample::select(&LsmLayout::ALL);
        let numbers = (FANOUT_MIN..=FANOUT_MAX, 1..=LEVEL_ZERO_RUNS_MAX, 1..=TABLE_BYTES_MAX);
        let throttling = (0_u32..9, 1_u32..9, any::<bool>());
        (layout, numbers, throttling).prop_map(
            |(layout, (fanout, level_zero_runs, table_bytes), (more, still_more, level_zero_by_reads))| {
                PolicyOptions {
                    layout,
                    fanout,
                    level_zero_runs,
                    table_bytes,
                    memtable_bytes: table_bytes / 3,
                    slowdown_runs: level_zero_runs + more,
                    stop_runs: level_zero_runs + more + still_more,
                    level_zero_by_reads,
                }
            },
        )
    }

    #[test]
    fn nonsense_is_refused_with_a_reason() {
        let problem = |options: PolicyOptions| match options.validate() {
            Err(Error::Options(problem)) => problem,
            other => panic!("{other:?}"),
        };
        assert!(GOOD.validate().is_ok());
        let fanout = "it must be from 2 to 1000";
        assert!(problem(PolicyOptions { fanout: 1, ..GOOD }).contains(fanout));
        assert!(problem(PolicyOptions { fanout: 1001, layout: LsmLayout::Tiered, ..GOOD }).contains(fanout));
        assert!(PolicyOptions { fanout: 0, layout: LsmLayout::SingleLevel, ..GOOD }.validate().is_ok());
        assert!(problem(PolicyOptions { level_zero_runs: 0, ..GOOD }).contains("level 0 at 0 runs"));
        assert!(problem(PolicyOptions { table_bytes: 0, ..GOOD }).contains("tables of 0 bytes"));
        assert!(problem(PolicyOptions { table_bytes: u64::MAX, ..GOOD }).contains("bytes"));
        assert!(problem(PolicyOptions { slowdown_runs: 3, ..GOOD }).contains("from the 4 on"));
        assert!(problem(PolicyOptions { stop_runs: 8, ..GOOD }).contains("from 9 to"));
    }

    #[test]
    fn what_no_valid_options_gave_is_refused() {
        let bytes = GOOD.encode();
        for length in 0..bytes.len() {
            assert_eq!(PolicyOptions::take(&mut &bytes[..length]), None);
        }
        let with = |index: usize, byte| {
            let mut bytes = bytes.clone();
            bytes[index] = byte;
            PolicyOptions::take(&mut bytes.as_slice())
        };
        assert_eq!(with(0, 3), None, "another version");
        assert_eq!(with(1, 4), None, "another layout");
        assert_eq!(with(2, 1), None, "a fanout of 1");
        assert_eq!(with(3, 0), None, "no runs in level 0");
        assert_eq!(
            PolicyOptions::take(&mut [bytes.as_slice(), &[0]].concat().as_slice()),
            Some(GOOD),
            "more bytes"
        );
        assert_eq!(with(2, 11), Some(PolicyOptions { fanout: 11, ..GOOD }));
    }

    proptest! {
        #[test]
        fn options_come_back(options in any_options()) {
            let bytes = options.encode();
            prop_assert!(bytes.len() <= 40);
            prop_assert_eq!(PolicyOptions::take(&mut bytes.as_slice()), Some(options));
        }

        #[test]
        fn nonsense_is_no_panic(bytes: Vec<u8>) {
            if let Some(options) = PolicyOptions::take(&mut bytes.as_slice()) {
                prop_assert!(options.validate().is_ok());
            }
        }
    }
}
