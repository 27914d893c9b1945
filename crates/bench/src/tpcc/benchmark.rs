//! TPC-C for the runner.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use anyhow::ensure;

use super::{Condition, Dataset, Home, Options, Scale, TABLES, Terminal, check, load};
use crate::benchmark::{Benchmark, Check, Contents};
use crate::drive::Clients;
use crate::engine::{Direction, Engine, Session};

/// When databases are loaded; orders of the run are entered a second later.
const DATE_SECONDS: u64 = 1_262_304_000;

/// Clients that load: one for each table.
const LOADERS: usize = TABLES.len();

/// Clients that check.
const CHECKERS: usize = 8;

/// A database and how it is used.
#[derive(Clone, Copy, Debug)]
pub struct Tpcc {
    name: &'static str,
    dataset: Dataset,
    options: Options,
}

impl Tpcc {
    /// With `warehouses` warehouses of the specification's size.
    pub fn new(name: &'static str, warehouses: u32, home: Home, seed: u64) -> Self {
        Self::with_scale(name, Scale::standard(warehouses), home, seed)
    }

    /// With a database of another size.
    pub fn with_scale(name: &'static str, scale: Scale, home: Home, seed: u64) -> Self {
        let dataset = Dataset { scale, seed, date_seconds: DATE_SECONDS };
        Self { name, dataset, options: Options { home, seed, date_seconds: DATE_SECONDS + 1 } }
    }
}

impl Benchmark for Tpcc {
    fn name(&self) -> &str {
        self.name
    }

    fn tables(&self) -> &'static [&'static str] {
        TABLES
    }

    fn contents(&self) -> Contents {
        Contents::Tpcc { warehouses: self.dataset.scale.warehouses, seed: self.dataset.seed }
    }

    fn data_bytes(&self) -> u64 {
        self.dataset.scale.data_bytes()
    }

    fn loaders(&self) -> usize {
        LOADERS
    }

    fn fill(&self, engine: &dyn Engine, interrupt: &Arc<AtomicBool>) -> anyhow::Result<()> {
        let interrupt = Arc::clone(interrupt);
        let progress = move |_| {
            ensure!(!interrupt.load(Ordering::Relaxed), "interrupted while warehouses were loaded");
            Ok(())
        };
        load(engine, &self.dataset, LOADERS, Arc::new(progress))?;
        engine.settle()
    }

    fn leaves_as_found(&self) -> bool {
        false
    }

    fn clients(&self, _: usize) -> Clients {
        let Self { dataset, options, .. } = *self;
        Clients {
            make: Arc::new(move |number, session| {
                Ok(Box::new(Terminal::new(session, &dataset, &options, number)?))
            }),
            burst: Arc::new(|_| None),
        }
    }

    fn user_bytes_at_end(&self, engine: &dyn Engine) -> anyhow::Result<u64> {
        bytes_held(engine)
    }

    fn check(&self, engine: &dyn Engine) -> anyhow::Result<Option<Check>> {
        let violations = check(engine, &self.dataset, CHECKERS)?;
        let violations = violations.iter().map(ToString::to_string).collect();
        Ok(Some(Check { conditions: Condition::COUNT, violations }))
    }
}

/// Bytes of all keys and values, by a scan of each table.
pub(super) fn bytes_held(engine: &dyn Engine) -> anyhow::Result<u64> {
    let bytes = Arc::new(AtomicU64::new(0));
    let sum = Arc::clone(&bytes);
    let add_table = move |table, session: &mut dyn Session| {
        let mut own_bytes = 0;
        session.scan(table, &[0], Direction::Forward, &mut |key, value| {
            own_bytes += (key.len() + value.len()) as u64;
            true
        })?;
        sum.fetch_add(own_bytes, Ordering::Relaxed);
        Ok(())
    };
    engine.run(TABLES.len(), Arc::new(add_table))?;
    Ok(bytes.load(Ordering::Relaxed))
}
