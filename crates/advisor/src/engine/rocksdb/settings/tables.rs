//! Blocks, filters, and the cache for them.

use flashgrain_settings::Bytes;

use super::super::super::Setting;
use super::super::super::tuned::Tuned;
use super::super::configuration::{DEFAULT, MEBI, RocksDb};
use super::chosen::{Chosen, changed, chosen, random_read_number};

/// Share of the memory left by memtables, filters and indexes; the page cache has the other half.
const BLOCK_CACHE_FRACTION: f64 = 0.5;

type Rocks<'a> = Tuned<'a, RocksDb>;

pub(super) fn block(tuned: &Rocks<'_>) -> Setting {
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

pub(super) fn filter(tuned: &Rocks<'_>) -> Setting {
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

pub(super) fn cache(tuned: &Rocks<'_>) -> Setting {
    let left = tuned.workload.memory_bytes as f64 - tuned.advised.reserved_bytes(tuned.workload);
    let bytes = (left * BLOCK_CACHE_FRACTION / MEBI).floor() * MEBI;
    let larger = bytes > 8.0 * MEBI;
    Setting {
        name: "block_cache",
        value: larger.then(|| format!("{bytes:.0}")),
        default: "8388608",
        reason: match larger {
            true => "half of memory_bytes without memtables, filters and indexes; the page cache has the rest: no call and no check of a checksum for the hottest blocks".into(),
            false => "memtables, filters and indexes leave no more".into(),
        },
        number: "none; it saves processor time, not device time".into(),
        gain: None,
        cost: if larger { format!("{} of memory", Bytes(bytes as u64)) } else { String::new() },
    }
}

/// Filters and indexes that memory has no room for.
pub(super) fn cached_metadata(tuned: &Rocks<'_>) -> [Setting; 3] {
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
            "by default all filters and indexes are in memory outside the cache: more than half of memory_bytes",
        ),
        setting("index_type", "kTwoLevelIndexSearch", "kBinarySearch", partitioned),
        setting("partition_filters", "true", "false", partitioned),
    ]
}
