//! Overhead of the VFS: the same statements through SQLite's default VFS, through `flashgrain` on a plain
//! database, on one with a layout, and on one with checksums, in turns.
//!
//! ```text
//! cargo run --release -p flashgrain_sqlite_vfs --example beside_unix -- FOLDER [ROUNDS]
//! ```
//!
//! Prints the median of each and its ratio to the default VFS. Pages are in the system's cache, so that
//! nothing hides the cost of calls.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "an example shows what is called, not what may fail"
)]

use std::ffi::{c_char, c_int, c_void};
use std::fs;
use std::path::Path;

use flashgrain_device::clock;
use rusqlite::{Connection, OpenFlags, ffi};

type EntryPoint = unsafe extern "C" fn(*mut c_void, *mut *mut c_char, *const c_void) -> c_int;

type SqlitesEntryPoint =
    unsafe extern "C" fn(*mut ffi::sqlite3, *mut *mut c_char, *const ffi::sqlite3_api_routines) -> c_int;

const RECORDS: u32 = 100_000;
const LOOKUPS: u32 = 100_000;

/// Name, and the text after the path in the URI.
const WAYS: [(&str, &str); 4] = [
    ("unix", "?vfs=unix"),
    ("flashgrain, plain", "?vfs=flashgrain&layout=plain"),
    ("flashgrain, hot:65536:32768", "?vfs=flashgrain&layout=hot:65536:32768"),
    ("the same with checksums", "?vfs=flashgrain&layout=hot:65536:32768+checksums"),
];

fn main() {
    let mut arguments = std::env::args().skip(1);
    let folder = arguments.next().expect("say a folder");
    let rounds: usize = arguments.next().map_or(7, |rounds| rounds.parse().expect("a number of rounds"));
    register();
    let mut seconds = vec![[vec![], vec![]]; WAYS.len()];
    for round in 0..rounds {
        for turn in 0..WAYS.len() {
            // Each way is first as often as the others.
            let way = (round + turn) % WAYS.len();
            let [inserts, lookups] = run(Path::new(&folder), WAYS[way].1);
            seconds[way][0].push(inserts);
            seconds[way][1].push(lookups);
        }
    }
    for (what, part) in [("inserts", 0), ("look-ups", 1)] {
        let medians: Vec<f64> = seconds.iter().map(|of_way| median(&of_way[part])).collect();
        for ((name, _), median) in WAYS.iter().zip(&medians) {
            println!("{what:10} {name:28} {:8.3} s {:6.3}", median, median / medians[0]);
        }
    }
}

fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted[sorted.len() / 2]
}

/// Seconds for inserts in a thousand transactions, and for look-ups with hardly any cache.
fn run(folder: &Path, parameters: &str) -> [f64; 2] {
    let path = folder.join("beside_unix.db");
    // There is none before the first round.
    let _ = fs::remove_file(&path);
    let flags = OpenFlags::default() | OpenFlags::SQLITE_OPEN_URI;
    let connection =
        Connection::open_with_flags(format!("file:{}{parameters}", path.display()), flags).unwrap();
    connection
        .execute_batch(
            "PRAGMA synchronous = off; PRAGMA cache_size = -256;
             CREATE TABLE pairs (key INTEGER PRIMARY KEY, value BLOB)",
        )
        .unwrap();
    let begun = clock::now();
    for first in (0..RECORDS).step_by(100) {
        connection.execute_batch("BEGIN").unwrap();
        let mut insert = connection.prepare("INSERT INTO pairs VALUES (?1, zeroblob(100))").unwrap();
        for number in first..first + 100 {
            insert.execute([scattered(number)]).unwrap();
        }
        connection.execute_batch("COMMIT").unwrap();
    }
    let inserted = clock::now();
    let mut select = connection.prepare("SELECT length(value) FROM pairs WHERE key = ?1").unwrap();
    for number in 0..LOOKUPS {
        let bytes: u32 = select.query_row([scattered(number)], |row| row.get(0)).unwrap();
        assert_eq!(bytes, 100);
    }
    let looked_up = clock::now();
    drop(select);
    drop(connection);
    fs::remove_file(&path).unwrap();
    [inserted.since(begun), looked_up.since(inserted)].map(|passed| passed.seconds())
}

/// Each number below 2^31 becomes another one.
fn scattered(number: u32) -> u32 {
    number.wrapping_mul(0x9E37_79B1) >> 1
}

fn register() {
    let entry: EntryPoint = flashgrain_sqlite_vfs::auto_extension;
    // SAFETY: it is an entry point of an extension; only the pointers' types have other names there.
    let code = unsafe {
        let entry = std::mem::transmute::<EntryPoint, SqlitesEntryPoint>(entry);
        ffi::sqlite3_auto_extension(Some(entry))
    };
    assert_eq!(code, 0);
    Connection::open_in_memory().unwrap();
}
