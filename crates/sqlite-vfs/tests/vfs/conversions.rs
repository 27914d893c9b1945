//! Copies by `convert` are what SQLite makes and takes.

use flashgrain_sqlite_vfs::convert;

use crate::support::{LAYOUTS, check, count, create, fill, open, open_plainly, pragma};

#[test]
fn sqlite_reads_what_was_imported_and_exported() {
    let folder = tempfile::tempdir().unwrap();
    for layout in &LAYOUTS[..3] {
        for mode in ["delete", "wal"] {
            let path = |name: &str| folder.path().join(format!("{layout}-{mode}-{name}"));
            let plain = open_plainly(&path("plain"));
            pragma::<String>(&plain, &format!("journal_mode = {mode}"));
            create(&plain);
            fill(&plain, 0..300);
            drop(plain);
            convert::import(&path("plain"), &path("laid"), layout.parse().unwrap()).unwrap();
            let laid = open(&path("laid"), "plain");
            assert_eq!(pragma::<String>(&laid, "flashgrain_layout"), *layout);
            assert_eq!(pragma::<String>(&laid, "journal_mode"), mode);
            fill(&laid, 300..400);
            check(&laid);
            if mode == "wal" {
                let error = convert::export(&path("laid"), &path("back")).unwrap_err();
                assert_eq!(error.kind(), "in use");
            }
            drop(laid);
            let made = convert::export(&path("laid"), &path("back")).unwrap();
            assert_eq!(made.has_log, mode == "wal");
            let back = open_plainly(&path("back"));
            assert_eq!(count(&back), 400);
            check(&back);
        }
    }
}

/// What SQLite made of a new database is a database without pages, with and without a layout.
#[test]
fn sqlite_goes_on_with_empty_databases() {
    let folder = tempfile::tempdir().unwrap();
    for layout in LAYOUTS.into_iter().filter(|layout| *layout != "plain") {
        let path = |name: &str| folder.path().join(format!("{layout}-{name}"));
        std::fs::write(path("plain"), b"").unwrap();
        convert::import(&path("plain"), &path("laid"), layout.parse().unwrap()).unwrap();
        let laid = open(&path("laid"), "plain");
        assert_eq!(pragma::<u32>(&laid, "page_count"), 0, "{layout}");
        create(&laid);
        fill(&laid, 0..100);
        assert_eq!(pragma::<String>(&laid, "flashgrain_layout"), layout);
        laid.execute_batch("BEGIN; DELETE FROM records; ROLLBACK").unwrap();
        drop(laid);
        convert::export(&path("laid"), &path("back")).unwrap();
        assert_eq!(count(&open_plainly(&path("back"))), 100);
        // A first transaction that was rolled back.
        let connection = open(&path("undone"), layout);
        let begin =
            "PRAGMA cache_size = 2; BEGIN; CREATE TABLE records (number INTEGER PRIMARY KEY, content TEXT)";
        connection.execute_batch(begin).unwrap();
        fill(&connection, 0..1000);
        connection.execute_batch("ROLLBACK").unwrap();
        drop(connection);
        let made = convert::export(&path("undone"), &path("nothing")).unwrap();
        assert_eq!((made.database_bytes, made.file_bytes), (0, 0), "{layout}");
    }
}
