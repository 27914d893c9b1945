//! *use-hot-locations* (§4.1): selects gain, inserts lose the time of splitting their writes.

use std::sync::atomic::AtomicBool;

use serde::Serialize;

use super::Options;
use super::stage::{Phase, Script, Stage};
use crate::listener::Listener;

/// How pages are laid out and written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Variant {
    /// Pages begin where chunks do.
    Original,
    /// Pages begin at hot locations, and their writes are split where stripes begin, with a flush between.
    Paper,
    /// Pages begin at hot locations, and are written whole.
    Whole,
}

impl Variant {
    pub const ALL: [Self; 3] = [Self::Original, Self::Paper, Self::Whole];

    pub fn name(self) -> &'static str {
        match self {
            Self::Original => "original",
            Self::Paper => "use-hot-locations, as in the paper",
            Self::Whole => "use-hot-locations, pages written whole",
        }
    }

    fn parameters(self) -> &'static str {
        match self {
            Self::Original => "layout=plain",
            Self::Paper => "layout=hot:65536:32768&split=65536",
            Self::Whole => "layout=hot:65536:32768",
        }
    }
}

/// The experiment with one layout and one size of transactions.
#[derive(Debug, Serialize)]
pub(super) struct Run {
    pub variant: Variant,
    pub inserts_per_transaction: u64,
    pub iterations: Vec<Iteration>,
}

/// Its two phases.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct Iteration {
    pub inserts: Phase,
    pub selects: Phase,
}

/// All runs.
#[derive(Debug, Serialize)]
pub(super) struct Found {
    pub target: String,
    pub database_bytes: u64,
    pub runs: Vec<Run>,
}

impl Run {
    /// Operations a second over all iterations.
    pub fn mean(&self, of: impl Fn(&Iteration) -> f64) -> f64 {
        let seconds: f64 = self.iterations.iter().map(|iteration| 1.0 / of(iteration)).sum();
        self.iterations.len() as f64 / seconds
    }
}

impl Found {
    /// Sizes of transactions.
    pub fn sizes(&self) -> Vec<u64> {
        let runs = self.runs.iter().filter(|run| run.variant == Variant::Original);
        runs.map(|run| run.inserts_per_transaction).collect()
    }

    pub fn run(&self, variant: Variant, inserts_per_transaction: u64) -> Option<&Run> {
        let is_it =
            |run: &&Run| (run.variant, run.inserts_per_transaction) == (variant, inserts_per_transaction);
        self.runs.iter().find(is_it)
    }

    /// By how much a variant is faster than the original: 0.1 is 10 %.
    pub fn gain(&self, variant: Variant, size: u64, of: impl Fn(&Iteration) -> f64) -> Option<f64> {
        Some(self.run(variant, size)?.mean(&of) / self.run(Variant::Original, size)?.mean(&of) - 1.0)
    }
}

/// Measures all variants with all sizes of transactions.
pub(super) fn find(
    options: &Options,
    listener: &dyn Listener,
    interrupt: &AtomicBool,
) -> anyhow::Result<Found> {
    let mut found = Found { target: options.hot_target.clone(), database_bytes: 0, runs: Vec::new() };
    let mut sizes: Vec<u64> =
        options.inserts_per_transaction.iter().map(|size| (*size).min(options.operations())).collect();
    sizes.dedup();
    for variant in Variant::ALL {
        for size in &sizes {
            listener.note(&format!("{}, {size} inserts in a transaction", variant.name()));
            let script = Script {
                target: &options.hot_target,
                parameters: variant.parameters(),
                journal_mode: "delete",
                pairs: options.pairs(),
                operations: options.operations(),
                cache_share: options.cache_share,
                costs: options.costs,
                seed: options.seed,
            };
            let mut stage = Stage::make(script, interrupt)?;
            found.database_bytes = stage.database_bytes()?;
            // Warm-up: these load the pages that stay in memory.
            stage.selects(options.operations(), interrupt)?;
            let mut iterations = Vec::new();
            for _ in 0..options.iterations {
                let inserts = stage.inserts(options.operations(), *size, interrupt)?;
                let selects = stage.selects(options.operations(), interrupt)?;
                iterations.push(Iteration { inserts, selects });
            }
            found.runs.push(Run { variant, inserts_per_transaction: *size, iterations });
        }
    }
    Ok(found)
}
