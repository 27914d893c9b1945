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
