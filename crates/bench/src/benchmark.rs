//! A question to an engine, as a run asks it.

use std::fmt::{self, Display};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use serde::{Deserialize, Serialize};

use crate::drive::Clients;
use crate::engine::Engine;
use crate::records::Records;

/// A question to an engine: the records that it holds, and the operations of clients.
pub trait Benchmark {
    /// Its name on the command line.
    fn name(&self) -> &str;

    /// For [`Setup::tables`](crate::engine::Setup::tables).
    fn tables(&self) -> &'static [&'static str];

    /// The records that the engine holds at the beginning.
    fn contents(&self) -> Contents;

    /// About the bytes of all keys and values that caches are a share of: those at the beginning, or that
    /// fills will have written.
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

    /// The operations of `clients` clients.
    fn clients(&self, clients: usize) -> Clients;

    /// Bytes of all keys and values by now.
    ///
    /// # Errors
    /// Errors of the engine.
    fn user_bytes_at_end(&self, engine: &dyn Engine) -> anyhow::Result<u64>;

    /// Checks the state that the clients have left; `None` if there is no check.
    ///
    /// # Errors
    /// Errors of the engine.
    fn check(&self, engine: &dyn Engine) -> anyhow::Result<Option<Check>>;
}

/// The records that an engine is filled with.
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

/// Findings about conditions that must hold after a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Check {
    /// How many were checked.
    pub conditions: usize,
    /// A line for each that does not hold.
    pub violations: Vec<String>,
}
