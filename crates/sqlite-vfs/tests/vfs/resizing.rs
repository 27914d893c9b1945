//! All ways in which SQLite writes pages of another size than the database has, in all layouts.
//!
//! `FLASHGRAIN_MATRIX=1` has each pair of sizes tried in each layout with each journal mode; else the modes
//! take turns.

use std::ffi::{c_int, c_void};
use std::fs;
use std::path::{Path, PathBuf};

use flashgrain_sqlite_vfs::convert;
use rusqlite::backup::Backup;
use rusqlite::{Connection, ffi};

use crate::support::{Mounted, beside, drive, open, open_plainly, pragma};

const MODES: [&str; 5] = ["delete", "truncate", "persist", "memory", "off"];

const SIZES: [u32; 8] = [512, 1024, 2048, 4096, 8192, 16384, 32768, 65536];

/// Each place of pages, with and without an aligned log and checksums, and none.
fn layouts() -> Vec<String> {
    let mut layouts = vec!["plain".to_owned()];
    for hot in ["hot:65536:32768", "hot:4096:0", "hot:5120:1536"] {
        for log in ["", "+log:16384"] {
            for sums in ["", "+checksums"] {
                layouts.push(format!("{hot}{log}{sums}"));
            }
        }
    }
    layouts
}

/// Each size after each other one.
fn walk() -> Vec<u32> {
    let pairs =
        (0..SIZES.len()).flat_map(|first| (first + 1..SIZES.len()).map(move |second| (first, second)));
    let mut walk: Vec<u32> =
        pairs.flat_map(|(first, second)| [SIZES[first], SIZES[second], SIZES[first]]).collect();
    walk.dedup();
    walk
}

/// A text in which each byte tells when it is another one, without zeros.
fn content(number: u32) -> String {
    (0..number % 97 * 13 % 2100).map(|at| char::from(b'0' + ((number * 7 + at * 11) % 61) as u8)).collect()
}

fn fill(connection: &Connection, numbers: std::ops::Range<u32>) {
    connection.execute_batch("BEGIN").unwrap();
    for number in numbers {
        connection.execute("REPLACE INTO records VALUES (?1, ?2)", (number, content(number))).unwrap();
    }
    connection.execute_batch("COMMIT").unwrap();
}

fn create(connection: &Connection, rows: u32) {
    connection
        .execute_batch("CREATE TABLE records (number INTEGER PRIMARY KEY, content TEXT); CREATE INDEX contents ON records (content)")
        .unwrap();
    fill(connection, 0..rows);
}

#[track_caller]
fn holds(connection: &Connection, rows: u32, told: &str) {
    let mut statement = connection.prepare("SELECT number, content FROM records ORDER BY number").unwrap();
    let mut found = statement.query([]).unwrap();
    for number in 0..rows {
        let row = found.next().unwrap_or_else(|error| panic!("{told}: row {number}: {error}")).unwrap();
        assert_eq!(row.get::<_, u32>(0).unwrap(), number, "{told}");
        assert!(row.get::<_, String>(1).unwrap() == content(number), "{told}: row {number}");
    }
    assert!(found.next().unwrap().is_none(), "{told}");
    drop(found);
    assert_eq!(pragma::<String>(connection, "integrity_check"), "ok", "{told}");
}

/// The database is right for its connection, for a new one, and after its way out of the layout.
#[track_caller]
fn is_right(connection: &Connection, path: &Path, rows: u32, told: &str) {
    holds(connection, rows, told);
    let fresh = open(path, "plain");
    fresh.execute_batch("PRAGMA cache_size = 5").unwrap();
    holds(&fresh, rows, told);
}

