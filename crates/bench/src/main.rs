//! `flashgrain-bench`: benchmarks beside other key-value stores.

use clap::{Parser, Subcommand};
use flashgrain_bench::engine::{Durability, EngineName, Setup};

/// Benchmarks of Flashgrain beside other key-value stores.
#[derive(Debug, Parser)]
#[command(name = "flashgrain-bench", version, max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// List the engines: which are compiled in, with version and settings, and how to get the others.
    Engines {
        /// Memory that the settings are for, in MiB.
        #[arg(long, default_value_t = 1024, value_parser = clap::value_parser!(u64).range(16..))]
        cache_mib: u64,
        /// What commits promise.
        #[arg(long, value_enum, default_value_t = Durability::Buffered)]
        durability: Durability,
    },
}

fn main() -> anyhow::Result<()> {
    match Cli::parse().command {
        Command::Engines { cache_mib, durability } => engines(cache_mib, durability),
    }
}

/// Opens each for a moment: only then is known what it is told.
fn engines(cache_mib: u64, durability: Durability) -> anyhow::Result<()> {
    let dir = tempfile::tempdir()?;
    for name in EngineName::all() {
        if !name.is_compiled_in() {
            println!("{name}: not compiled in; {}\n", name.how_to_get());
            continue;
        }
        let setup = Setup {
            dir: dir.path().join(name.to_string()),
            cache_bytes: cache_mib << 20,
            durability,
            clients_max: 128,
            cores: std::thread::available_parallelism()?.get(),
            tables: &["table"],
        };
        let engine = name.open(&setup)?;
        println!("{name}, {:?}", name.caching());
        for (setting, value) in engine.settings() {
            println!("    {setting}: {value}");
        }
        println!();
        engine.close()?;
    }
    Ok(())
}
