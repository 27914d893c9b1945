//! The library as an extension that a program loads while it runs.
#![expect(clippy::unwrap_used, reason = "helpers of tests fail like tests")]

use std::path::{Path, PathBuf};
use std::process::Command;

use flashgrain_device::OpenOptions;
use flashgrain_sqlite_vfs::{VolumeOptions, convert, create_files};
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

/// The session of SQLite's shell that [`a_session`] repeats.
const SESSION: &str = "FLASHGRAIN_SESSION";

/// Each runs in a process of its own, as `FLASHGRAIN_VOLUMES` is read when the extension is loaded.
#[test]
fn the_sessions_of_the_guide_do_what_they_show() {
    let guide = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/sqlite.md");
    let guide = std::fs::read_to_string(guide).unwrap();
    let sessions = guide.split("```console\n").skip(1).map(|rest| rest.split("```").next().unwrap());
    assert_eq!(sessions.clone().count(), 2);
    for session in sessions {
        let folder = tempfile::tempdir().unwrap();
        let place = |path: &str| folder.path().join(path);
        for path in ["data", "mnt/a", "mnt/b"] {
            std::fs::create_dir_all(place(path)).unwrap();
        }
        let plain = Connection::open(place("plain.db")).unwrap();
        plain.execute_batch("CREATE TABLE orders (number)").unwrap();
        drop(plain);
        let layout = "hot:65536:32768".parse().unwrap();
        convert::import(&place("plain.db"), &place("data/orders.db"), layout).unwrap();

        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["a_session", "--exact", "--ignored", "--nocapture"]).current_dir(&folder);
        let (shell, lines) = session.split_once('\n').unwrap();
        if let Some((name, value)) = shell.strip_prefix("$ ").unwrap().split_once('=') {
            // The members of a volume lie on drives of their own.
            let value = value.trim_end_matches(" sqlite3").trim_matches('"').replace("/mnt", "mnt");
            let members: Vec<_> = value.split_once('=').unwrap().1.split(',').map(place).collect();
            drop(
                create_files(&members, 64 << 20, &OpenOptions::default(), VolumeOptions::default()).unwrap(),
            );
            command.env(name, value);
        }
        let status = command.env(SESSION, lines.replace("/data/", "data/")).status().unwrap();
        assert!(status.success(), "{session}");
    }
}

#[test]
#[ignore = "a part of `the_sessions_of_the_guide_do_what_they_show`"]
fn a_session() {
    let session = std::env::var(SESSION).unwrap();
    let mut connection = Connection::open_in_memory().unwrap();
    for step in session.split("sqlite> ").skip(1) {
        // A line of a user, and what follows from it.
        let (line, printed) = step.split_once('\n').unwrap();
        if let Some(path) = line.strip_prefix(".load ") {
            assert_eq!(library().file_stem(), Path::new(path).file_name());
            // SAFETY: the library is built from this crate.
            unsafe {
                connection.load_extension_enable().unwrap();
                connection.load_extension(library(), None::<&str>).unwrap();
            }
        } else if let Some(uri) = line.strip_prefix(".open ") {
            connection = Connection::open(uri).unwrap();
        } else if printed.is_empty() {
            connection.execute_batch(line).unwrap();
        } else {
            let value: String = connection.query_row(line, [], |row| row.get(0)).unwrap();
            assert_eq!(value, printed.trim_end());
        }
    }
    connection.execute_batch("CREATE TABLE more (number); INSERT INTO more VALUES (42)").unwrap();
}
