//! A file that was removed or renamed while it is open lends nothing to a new one of its name.

use std::fs;
use std::path::Path;

use rusqlite::Connection;

use crate::support::{LAYOUTS, check, count, create, files, fill, open, open_plainly, pragma};

/// A database with this layout, and a connection to it that has used it.
fn used(path: &Path, layout: &str, mode: &str) -> Connection {
    let connection = open(path, layout);
    pragma::<String>(&connection, &format!("journal_mode = {mode}"));
    create(&connection);
    fill(&connection, 0..50);
    connection
}

#[test]
fn a_new_file_has_the_layout_that_was_asked_for() {
    for old in LAYOUTS {
        for new in LAYOUTS {
            for mode in ["delete", "wal"] {
                let folder = tempfile::tempdir().unwrap();
                let path = folder.path().join("database");
                let removed = used(&path, old, mode);
                for name in files(folder.path()) {
                    fs::rename(folder.path().join(&name), folder.path().join(format!("old-{name}"))).unwrap();
                }
                let connection = used(&path, new, mode);
                let told = format!("{old}, then {new}, {mode}");
                assert_eq!(pragma::<String>(&connection, "flashgrain_layout"), new, "{told}");
                assert_eq!(pragma::<String>(&removed, "flashgrain_layout"), old, "{told}");
                assert_eq!(count(&removed), 50, "{told}");
                drop(removed);
                // The journal of the new one has the name that its layout gives.
                connection.execute_batch("PRAGMA cache_size = 2; BEGIN").unwrap();
                fill(&connection, 50..400);
                let ending = match (new, mode) {
                    ("plain", "wal") => "-wal",
                    ("plain", _) => "-journal",
                    (_, "wal") => "-grainwal",
                    _ => "-grainjournal",
                };
                assert!(files(folder.path()).contains(&format!("database{ending}")), "{told}");
                connection.execute_batch("COMMIT").unwrap();
                drop(connection);
                let connection = if new == "plain" { open_plainly(&path) } else { open(&path, "plain") };
                assert_eq!(count(&connection), 400, "{told}");
                check(&connection);
            }
        }
    }
}

/// As for SQLite's own VFS: what is written to a removed file is lost, and a journal beside it would be that
/// of another one.
#[test]
fn nothing_is_written_to_a_removed_file() {
    for layout in LAYOUTS {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("database");
        let removed = used(&path, layout, "delete");
        fs::remove_file(&path).unwrap();
        assert!(removed.execute("DELETE FROM records", []).is_err(), "{layout}");
        let connection = used(&path, "plain", "delete");
        assert!(removed.execute("DELETE FROM records", []).is_err(), "{layout}");
        fill(&connection, 50..60);
        assert_eq!((count(&removed), count(&connection)), (50, 60), "{layout}");
    }
}
