//! Several programs write to one database at a time: locks and shared memory are those of SQLite's default
//! VFS.

use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::support::{LAYOUT, check, count, create, fill, open, pragma};

/// Tells a child which database it shares.
const DATABASE: &str = "FLASHGRAIN_SHARED_DATABASE";

/// Tells a child which of them it is.
const PROGRAM: &str = "FLASHGRAIN_SHARED_PROGRAM";

const PROGRAMS: u32 = 3;
const TRANSACTIONS: u32 = 15;
const RECORDS_PER_TRANSACTION: u32 = 20;

#[test]
fn programs_share_a_database() {
    for mode in ["delete", "wal"] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("database");
        let connection = open(&path, LAYOUT);
        pragma::<String>(&connection, &format!("journal_mode = {mode}"));
        create(&connection);
        let programs: Vec<Child> = (0..PROGRAMS).map(|program| start(&path, program)).collect();
        for mut program in programs {
            assert!(program.wait().unwrap().success(), "{mode}");
            assert!(count(&connection).is_multiple_of(RECORDS_PER_TRANSACTION), "{mode}");
        }
        assert_eq!(count(&connection), PROGRAMS * TRANSACTIONS * RECORDS_PER_TRANSACTION, "{mode}");
        check(&connection);
    }
}

fn start(path: &Path, program: u32) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["processes::adds_transactions", "--exact", "--ignored"])
        .env(DATABASE, path)
        .env(PROGRAM, program.to_string())
        .stdout(Stdio::null())
        .spawn()
        .unwrap()
}

/// The child: no test of its own.
#[test]
#[ignore = "a part of another test"]
fn adds_transactions() {
    let Some(path) = std::env::var_os(DATABASE) else { return };
    let program: u32 = std::env::var(PROGRAM).unwrap().parse().unwrap();
    let connection = open(path.as_ref(), "plain");
    pragma::<i64>(&connection, "busy_timeout = 60000");
    connection.execute_batch("PRAGMA synchronous = off").unwrap();
    for transaction in 0..TRANSACTIONS {
        let first = (program * TRANSACTIONS + transaction) * RECORDS_PER_TRANSACTION;
        connection.execute_batch("BEGIN IMMEDIATE").unwrap();
        fill(&connection, first..first + RECORDS_PER_TRANSACTION);
        connection.execute_batch("COMMIT").unwrap();
    }
}
