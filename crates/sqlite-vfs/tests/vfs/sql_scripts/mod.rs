//! Scripts of SQL in the format of sqllogictest: SQLite's own VFS says what comes out, and ours must say the
//! same, with a new connection now and then.
//!
//! `FLASHGRAIN_SQL_SCRIPTS` names a script or a folder of them to run instead, such as SQLite's own corpus;
//! `FLASHGRAIN_SCRIPTS` is how many scripts are generated (3), `FLASHGRAIN_RECORDS` how long they are (250),
//! `FLASHGRAIN_SEED` the first one's seed (1).

mod generate;
mod md5;
mod run;
mod script;

use std::fs;
use std::path::{Path, PathBuf};

use flashgrain_sqlite_vfs::{Volume, VolumeOptions};
use rand::{RngExt as _, SeedableRng as _};
use rand_pcg::Pcg64;
use rusqlite::Connection;

use crate::kills::number;
use crate::support::{LAYOUTS, Mounted, drive, open, open_plainly, pragma};
use script::Record;

const MODES: [&str; 5] = ["delete", "truncate", "persist", "memory", "wal"];

/// Where a script runs.
struct Place {
    /// As errors say it.
    told: String,
    path: PathBuf,
    /// None for SQLite's own VFS.
    layout: Option<&'static str>,
    mode: &'static str,
    page_bytes: u32,
}

impl Place {
    fn connect(&self) -> Connection {
        let connection = match self.layout {
            Some(layout) => open(&self.path, layout),
            None => open_plainly(&self.path),
        };
        connection.execute_batch(&format!("PRAGMA page_size = {}", self.page_bytes)).unwrap();
        pragma::<String>(&connection, &format!("journal_mode = {}", self.mode));
        connection.execute_batch("PRAGMA cache_size = 10; PRAGMA synchronous = off").unwrap();
        connection
    }

    fn run(&self, records: &[Record]) -> Vec<Record> {
        run::run(&|| self.connect(), records).unwrap_or_else(|error| panic!("{}: {error}", self.told))
    }
}

/// Runs a script everywhere; `named` says which one it is.
fn run_everywhere(records: &[Record], named: &str, seed: u64) {
    let mut random = Pcg64::seed_from_u64(seed);
    let folder = tempfile::tempdir().unwrap();
    let mut place = |path: PathBuf, layout: Option<&'static str>, vfs: &str| {
        let (mode, page_bytes) = (MODES[random.random_range(0..5)], 512 << random.random_range(0..8));
        let shown = layout.unwrap_or("");
        let told = format!("{named}, {vfs} {shown}, journal {mode}, pages of {page_bytes}, seed {seed}");
        Place { told, path, layout, mode, page_bytes }
    };
    let plain = place(folder.path().join("unix"), None, "unix").run(records);
    // What was made out as a script is what the others get.
    let expected = script::parse(&script::write(&plain));
    for (number, layout) in LAYOUTS.into_iter().enumerate() {
        let path = folder.path().join(number.to_string());
        place(path, Some(layout), "flashgrain").run(&expected);
    }
    let volume = Volume::create(drive(), VolumeOptions::default()).unwrap();
    let volume = Mounted::mount(&format!("scripts-{seed}-{}", std::process::id()), volume);
    for layout in [LAYOUTS[0], LAYOUTS[3], LAYOUTS[4]] {
        place(volume.path(layout), Some(layout), "flashgrain-device").run(&expected);
    }
}

/// All files below a folder, or a file itself.
fn files_below(path: &Path) -> Vec<PathBuf> {
    if path.is_file() {
        return vec![path.to_owned()];
    }
    let mut entries: Vec<PathBuf> = fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path()).collect();
    entries.sort();
    entries.iter().flat_map(|path| files_below(path)).collect()
}

#[test]
fn scripts_have_the_results_of_sqlite_s_own_vfs() {
    let seed = number("FLASHGRAIN_SEED", 1);
    if let Ok(path) = std::env::var("FLASHGRAIN_SQL_SCRIPTS") {
        for (number, path) in files_below(path.as_ref()).into_iter().enumerate() {
            let text = fs::read_to_string(&path).unwrap();
            println!("{}", path.display());
            run_everywhere(&script::parse(&text), &path.display().to_string(), seed + number as u64);
        }
        return;
    }
    for seed in seed..seed + number("FLASHGRAIN_SCRIPTS", 3) {
        let records = generate::script(seed, number("FLASHGRAIN_RECORDS", 250) as usize);
        run_everywhere(&records, "a generated script", seed);
    }
}

/// The comparison is one: a result that is not SQLite's is told, and so is a statement that goes well.
#[test]
fn wrong_results_are_told() {
    let connect = || Connection::open_in_memory().unwrap();
    let told = |text: &str| run::run(&connect, &script::parse(text)).map(drop).unwrap_err();
    assert!(told("query I nosort\nSELECT 1\n----\n2\n").contains("line 1: [\"1\"], expected"));
    assert!(told("statement error\nSELECT 1\n").contains("line 1: Ok"));
    assert!(told("statement ok\nnonsense\n").contains("line 1: Err"));
    assert!(told("query I nosort\nSELECT 1\n----\n1 values hashing to 0\n").contains("expected"));
    assert!(told("query I nosort x\nSELECT 1\n\nquery I nosort x\nSELECT 2\n").contains("label x"));
    // The hash of "1\n".
    let right = "query I nosort\nSELECT 1\n----\n1 values hashing to b026324c6904b2a9cb4b88d6d61c81d1\n";
    assert!(run::run(&connect, &script::parse(right)).is_ok());
}
