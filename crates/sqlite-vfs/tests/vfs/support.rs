//! Connections through the VFS, and what all tests ask of them.

use std::ffi::{c_char, c_int, c_void};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Once};

use flashgrain_device::Device;
use flashgrain_sqlite_vfs::{DEVICE_VFS_NAME, VFS_NAME, Volume, VolumeOptions};
use flashgrain_ssdsim::{SimConfig, SimDevice};
use rusqlite::{Connection, OpenFlags, ffi};

type EntryPoint = unsafe extern "C" fn(*mut c_void, *mut *mut c_char, *const c_void) -> c_int;

type SqlitesEntryPoint =
    unsafe extern "C" fn(*mut ffi::sqlite3, *mut *mut c_char, *const ffi::sqlite3_api_routines) -> c_int;

/// The paper's SSD-S, the smallest layout, one that is aligned to nothing but sectors, one with a log that is
/// aligned, none, and two with checksums.
pub const LAYOUTS: [&str; 7] = [
    "hot:65536:32768",
    "hot:4096:0",
    "hot:5120:1536",
    "hot:4096:0+log:16384",
    "plain",
    "hot:65536:32768+checksums",
    "hot:4096:0+log:16384+checksums",
];

/// The layout of most tests.
pub const LAYOUT: &str = LAYOUTS[0];

/// Opens a database, which gets the layout if it is new.
pub fn open(path: &Path, layout: &str) -> Connection {
    try_open(path, layout).unwrap()
}

pub fn try_open(path: &Path, layout: &str) -> rusqlite::Result<Connection> {
    register();
    let uri = format!("file:{}?layout={layout}", path.display());
    let flags =
        OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE | OpenFlags::SQLITE_OPEN_URI;
    let vfs = if path.to_str().unwrap().starts_with(VOLUMES) { DEVICE_VFS_NAME } else { VFS_NAME };
    Connection::open_with_flags_and_vfs(uri, flags, vfs)
}

/// Databases below this path are in the volume that is mounted as the name behind it.
const VOLUMES: &str = "/@";

/// A simulated drive of 256 MiB.
pub fn drive() -> Arc<SimDevice> {
    let config = SimConfig::named("sim:960evo").unwrap().resized(256 << 20);
    Arc::new(SimDevice::new(&config, "sim:960evo", 1).unwrap())
}

/// A volume on a device, mounted as long as this lives.
pub struct Mounted {
    pub volume: Option<Arc<Volume>>,
    name: String,
}

impl Mounted {
    /// A new volume under a name of its own.
    pub fn create(name: &str, device: Arc<dyn Device>) -> Self {
        Self::mount(name, Volume::create(device, VolumeOptions::default()).unwrap())
    }

    /// The volume that is on a device.
    pub fn open(name: &str, device: Arc<dyn Device>) -> Self {
        Self::mount(name, Volume::open(device, VolumeOptions::default()).unwrap())
    }

    pub fn mount(name: &str, volume: Arc<Volume>) -> Self {
        let name = format!("@{name}");
        flashgrain_sqlite_vfs::mount(&name, Arc::clone(&volume)).unwrap();
        Self { volume: Some(volume), name }
    }

    /// The path of a file in it.
    pub fn path(&self, file: &str) -> PathBuf {
        PathBuf::from(format!("/{}/{file}", self.name))
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        flashgrain_sqlite_vfs::unmount(&self.name);
    }
}

/// Opens a database as a program without the VFS does.
pub fn open_plainly(path: &Path) -> Connection {
    Connection::open(path).unwrap()
}

fn register() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let entry: EntryPoint = flashgrain_sqlite_vfs::auto_extension;
        // SAFETY: it is an entry point of an extension; only the pointers' types have other names there.
        let code = unsafe {
            let entry = std::mem::transmute::<EntryPoint, SqlitesEntryPoint>(entry);
            ffi::sqlite3_auto_extension(Some(entry))
        };
        assert_eq!(code, 0);
        // Extensions run when a connection is opened.
        Connection::open_in_memory().unwrap();
    });
}

/// Asserts that SQLite finds nothing wrong.
#[track_caller]
pub fn check(connection: &Connection) {
    let found: String = connection.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
    assert_eq!(found, "ok");
}

pub fn pragma<T: rusqlite::types::FromSql>(connection: &Connection, pragma: &str) -> T {
    connection.query_row(&format!("PRAGMA {pragma}"), [], |row| row.get(0)).unwrap()
}

/// Names of all files in a folder, sorted.
pub fn files(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// A path with something behind it.
pub fn beside(path: &Path, ending: &str) -> PathBuf {
    PathBuf::from(format!("{}{ending}", path.display()))
}

/// Two threads insert 200 records each, ten in a transaction and synchronised so far, while another one
/// counts them.
pub fn write_side_by_side(path: &Path, synchronous: &str) {
    std::thread::scope(|scope| {
        for writer in 0..2 {
            scope.spawn(move || {
                let connection = open(path, "plain");
                pragma::<i64>(&connection, "busy_timeout = 60000");
                connection.execute_batch(&format!("PRAGMA synchronous = {synchronous}")).unwrap();
                for round in 0..20 {
                    connection.execute_batch("BEGIN IMMEDIATE").unwrap();
                    let first = writer * 1000 + round * 10;
                    fill(&connection, first..first + 10);
                    connection.execute_batch("COMMIT").unwrap();
                }
            });
        }
        let reader = open(path, "plain");
        pragma::<i64>(&reader, "busy_timeout = 60000");
        for _ in 0..50 {
            assert!(count(&reader).is_multiple_of(10), "transactions are seen whole");
        }
    });
}

/// Makes a table of records with a number and a text, which [`fill`] fills. The connection goes on without
/// syncing.
pub fn create(connection: &Connection) {
    // No power fails in these tests.
    let statements =
        "PRAGMA synchronous = off; CREATE TABLE records (number INTEGER PRIMARY KEY, content TEXT)";
    connection.execute_batch(statements).unwrap();
}

pub fn fill(connection: &Connection, numbers: std::ops::Range<u32>) {
    let statement = "INSERT OR REPLACE INTO records VALUES (?1, hex(zeroblob(?1 % 700)))";
    let mut statement = connection.prepare(statement).unwrap();
    for number in numbers {
        statement.execute([number]).unwrap();
    }
}

pub fn count(connection: &Connection) -> u32 {
    connection.query_row("SELECT count(*) FROM records", [], |row| row.get(0)).unwrap()
}
