//! One run: an engine, a question, and the result.

mod engine_directory;
mod result;
mod sizes;

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use anyhow::Context as _;
use flashgrain_device::{clock, pin_thread};

pub use engine_directory::EngineDirectory;
pub use result::{DeviceResult, DrainedResult, KindResult, RunResult, SecondResult};
pub use sizes::Sizes;

use crate::benchmark::{Benchmark, Check, Contents};
use crate::drive::{Driven, EngineHost, Host as _, Span, drive};
use crate::engine::{Caching, Direction, Durability, Engine, EngineName, Setup};
use crate::measure::{BlockCounters, MemoryLimit, forget_peak_memory, peak_memory_bytes, space_bytes};

/// A question to an engine, with its options.
pub struct Run {
    /// The engine.
    pub engine: EngineName,
    /// The clients' operations.
    pub benchmark: Box<dyn Benchmark>,
    /// Memory for the engine.
    pub cache_bytes: u64,
    /// The promise of commits.
    pub durability: Durability,
    /// How long, by how many, how fast.
    pub span: Span,
    /// Bytes of the engine's pages, instead of those that the benchmarks choose; only WiredTiger takes them.
    pub page_bytes: Option<u32>,
    /// Processors for everything; the process is kept on the first one if it is one.
    pub cores: usize,
    /// Share of the engine's rate in a closed loop that `span` has as its own, if it was chosen so.
    pub load: Option<f64>,
    /// The round of a suite.
    pub round: u32,
    /// Whether the engine is given time for its deferred work, which is measured.
    pub drains: bool,
}

/// Memory of a process in addition to its engine's cache, while clients run: code, stacks, histograms.
const MEMORY_BESIDE_BYTES: u64 = 64 << 20;

/// The same while it is filled, without the order of the records.
const FILLING_BYTES: u64 = 256 << 20;

/// One byte more is needed then for this number of bytes of data.
const DATA_OF_ORDER: u64 = 4;

/// Counts of a run of an engine.
type EngineDriven = Driven<Option<BlockCounters>>;

/// Time that an engine took for its deferred work, and the counters then.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Drained {
    took: Duration,
    after: Option<BlockCounters>,
}

/// Receives messages on the progress.
pub type Note<'a> = &'a (dyn Fn(&str) + Send + Sync);

impl Run {
    /// Fills a store below `place` if that has not been done, runs, and returns the result.
    ///
    /// # Errors
    /// Errors of the engine.
    pub fn run(
        &self,
        place: &EngineDirectory,
        interrupt: &Arc<AtomicBool>,
        note: Note<'_>,
    ) -> anyhow::Result<RunResult> {
        self.check_request()?;
        if self.engine.keeps_records() {
            self.fill(place, interrupt, note)?;
        }
        let limit = self.limit_memory(MEMORY_BESIDE_BYTES);
        let is_limited = limit.is_ok();
        if let Err(error) = &limit {
            note(&format!("memory is not limited: {error:#}"));
        }
        if self.cores == 1 {
            // Threads that are started later stay there, too.
            pin_thread(0)?;
        }
        if !self.benchmark.leaves_as_found() {
            place.forget()?;
        }
        forget_peak_memory();
        let engine = match self.engine.keeps_records() {
            true => self.engine.open(&self.setup(place, self.durability, self.span.clients))?,
            false => self.open_and_fill(place, interrupt, note)?,
        };
        let (driven, drained) = self.drive(&*engine, place, interrupt, note)?;
        let peak_memory_bytes = peak_memory_bytes();
        let check = self.check(&*engine, &driven, note)?;
        let user_bytes = match driven.is_interrupted {
            true => None,
            false => Some(self.benchmark.user_bytes_at_end(&*engine).context("add up the engine's records")?),
        };
        let settings = engine.settings();
        engine.close()?;
        let space_bytes = space_bytes(place.directory()).context("measure the space that is used")?;
        drop(limit);
        let left = result::Left { drained, settings, space_bytes, user_bytes, peak_memory_bytes, check };
        Ok(RunResult::new(self, &driven, left, is_limited))
    }

    fn check_request(&self) -> anyhow::Result<()> {
        let needs_transactions = matches!(self.benchmark.contents(), Contents::Tpcc { .. });
        let is_possible = !needs_transactions || self.engine.has_transactions();
        anyhow::ensure!(is_possible, "{} has no transactions, which TPC-C needs", self.engine);
        Ok(())
    }

