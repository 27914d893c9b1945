//! The library as an extension that a program loads while it runs.
#![expect(clippy::unwrap_used, reason = "helpers of tests fail like tests")]

use std::path::PathBuf;

use rusqlite::{Connection, OpenFlags};

/// Where cargo puts the library beside the tests.
fn library() -> PathBuf {
    let tests = std::env::current_exe().unwrap();
    tests.with_file_name("libflashgrain_sqlite_vfs.so")
}

#[test]
fn a_loaded_extension_brings_the_vfs() {
    let loader = Connection::open_in_memory().unwrap();
    // SAFETY: the library is built from this crate.
    unsafe {
        loader.load_extension_enable().unwrap();
        loader.load_extension(library(), None::<&str>).unwrap();
        // A second time, it is there already.
        loader.load_extension(library(), None::<&str>).unwrap();
    }
    drop(loader);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("database");
    let uri = format!("file:{}?vfs=flashgrain&layout=hot:65536:32768", path.display());
    let flags = OpenFlags::default() | OpenFlags::SQLITE_OPEN_URI;
    for round in 0..2 {
        let connection = Connection::open_with_flags(&uri, flags).unwrap();
        if round == 0 {
            connection
                .execute_batch("CREATE TABLE records (number); INSERT INTO records VALUES (42)")
                .unwrap();
        }
        let number: u32 = connection.query_row("SELECT number FROM records", [], |row| row.get(0)).unwrap();
        assert_eq!(number, 42);
    }
    assert!(!std::fs::read(&path).unwrap().starts_with(b"SQLite"));
}
