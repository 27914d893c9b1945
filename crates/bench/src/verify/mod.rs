//! Compares an engine with its defaults and the same engine with advised settings, both measured.
//!
//! 1. The engine's module adapts the workload to the engine's client, and notes the changes; the advice is
//!    given for the adapted workload.
//! 2. Both sides are filled with the same records, each in its own part of one scratch directory.
//! 3. Both run in turns that alternate. Each run has its own limit of memory, starts with an empty page
//!    cache and warms up before it counts.
//! 4. A [`Verification`] compares the measured gain with the predicted one.
//!
//! The scratch directory is removed on every way out of [`verify`], an interrupt included; programs that
//! still run then are killed first.

mod adapt;
mod cells;
mod harness;
mod integer_keys;
mod mariadb;
mod memory;
mod program;
mod rocksdb;
mod scatter;
mod scratch;
mod sqlite;
mod table;
mod turns;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use flashgrain_advisor::engine::{EngineAdvice, EngineName, EngineVersion};
use flashgrain_advisor::{Advice, Interval, Workload};
use flashgrain_profile::DeviceProfile;
use serde::Serialize;

pub use cells::{Cells, FOREIGN, verify_cells};
pub use rocksdb::grid::{Grid, GridOptions, grid};

use crate::listener::Listener;
use adapt::Adapted;
use memory::Memory;
use scatter::Scatter;
use scratch::Scratch;
use turns::{Side, turns};

/// Copies of the records that a side may take while compactions are under way.
const SPACE_FACTOR: f64 = 3.0;

/// The options of a verification.
#[derive(Clone, Debug)]
pub struct Options {
    /// The scratch directory is made below this one.
    pub directory: PathBuf,
    /// Runs of each side.
    pub rounds: u32,
    /// Measured time of each run; it warms up for as long before that.
    pub seconds: u32,
    /// Seed of the keys.
    pub seed: u64,
}

/// An engine's defaults and the advised settings, predicted and measured.
#[derive(Debug, Serialize)]
pub struct Verification {
    engine: EngineName,
    /// As it ran, with every change to the given workload.
    workload: Workload,
    changes: Vec<String>,
    /// Memory of each run with the page cache; `None` where it could not be limited.
    memory_limit_bytes: Option<u64>,
    /// The machine's load average at the end.
    load: Option<f64>,
    rounds: u32,
    seconds: u32,
    seed: u64,
    default: Outcome,
    advised: Outcome,
    predicted_gain: Interval,
    measured_gain: Scatter,
    file: String,
}

/// One side.
#[derive(Debug, Serialize)]
struct Outcome {
    predicted_per_second: Interval,
    /// The bottleneck by the prediction.
    predicted_bound: String,
    measured_per_second: Scatter,
}

/// The client of an engine, with both sides' settings in a scratch directory.
trait Client {
    /// Fills one side with the workload's records.
    fn fill(&self, side: Side, seed: u64) -> anyhow::Result<()>;

    /// Runs the workload on one side; the operations per second of the measured time.
    fn run(&self, side: Side, seed: u64) -> anyhow::Result<f64>;
}

/// Runs an engine with its defaults and with the advised settings for a workload on the drive of a profile.
///
/// # Errors
/// Engines that cannot be run yet, programs that are missing or fail, a directory without enough room, and
/// [`Error::Interrupted`](flashgrain_profile::Error::Interrupted).
pub fn verify(
    version: EngineVersion,
    workload: &Workload,
    profile: &DeviceProfile,
    options: &Options,
    listener: &dyn Listener,
    interrupt: &Arc<AtomicBool>,
) -> anyhow::Result<Verification> {
    let engine = version.engine;
    is_runnable(engine)?;
    let adapted = adapted(engine, workload);
    scratch::make_sure_of_room(&options.directory, &adapted.workload, SPACE_FACTOR)?;
    let advice = only(Advice::for_versions(&adapted.workload, profile, &[version]))?;
    adapted.changes.iter().for_each(|change| listener.note(&format!("note: {change}")));
    let scratch = Scratch::below(&options.directory)?;
    let memory = memory(engine, &adapted.workload, listener);
    let (workload, seconds) = (&adapted.workload, options.seconds);
    let client: Box<dyn Client + '_> = match engine {
        EngineName::Rocksdb => {
            Box::new(rocksdb::RocksDb::new(workload, &advice, seconds, &scratch, interrupt)?)
        }
        EngineName::Sqlite => Box::new(sqlite::Sqlite::new(workload, &advice, seconds, &scratch, interrupt)),
        EngineName::Wiredtiger => {
            Box::new(harness::wiredtiger(workload, &advice, seconds, &scratch, interrupt)?)
        }
        EngineName::Flashgrain => {
            Box::new(harness::flashgrain(workload, &advice, seconds, profile, &scratch, interrupt)?)
        }
        EngineName::Mariadb => {
            Box::new(mariadb::MariaDb::new(workload, &advice, seconds, &scratch, interrupt)?)
        }
    };
    let rates = measure(client.as_ref(), &memory, options, listener);
    drop(client);
    scratch.remove()?;
    Ok(verification(advice, adapted, &memory, options, &rates?))
}