    /// Engines that cache in the kernel get the cache of the others, and a little more for the memory that
    /// the others use in addition.
    fn limit_memory(&self, beside_bytes: u64) -> anyhow::Result<Option<MemoryLimit>> {
        match self.engine.caching() == Caching::PageCache {
            false => Ok(None),
            true => MemoryLimit::new(self.cache_bytes + beside_bytes).map(Some),
        }
    }

    fn setup(&self, place: &EngineDirectory, durability: Durability, clients_max: usize) -> Setup {
        Setup {
            dir: place.directory().to_owned(),
            cache_bytes: self.cache_bytes,
            durability,
            clients_max,
            cores: self.cores,
            tables: self.benchmark.tables(),
            settings: None,
            page_bytes: self.page_bytes,
        }
    }

    fn fill(
        &self,
        place: &EngineDirectory,
        interrupt: &Arc<AtomicBool>,
        note: Note<'_>,
    ) -> anyhow::Result<()> {
        let contents = self.benchmark.contents();
        if place.holds(&contents)? {
            return Ok(());
        }
        place.empty()?;
        if !contents.is_empty() {
            // Not for its own sake: with the group go the pages that filling has left in the page cache.
            let _limit = self.limit_memory(FILLING_BYTES + self.benchmark.data_bytes() / DATA_OF_ORDER);
            let setup = self.setup(place, Durability::None, self.benchmark.loaders());
            let engine = self.engine.open(&setup)?;
            self.fill_opened(&*engine, interrupt, note)?;
            engine.close()?;
        }
        place.keep(&contents)
    }

    /// Opens an engine that must be filled and run in one opening.
    fn open_and_fill(
        &self,
        place: &EngineDirectory,
        interrupt: &Arc<AtomicBool>,
        note: Note<'_>,
    ) -> anyhow::Result<Box<dyn Engine>> {
        place.empty()?;
        let clients_max = self.span.clients.max(self.benchmark.loaders());
        let engine = self.engine.open(&self.setup(place, self.durability, clients_max))?;
        self.fill_opened(&*engine, interrupt, note)?;
        forget_peak_memory();
        Ok(engine)
    }

    fn fill_opened(
        &self,
        engine: &dyn Engine,
        interrupt: &Arc<AtomicBool>,
        note: Note<'_>,
    ) -> anyhow::Result<()> {
        let contents = self.benchmark.contents();
        if contents.is_empty() {
            return Ok(());
        }
        note(&format!("filling {} with {contents}", self.engine));
        let began = clock::now();
        self.benchmark.fill(engine, interrupt)?;
        note(&format!("filled in {:.0} s", clock::now().since(began).seconds()));
        Ok(())
    }

    fn drive(
        &self,
        engine: &dyn Engine,
        place: &EngineDirectory,
        interrupt: &AtomicBool,
        note: Note<'_>,
    ) -> anyhow::Result<(EngineDriven, Option<Drained>)> {
        if self.cache_bytes > self.benchmark.data_bytes() {
            // Random accesses alone take very long to find the last page.
            visit_everything(engine, self.benchmark.tables().len())?;
        }
        note(&format!("running {} on {}", self.benchmark.name(), self.engine));
        let clients = self.benchmark.clients(self.span.clients);
        std::thread::scope(|scope| {
            let mut host = EngineHost::new(scope, engine, Some(place.directory()));
            let driven = drive(&mut host, &self.span, clients, interrupt)?;
            if !self.drains || driven.is_interrupted {
                return Ok((driven, None));
            }
            let began = clock::now();
            engine.settle()?;
            let drained = Drained { took: clock::now().since(began).into(), after: host.counters() };
            Ok((driven, Some(drained)))
        })
    }

    fn check(
        &self,
        engine: &dyn Engine,
        driven: &EngineDriven,
        note: Note<'_>,
    ) -> anyhow::Result<Option<Check>> {
        if driven.is_interrupted {
            return Ok(None);
        }
        let check = self.benchmark.check(engine).context("check the contents after the run")?;
        let violations = check.iter().flat_map(|check| &check.violations);
        violations.for_each(|violation| note(&format!("{}: {violation}", self.engine)));
        Ok(check)
    }
}

fn visit_everything(engine: &dyn Engine, tables: usize) -> anyhow::Result<()> {
    let scan = move |_, session: &mut dyn crate::engine::Session| {
        for table in 0..tables {
            session.scan(table, &[0], Direction::Forward, &mut |_, _| true)?;
        }
        Ok(())
    };
    engine.run(1, Arc::new(scan))
}

impl RunResult {
    /// Whether it can be trusted: it ran to its end, and its check found no violation.
    pub fn is_sound(&self) -> bool {
        !self.is_interrupted && self.check.as_ref().is_none_or(|check| check.violations.is_empty())
    }
}