fn comes_out(path: &Path, folder: &Path, rows: u32, told: &str) {
    let exported = folder.join("exported");
    if path.starts_with(folder) && convert::describe(path).unwrap().layout.is_some() {
        convert::export(path, &exported).unwrap();
    } else {
        let target = format!("VACUUM INTO 'file:{}?vfs=unix'", exported.display());
        open(path, "plain").execute_batch(&target).unwrap();
    }
    let plain = open_plainly(&exported);
    holds(&plain, rows, told);
    drop(plain);
    fs::remove_file(exported).unwrap();
}

/// Databases in folders and on a volume.
fn places(folder: &Path, volume: &Mounted) -> Vec<(String, PathBuf)> {
    let mut places = Vec::new();
    for layout in layouts() {
        places.push((layout.clone(), folder.join(&layout)));
        if layout.starts_with("hot:4096") {
            places.push((layout.clone(), volume.path(&layout)));
        }
    }
    places
}

fn all_combinations() -> bool {
    std::env::var_os("FLASHGRAIN_MATRIX").is_some()
}

#[test]
fn vacuums_give_pages_each_size_from_each() {
    const ROWS: u32 = 120;
    let folder = tempfile::tempdir().unwrap();
    let volume = Mounted::create("resizing", drive());
    let shifts = if all_combinations() { 0..MODES.len() } else { 0..1 };
    for (number, (layout, path)) in places(folder.path(), &volume).into_iter().enumerate() {
        let connection = open(&path, &layout);
        connection.execute_batch("PRAGMA synchronous = off; PRAGMA page_size = 65536").unwrap();
        create(&connection, ROWS);
        for shift in shifts.clone() {
            for (step, page_bytes) in walk().into_iter().enumerate() {
                let mode = MODES[(number + step + shift) % MODES.len()];
                let before: u32 = pragma(&connection, "page_size");
                let told = format!("{layout}, {}, from {before} to {page_bytes}, {mode}", path.display());
                pragma::<String>(&connection, &format!("journal_mode = {mode}"));
                let cache = [3, 2000][step % 2];
                let auto = step % 3;
                connection
                    .execute_batch(&format!(
                        "PRAGMA cache_size = {cache}; PRAGMA auto_vacuum = {auto}; PRAGMA page_size = {page_bytes}; VACUUM"
                    ))
                    .unwrap_or_else(|error| panic!("{told}: {error}"));
                assert_eq!(pragma::<u32>(&connection, "page_size"), page_bytes, "{told}");
                is_right(&connection, &path, ROWS, &told);
                if step % 9 == number % 9 {
                    comes_out(&path, folder.path(), ROWS, &told);
                }
            }
        }
        assert_eq!(pragma::<String>(&connection, "flashgrain_layout"), layout);
    }
}

#[test]
fn a_log_keeps_the_size_and_gets_the_one_of_a_later_vacuum() {
    const ROWS: u32 = 100;
    let folder = tempfile::tempdir().unwrap();
    let volume = Mounted::create("resized-log", drive());
    for (layout, path) in places(folder.path(), &volume) {
        let connection = open(&path, &layout);
        connection.execute_batch("PRAGMA synchronous = off; PRAGMA cache_size = 5").unwrap();
        create(&connection, ROWS);
        keep_log(&connection);
        let mut size = 4096;
        for page_bytes in [512, 65536, 1024, 16384] {
            let told = format!("{layout}, {}, from {size} to {page_bytes}", path.display());
            assert_eq!(pragma::<String>(&connection, "journal_mode = wal"), "wal", "{told}");
            connection
                .execute_batch(&format!("PRAGMA page_size = {page_bytes}; VACUUM"))
                .unwrap_or_else(|error| panic!("{told}: {error}"));
            assert_eq!(pragma::<u32>(&connection, "page_size"), size, "{told}");
            fill(&connection, 0..ROWS);
            // Another connection has the log open as well.
            is_right(&connection, &path, ROWS, &told);
            assert_eq!(pragma::<String>(&connection, "journal_mode = delete"), "delete", "{told}");
            connection
                .execute_batch(&format!("PRAGMA page_size = {page_bytes}; VACUUM"))
                .unwrap_or_else(|error| panic!("{told}: {error}"));
            assert_eq!(pragma::<u32>(&connection, "page_size"), page_bytes, "{told}");
            is_right(&connection, &path, ROWS, &told);
            size = page_bytes;
        }
        comes_out(&path, folder.path(), ROWS, &layout);
    }
}

