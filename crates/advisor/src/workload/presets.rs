//! The mixes of the Yahoo! Cloud Serving Benchmark (Cooper et al., SoCC 2010), core workloads A to F, and two
//! whose keys are picked uniformly, so that no cache helps.
//!
//! YCSB fixes the mix and the distribution of keys. It leaves the size open; here it is 100 million records,
//! about 95 GiB, with 8 GiB of memory and 32 clients, every commit durable: data well beyond memory.

use super::{Durability, Operations, Records, Workload, checked};
use crate::Error;

/// Names of the presets, with their mixes in words.
pub const PRESETS: [(&str, &str); 8] = [
    ("ycsb-a", "50 % reads, 50 % updates"),
    ("ycsb-b", "95 % reads, 5 % updates"),
    ("ycsb-c", "reads only"),
    ("ycsb-d", "95 % reads of recent records, 5 % inserts"),
    ("ycsb-e", "95 % ranges of 50 records on average, 5 % inserts"),
    ("ycsb-f", "50 % reads, 50 % reads with an update after each"),
    ("uniform-reads", "95 % reads, 5 % updates, uniform keys"),
    ("uniform-updates", "20 % reads, 80 % updates, uniform keys"),
];

/// `user` and up to 20 digits.
const KEY_BYTES: u64 = 24;
/// Ten fields of 100 bytes.
const VALUE_BYTES: u64 = 1000;
/// YCSB draws 1 to 100.
const RANGE_RECORDS: u64 = 50;
/// YCSB's constant of the Zipf distribution.
const SKEW: f64 = 0.99;

/// The preset of this name.
///
/// # Errors
/// [`Error::Preset`] with all names.
pub fn preset(name: &str) -> Result<Workload, Error> {
    let none = Operations::default();
    let operations = match name {
        "ycsb-a" => Operations { point_hits: 0.5, updates: 0.5, ..none },
        "ycsb-b" | "uniform-reads" => Operations { point_hits: 0.95, updates: 0.05, ..none },
        "ycsb-c" => Operations { point_hits: 1.0, ..none },
        "ycsb-d" => Operations { point_hits: 0.95, inserts: 0.05, ..none },
        "ycsb-e" => Operations {
            ranges: 0.95,
            inserts: 0.05,
            range_bytes: RANGE_RECORDS * (KEY_BYTES + VALUE_BYTES),
            ..none
        },
        // Two calls of YCSB are one read and one read with an update: three operations here.
        "ycsb-f" => Operations { point_hits: 2.0 / 3.0, updates: 1.0 / 3.0, ..none },
        "uniform-updates" => Operations { point_hits: 0.2, updates: 0.8, ..none },
        _ => {
            let allowed = PRESETS.map(|(name, _)| name).join(", ");
            return Err(Error::Preset { got: name.to_owned(), allowed });
        }
    };
    checked(Workload {
        name: name.to_owned(),
        operations,
        records: Records { count: 100_000_000, key_bytes: KEY_BYTES, value_bytes: VALUE_BYTES },
        memory_bytes: 8 << 30,
        skew: if name.starts_with("uniform") { 0.0 } else { SKEW },
        clients: 32,
        rate_per_second: None,
        cores: None,
        durability: Durability::Sync,
        lifetime: None,
        assumptions: Vec::new(),
    })
}
