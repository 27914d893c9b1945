//! The interface of the benchmarks, tested with every engine that is compiled in.
#![expect(clippy::unwrap_used, reason = "helpers of tests fail like tests")]

#[cfg(feature = "berkeleydb")]
mod berkeley_db;
mod conflicts;
mod panics;
mod refusals;
mod reopening;
#[cfg(feature = "rocksdb")]
mod rocksdb_options;
mod scripts;
mod visibility;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use flashgrain_bench::engine::{Direction, Durability, Engine, EngineName, Failure, Session, Setup, Table};
use flashgrain_device::clock;
use tempfile::TempDir;

const TABLES: &[&str] = &["first", "second"];

/// A record of a table.
type Record = (Vec<u8>, Vec<u8>);

/// On a drive: not all engines' direct I/O works in memory.
fn scratch() -> TempDir {
    tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap()
}

fn setup(dir: &Path, durability: Durability) -> Setup {
    let dir = dir.to_owned();
    Setup {
        dir,
        cache_bytes: 64 << 20,
        durability,
        clients_max: 8,
        cores: 2,
        tables: TABLES,
        settings: None,
        page_bytes: None,
    }
}

/// With each engine that there is and that has transactions, in a directory of its own.
fn with_each(test: impl Fn(EngineName, &Path)) {
    let usable = |name: &&EngineName| name.is_compiled_in() && name.has_transactions();
    for name in EngineName::all().iter().filter(usable) {
        println!("{name}");
        test(*name, scratch().path());
    }
}

/// Lets one client do something, and hands on what it returns.
fn ask<T: Send + 'static>(
    engine: &dyn Engine,
    work: impl Fn(&mut dyn Session) -> anyhow::Result<T> + Send + Sync + 'static,
) -> anyhow::Result<T> {
    let answer = Arc::new(std::sync::Mutex::new(None));
    let place = Arc::clone(&answer);
    engine.run(
        1,
        Arc::new(move |_, session| {
            *place.lock().unwrap() = Some(work(session)?);
            Ok(())
        }),
    )?;
    let answer = answer.lock().unwrap().take();
    Ok(answer.unwrap())
}

fn records(
    session: &mut dyn Session,
    table: Table,
    from: &[u8],
    direction: Direction,
    most: usize,
) -> Result<Vec<Record>, Failure> {
    let mut found = Vec::new();
    if most > 0 {
        session.scan(table, from, direction, &mut |key, value| {
            found.push((key.to_vec(), value.to_vec()));
            found.len() < most
        })?;
    }
    Ok(found)
}

/// Lets a client wait for so long.
fn wait(session: &mut dyn Session, time: Duration) -> Result<(), Failure> {
    session.wait_until(Duration::from(clock::now()) + time)
}
