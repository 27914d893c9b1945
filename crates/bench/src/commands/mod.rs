//! The commands, and the options that they share.

pub mod compare;
pub mod engines;
pub mod run;
pub mod suite;

use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use clap::Args;
use flashgrain_bench::records::Records;
use flashgrain_bench::run::Sizes;
use signal_hook::consts::{SIGINT, SIGTERM};

#[derive(Debug, Args)]
pub struct DataArguments {
    /// Records at the beginning.
    #[arg(long, default_value_t = 1_000_000, value_parser = clap::value_parser!(u64).range(1..))]
    records: u64,
    /// Warehouses of TPC-C, about 80 MB each.
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..))]
    warehouses: u32,
    /// Bytes of a key.
    #[arg(long, default_value_t = 8, value_parser = clap::value_parser!(u32).range(8..=511))]
    key_bytes: u32,
    /// Bytes of a value.
    #[arg(long, default_value_t = 120, value_parser = clap::value_parser!(u32).range(8..=65536))]
    value_bytes: u32,
    /// Counted seconds of each run.
    #[arg(long, default_value_t = 20.0)]
    pub seconds: f64,
    /// Seconds before anything is counted.
    #[arg(long, default_value_t = 5.0)]
    pub warmup: f64,
    /// Seed of everything random.
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

impl DataArguments {
    fn sizes(&self) -> Sizes {
        let Self { records, key_bytes, value_bytes, warehouses, seed, .. } = *self;
        let (key_bytes, value_bytes) = (key_bytes as usize, value_bytes as usize);
        Sizes { records: Records { count: records, key_bytes, value_bytes }, warehouses, seed }
    }
}

/// Set by Ctrl-C; a second one ends the process at once.
fn interrupt() -> anyhow::Result<Arc<AtomicBool>> {
    let flag = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        signal_hook::flag::register_conditional_shutdown(signal, 128 + signal, Arc::clone(&flag))?;
        signal_hook::flag::register(signal, Arc::clone(&flag))?;
    }
    Ok(flag)
}

/// After Ctrl-C, after a failure that was told, and when all is well.
fn exit_code(interrupt: &AtomicBool, is_well: bool) -> ExitCode {
    match interrupt.load(Ordering::Relaxed) {
        true => ExitCode::from(130),
        false if is_well => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    }
}

fn cores(given: Option<usize>) -> anyhow::Result<usize> {
    Ok(given.unwrap_or(std::thread::available_parallelism()?.get()).max(1))
}
