//! Scans and look-ups out of memory: through SQLite's default VFS, and in a volume, without and with reading
//! ahead, in turns.
//!
//! ```text
//! cargo run --release -p flashgrain_sqlite_vfs --example volume_beside_unix -- FOLDER [MEBIBYTES] [ROUNDS]
//! ```
//!
//! SQLite's cache is the same for all. Before each measurement, the system forgets the default VFS's file, so
//! that none of them begins with pages in memory. Prints medians and their ratios to the default VFS.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "an example shows what is called, not what may fail"
)]

use std::ffi::{c_char, c_int, c_void};
use std::path::Path;
use std::process::{Command, Stdio};

use flashgrain_device::{OpenOptions, clock};
use flashgrain_sqlite_vfs::{VolumeOptions, create_files, mount, open_files, unmount};
use rand::{RngExt as _, SeedableRng as _};
use rand_pcg::Pcg64;
use rusqlite::{Connection, OpenFlags, ffi};

type EntryPoint = unsafe extern "C" fn(*mut c_void, *mut *mut c_char, *const c_void) -> c_int;

type SqlitesEntryPoint =
    unsafe extern "C" fn(*mut ffi::sqlite3, *mut *mut c_char, *const ffi::sqlite3_api_routines) -> c_int;

const RECORD_BYTES: u64 = 500;
const LOOKUPS: u32 = 10_000;
const CACHE_KIB: u32 = 8192;

/// Name, and the bytes that are read ahead in a volume; none for the default VFS.
const WAYS: [(&str, Option<u32>); 3] =
    [("unix", None), ("volume", Some(0)), ("volume, reading ahead", Some(1 << 20))];

fn main() {
    let mut arguments = std::env::args().skip(1);
    let folder = arguments.next().expect("say a folder");
    let folder = Path::new(&folder);
    let mut number = |otherwise| arguments.next().map_or(otherwise, |text| text.parse().expect("a number"));
    let (bytes, rounds) = (number(512) << 20, number(5));
    register();
    let records = bytes / RECORD_BYTES;
    make(folder, records, bytes);
    let mut seconds = vec![[vec![], vec![]]; WAYS.len()];
    for round in 0..rounds as usize {
        for turn in 0..WAYS.len() {
            // Each way is first as often as the others.
            let way = (round + turn) % WAYS.len();
            let [scan, lookups] = run(folder, WAYS[way].1, records, round as u64);
            seconds[way][0].push(scan);
            seconds[way][1].push(lookups);
        }
    }
    for (what, part) in [("scan", 0), ("look-ups", 1)] {
        let medians: Vec<f64> = seconds.iter().map(|of_way| median(&of_way[part])).collect();
        for ((name, _), median) in WAYS.iter().zip(&medians) {
            println!("{what:10} {name:24} {:8.3} s {:6.3} times as fast", median, medians[0] / median);
        }
    }
    std::fs::remove_file(folder.join("unix.db")).unwrap();
    std::fs::remove_file(folder.join("volume")).unwrap();
}

fn register() {
    let entry: EntryPoint = flashgrain_sqlite_vfs::auto_extension;
    // SAFETY: it is an entry point of an extension; only the pointers' types have other names there.
    unsafe {
        let entry = std::mem::transmute::<EntryPoint, SqlitesEntryPoint>(entry);
        ffi::sqlite3_auto_extension(Some(entry));
    }
    Connection::open_in_memory().unwrap();
}

fn median(of: &[f64]) -> f64 {
    let mut sorted = of.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted[sorted.len() / 2]
}

fn open(uri: &str) -> Connection {
    let connection =
        Connection::open_with_flags(uri, OpenFlags::default() | OpenFlags::SQLITE_OPEN_URI).unwrap();
    connection.execute_batch(&format!("PRAGMA cache_size = -{CACHE_KIB}")).unwrap();
    connection
}

/// Makes the same database for both.
fn make(folder: &Path, records: u64, bytes: u64) {
    let unix = open(&format!("file:{}?vfs=unix", folder.join("unix.db").display()));
    unix.execute_batch(&format!(
        "PRAGMA synchronous = off; CREATE TABLE records (number INTEGER PRIMARY KEY, content BLOB); \
         WITH numbers (value) AS (SELECT 1 UNION ALL SELECT value + 1 FROM numbers LIMIT {records}) \
         INSERT INTO records SELECT value, zeroblob({RECORD_BYTES}) FROM numbers"
    ))
    .unwrap();
    let (device, options) = (OpenOptions::default(), VolumeOptions::default());
    let volume = create_files(&[folder.join("volume")], bytes * 2, &device, options).unwrap();
    mount("made", volume).unwrap();
    unix.execute_batch("VACUUM INTO 'file:/made/database?vfs=flashgrain-device'").unwrap();
    unmount("made");
}

/// Has the system write a file, and forget it.
fn forget(file: &Path) {
    let status = Command::new("dd")
        .arg(format!("if={}", file.display()))
        .args(["iflag=nocache", "count=0"])
        .stderr(Stdio::null())
        .status()
        .unwrap();
    assert!(status.success());
}

/// Seconds of a scan and of look-ups.
fn run(folder: &Path, read_ahead_bytes: Option<u32>, records: u64, seed: u64) -> [f64; 2] {
    let uri = match read_ahead_bytes {
        None => format!("file:{}?vfs=unix", folder.join("unix.db").display()),
        Some(read_ahead_bytes) => {
            let options = VolumeOptions { read_ahead_bytes };
            let volume = open_files(&[folder.join("volume")], &OpenOptions::default(), options).unwrap();
            mount("run", volume).unwrap();
            "file:/run/database?vfs=flashgrain-device".into()
        }
    };
    forget(&folder.join("unix.db"));
    let connection = open(&uri);
    let began = clock::now();
    let bytes: i64 =
        connection.query_row("SELECT sum(length(content)) FROM records", [], |row| row.get(0)).unwrap();
    assert_eq!(bytes as u64, records * RECORD_BYTES);
    let scan = clock::now().since(began).seconds();
    forget(&folder.join("unix.db"));
    let mut random = Pcg64::seed_from_u64(seed);
    let mut lookup = connection.prepare("SELECT content FROM records WHERE number = ?1").unwrap();
    let began = clock::now();
    for _ in 0..LOOKUPS {
        let number = random.random_range(1..=records as i64);
        lookup.query_row([number], |row| row.get::<_, Vec<u8>>(0)).unwrap();
    }
    let lookups = clock::now().since(began).seconds();
    unmount("run");
    [scan, lookups]
}
