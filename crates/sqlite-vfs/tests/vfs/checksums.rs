//! Pages that a drive has changed, or put in another place, are told.

use std::ffi::{c_int, c_void};
use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use flashgrain_sqlite_vfs::convert;
use rusqlite::backup::Backup;
use rusqlite::{Connection, Error, ffi};

use crate::support::{
    LAYOUTS, Mounted, beside, check, count, create, drive, fill, open, open_plainly, pragma, try_open,
};

const PAGE_BYTES: u64 = 4096;

/// The error of a page whose checksum differs.
const IOERR_DATA: i32 = 10 | 32 << 8;

/// Layouts with checksums, and where the database begins in its file.
const WITH: [(&str, u64); 2] = [(LAYOUTS[5], 32 << 10), (LAYOUTS[6], 4096)];

fn code<T: std::fmt::Debug>(result: rusqlite::Result<T>) -> i32 {
    match result.unwrap_err() {
        Error::SqliteFailure(error, _) => error.extended_code,
        other => panic!("{other}"),
    }
}

/// Reads every page of the table.
fn read_all(connection: &Connection) -> rusqlite::Result<i64> {
    connection.query_row("SELECT sum(length(hex(content))) FROM records", [], |row| row.get(0))
}

/// A database of some hundred pages that nobody has open.
fn made(path: &Path, layout: &str) {
    let connection = open(path, layout);
    create(&connection);
    connection.execute_batch("BEGIN").unwrap();
    fill(&connection, 0..2000);
    connection.execute_batch("INSERT INTO records VALUES (-1, hex(zeroblob(100000))); COMMIT").unwrap();
}

fn page_of(file: &File, start: u64, page: u64) -> Vec<u8> {
    let mut bytes = vec![0; PAGE_BYTES as usize];
    file.read_exact_at(&mut bytes, start + page * PAGE_BYTES).unwrap();
    bytes
}

#[test]
fn damaged_and_misplaced_pages_are_told() {
    let folder = tempfile::tempdir().unwrap();
    for (number, (layout, start)) in WITH.into_iter().enumerate() {
        let path = folder.path().join(number.to_string());
        made(&path, layout);
        let whole = read_all(&open(&path, "plain")).unwrap();
        let pages = (fs::metadata(&path).unwrap().len() - start) / PAGE_BYTES;
        let file = OpenOptions::new().read(true).write(true).open(&path).unwrap();
        let is_told = |pragmas: &str| {
            let connection = open(&path, "plain");
            connection.execute_batch(pragmas).unwrap();
            assert_eq!(code(read_all(&connection)), IOERR_DATA, "{layout} {pragmas}");
        };
        for page in [2, pages / 2, pages - 1] {
            let right = page_of(&file, start, page);
            for wrong in [2, page / 3 + 1] {
                // A bit, or a whole page of the same database.
                let mut spoilt = if wrong == 2 { right.clone() } else { page_of(&file, start, wrong) };
                spoilt[3000] ^= u8::from(wrong == 2);
                file.write_all_at(&spoilt, start + page * PAGE_BYTES).unwrap();
                is_told("");
                is_told("PRAGMA mmap_size = 1000000000");
                file.write_all_at(&right, start + page * PAGE_BYTES).unwrap();
            }
        }
        // SQLite takes what is missing of the last page for zeros.
        let last = page_of(&file, start, pages - 1);
        file.set_len(start + pages * PAGE_BYTES - 1000).unwrap();
        is_told("");
        file.write_all_at(&last, start + (pages - 1) * PAGE_BYTES).unwrap();
        let connection = open(&path, "plain");
        assert_eq!(read_all(&connection).unwrap(), whole);
        check(&connection);
    }
}