/// Refuses an engine whose client is not there, with its remedy.
fn is_runnable(engine: EngineName) -> anyhow::Result<()> {
    match engine {
        EngineName::Rocksdb => rocksdb::is_installed(),
        EngineName::Sqlite => sqlite::is_installed(),
        EngineName::Wiredtiger => harness::is_compiled_in(),
        EngineName::Flashgrain => Ok(()),
        EngineName::Mariadb => mariadb::is_installed(),
    }
}

/// The workload as the engine's client can run it.
fn adapted(engine: EngineName, workload: &Workload) -> Adapted {
    match engine {
        EngineName::Rocksdb => rocksdb::adapted(workload),
        EngineName::Sqlite => sqlite::adapted(workload),
        EngineName::Wiredtiger | EngineName::Flashgrain => harness::adapted(workload),
        EngineName::Mariadb => mariadb::adapted(workload),
    }
}

/// Memory of a server of MariaDB in addition to its buffer pool.
const SERVER_BYTES: u64 = 128 << 20;

/// WiredTiger's cache takes more than its size while clients are faster than eviction.
const WIREDTIGER_BYTES: u64 = 64 << 20;

/// The memory of a run. The store of this project bypasses the page cache, so that its own is the limit.
fn memory(engine: EngineName, workload: &Workload, listener: &dyn Listener) -> Memory {
    match engine {
        EngineName::Flashgrain => Memory::of_the_engine(),
        EngineName::Mariadb => Memory::new(workload.memory_bytes + SERVER_BYTES, listener),
        EngineName::Wiredtiger => Memory::new(workload.memory_bytes + WIREDTIGER_BYTES, listener),
        _ => Memory::new(workload.memory_bytes, listener),
    }
}

fn only(advice: Advice) -> anyhow::Result<EngineAdvice> {
    let first = advice.engines.into_iter().next();
    first.ok_or_else(|| anyhow::anyhow!("there is no advice for the engine"))
}

/// Rates in the order of rounds: with the defaults, as advised.
fn measure(
    client: &dyn Client,
    memory: &Memory,
    options: &Options,
    listener: &dyn Listener,
) -> anyhow::Result<Vec<(f64, f64)>> {
    for side in Side::ALL {
        listener.note(&format!("filling: {}", side.describe()));
        memory.for_filling(|| client.fill(side, options.seed))?;
    }
    let mut rates = Vec::new();
    for (round, order) in turns(options.rounds).enumerate() {
        // Both sides see the same keys, and every round others.
        let seed = options.seed.wrapping_add(1 + round as u64 * SEEDS_PER_ROUND);
        let mut of_round = (0.0, 0.0);
        for side in order {
            let rate = memory.limited(|| client.run(side, seed))?;
            listener.note(&format!(
                "round {} of {}: {:.0} operations/s with {}",
                round + 1,
                options.rounds,
                rate,
                side.describe()
            ));
            match side {
                Side::Default => of_round.0 = rate,
                Side::Advised => of_round.1 = rate,
            }
        }
        rates.push(of_round);
    }
    Ok(rates)
}

/// Clients of one run have seeds of their own, one after the other.
const SEEDS_PER_ROUND: u64 = 1_000_003;

fn verification(
    advice: EngineAdvice,
    adapted: Adapted,
    memory: &Memory,
    options: &Options,
    rates: &[(f64, f64)],
) -> Verification {
    let measured = |of: fn(&(f64, f64)) -> f64| Scatter::of(rates.iter().map(of).collect());
    let (default, advised) = (measured(|pair| pair.0), measured(|pair| pair.1));
    // The medians are less noisy than the median of the rounds' gains; the rounds' gains show the scatter.
    let gains = Scatter::of(rates.iter().map(|(default, advised)| advised / default).collect());
    let measured_gain = Scatter { median: advised.median / default.median, ..gains };
    Verification {
        engine: advice.engine,
        workload: adapted.workload,
        changes: adapted.changes,
        memory_limit_bytes: memory.limit_bytes(),
        load: cells::load(),
        rounds: options.rounds,
        seconds: options.seconds,
        seed: options.seed,
        default: Outcome {
            predicted_per_second: advice.default_rate_per_second,
            predicted_bound: advice.default_bound.describe().to_owned(),
            measured_per_second: default,
        },
        advised: Outcome {
            predicted_per_second: advice.advised_rate_per_second,
            predicted_bound: advice.advised_bound.describe().to_owned(),
            measured_per_second: advised,
        },
        predicted_gain: advice.gain,
        measured_gain,
        file: advice.file,
    }
}
