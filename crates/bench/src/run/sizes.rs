//! Benchmarks by their names.

use anyhow::Context as _;

use crate::benchmark::Benchmark;
use crate::records::Records;
use crate::tpcc::{Home, Tpcc};
use crate::workload::{self, OnRecords, Workload};

/// How much data questions are asked about.
#[derive(Clone, Copy, Debug)]
pub struct Sizes {
    /// Records of workloads on a table.
    pub records: Records,
    /// Warehouses of TPC-C.
    pub warehouses: u32,
    /// Seed of everything random.
    pub seed: u64,
}

/// Names of TPC-C's variants, and their descriptions.
const TPCC: [(&str, Home, &str); 2] = [
    ("tpcc", Home::Random, "TPC-C, each transaction at any warehouse, checked afterwards"),
    ("tpcc-fixed", Home::Fixed, "TPC-C, each client at a warehouse of its own, checked afterwards"),
];

impl Sizes {
    /// The one of this name.
    ///
    /// # Errors
    /// If there is none.
    pub fn benchmark(&self, name: &str) -> anyhow::Result<Box<dyn Benchmark>> {
        if let Some((name, home, _)) = TPCC.into_iter().find(|(known, ..)| *known == name) {
            return Ok(Box::new(Tpcc::new(name, self.warehouses, home, self.seed)));
        }
        let workload = Workload::named(name)
            .with_context(|| format!("there is no workload {name:?}: see `flashgrain-bench workloads`"))?;
        Ok(Box::new(OnRecords::new(workload, self.records, self.seed)))
    }

    /// All names, with their descriptions.
    pub fn names() -> impl Iterator<Item = (&'static str, &'static str)> {
        workload::NAMES.into_iter().chain(TPCC.map(|(name, _, about)| (name, about)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_a_benchmark_of_that_name() {
        let records = Records { count: 10, key_bytes: 8, value_bytes: 8 };
        let sizes = Sizes { records, warehouses: 1, seed: 1 };
        for (name, _) in Sizes::names() {
            assert_eq!(sizes.benchmark(name).unwrap().name(), name);
        }
        assert!(sizes.benchmark("no such one").is_err());
    }
}
