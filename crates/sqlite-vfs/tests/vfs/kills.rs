//! A program is killed at any moment, and what it was told to be committed is there: the journals and logs of
//! a layout are found and applied. `FLASHGRAIN_KILLS` kills (12) from the seed `FLASHGRAIN_SEED` (1).

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use flashgrain_device::OpenOptions;
use flashgrain_sqlite_vfs::{VolumeOptions, create_files, open_files};
use rand::{RngExt as _, SeedableRng as _};
use rand_pcg::Pcg64;

use crate::support::{LAYOUTS, Mounted, check, count, create, fill, open, pragma};

/// Tells the child which database is its own.
const DATABASE: &str = "FLASHGRAIN_KILLED_DATABASE";

const RECORDS_PER_TRANSACTION: u32 = 50;

pub fn number(variable: &str, otherwise: u64) -> u64 {
    std::env::var(variable).map_or(otherwise, |text| text.parse().unwrap())
}

#[test]
fn acknowledged_transactions_survive_kills() {
    let seed = number("FLASHGRAIN_SEED", 1);
    let mut random = Pcg64::seed_from_u64(seed);
    for kill in 0..number("FLASHGRAIN_KILLS", 12) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("database");
        let layout = LAYOUTS[random.random_range(0..LAYOUTS.len())];
        let mode = ["delete", "truncate", "persist", "wal"][random.random_range(0..4)];
        let connection = open(&path, layout);
        pragma::<String>(&connection, &format!("journal_mode = {mode}"));
        create(&connection);
        drop(connection);
        // The second life begins with what the first one has left.
        for _ in 0..2 {
            let before = count(&open(&path, "plain"));
            let acknowledged = killed(&path, None, random.random_range(1..40), mode);
            let connection = open(&path, "plain");
            let found = count(&connection);
            let told =
                format!("seed {seed}, kill {kill}: {layout} {mode}: {before} + {acknowledged}, {found}");
            assert!(found.is_multiple_of(RECORDS_PER_TRANSACTION), "{told}");
            assert!(found >= before + acknowledged, "{told}");
            check(&connection);
        }
    }
}

/// The file of a volume, which the child mounts.
const VOLUME: &str = "FLASHGRAIN_KILLED_VOLUME";

fn mount(file: &Path) -> Mounted {
    Mounted::mount(
        "killed",
        open_files(&[file.to_owned()], &OpenOptions::default(), VolumeOptions::default()).unwrap(),
    )
}

#[test]
fn acknowledged_transactions_survive_kills_in_a_volume() {
    let seed = number("FLASHGRAIN_SEED", 1);
    let mut random = Pcg64::seed_from_u64(seed ^ 1);
    for kill in 0..number("FLASHGRAIN_KILLS", 6) {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("volume");
        let layout = LAYOUTS[random.random_range(0..LAYOUTS.len())];
        let mode = ["delete", "truncate", "persist", "wal"][random.random_range(0..4)];
        let path = {
            let made = create_files(
                std::slice::from_ref(&file),
                32 << 20,
                &OpenOptions::default(),
                VolumeOptions::default(),
            );
            let volume = Mounted::mount("killed", made.unwrap());
            let connection = open(&volume.path("database"), layout);
            pragma::<String>(&connection, &format!("journal_mode = {mode}"));
            create(&connection);
            volume.path("database")
        };
        let acknowledged = killed(&path, Some(&file), random.random_range(1..40), mode);
        let volume = mount(&file);
        let connection = open(&volume.path("database"), "plain");
        let found = count(&connection);
        let told = format!("seed {seed}, kill {kill}: {layout} {mode}: {acknowledged}, {found}");
        assert!(found.is_multiple_of(RECORDS_PER_TRANSACTION) && found >= acknowledged, "{told}");
        check(&connection);
    }
}

/// Records in transactions that a child had acknowledged when it was killed, after so many lines or a little
/// later.
fn killed(path: &Path, volume: Option<&Path>, lines: usize, mode: &str) -> u32 {
    let mut command = Command::new(std::env::current_exe().unwrap());
    if let Some(file) = volume {
        command.env(VOLUME, file);
    }
    let mut child = command
        .args(["kills::writes_until_it_is_killed", "--exact", "--ignored", "--nocapture"])
        .env(DATABASE, path)
        .env("FLASHGRAIN_KILLED_MODE", mode)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
    let is_commit = |line: &String| line.ends_with("committed");
    let seen = said.by_ref().filter(is_commit).take(lines).count();
    child.kill().unwrap();
    // What was said before the kill is still in the pipe; its last line may be cut off.
    let rest = said.filter(is_commit).count();
    child.wait().unwrap();
    assert_eq!(seen, lines, "the child ended by itself");
    (seen + rest) as u32 * RECORDS_PER_TRANSACTION
}

/// The child: no test of its own.
#[test]
#[ignore = "runs until it is killed"]
fn writes_until_it_is_killed() {
    let Some(path) = std::env::var_os(DATABASE) else { return };
    let _mounted = std::env::var_os(VOLUME).map(|file| mount(file.as_ref()));
    let connection = open(path.as_ref(), "plain");
    // In this mode, a log that is reset often is more of a challenge.
    connection.execute_batch("PRAGMA cache_size = 3; PRAGMA synchronous = off").unwrap();
    pragma::<i64>(&connection, "wal_autocheckpoint = 20");
    pragma::<String>(
        &connection,
        &format!("journal_mode = {}", std::env::var("FLASHGRAIN_KILLED_MODE").unwrap()),
    );
    let mut next = count(&connection);
    loop {
        connection.execute_batch("BEGIN").unwrap();
        fill(&connection, next..next + RECORDS_PER_TRANSACTION);
        connection.execute_batch("COMMIT").unwrap();
        next += RECORDS_PER_TRANSACTION;
        println!("committed");
    }
}