#[test]
fn what_is_damaged_can_be_read_without_looking() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("database");
    let (layout, start) = WITH[0];
    made(&path, layout);
    let file = OpenOptions::new().write(true).open(&path).unwrap();
    // Within the text that is longest, in a page of its own.
    file.write_all_at(b"x", fs::metadata(&path).unwrap().len() - PAGE_BYTES / 2).unwrap();
    let connection = open(&path, "plain");
    assert_eq!(pragma::<String>(&connection, "flashgrain_checksums"), "on");
    assert_eq!(code(read_all(&connection)), IOERR_DATA);
    assert_eq!(pragma::<String>(&connection, "flashgrain_checksums = off"), "off");
    read_all(&connection).unwrap();
    assert_eq!(count(&connection), 2001);
    drop(connection);
    let plain = open(&folder.path().join("plain"), "plain");
    assert_eq!(pragma::<String>(&plain, "flashgrain_checksums"), "none");
    assert!(start > 0);
}

#[test]
fn databases_on_volumes_have_checksums_too() {
    let volume = Mounted::create("checksums", drive());
    for mode in ["delete", "wal"] {
        let path = volume.path(mode);
        let connection = open(&path, LAYOUTS[6]);
        pragma::<String>(&connection, &format!("journal_mode = {mode}"));
        create(&connection);
        fill(&connection, 0..2000);
        assert_eq!(pragma::<String>(&connection, "flashgrain_checksums"), "on");
        drop(connection);
        let connection = open(&path, "plain");
        read_all(&connection).unwrap();
        check(&connection);
    }
}

/// Asks for reserved bytes.
fn reserve(connection: &Connection, mut bytes: c_int) {
    let argument: *mut c_void = std::ptr::from_mut(&mut bytes).cast();
    // SAFETY: an open connection, and the argument of SQLITE_FCNTL_RESERVE_BYTES.
    let code = unsafe { ffi::sqlite3_file_control(connection.handle(), c"main".as_ptr(), 38, argument) };
    assert_eq!(code, 0);
}

#[test]
fn a_plain_database_reserves_bytes_and_gets_checksums() {
    let folder = tempfile::tempdir().unwrap();
    let [plain, laid] = ["plain", "laid"].map(|name| folder.path().join(name));
    let connection = open_plainly(&plain);
    create(&connection);
    fill(&connection, 0..500);
    let with = WITH[0].0.parse().unwrap();
    let error = convert::import(&plain, &laid, with).unwrap_err();
    assert_eq!(error.kind(), "reserved");
    reserve(&connection, 8);
    connection.execute_batch("VACUUM").unwrap();
    drop(connection);
    convert::import(&plain, &laid, with).unwrap();
    let connection = open(&laid, "plain");
    read_all(&connection).unwrap();
    check(&connection);
    // A copy of a database that reserves none would take the place of checksums.
    let other = open_plainly(&folder.path().join("other"));
    create(&other);
    fill(&other, 0..3000);
    let mut connection = connection;
    connection.execute_batch("PRAGMA cache_size = 5").unwrap();
    let copied = Backup::new(&other, &mut connection).unwrap().step(-1);
    assert_eq!(code(copied), 10 | 3 << 8);
    drop(connection);
    let connection = open(&laid, "plain");
    assert_eq!(count(&connection), 500);
    read_all(&connection).unwrap();
    check(&connection);
}

/// Without a place for them, a page's own content would be overwritten.
#[test]
fn without_reserved_bytes_nothing_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("other");
    let connection = open(&folder.path().join("main"), "plain");
    let attach = format!("ATTACH 'file:{}?layout={}' AS other", path.display(), WITH[0].0);
    connection.execute_batch(&attach).unwrap();
    let created = connection.execute_batch("CREATE TABLE other.records (number)");
    assert_eq!(code(created), 10 | 3 << 8);
    drop(connection);
    // As the main one, it is a database.
    made(&path, WITH[0].0);
    let connection = open(&path, "plain");
    // SQLite never gives reserved bytes back, whoever asks.
    reserve(&connection, 0);
    for cache in [5, 2000] {
        connection.execute_batch(&format!("PRAGMA cache_size = {cache}")).unwrap();
        connection.execute_batch("VACUUM").unwrap();
        assert_eq!(count(&connection), 2001);
        check(&connection);
    }
    drop(connection);
    let connection = open(&path, "plain");
    read_all(&connection).unwrap();
    check(&connection);
}

