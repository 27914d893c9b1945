//! Engines within this process: the clients are those of the benchmarks, which check the records that they
//! read.

mod flashgrain;
mod wiredtiger;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use flashgrain_advisor::Workload;
use flashgrain_profile::Error;

use super::adapt::Adapted;
use super::turns::Side;
use super::{Client, adapt};
use crate::benchmark::Benchmark as _;
use crate::drive::{EngineHost, Span, drive};
use crate::engine::{self, Durability, EngineName, Setup};
use crate::keys::{Distribution, KEY_BYTES_MIN};
use crate::records::Records;
use crate::workload::{self, Mix, OnRecords, TABLES};

pub(super) use flashgrain::flashgrain;
pub(super) use wiredtiger::{is_compiled_in, wiredtiger};

/// Two stores of an engine, and the operations on them.
pub(super) struct Stores {
    engine: EngineName,
    clients: usize,
    seconds: u32,
    /// In the order of [`Side::ALL`], as are the operations.
    setups: [Setup; 2],
    operations: [OnRecords; 2],
    interrupt: Arc<AtomicBool>,
}

/// How the engine of a side is opened.
struct Opening {
    cache_bytes: u64,
    durability: Durability,
    settings: Option<engine::Settings>,
}

/// The workload as the benchmarks' clients can run it.
pub(super) fn adapted(workload: &Workload) -> Adapted {
    let mut adapted = Adapted::new(workload);
    adapted.skew_below_one();
    adapted.deletes_as_updates("the client");
    let records = &mut adapted.workload.records;
    if records.key_bytes < KEY_BYTES_MIN as u64 {
        records.key_bytes = KEY_BYTES_MIN as u64;
        adapted.change("keys have 8 bytes: shorter ones do not differ");
    }
    adapted
}

impl Stores {
    fn new(
        engine: EngineName,
        (workload, seconds): (&Workload, u32),
        directory: impl Fn(Side) -> std::path::PathBuf,
        opening: impl Fn(Side) -> Opening,
        interrupt: &Arc<AtomicBool>,
    ) -> Self {
        let clients = workload.clients as usize;
        let setup = |side| {
            let Opening { cache_bytes, durability, settings } = opening(side);
            Setup {
                dir: directory(side),
                cache_bytes,
                durability,
                // Those that fill it may be more.
                clients_max: clients.max(on_records(workload).loaders()),
                cores: adapt::cores(),
                tables: TABLES,
                settings,
                page_bytes: None,
            }
        };
        Self {
            engine,
            clients,
            seconds,
            setups: Side::ALL.map(setup),
            operations: Side::ALL.map(|_| on_records(workload)),
            interrupt: Arc::clone(interrupt),
        }
    }
}

/// The operations of a workload; each run has another seed.
fn on_records(workload: &Workload) -> OnRecords {
    let (operations, records) = (workload.operations, workload.records);
    let per_range = adapt::records_per_range(workload) as u32;
    let mix = Mix {
        read: operations.point_hits,
        miss: operations.point_misses,
        update: operations.updates,
        insert: operations.inserts,
        scan: operations.ranges,
        scan_records: (per_range, per_range),
        ..Mix::NOTHING
    };
    let distribution = match workload.skew {
        0.0 => Distribution::Uniform,
        theta => Distribution::Zipf { theta },
    };
    let records = Records {
        count: records.count,
        key_bytes: records.key_bytes as usize,
        value_bytes: records.value_bytes as usize,
    };
    OnRecords::new(workload::Workload::of(mix, distribution), records, 0)
}

impl Client for Stores {
    fn fill(&self, side: Side, _seed: u64) -> anyhow::Result<()> {
        // Only this store's commits can do without the log while it is filled: WiredTiger has its settings.
        let setup = Setup { durability: Durability::None, ..self.setups[side as usize].clone() };
        let engine = self.engine.open(&setup)?;
        let filled = self.operations[side as usize].fill(&*engine, &self.interrupt);
        if self.interrupt.load(Ordering::Relaxed) {
            return Err(Error::Interrupted.into());
        }
        filled?;
        engine.close()
    }

    fn run(&self, side: Side, seed: u64) -> anyhow::Result<f64> {
        let engine = self.engine.open(&self.setups[side as usize])?;
        let length = Duration::from_secs(self.seconds.into());
        let span = Span {
            clients: self.clients,
            warmup: length,
            length,
            operations_max: None,
            written_bytes_max: None,
            rate_per_s: None,
            sample_every: 1,
            seed,
        };
        let clients = self.operations[side as usize].reseeded(seed).clients(self.clients);
        let driven = std::thread::scope(|scope| {
            drive(&mut EngineHost::new(scope, &*engine, None), &span, clients, &self.interrupt)
        })?;
        engine.close()?;
        match driven.is_interrupted {
            true => Err(Error::Interrupted.into()),
            false => Ok(driven.tally.operations() as f64 / driven.elapsed.as_secs_f64()),
        }
    }
}
