//! Logs whose frames are as large as pages.

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use rusqlite::Connection;
use rusqlite::backup::Backup;

use crate::support::{LAYOUTS, beside, check, count, create, fill, open, open_plainly, pragma, try_open};

const LAYOUT: &str = LAYOUTS[3];

const STRIPE_BYTES: u64 = 16 << 10;

/// A database with a log, whose pages have this size.
fn open_with_log(path: &Path, page_bytes: u64) -> Connection {
    let connection = open(path, LAYOUT);
    connection.execute_batch(&format!("PRAGMA page_size = {page_bytes}")).unwrap();
    pragma::<String>(&connection, "journal_mode = wal");
    pragma::<i64>(&connection, "wal_autocheckpoint = 0");
    connection
}

fn log_bytes(path: &Path) -> u64 {
    fs::metadata(beside(path, "-grainwal")).unwrap().len()
}

#[test]
fn frames_fill_stripes() {
    let folder = tempfile::tempdir().unwrap();
    for page_bytes in [512, 4096, 64 << 10] {
        let path = folder.path().join(page_bytes.to_string());
        let connection = open_with_log(&path, page_bytes);
        create(&connection);
        fill(&connection, 0..50);
        let (_, frames, _): (i64, u64, i64) = connection
            .query_row("PRAGMA wal_checkpoint", [], |row| {
                Ok((row.get(0)?, row.get::<_, i64>(1)? as u64, row.get(2)?))
            })
            .unwrap();
        assert!(frames >= 50);
        let first = STRIPE_BYTES.max(page_bytes);
        assert_eq!(log_bytes(&path), first + frames * page_bytes, "pages of {page_bytes}");
        // SQLite's header lies 4 KiB into the file, and says at byte 20 what it reserves.
        assert_eq!(fs::read(&path).unwrap()[4096 + 20], 24);
        check(&connection);
    }
}

/// Write calls of this thread so far.
fn write_calls() -> u64 {
    let counters = fs::read_to_string("/proc/thread-self/io").unwrap();
    let line = counters.lines().find_map(|line| line.strip_prefix("syscw: ")).unwrap();
    line.parse().unwrap()
}

/// A header of 24 bytes and the rest of the page were two requests, and the first broke the rule that the
/// layout is for.
#[test]
fn each_frame_is_one_write() {
    let folder = tempfile::tempdir().unwrap();
    for page_bytes in [4096, 64 << 10] {
        let path = folder.path().join(page_bytes.to_string());
        let connection = open_with_log(&path, page_bytes);
        create(&connection);
        fill(&connection, 0..10);
        let (calls, bytes) = (write_calls(), log_bytes(&path));
        fill(&connection, 10..200);
        let frames = (log_bytes(&path) - bytes) / page_bytes;
        let calls = write_calls() - calls;
        assert!(frames >= 3 && calls <= frames + 2, "pages of {page_bytes}: {calls} for {frames} frames");
        check(&connection);
    }
}

/// Ends the threads that wait for a flag when a test fails before it sets the flag.
struct SetOnDrop<'a>(&'a AtomicBool);

impl Drop for SetOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}

/// Frames whose headers wait in one connection are not there for another one of the same process: it sees
/// whole transactions alone, while pages of the one under way spill into the log.
#[test]
fn a_connection_reads_the_log_while_headers_of_another_wait() {
    const ROWS: i64 = 200;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("database");
    let writer = open_with_log(&path, 4096);
    writer
        .execute_batch("CREATE TABLE rows (number INTEGER PRIMARY KEY, round INTEGER, filler BLOB)")
        .unwrap();
    let rows = format!("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {ROWS})");
    writer.execute_batch(&format!("{rows} INSERT INTO rows SELECT i, 0, zeroblob(1500) FROM n")).unwrap();
    // Without checkpoints the log grows by each page that spills: it never begins again from its start.
    writer.execute_batch("PRAGMA cache_size = 10; PRAGMA wal_autocheckpoint = 0").unwrap();
    let done = AtomicBool::new(false);
    let seen = std::thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let reader = open(&path, "plain");
            // SQLite counts the pages of all connections against the sum of their caches.
            reader.execute_batch("PRAGMA cache_size = 10").unwrap();
            let mut seen = Vec::new();
            while !done.load(Ordering::Acquire) {
                let query = "SELECT count(*), min(round), max(round) FROM rows";
                let (count, first, last): (i64, i64, i64) =
                    reader.query_row(query, [], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?))).unwrap();
                assert_eq!((count, first), (ROWS, last), "a part of a transaction");
                seen.push(first);
            }
            seen
        });
        let end = SetOnDrop(&done);
        let mut spilled = 0;
        for round in 1..=40 {
            let before = log_bytes(&path);
            writer.execute_batch(&format!("BEGIN; UPDATE rows SET round = {round}")).unwrap();
            spilled += u32::from(log_bytes(&path) > before);
            writer.execute_batch("COMMIT").unwrap();
        }
        assert!(spilled > 0, "no page has spilled");
        drop(end);
        reader.join().unwrap()
    });
    assert!(seen.is_sorted() && seen.len() > 1, "{seen:?}");
    check(&writer);
}

