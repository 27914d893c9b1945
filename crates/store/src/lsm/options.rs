//! The numbers of an LSM-tree.

use super::policy::{LsmLayout, Policy, PolicyOptions};
use super::table::TableOptions;
use crate::{Error, varint};

/// Memtables take this part of the memory; tables are as large, unless their size is given.
const MEMTABLE_DIVISOR: u64 = 8;
const MEMTABLE_BYTES_MAX: u64 = 64 << 20;

/// The fanout where the workload is not known. RocksDB takes 10: more to rewrite for each byte that comes
/// down a level, and one level less only in stores of a thousand memtables and more.
const FANOUT: u32 = 8;
const LEVEL_ZERO_RUNS: u32 = 4;
const FILTER_TENTHS: u32 = 100;
const FILTER_TENTHS_MAX: u32 = 300;

/// How an LSM-tree is kept, as far as one wants to say. Fixed when the tree is created.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LsmOptions {
    layout: Option<LsmLayout>,
    fanout: Option<u32>,
    level_zero_runs: Option<u32>,
    table_bytes: Option<u64>,
    filter_tenths: Option<u32>,
}

impl LsmOptions {
    /// Everything as the store decides.
    pub fn new() -> Self {
        Self::default()
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

    /// Runs of level 0 that are merged at once: few are good for look-ups and scans, many for writes.
    pub fn level_zero_runs(mut self, runs: u32) -> Self {
        self.level_zero_runs = Some(runs);
        self
    }

    /// T: bytes of a table, which become as many as whole segments have.
    pub fn table_bytes(mut self, bytes: u64) -> Self {
        self.table_bytes = Some(bytes);
        self
    }

    /// Bits of the filters for each key, up to 30; with 0 there are no filters.
    pub fn filter_bits_per_key(mut self, bits: f64) -> Self {
        // What is no number of bits is refused when the tree is created.
        let is_number = bits.is_finite() && bits >= 0.0;
        self.filter_tenths = Some(if is_number { (bits * 10.0).round() as u32 } else { u32::MAX });
        self
    }
}

/// The numbers of a tree, as the catalog has them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Decided {
    policy: PolicyOptions,
    filter_tenths: u32,
}

impl Decided {
    /// What is given, and the rest for a cache and segments of so many bytes.
    ///
    /// # Errors
    /// [`Error::Options`] says what is wrong with what is given.
    pub fn of(given: LsmOptions, cache_bytes: u64, segment_bytes: u64) -> Result<Self, Error> {
        let wanted_bytes = given.table_bytes.unwrap_or_else(|| memtable_bytes(cache_bytes, segment_bytes));
        let table_bytes = wanted_bytes.checked_next_multiple_of(segment_bytes).filter(|bytes| *bytes > 0);
        let policy = PolicyOptions {
            layout: given.layout.unwrap_or(LsmLayout::Leveled),
            fanout: given.fanout.unwrap_or(FANOUT),
            level_zero_runs: given.level_zero_runs.unwrap_or(LEVEL_ZERO_RUNS),
            table_bytes: table_bytes.unwrap_or(wanted_bytes),
        };
        policy.validate()?;
        let filter_tenths = given.filter_tenths.unwrap_or(FILTER_TENTHS);
        if filter_tenths > FILTER_TENTHS_MAX {
            let most = FILTER_TENTHS_MAX / 10;
            return Err(Error::Options(format!("a filter must have from 0 to {most} bits for each key")));
        }
        Ok(Self { policy, filter_tenths })
    }

    /// As options.
    pub fn given(self) -> LsmOptions {
        let PolicyOptions { layout, fanout, level_zero_runs, table_bytes } = self.policy;
        LsmOptions {
            layout: Some(layout),
            fanout: Some(fanout),
            level_zero_runs: Some(level_zero_runs),
            table_bytes: Some(table_bytes),
            filter_tenths: Some(self.filter_tenths),
        }
    }

    /// For the catalog.
    pub fn encode(self) -> Vec<u8> {
        let mut bytes = self.policy.encode();
        varint::put(self.filter_tenths.into(), &mut bytes);
        bytes
    }

    /// From the catalog; `None` for what was never written.
    pub fn decode(mut bytes: &[u8]) -> Option<Self> {
        let policy = PolicyOptions::take(&mut bytes)?;
        let filter_tenths = u32::try_from(varint::take(&mut bytes)?).ok()?;
        (bytes.is_empty() && filter_tenths <= FILTER_TENTHS_MAX).then_some(Self { policy, filter_tenths })
    }
}

/// Bytes of a memtable, as many as whole segments have: what is left of the last segment of a table is lost.
fn memtable_bytes(cache_bytes: u64, segment_bytes: u64) -> u64 {
    (cache_bytes / MEMTABLE_DIVISOR).clamp(1, MEMTABLE_BYTES_MAX).next_multiple_of(segment_bytes)
}

/// The numbers that a tree works with.
pub(super) struct Options {
    pub memtable_bytes: u64,
    /// T: a table takes so many bytes at most, as much as whole segments have, unless one key has more.
    pub table_bytes: u64,
    pub table: TableOptions,
    pub policy: Box<dyn Policy>,
    batch_bytes: u64,
}

impl Options {
    /// Bytes of the runs of level 0 that are merged at once.
    pub fn batch_bytes(&self) -> u64 {
        self.batch_bytes
    }

    /// With blocks, a cache and segments of so many bytes.
    pub fn new(decided: Decided, block_bytes: usize, cache_bytes: u64, segment_bytes: u64) -> Self {
        let filter_bits_per_key = f64::from(decided.filter_tenths) / 10.0;
        Self {
            memtable_bytes: memtable_bytes(cache_bytes, segment_bytes),
            table_bytes: decided.policy.table_bytes,
            table: TableOptions { block_bytes, filter_bits_per_key },
            policy: decided.policy.policy(),
            batch_bytes: decided.policy.table_bytes * u64::from(decided.policy.level_zero_runs),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_decided_comes_back_and_nonsense_is_refused() {
        let given = LsmOptions::new().layout(LsmLayout::Tiered).fanout(5).filter_bits_per_key(7.5);
        let decided = Decided::of(given, 64 << 20, 1 << 20).unwrap();
        assert_eq!(Decided::decode(&decided.encode()), Some(decided));
        assert_eq!(decided.given(), given.level_zero_runs(4).table_bytes(8 << 20));
        assert_eq!(Decided::of(decided.given(), 1 << 20, 1 << 20).unwrap(), decided);
        let rounded = Decided::of(given.table_bytes(3_000_000), 64 << 20, 1 << 20).unwrap();
        assert_eq!(rounded.given(), given.level_zero_runs(4).table_bytes(3 << 20));
        let problem = |given| Decided::of(given, 64 << 20, 1 << 20).unwrap_err().to_string();
        for bits in [30.1, -1.0, f64::NAN, f64::INFINITY] {
            assert!(problem(given.filter_bits_per_key(bits)).contains("from 0 to 30 bits"), "{bits}");
        }
        assert!(problem(given.fanout(1)).contains("a fanout of 1"));
        assert!(problem(given.table_bytes(0)).contains("tables of 0 bytes"));
        assert!(problem(given.table_bytes(u64::MAX)).contains("tables of"));
        let bytes = decided.encode();
        assert!((0..bytes.len()).all(|length| Decided::decode(&bytes[..length]).is_none()));
        assert!(Decided::decode(&[bytes.as_slice(), &[0]].concat()).is_none());
    }
}
