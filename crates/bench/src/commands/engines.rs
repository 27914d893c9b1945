//! Lists the engines to compare with.

use std::process::ExitCode;

use flashgrain_bench::engine::{Durability, EngineName, Setup};

/// Opens each for a moment: its settings are only known then.
pub fn engines(cache_mib: u64, durability: Durability) -> anyhow::Result<ExitCode> {
    let dir = tempfile::tempdir()?;
    for name in EngineName::all() {
        if !name.is_compiled_in() {
            println!("{name}: not compiled in; {}\n", name.how_to_get());
            continue;
        }
        // An engine without transactions promises nothing either.
        let durability = if name.has_transactions() { durability } else { Durability::None };
        let setup = Setup {
            dir: dir.path().join(name.to_string()),
            cache_bytes: cache_mib << 20,
            durability,
            clients_max: 128,
            cores: std::thread::available_parallelism()?.get(),
            tables: &["table"],
            settings: None,
            page_bytes: None,
        };
        let engine = name.open(&setup)?;
        println!("{name}, {:?}", name.caching());
        for (setting, value) in engine.settings() {
            println!("    {setting}: {value}");
        }
        println!();
        engine.close()?;
    }
    Ok(ExitCode::SUCCESS)
}