#[test]
fn an_emptied_log_says_still_what_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("database");
    let connection = open_with_log(&path, 4096);
    create(&connection);
    fill(&connection, 0..50);
    let other = open(&path, "plain");
    assert_eq!(count(&other), 50);
    connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap();
    assert_eq!(log_bytes(&path), 512);
    fill(&other, 50..100);
    assert_eq!(count(&connection), 100);
    assert_eq!(count(&open(&path, "plain")), 100);
    assert_eq!((log_bytes(&path) - STRIPE_BYTES) % 4096, 0);
    check(&connection);
}

#[test]
fn pages_without_room_have_a_log_as_sqlite_says() {
    let folder = tempfile::tempdir().unwrap();
    let [main, attached] = ["main", "attached"].map(|name| folder.path().join(name));
    // Of an attached database nobody asks how many bytes it should reserve.
    let connection = open(&main, "plain");
    let attach = format!("ATTACH 'file:{}?layout={LAYOUT}' AS other", attached.display());
    connection.execute_batch(&attach).unwrap();
    pragma::<String>(&connection, "other.journal_mode = wal");
    connection
        .execute_batch("CREATE TABLE other.records (number INTEGER PRIMARY KEY, content TEXT)")
        .unwrap();
    let other = open(&attached, "plain");
    fill(&other, 0..50);
    assert_eq!((log_bytes(&attached) - 4096 - 32) % (24 + 4096), 0);
    drop(connection);
    // A vacuum makes room.
    pragma::<String>(&other, "journal_mode = delete");
    other.execute_batch("VACUUM").unwrap();
    pragma::<String>(&other, "journal_mode = wal");
    fill(&other, 50..100);
    assert_eq!(log_bytes(&attached) % 4096, 0);
    assert_eq!(count(&other), 100);
    check(&other);
}

#[test]
fn pages_that_use_reserved_bytes_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("database");
    let mut connection = open_with_log(&path, 4096);
    create(&connection);
    fill(&connection, 0..50);
    let plain = open_plainly(&folder.path().join("plain"));
    create(&plain);
    fill(&plain, 0..500);
    let failed = {
        let backup = Backup::new(&plain, &mut connection).unwrap();
        backup.step(-1).is_err()
    };
    assert!(failed, "they would be lost");
    drop(connection);
    let connection = open(&path, "plain");
    assert_eq!(count(&connection), 50);
    check(&connection);
}

#[test]
fn a_damaged_statement_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("database");
    let connection = open_with_log(&path, 4096);
    create(&connection);
    fill(&connection, 0..50);
    let copy = folder.path().join("copy");
    fs::copy(&path, &copy).unwrap();
    let mut log = fs::read(beside(&path, "-grainwal")).unwrap();
    log[33] ^= 1;
    fs::write(beside(&copy, "-grainwal"), &log).unwrap();
    let damaged = try_open(&copy, "plain").unwrap();
    assert!(damaged.query_row("SELECT count(*) FROM records", [], |_| Ok(())).is_err());
    drop(damaged);
    assert_eq!(fs::read(beside(&copy, "-grainwal")).unwrap(), log, "nothing was changed");
    log[33] ^= 1;
    fs::write(beside(&copy, "-grainwal"), &log).unwrap();
    assert_eq!(count(&open(&copy, "plain")), 50);
}
