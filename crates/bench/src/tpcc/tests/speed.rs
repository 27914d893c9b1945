//! Figures of one run, for whoever works on it: `cargo test --release -p flashgrain_bench --lib speed -- --ignored --nocapture`.

use clap::ValueEnum as _;

use super::*;

fn asked(name: &str, default: u32) -> u32 {
    std::env::var(name).map_or(default, |value| value.parse().unwrap())
}

#[test]
#[ignore = "takes minutes, and asserts only that the conditions hold"]
fn speed() {
    let name = std::env::var("TPCC_ENGINE").unwrap_or_else(|_| "flashgrain".into());
    let clients = asked("TPCC_CLIENTS", 64) as usize;
    let dir = tempfile::tempdir_in(std::env::var("TPCC_DIR").unwrap_or_else(|_| "/tmp".into())).unwrap();
    let setup = Setup {
        dir: dir.path().to_owned(),
        cache_bytes: u64::from(asked("TPCC_CACHE_MIB", 64)) << 20,
        durability: Durability::None,
        clients_max: clients.max(11),
        cores: 2,
        tables: TABLES,
    };
    let engine = EngineName::from_str(&name, true).unwrap();
    let store = Store { engine: engine.open(&setup).unwrap(), _dir: dir };
    let dataset = Dataset { scale: Scale::standard(asked("TPCC_WAREHOUSES", 1)), seed: 1, date_seconds: 1 };
    let timed = |what: &str, work: &dyn Fn()| {
        let begun = flashgrain_device::clock::now();
        work();
        println!("{what}: {:.1} s", (flashgrain_device::clock::now() - begun).seconds());
    };
    timed("load", &|| store.load(&dataset, 11));
    timed("settle", &|| store.engine.settle().unwrap());
    println!("on the device: {} MiB", bytes_in(store._dir.path()) >> 20);
    let end = End::After(Duration::from_secs(asked("TPCC_SECONDS", 20).into()));
    let cpu = flashgrain_device::clock::process_cpu();
    let report = store.run(&dataset, &Options { end, ..options(clients, 0, Home::Random) });
    let cpu = flashgrain_device::clock::process_cpu() - cpu;
    println!(
        "{:.0} transactions/s, {:.0} new orders/min, {} conflicts in {} transactions, {:.0} µs of CPU each",
        report.transactions_per_second(),
        report.new_orders_per_minute(),
        report.conflicts(),
        report.transactions(),
        cpu.seconds() * 1e6 / report.transactions() as f64
    );
    report.summaries().iter().for_each(|summary| println!("{summary:?}"));
    timed("check", &|| assert_eq!(store.check(&dataset), []));
}

fn bytes_in(dir: &std::path::Path) -> u64 {
    use std::os::unix::fs::MetadataExt as _;
    let size = |entry: std::fs::DirEntry| {
        let about = entry.metadata().unwrap();
        if about.is_dir() { bytes_in(&entry.path()) } else { about.blocks() * 512 }
    };
    std::fs::read_dir(dir).unwrap().map(|entry| size(entry.unwrap())).sum()
}
