//! Every journal mode works in every layout.

use crate::support::{LAYOUTS, beside, check, count, create, fill, open, pragma};

const MODES: [&str; 6] = ["delete", "truncate", "persist", "memory", "wal", "off"];

#[test]
fn commits_and_rollbacks_survive_reopening() {
    let folder = tempfile::tempdir().unwrap();
    for layout in LAYOUTS {
        for mode in MODES {
            let path = folder.path().join(format!("{layout}-{mode}"));
            let connection = open(&path, layout);
            assert_eq!(pragma::<String>(&connection, &format!("journal_mode = {mode}")), mode);
            create(&connection);
            connection.execute_batch("BEGIN").unwrap();
            fill(&connection, 0..500);
            connection.execute_batch("COMMIT").unwrap();
            // Without a journal there is no way back.
            if mode != "off" {
                connection.execute_batch("PRAGMA cache_size = 5; BEGIN; DELETE FROM records").unwrap();
                fill(&connection, 1000..2000);
                connection.execute_batch("ROLLBACK").unwrap();
            }
            assert_eq!(count(&connection), 500, "{layout} {mode}");
            check(&connection);
            drop(connection);
            let connection = open(&path, "plain");
            assert_eq!(count(&connection), 500, "{layout} {mode}");
            assert_eq!(pragma::<String>(&connection, "flashgrain_layout"), layout);
            check(&connection);
        }
    }
}

#[test]
fn journals_of_a_layout_have_names_of_their_own() {
    let folder = tempfile::tempdir().unwrap();
    for (layout, mode, ending) in [
        ("hot:4096:0", "persist", "-grainjournal"),
        ("hot:4096:0", "wal", "-grainwal"),
        ("plain", "persist", "-journal"),
        ("plain", "wal", "-wal"),
    ] {
        let path = folder.path().join(format!("{layout}-{mode}"));
        let connection = open(&path, layout);
        pragma::<String>(&connection, &format!("journal_mode = {mode}"));
        create(&connection);
        assert!(beside(&path, ending).exists(), "{layout} {mode}");
        for other in ["-journal", "-wal", "-grainjournal", "-grainwal"] {
            assert!(other == ending || !beside(&path, other).exists(), "{layout} {mode}: {other}");
        }
        pragma::<String>(&connection, "journal_mode = delete");
        assert!(!beside(&path, ending).exists(), "{layout} {mode} goes");
    }
}

#[test]
fn modes_change_into_each_other() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("database");
    let connection = open(&path, LAYOUTS[0]);
    create(&connection);
    for (round, mode) in (0_u32..).zip(MODES.into_iter().chain(MODES.into_iter().rev())) {
        assert_eq!(pragma::<String>(&connection, &format!("journal_mode = {mode}")), mode);
        fill(&connection, round * 100..round * 100 + 100);
        check(&connection);
    }
    assert_eq!(count(&connection), 1200);
}

#[test]
fn mapped_memory_shows_the_same() {
    let folder = tempfile::tempdir().unwrap();
    for layout in LAYOUTS {
        let path = folder.path().join(layout);
        let connection = open(&path, layout);
        pragma::<i64>(&connection, "mmap_size = 268435456");
        create(&connection);
        connection.execute_batch("BEGIN").unwrap();
        fill(&connection, 0..2000);
        connection.execute_batch("COMMIT").unwrap();
        drop(connection);
        let connection = open(&path, layout);
        pragma::<i64>(&connection, "mmap_size = 268435456");
        check(&connection);
        connection.execute_batch("DELETE FROM records WHERE number % 3 = 0; VACUUM").unwrap();
        check(&connection);
        assert_eq!(count(&connection), 1333);
    }
}

#[test]
fn names_may_be_as_long_as_without_the_vfs() {
    /// SQLite's own VFS takes 512, of which 8 are for SQLite's ending.
    const NAME_BYTES: usize = 504;
    let folder = tempfile::tempdir().unwrap();
    for mode in ["delete", "wal"] {
        let mut path = folder.path().join(mode);
        while path.as_os_str().len() + 1 < NAME_BYTES {
            let left = NAME_BYTES - path.as_os_str().len() - 1;
            path = path.join("n".repeat(if left > 400 { 100 } else { left.min(200) }));
        }
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        let connection = open(&path, LAYOUTS[0]);
        assert_eq!(pragma::<String>(&connection, &format!("journal_mode = {mode}")), mode);
        create(&connection);
        fill(&connection, 0..100);
        check(&connection);
        drop(connection);
        assert_eq!(count(&open(&path, "plain")), 100);
    }
}
