//! Databases, and what is left of them after a power cut: the part of `scripts/power-loss.sh --sqlite` that
//! writes them, and the part that compares.

use std::fmt;
use std::path::{Path, PathBuf};

use rusqlite::Connection;

use crate::support::{open, pragma};

/// Where the child makes its databases; its presence says that this process is the child.
const CHILD: &str = "FLASHGRAIN_KILL_CHILD";

/// Databases that are only to be compared, within the bounds of each in the other variable, as
/// `acknowledged:submitted` with spaces between.
const CHECK: &str = "FLASHGRAIN_KILL_CHECK";
const BOUNDS: &str = "FLASHGRAIN_KILL_BOUNDS";

/// Layouts and journal modes, one database each.
const DATABASES: [(&str, &str); 5] = [
    ("plain", "wal"),
    ("hot:65536:32768", "delete"),
    ("hot:5120:1536", "truncate"),
    ("hot:4096:0+log:16384", "wal"),
    ("hot:65536:32768", "wal"),
];

#[test]
#[ignore = "scripts/power-loss.sh --sqlite runs it"]
fn a_database_has_what_it_acknowledged() {
    if let Some(folder) = std::env::var_os(CHILD) {
        write(&PathBuf::from(folder));
    }
    if let Some(folder) = std::env::var_os(CHECK) {
        compare(&PathBuf::from(folder), &std::env::var(BOUNDS).unwrap());
    }
}

/// For whoever records, on standard error, a line at once.
fn say(words: fmt::Arguments<'_>) {
    use std::io::Write as _;
    std::io::stderr().write_all(format!("@{words}\n").as_bytes()).unwrap();
}

fn path(folder: &Path, number: usize) -> PathBuf {
    folder.join(format!("database{number}"))
}

/// The content that a record of this number has.
fn content(number: u64) -> Vec<u8> {
    vec![number as u8 | 1; (number * 613 % 3000) as usize]
}

fn write(folder: &Path) {
    std::fs::create_dir(folder).unwrap();
    // Its name is durable before anything in it is acknowledged.
    std::fs::File::open(folder.parent().unwrap()).unwrap().sync_all().unwrap();
    say(format_args!("found"));
    std::thread::scope(|scope| {
        for (number, (layout, mode)) in DATABASES.into_iter().enumerate() {
            scope.spawn(move || write_one(number, &open(&path(folder, number), layout), mode));
        }
    });
}

/// Inserts records in transactions of one or a few until the process is killed.
fn write_one(actor: usize, connection: &Connection, mode: &str) {
    pragma::<String>(connection, &format!("journal_mode = {mode}"));
    // Without the journal's directory, a transaction that has ended may be rolled back after a power cut.
    connection.execute_batch("PRAGMA synchronous = extra; PRAGMA cache_size = 3").unwrap();
    pragma::<i64>(connection, "wal_autocheckpoint = 20");
    connection.execute_batch("CREATE TABLE records (number INTEGER PRIMARY KEY, content BLOB)").unwrap();
    let mut next = 1;
    loop {
        let end = next + 1 + next % 4;
        say(format_args!("submits {actor} {}", end - 1));
        connection.execute_batch("BEGIN").unwrap();
        for number in next..end {
            connection
                .execute("INSERT INTO records VALUES (?, ?)", (number as i64, content(number)))
                .unwrap();
        }
        connection.execute_batch("COMMIT").unwrap();
        say(format_args!("acknowledged {actor} {}", end - 1));
        next = end;
    }
}

fn compare(folder: &Path, bounds: &str) {
    let mut commits = 0;
    for (number, bounds) in bounds.split(' ').enumerate() {
        let (least, most) = bounds.split_once(':').unwrap();
        let (least, most): (u64, u64) = (least.parse().unwrap(), most.parse().unwrap());
        let path = path(folder, number);
        let found = if path.exists() { found(&path) } else { 0 };
        assert!((least..=most).contains(&found), "{:?}: {found} of {least} to {most}", DATABASES[number]);
        commits += found;
    }
    println!("@commits {commits}");
}

/// Records of a database, which are the first so many.
fn found(path: &Path) -> u64 {
    let connection = open(path, "plain");
    assert_eq!(pragma::<String>(&connection, "integrity_check"), "ok", "{}", path.display());
    let tables: i64 =
        connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0)).unwrap();
    if tables == 0 {
        return 0;
    }
    let mut statement = connection.prepare("SELECT number, content FROM records ORDER BY number").unwrap();
    let rows = statement.query_map([], |row| Ok((row.get::<_, i64>(0)?, row.get::<_, Vec<u8>>(1)?))).unwrap();
    let mut last = 0;
    for row in rows {
        let (number, found) = row.unwrap();
        last += 1;
        assert_eq!((number as u64, found), (last, content(last)), "{}", path.display());
    }
    last
}
