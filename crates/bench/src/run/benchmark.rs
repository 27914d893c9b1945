//! What a run does to an engine.

use std::fmt::{self, Display};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use anyhow::Context as _;
use serde::{Deserialize, Serialize};

use crate::drive::Clients;
use crate::engine::Engine;
use crate::tpcc::{Home, Tpcc};
use crate::workload::{self, OnRecords, Records, Workload};

/// A question to an engine: what it holds, and what clients do with it.
pub trait Benchmark {
    /// As on the command line.
    fn name(&self) -> &str;

    /// For [`Setup::tables`](crate::engine::Setup::tables).
    fn tables(&self) -> &'static [&'static str];

    /// What the engine holds at the beginning.
    fn contents(&self) -> Contents;

    /// About the bytes of all keys and values that caches are a share of: those at the beginning, or that fills will have written.
    fn data_bytes(&self) -> u64;

    /// Most clients of [`Benchmark::fill`].
    fn loaders(&self) -> usize;

    /// Fills an empty engine, and lets it settle.
    ///
    /// # Errors
    /// Those of the engine, and if it is interrupted.
    fn fill(&self, engine: &dyn Engine, interrupt: &Arc<AtomicBool>) -> anyhow::Result<()>;

    /// Whether clients only read.
    fn leaves_as_found(&self) -> bool;

    /// What so many clients do.
    fn clients(&self, clients: usize) -> Clients;

    /// Bytes of all keys and values by now.
    ///
    /// # Errors
    /// Those of the engine.
    fn user_bytes_at_end(&self, engine: &dyn Engine) -> anyhow::Result<u64>;

    /// Looks whether what the clients have left is as it should be; `None` if nothing is known of it.
    ///
    /// # Errors
    /// Those of the engine.
    fn check(&self, engine: &dyn Engine) -> anyhow::Result<Option<Check>>;
}

/// What an engine is filled with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Contents {
    /// A table of records.
    Records(Records),
    /// TPC-C's tables.
    #[expect(missing_docs, reason = "as in tpcc::Dataset")]
    Tpcc { warehouses: u32, seed: u64 },
}

impl Display for Contents {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Records(Records { count: 0, .. }) => write!(to, "nothing"),
            Self::Records(Records { count, key_bytes, value_bytes }) => {
                write!(to, "{count} records of {key_bytes} + {value_bytes} bytes")
            }
            Self::Tpcc { warehouses: 1, .. } => write!(to, "1 warehouse"),
            Self::Tpcc { warehouses, .. } => write!(to, "{warehouses} warehouses"),
        }
    }
}

impl Contents {
    /// Whether there is nothing to fill it with.
    pub fn is_empty(&self) -> bool {
        matches!(self, Self::Records(Records { count: 0, .. }))
    }
}

/// How much data questions are asked about.
#[derive(Clone, Copy, Debug)]
pub struct Sizes {
    /// Of workloads on a table.
    pub records: Records,
    /// Of TPC-C.
    pub warehouses: u32,
    /// Of everything random.
    pub seed: u64,
}

/// Names of TPC-C's variants, and what they do.
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

    /// All names, and what they stand for.
    pub fn names() -> impl Iterator<Item = (&'static str, &'static str)> {
        workload::NAMES.into_iter().chain(TPCC.map(|(name, _, about)| (name, about)))
    }
}

/// What was found of conditions that must hold after a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Check {
    /// How many were checked.
    pub conditions: usize,
    /// Where one does not hold.
    pub violations: Vec<String>,
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
