//! Programs without the VFS: they are refused, and leave everything as it is.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use rusqlite::ErrorCode;

use crate::support::{LAYOUT, LAYOUTS, check, count, create, fill, open, open_plainly, pragma};

fn contents(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap());
    entries.map(|entry| (entry.file_name().into_string().unwrap(), fs::read(entry.path()).unwrap())).collect()
}

/// Copies all files but the shared memory, as a crash would leave them.
fn crash(from: &Path, to: &Path) {
    fs::create_dir(to).unwrap();
    for (name, bytes) in contents(from) {
        if !name.ends_with("-shm") {
            fs::write(to.join(name), bytes).unwrap();
        }
    }
}

/// Does what a shell does: looks at the tables, and closes.
fn is_refused(path: &Path) {
    let connection = open_plainly(path);
    for statement in
        ["SELECT * FROM sqlite_schema", "CREATE TABLE other (number)", "PRAGMA journal_mode = wal", "VACUUM"]
    {
        let result = connection.query_row(statement, [], |_| Ok(()));
        assert_eq!(result.unwrap_err().sqlite_error_code(), Some(ErrorCode::NotADatabase), "{statement}");
    }
}

#[test]
fn plain_sqlite_refuses_a_layout_and_touches_nothing() {
    for layout in &LAYOUTS[..4] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("database");
        let connection = open(&path, layout);
        create(&connection);
        fill(&connection, 0..100);
        drop(connection);
        let before = contents(folder.path());
        is_refused(&path);
        assert_eq!(contents(folder.path()), before, "{layout}");
    }
}

/// Plain SQLite changes none of these files, and the VFS finds the 100 records that were committed.
fn plain_sqlite_leaves(left: &Path, before: &BTreeMap<String, Vec<u8>>) {
    is_refused(&left.join("database"));
    assert_eq!(&contents(left), before);
    let recovered = open(&left.join("database"), "plain");
    assert_eq!(count(&recovered), 100);
    check(&recovered);
}

#[test]
fn plain_sqlite_leaves_the_log_of_a_crash() {
    let folder = tempfile::tempdir().unwrap();
    let (live, left) = (folder.path().join("live"), folder.path().join("left"));
    fs::create_dir(&live).unwrap();
    let connection = open(&live.join("database"), LAYOUT);
    pragma::<String>(&connection, "journal_mode = wal");
    create(&connection);
    fill(&connection, 0..100);
    crash(&live, &left);
    let before = contents(&left);
    assert!(before.contains_key("database-grainwal"), "{:?}", before.keys());
    plain_sqlite_leaves(&left, &before);
}

#[test]
fn plain_sqlite_leaves_the_journal_of_a_crash() {
    let folder = tempfile::tempdir().unwrap();
    let (live, left) = (folder.path().join("live"), folder.path().join("left"));
    fs::create_dir(&live).unwrap();
    let connection = open(&live.join("database"), LAYOUT);
    create(&connection);
    fill(&connection, 0..100);
    // With few pages in memory, some are written before the transaction ends.
    connection.execute_batch("PRAGMA cache_size = 2; BEGIN; DELETE FROM records").unwrap();
    fill(&connection, 1000..3000);
    crash(&live, &left);
    let before = contents(&left);
    assert_ne!(before["database-grainjournal"][0], 0, "the journal is to be rolled back");
    plain_sqlite_leaves(&left, &before);
}

#[test]
fn a_plain_database_stays_plain() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("database");
    let connection = open_plainly(&path);
    create(&connection);
    fill(&connection, 0..100);
    drop(connection);
    let connection = open(&path, LAYOUT);
    assert_eq!(pragma::<String>(&connection, "flashgrain_layout"), "plain");
    fill(&connection, 100..200);
    check(&connection);
    drop(connection);
    let connection = open_plainly(&path);
    assert_eq!(count(&connection), 200);
    check(&connection);
}

#[test]
fn a_damaged_header_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("database");
    create(&open(&path, LAYOUT));
    let mut bytes = fs::read(&path).unwrap();
    bytes[33] ^= 1;
    fs::write(&path, &bytes).unwrap();
    let error = crate::support::try_open(&path, LAYOUT).unwrap_err();
    assert_eq!(error.sqlite_error_code(), Some(ErrorCode::NotADatabase));
    assert_eq!(fs::read(&path).unwrap(), bytes);
}

#[test]
fn a_layout_that_is_none_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    for layout in ["hot", "hot:0:0", "hot:4096:4096", "cold:4096:0"] {
        let path = folder.path().join("database");
        let error = crate::support::try_open(&path, layout).unwrap_err();
        assert_eq!(error.sqlite_error_code(), Some(ErrorCode::CannotOpen), "{layout}");
        assert!(!path.exists());
    }
}
