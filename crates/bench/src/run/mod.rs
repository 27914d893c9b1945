//! One run: an engine, a workload, what came of it.

mod place;
mod result;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use anyhow::Context as _;
use flashgrain_device::{clock, pin_thread};

pub use place::Place;
pub use result::{KindResult, RunResult, SecondResult};

use crate::drive::{MakeStep, Span, Step, drive};
use crate::engine::{Caching, Durability, EngineName, Setup};
use crate::keys::Popularity;
use crate::measure::{MemoryLimit, space_bytes};
use crate::workload::{Client, Operation, Records, TABLES, Workload, load};

/// What is run.
#[derive(Clone, Debug)]
pub struct Run {
    /// On which engine.
    pub engine: EngineName,
    /// What clients do.
    pub workload: Workload,
    /// On which records.
    pub records: Records,
    /// Memory for the engine.
    pub cache_bytes: u64,
    /// What commits promise.
    pub durability: Durability,
    /// How long, by how many, how fast.
    pub span: Span,
    /// Processors for everything; the process is kept on the first one if it is one.
    pub cores: usize,
    /// Share of the engine's rate in a closed loop that `span` has as its own, if it was chosen so.
    pub load: Option<f64>,
    /// Which round of a suite it is.
    pub round: u32,
}

/// Memory of a process beside what its engine caches: code, stacks, histograms.
const MEMORY_BESIDE_BYTES: u64 = 128 << 20;

impl Run {
    /// Fills a store below `place` if that has not been done, runs, and says what came of it. `note` hears what is going on.
    ///
    /// # Errors
    /// Those of the engine.
    pub fn run(
        &self,
        place: &Place,
        interrupt: &Arc<AtomicBool>,
        note: &(dyn Fn(&str) + Send + Sync),
    ) -> anyhow::Result<RunResult> {
        let limit = self.limit_memory();
        let limited = limit.is_ok();
        if let Err(error) = &limit {
            note(&format!("memory is not limited: {error:#}"));
        }
        if self.cores == 1 {
            // Threads that are started later stay there, too.
            pin_thread(0)?;
        }
        if self.workload.is_empty {
            place.remove()?;
        }
        let records =
            if self.workload.is_empty { Records { count: 0, ..self.records } } else { self.records };
        if !place.holds(&records)? {
            place.remove()?;
            self.fill(place, &records, interrupt, note)?;
            place.keep(&records)?;
        }
        let engine = self.engine.open(&self.setup(place, self.durability))?;
        note(&format!("running {} on {}", self.workload.name, self.engine));
        let count = Arc::new(AtomicU64::new(records.count));
        let driven = drive(&*engine, &self.span, self.steps(records, &count), place.directory(), interrupt)?;
        let changes = self.workload.roles.iter().any(|role| role.mix.read + role.mix.scan < 1.0);
        if changes {
            place.changed(&Records { count: count.load(Ordering::Relaxed), ..records })?;
        }
        let settings = engine.settings();
        engine.close()?;
        let space = space_bytes(place.directory()).context("measure the space that is used")?;
        drop(limit);
        Ok(RunResult::new(self, driven, count.load(Ordering::Relaxed), space, settings, limited))
    }

    /// Engines that cache in the kernel get what the others get as a cache, and a little more for what those have beside it.
    fn limit_memory(&self) -> anyhow::Result<Option<MemoryLimit>> {
        match self.engine.caching() == Caching::PageCache {
            false => Ok(None),
            true => MemoryLimit::new(self.cache_bytes + MEMORY_BESIDE_BYTES).map(Some),
        }
    }

    fn setup(&self, place: &Place, durability: Durability) -> Setup {
        Setup {
            dir: place.directory().to_owned(),
            cache_bytes: self.cache_bytes,
            durability,
            clients_max: self.span.clients,
            cores: self.cores,
            tables: TABLES,
        }
    }

    fn fill(
        &self,
        place: &Place,
        records: &Records,
        interrupt: &Arc<AtomicBool>,
        note: &(dyn Fn(&str) + Send + Sync),
    ) -> anyhow::Result<()> {
        if records.count == 0 {
            return Ok(());
        }
        note(&format!("filling {} with {} records", self.engine, records.count));
        let began = clock::now();
        let engine = self.engine.open(&self.setup(place, Durability::None))?;
        let is_done = load(&*engine, *records, interrupt, Arc::new(|_| ()))?;
        engine.close()?;
        anyhow::ensure!(is_done, "interrupted while {} was filled", self.engine);
        note(&format!("filled in {:.0} s", clock::now().since(began).seconds()));
        Ok(())
    }

    /// What clients do.
    fn steps(&self, records: Records, count: &Arc<AtomicU64>) -> MakeStep {
        let (workload, count, span) = (self.workload.clone(), Arc::clone(count), self.span.clone());
        let popularity = Popularity::new(records.count.max(1), workload.distribution);
        Arc::new(move |number| {
            let role = *workload.role(number, span.clients);
            let count = Arc::clone(&count);
            let mut client = Client::new(role.mix, &records, popularity, span.seed, number, count);
            let step: Step<'static> = Box::new(move |session| {
                let (operation, count) = client.step(session)?;
                Ok((name(operation), count))
            });
            (step, role.burst)
        })
    }

    /// Bytes that users have written or asked for by `operations` of a kind.
    fn user_bytes(&self, operations: u64) -> u64 {
        operations * (self.records.key_bytes + self.records.value_bytes) as u64
    }
}

/// In results.
fn name(operation: Operation) -> &'static str {
    match operation {
        Operation::Read => "read",
        Operation::Update => "update",
        Operation::Insert => "insert",
        Operation::Scan => "scan",
        Operation::Modify => "modify",
    }
}

impl Default for Span {
    fn default() -> Self {
        Self {
            clients: 64,
            warmup: Duration::from_secs(5),
            length: Duration::from_secs(20),
            rate_per_s: None,
            seed: 1,
        }
    }
}