/// Has SQLite leave an empty log where it is when no connection uses it any more.
fn keep_log(connection: &Connection) {
    pragma::<i64>(connection, "journal_size_limit = 0");
    let mut keeps: c_int = 1;
    let argument: *mut c_void = std::ptr::from_mut(&mut keeps).cast();
    // SAFETY: an open connection, and the argument of SQLITE_FCNTL_PERSIST_WAL.
    unsafe { ffi::sqlite3_file_control(connection.handle(), c"main".as_ptr(), 10, argument) };
}

/// Reserves bytes in each page, from the next `VACUUM` on.
fn reserve(connection: &Connection, mut bytes: c_int) {
    let argument: *mut c_void = std::ptr::from_mut(&mut bytes).cast();
    // SAFETY: an open connection, and the argument of SQLITE_FCNTL_RESERVE_BYTES.
    let code = unsafe { ffi::sqlite3_file_control(connection.handle(), c"main".as_ptr(), 38, argument) };
    assert_eq!(code, 0);
}

/// SQLite's backup writes pages of the other database over those that are there, in their size.
#[test]
fn backups_bring_pages_of_another_size() {
    const ROWS: u32 = 150;
    let folder = tempfile::tempdir().unwrap();
    let volume = Mounted::create("resizing-backup", drive());
    for (number, (layout, path)) in places(folder.path(), &volume).into_iter().enumerate() {
        for (step, (from, to)) in
            [(512, 4096), (65536, 1024), (1024, 65536), (8192, 8192)].into_iter().enumerate()
        {
            let mode = MODES[(number + step) % MODES.len()];
            let told = format!("{layout}, {}, pages of {from} over {to}, {mode}", path.display());
            let source = open_plainly(&folder.path().join("source"));
            source.execute_batch(&format!("PRAGMA synchronous = off; PRAGMA page_size = {from}")).unwrap();
            reserve(&source, if from == 512 { 32 } else { 24 });
            create(&source, ROWS);
            let path = beside(&path, &step.to_string());
            let mut connection = open(&path, &layout);
            let setup = format!("PRAGMA synchronous = off; PRAGMA cache_size = 3; PRAGMA page_size = {to}");
            connection.execute_batch(&setup).unwrap();
            create(&connection, ROWS / 2);
            // A backup that is given up changes nothing.
            pragma::<String>(&connection, "journal_mode = delete");
            Backup::new(&source, &mut connection).unwrap().step(1).unwrap();
            is_right(&connection, &path, ROWS / 2, &told);
            pragma::<String>(&connection, &format!("journal_mode = {mode}"));
            Backup::new(&source, &mut connection)
                .unwrap()
                .step(-1)
                .unwrap_or_else(|error| panic!("{told}: {error}"));
            is_right(&connection, &path, ROWS, &told);
            assert_eq!(pragma::<u32>(&connection, "page_size"), from, "{told}");
            fill(&connection, ROWS..ROWS + 20);
            is_right(&connection, &path, ROWS + 20, &told);
            comes_out(&path, folder.path(), ROWS + 20, &told);
            drop((connection, source));
            fs::remove_file(folder.path().join("source")).unwrap();
        }
    }
}

