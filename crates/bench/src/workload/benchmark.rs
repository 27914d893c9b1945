//! A workload on a table of records, for the runner.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::client::Client;
use super::{TABLES, Workload};
use crate::benchmark::{Benchmark, Check, Contents};
use crate::drive::{Clients, EngineHost};
use crate::engine::Engine;
use crate::fill::{Filling, Order, fill};
use crate::keys::Popularity;
use crate::records::Records;

/// Clients that put the first records in.
const LOADERS: usize = 4;

/// See the module.
#[derive(Debug)]
pub struct OnRecords {
    workload: Workload,
    /// How many there would be if the workload did not begin without any.
    count_usual: u64,
    records: Records,
    seed: u64,
    /// Records by now.
    count: Arc<AtomicU64>,
}

impl OnRecords {
    /// Over these records, unless the workload begins without any.
    pub fn new(workload: Workload, records: Records, seed: u64) -> Self {
        let count = if workload.is_empty { 0 } else { records.count };
        let count_now = Arc::new(AtomicU64::new(count));
        Self {
            workload,
            count_usual: records.count,
            records: Records { count, ..records },
            seed,
            count: count_now,
        }
    }

    /// The same, in its present state, by clients of another seed.
    pub fn reseeded(&self, seed: u64) -> Self {
        let (workload, count) = (self.workload.clone(), Arc::clone(&self.count));
        Self { workload, seed, count, ..*self }
    }
}

impl Benchmark for OnRecords {
    fn name(&self) -> &str {
        &self.workload.name
    }

    fn tables(&self) -> &'static [&'static str] {
        TABLES
    }

    fn contents(&self) -> Contents {
        Contents::Records(self.records)
    }

    fn data_bytes(&self) -> u64 {
        self.count_usual * self.records.record_bytes()
    }

    fn loaders(&self) -> usize {
        LOADERS
    }

    fn fill(&self, engine: &dyn Engine, interrupt: &Arc<AtomicBool>) -> anyhow::Result<()> {
        let filling = Filling::all(self.records, Order::Scattered, LOADERS);
        let filled = std::thread::scope(|scope| {
            let mut host = EngineHost::new(scope, engine, None);
            fill(&mut host, &filling, interrupt, &mut |_| ())
        })?;
        engine.settle()?;
        anyhow::ensure!(!filled.is_interrupted, "interrupted while records were loaded");
        Ok(())
    }

    fn leaves_as_found(&self) -> bool {
        self.workload.leaves_as_found()
    }

    fn clients(&self, clients: usize) -> Clients {
        let (workload, records, seed) = (self.workload.clone(), self.records, self.seed);
        let count = Arc::clone(&self.count);
        let popularity = Popularity::new(records.count.max(1), workload.distribution);
        let bursts = workload.clone();
        Clients {
            make: Arc::new(move |number, session| {
                let mix = workload.role(number, clients).mix;
                let count = Arc::clone(&count);
                Ok(Box::new(Client::new(session, mix, &records, popularity, (seed, number), count)))
            }),
            burst: Arc::new(move |number| bursts.role(number, clients).burst),
        }
    }

    fn user_bytes_at_end(&self, _: &dyn Engine) -> anyhow::Result<u64> {
        Ok(self.count.load(Ordering::Relaxed) * self.records.record_bytes())
    }

    fn check(&self, _: &dyn Engine) -> anyhow::Result<Option<Check>> {
        Ok(None)
    }
}