/// A crash in the middle of changes: the journal's pages, and those of the log, get theirs as they go back.
#[test]
fn rollbacks_and_recoveries_leave_right_checksums() {
    let folder = tempfile::tempdir().unwrap();
    for (number, mode) in ["delete", "truncate", "persist", "wal"].into_iter().enumerate() {
        for (layout, _) in WITH {
            let path = folder.path().join(format!("{number}-{layout}"));
            made(&path, layout);
            let connection = open(&path, "plain");
            pragma::<String>(&connection, &format!("journal_mode = {mode}"));
            connection.execute_batch("PRAGMA cache_size = 5; BEGIN; DELETE FROM records WHERE number % 3 = 0; UPDATE records SET content = 'new'").unwrap();
            let copy = folder.path().join(format!("{number}-{layout}-copy"));
            fs::copy(&path, &copy).unwrap();
            for ending in ["-grainjournal", "-grainwal"] {
                if beside(&path, ending).exists() {
                    fs::copy(beside(&path, ending), beside(&copy, ending)).unwrap();
                }
            }
            connection.execute_batch("ROLLBACK").unwrap();
            for connection in [connection, open(&copy, "plain")] {
                read_all(&connection).unwrap();
                assert_eq!(count(&connection), 2001, "{mode} {layout}");
                check(&connection);
            }
        }
    }
}

#[test]
fn splits_and_copies_keep_checksums() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("split");
    let connection = try_open(&path, &format!("{}&split=4096", WITH[0].0)).unwrap();
    connection.execute_batch("PRAGMA page_size = 16384").unwrap();
    create(&connection);
    fill(&connection, 0..1000);
    connection.execute_batch("PRAGMA cache_size = 5").unwrap();
    read_all(&connection).unwrap();
    let copy = folder.path().join("copy");
    connection.execute_batch(&format!("VACUUM INTO '{}'", copy.display())).unwrap();
    drop(connection);
    check(&open_plainly(&copy));
    let connection = open(&path, "plain");
    read_all(&connection).unwrap();
    check(&connection);
    drop(connection);
    let exported = folder.path().join("exported");
    convert::export(&path, &exported).unwrap();
    check(&open_plainly(&exported));
    convert::import(&exported, &folder.path().join("again"), WITH[0].0.parse().unwrap()).unwrap();
    let connection = open(&folder.path().join("again"), "plain");
    assert_eq!(count(&connection), 1000);
    read_all(&connection).unwrap();
    check(&connection);
}

/// In a log, it is noticed only when the log goes into the database, which stays as it is.
#[test]
fn a_log_without_reserved_bytes_stays_a_log_until_it_has_them() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("database");
    made(&path, WITH[0].0);
    let other = open_plainly(&folder.path().join("other"));
    create(&other);
    fill(&other, 0..300);
    let mut connection = open(&path, "plain");
    pragma::<String>(&connection, "journal_mode = wal");
    Backup::new(&other, &mut connection).unwrap().step(-1).unwrap();
    let checkpoint = |connection: &Connection| {
        connection.query_row("PRAGMA wal_checkpoint(truncate)", [], |row| row.get::<_, i64>(0))
    };
    assert_eq!(code(checkpoint(&connection)), 10 | 3 << 8);
    assert_eq!(count(&connection), 300);
    drop(connection);
    let connection = open(&path, "plain");
    assert_eq!(count(&connection), 300);
    check(&connection);
    connection.execute_batch("VACUUM").unwrap();
    assert_eq!(checkpoint(&connection).unwrap(), 0);
    drop(connection);
    let connection = open(&path, "plain");
    assert_eq!(count(&connection), 300);
    read_all(&connection).unwrap();
    check(&connection);
}
