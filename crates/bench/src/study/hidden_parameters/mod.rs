//! SQLite and MariaDB with the layout techniques of "Optimizing Databases by Learning Hidden Parameters of
//! SSDs" (§3.2.2 and 4): their gains on a simulated drive, in virtual time.
//!
//! A `stage` is a database on a volume on a simulated drive. The benchmark experiment fills it with pairs
//! of 32 and 100 bytes, and then inserts and selects in turns: with *use-hot-locations* in `hot`, with
//! *write-aligned-stripes* in `stripes`. *contain-write-in-flash-page* needs no SQLite, and no time:
//! `records`. MariaDB is in `mariadb`: its requests, without a server.

mod figures;
mod hot;
mod mariadb;
mod numbers;
mod paper;
mod records;
mod sheet;
mod stage;
mod stripes;
mod vfs;

use std::sync::atomic::{AtomicBool, Ordering};

use flashgrain_profile::Error;
use serde::Serialize;

pub use mariadb::ServerCosts;
pub use paper::ABOUT;
pub use stage::SqliteCosts;

use super::Sheet;
use super::comparison::Comparison;
use crate::listener::Listener;

/// Pairs of the paper's initial database.
const PAPER_PAIRS: u64 = 10_000_000;

/// Inserts, and selects, of an iteration in the paper.
const PAPER_OPERATIONS: u64 = 50_000;

/// The techniques.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Technique {
    /// Pages begin at hot locations: §4.1.
    UseHotLocations,
    /// The same of MariaDB: §4.1.3.
    Mariadb,
    /// Frames of the log fill stripes: §4.2.
    WriteAlignedStripes,
    /// Records lie within flash pages: §4.3.
    ContainWriteInFlashPage,
}

/// The study's options.
#[derive(Clone, Debug)]
pub struct Options {
    /// Only these of the techniques; none for all.
    pub techniques: Vec<Technique>,
    /// The drive with hot locations.
    pub hot_target: String,
    /// The drive for the log.
    pub log_target: String,
    /// The paper's pairs, inserts and selects are divided by this.
    pub divisor: u64,
    /// Iterations of each measurement; the paper has 100, and 20 of the log.
    pub iterations: u32,
    /// SQLite's cache as a share of the initial database.
    pub cache_share: f64,
    /// Inserts of a transaction.
    pub inserts_per_transaction: Vec<u64>,
    /// Processor time of SQLite.
    pub costs: SqliteCosts,
    /// Processor time of MariaDB.
    pub server_costs: ServerCosts,
    /// Seed of everything random.
    pub seed: u64,
}

/// All that was found.
#[derive(Debug, Serialize)]
pub struct HiddenResult {
    flashgrain_version: &'static str,
    sqlite_version: &'static str,
    divisor: u64,
    pairs: u64,
    operations: u64,
    iterations: u32,
    cache_share: f64,
    costs: SqliteCosts,
    seed: u64,
    hot: Option<hot::Found>,
    mariadb: Option<mariadb::Found>,
    stripes: Option<stripes::Found>,
    records: Option<records::Found>,
}

impl Options {
    fn pairs(&self) -> u64 {
        (PAPER_PAIRS / self.divisor).max(1)
    }

    fn operations(&self) -> u64 {
        (PAPER_OPERATIONS / self.divisor).max(1)
    }

    fn asks(&self, technique: Technique) -> bool {
        self.techniques.is_empty() || self.techniques.contains(&technique)
    }
}

/// The paper's numbers alone.
pub fn published() -> Vec<Comparison> {
    numbers::comparisons(None)
}

/// Makes all measurements.
///
/// # Errors
/// If a drive is not simulated, SQLite fails, or the study was interrupted.
pub fn hidden_parameters(
    options: &Options,
    listener: &dyn Listener,
    interrupt: &AtomicBool,
) -> anyhow::Result<HiddenResult> {
    let ask = |technique| options.asks(technique).then_some(());
    let hot = ask(Technique::UseHotLocations).map(|()| hot::find(options, listener, interrupt));
    let mariadb = ask(Technique::Mariadb).map(|()| mariadb::find(options, listener, interrupt));
    let stripes = ask(Technique::WriteAlignedStripes).map(|()| stripes::find(options, listener, interrupt));
    Ok(HiddenResult {
        flashgrain_version: env!("CARGO_PKG_VERSION"),
        sqlite_version: rusqlite::version(),
        divisor: options.divisor,
        pairs: options.pairs(),
        operations: options.operations(),
        iterations: options.iterations,
        cache_share: options.cache_share,
        costs: options.costs,
        seed: options.seed,
        hot: hot.transpose()?,
        mariadb: mariadb.transpose()?,
        stripes: stripes.transpose()?,
        records: ask(Technique::ContainWriteInFlashPage).map(|()| records::find(options.seed)).transpose()?,
    })
}

impl HiddenResult {
    /// The result for people.
    pub fn sheet(&self) -> Sheet {
        sheet::of(self)
    }
}

/// Ends the study if that is wished.
fn go_on(interrupt: &AtomicBool) -> anyhow::Result<()> {
    if interrupt.load(Ordering::Relaxed) { Err(Error::Interrupted.into()) } else { Ok(()) }
}
