//! What a killed program leaves: copies of all files at moments of a life, as the page cache would keep them.

use std::fs;
use std::path::Path;

use crate::support::{LAYOUTS, check, count, create, fill, open, pragma};

/// Copies all files but the shared memory, which a new first connection makes anew.
fn copy(from: &Path, to: &Path) {
    fs::create_dir(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        if !entry.file_name().to_str().unwrap().ends_with("-shm") {
            fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
        }
    }
}

#[test]
fn whole_transactions_are_recovered() {
    for layout in LAYOUTS {
        for mode in ["delete", "truncate", "persist", "wal"] {
            let folder = tempfile::tempdir().unwrap();
            let live = folder.path().join("live");
            fs::create_dir(&live).unwrap();
            let connection = open(&live.join("database"), layout);
            pragma::<String>(&connection, &format!("journal_mode = {mode}"));
            create(&connection);
            connection.execute_batch("PRAGMA cache_size = 2; PRAGMA synchronous = off").unwrap();
            for round in 0..6 {
                connection.execute_batch("BEGIN").unwrap();
                for part in 0..4 {
                    let first = round * 400 + part * 100;
                    fill(&connection, first..first + 100);
                    let left = folder.path().join(format!("{round}-{part}"));
                    copy(&live, &left);
                    let recovered = open(&left.join("database"), "plain");
                    assert_eq!(count(&recovered), round * 400, "{layout} {mode}");
                    check(&recovered);
                }
                connection.execute_batch("COMMIT").unwrap();
            }
        }
    }
}
