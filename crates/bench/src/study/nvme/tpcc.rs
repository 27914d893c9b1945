//! TPC-C and look-ups with all data in memory, on one processor of this machine: section 4.4.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::ensure;
use flashgrain_profile::Error;
use flashgrain_report::page::{Cell, Kind, Table};
use flashgrain_report::unit;
use serde::Serialize;

use super::shown::rate;
use super::{Study, paper};
use crate::benchmark::Benchmark;
use crate::drive::{EngineHost, Span, drive};
use crate::engine::in_memory;
use crate::keys::Distribution;
use crate::records::Records;
use crate::study::comparison::{Comparison, Measure};
use crate::study::sheet::Part;
use crate::tpcc::{Home, Scale, Tpcc};
use crate::workload::{Mix, OnRecords, Workload};

/// Size of the database, about 80 MB.
const WAREHOUSES: u32 = 1;

/// The paper's records for look-ups.
const KEY_BYTES: usize = 8;
const VALUE_BYTES: usize = 120;

/// Memory of a store over its data, with room for the run's additions and half-full pages; and the least.
const CACHE_FACTOR: u64 = 3;
const CACHE_BYTES_MIN: u64 = 64 << 20;

/// Far longer than the operations take.
const LENGTH: Duration = Duration::from_secs(3600);

/// Look-ups for each transaction, so that both take about as long.
const LOOK_UPS_EACH: u64 = 20;

/// See the module.
#[derive(Debug, Serialize)]
pub(super) struct Found {
    warehouses: u32,
    transactions: OnOneProcessor,
    look_ups: OnOneProcessor,
}

/// Operations of one client on one worker.
#[derive(Clone, Copy, Debug, Serialize)]
struct OnOneProcessor {
    operations: u64,
    /// Processor time of each, in microseconds.
    cpu_us_each: f64,
}

impl OnOneProcessor {
    /// Operations of a processor that does nothing else.
    fn per_s(&self) -> f64 {
        1e6 / self.cpu_us_each
    }
}

pub(super) fn ask(study: &Study<'_>) -> anyhow::Result<Found> {
    study.note("TPC-C and look-ups in memory, on this machine");
    let options = study.options;
    measure(Scale::standard(WAREHOUSES), options.operations, options.seed, study.interrupt)
}

fn measure(scale: Scale, operations: u64, seed: u64, interrupt: &AtomicBool) -> anyhow::Result<Found> {
    let tpcc = Tpcc::with_scale("tpcc", scale, Home::Random, seed);
    let read = Mix { read: 1.0, ..Mix::default() };
    // As many bytes as the warehouses have.
    let count = (scale.data_bytes() / (KEY_BYTES + VALUE_BYTES) as u64).max(1);
    let records = Records { count, key_bytes: KEY_BYTES, value_bytes: VALUE_BYTES };
    let look_ups = OnRecords::new(Workload::of(read, Distribution::Uniform), records, seed);
    Ok(Found {
        warehouses: scale.warehouses,
        transactions: on_one_processor(&tpcc, operations, seed, interrupt)?,
        look_ups: on_one_processor(&look_ups, LOOK_UPS_EACH * operations, seed, interrupt)?,
    })
}

/// Fills a store in memory, and has one client work on its one worker.
fn on_one_processor(
    benchmark: &dyn Benchmark,
    operations: u64,
    seed: u64,
    interrupt: &AtomicBool,
) -> anyhow::Result<OnOneProcessor> {
    let cache_bytes = (CACHE_FACTOR * benchmark.data_bytes()).max(CACHE_BYTES_MIN);
    let engine = in_memory(benchmark.tables(), cache_bytes, benchmark.loaders())?;
    benchmark.fill(&*engine, &Arc::new(AtomicBool::new(interrupt.load(Ordering::Relaxed))))?;
    let span = Span {
        clients: 1,
        warmup: LENGTH,
        length: LENGTH,
        operations_max: Some(operations),
        written_bytes_max: None,
        rate_per_s: None,
        sample_every: u32::MAX,
        seed,
    };
    let driven = std::thread::scope(|scope| {
        let mut host = EngineHost::new(scope, &*engine, None);
        drive(&mut host, &span, benchmark.clients(1), interrupt)
    })?;
    if driven.is_interrupted {
        return Err(Error::Interrupted.into());
    }
    let violations = benchmark.check(&*engine)?.map_or_else(Vec::new, |check| check.violations);
    ensure!(
        violations.is_empty(),
        "the run has left a database that breaks its rules: {}",
        violations.join("; ")
    );
    engine.close()?;
    let counted = driven.tally.operations();
    Ok(OnOneProcessor {
        operations: counted,
        cpu_us_each: driven.cpu.as_secs_f64() * 1e6 / counted.max(1) as f64,
    })
}

impl Found {
    /// The paper's number and ours.
    pub fn numbers(found: Option<&Self>) -> Vec<Comparison> {
        let name = "TPC-C transactions/s in memory, of a thread";
        let ours = found.map(|found| found.transactions.per_s());
        let number = Comparison::new("§4.4", name, Measure::Count, paper::transactions_of_thread(), ours);
        vec![number.apart("it is measured on this machine's processor")]
    }

    pub fn part(&self) -> Part {
        let mut table = Table::new(&[
            ("operation", Kind::Label),
            ("processor each", Kind::Number),
            ("of a processor/s", Kind::Number),
            ("the paper's, of a thread/s", Kind::Number),
        ]);
        let mut row = |name: &str, found: &OnOneProcessor, papers: String| {
            let cells = [name.to_owned(), unit::micros(found.cpu_us_each), rate(found.per_s()), papers];
            table.push(cells.map(Cell::from));
        };
        row("transaction of TPC-C", &self.transactions, rate(paper::transactions_of_thread()));
        row("look-up", &self.look_ups, "–".into());
        let ratio = self.transactions.cpu_us_each / self.look_ups.cpu_us_each;
        Part {
            id: "tpcc",
            title: "TPC-C in memory (section 4.4)".into(),
            text: vec![
                format!(
                    "Measured on this machine's processor, for any target; these figures are not virtual, and vary. {} in memory, one client on one worker, nothing waits for the log. The paper has 2 M transactions a second with 64 threads.",
                    unit::things(self.warehouses.into(), "warehouse")
                ),
                format!(
                    "A transaction takes as long as {ratio:.1} look-ups in a table of as many bytes. The paper has no look-ups in memory; out of memory it makes {:.1} look-ups for each transaction.",
                    paper::LOOK_UPS_BYPASS / paper::TRANSACTIONS_BYPASS
                ),
            ],
            tables: vec![("In memory".into(), table)],
            figures: Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transactions_and_look_ups_are_counted_and_what_they_leave_is_checked() {
        let scale =
            Scale { warehouses: 1, items: 100, customers_per_district: 30, new_orders_per_district: 9 };
        let found = measure(scale, 400, 1, &AtomicBool::new(false)).unwrap();
        // A limit of operations is looked at now and then.
        assert!(found.transactions.operations >= 400, "{found:?}");
        assert!(found.look_ups.operations >= 400 * LOOK_UPS_EACH, "{found:?}");
        assert!(found.transactions.per_s() > 0.0 && found.look_ups.per_s() > 0.0, "{found:?}");
        let stopped = measure(scale, 400, 1, &AtomicBool::new(true)).unwrap_err();
        assert!(stopped.to_string().contains("interrupted"), "{stopped}");
    }
}