/// `VACUUM INTO` writes a new database, with a layout of its own.
#[test]
fn a_vacuum_into_a_layout_has_pages_of_the_size_that_was_asked_for() {
    const ROWS: u32 = 150;
    let folder = tempfile::tempdir().unwrap();
    for (number, layout) in layouts().into_iter().enumerate() {
        let path = folder.path().join(&layout);
        let connection = open(&path, &layout);
        connection.execute_batch("PRAGMA synchronous = off").unwrap();
        create(&connection, ROWS);
        for (step, page_bytes) in SIZES.into_iter().enumerate() {
            let target_layout = &layouts()[(number + step) % layouts().len()];
            let target = folder.path().join(format!("into-{number}-{page_bytes}"));
            let told = format!("{layout}, into {target_layout} of {page_bytes}");
            let sql = format!(
                "PRAGMA page_size = {page_bytes}; VACUUM INTO 'file:{}?layout={target_layout}'",
                target.display()
            );
            let has_room = !target_layout.contains("checksums") || layout.contains('+');
            if let Err(error) = connection.execute_batch(&sql) {
                // Of a database that reserves nothing, SQLite makes one that reserves nothing.
                assert!(
                    !has_room || layout.contains("checksums") && target_layout.contains("log"),
                    "{told}: {error}"
                );
                assert!(!target.exists() || fs::metadata(&target).unwrap().len() <= 64 << 10, "{told}");
                continue;
            }
            let made = open(&target, "plain");
            assert_eq!(pragma::<String>(&made, "flashgrain_layout"), *target_layout, "{told}");
            assert_eq!(pragma::<u32>(&made, "page_size"), page_bytes, "{told}");
            is_right(&made, &target, ROWS, &told);
            drop(made);
            comes_out(&target, folder.path(), ROWS, &told);
            fs::remove_file(&target).unwrap();
        }
        holds(&connection, ROWS, &layout);
    }
}

/// With more reserved bytes, pages have less room.
#[test]
fn reserved_bytes_change_along_with_the_size() {
    const ROWS: u32 = 100;
    let folder = tempfile::tempdir().unwrap();
    for layout in layouts() {
        let path = folder.path().join(&layout);
        let connection = open(&path, &layout);
        connection.execute_batch("PRAGMA synchronous = off; PRAGMA cache_size = 3").unwrap();
        create(&connection, ROWS);
        for (reserved, page_bytes) in [(40, 4096), (60, 1024), (100, 65536), (200, 2048)] {
            let told = format!("{layout}, {reserved} of {page_bytes}");
            reserve(&connection, reserved);
            connection.execute_batch(&format!("PRAGMA page_size = {page_bytes}; VACUUM")).unwrap();
            is_right(&connection, &path, ROWS, &told);
            assert_eq!(pragma::<u32>(&connection, "page_size"), page_bytes, "{told}");
        }
        comes_out(&path, folder.path(), ROWS, &layout);
    }
}

/// A connection that knows the pages' old size goes on, and so does its checkpoint.
#[test]
fn other_connections_learn_the_new_size() {
    const ROWS: u32 = 100;
    let folder = tempfile::tempdir().unwrap();
    for layout in layouts() {
        let path = folder.path().join(&layout);
        for page_bytes in [65536, 512, 8192] {
            let path = path.with_extension(page_bytes.to_string());
            let (one, other) = (open(&path, &layout), open(&path, &layout));
            one.execute_batch("PRAGMA synchronous = off").unwrap();
            other.execute_batch("PRAGMA synchronous = off; PRAGMA cache_size = 5").unwrap();
            create(&one, ROWS);
            holds(&other, ROWS, &layout);
            one.execute_batch(&format!("PRAGMA page_size = {page_bytes}; VACUUM")).unwrap();
            pragma::<String>(&one, "journal_mode = wal");
            fill(&one, 0..ROWS);
            fill(&other, 0..ROWS);
            assert_eq!(other.query_row("PRAGMA wal_checkpoint", [], |row| row.get::<_, i64>(0)).unwrap(), 0);
            holds(&other, ROWS, &format!("{layout} {page_bytes}"));
            holds(&one, ROWS, &format!("{layout} {page_bytes}"));
        }
    }
}
