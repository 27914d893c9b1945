//! Files that are empty may become anything.

use std::fs;

use crate::support::{
    LAYOUT, LAYOUTS, beside, check, count, create, files, fill, open, open_plainly, pragma,
};

#[test]
fn a_database_without_content_has_no_layout_yet() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("database");
    let connection = open(&path, LAYOUT);
    assert_eq!(pragma::<u32>(&connection, "page_count"), 0);
    drop(connection);
    assert_eq!(fs::metadata(&path).unwrap().len(), 0);
    create(&open(&path, "plain"));
    assert_eq!(fs::read(&path).unwrap()[..15], *b"SQLite format 3");
}

#[test]
fn the_first_to_write_decides() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("database");
    let (first, second) = (open(&path, LAYOUT), open_plainly(&path));
    create(&second);
    fill(&second, 0..10);
    assert_eq!(count(&first), 10);
    assert_eq!(pragma::<String>(&first, "flashgrain_layout"), "plain");
    fill(&first, 10..20);
    assert_eq!(count(&second), 20);
    check(&first);
}

#[test]
fn connections_that_wait_for_each_other_agree() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("database");
    let (first, second) = (open(&path, LAYOUTS[1]), open(&path, LAYOUTS[0]));
    create(&second);
    fill(&first, 0..10);
    for connection in [&first, &second] {
        assert_eq!(pragma::<String>(connection, "flashgrain_layout"), LAYOUTS[1]);
        assert_eq!(count(connection), 10);
        check(connection);
    }
    assert_eq!(files(folder.path()), ["database"]);
}

#[test]
fn a_first_transaction_can_be_rolled_back() {
    for mode in ["delete", "truncate", "persist", "memory"] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("database");
        let connection = open(&path, LAYOUT);
        pragma::<String>(&connection, &format!("journal_mode = {mode}"));
        let begin =
            "PRAGMA cache_size = 2; BEGIN; CREATE TABLE records (number INTEGER PRIMARY KEY, content TEXT)";
        connection.execute_batch(begin).unwrap();
        fill(&connection, 0..2000);
        connection.execute_batch("ROLLBACK").unwrap();
        assert_eq!(pragma::<u32>(&connection, "page_count"), 0, "{mode}");
        create(&connection);
        fill(&connection, 0..10);
        check(&connection);
        drop(connection);
        let connection = open(&path, "plain");
        assert_eq!(pragma::<String>(&connection, "flashgrain_layout"), LAYOUT);
        assert_eq!(count(&connection), 10);
    }
}

#[test]
fn a_header_that_was_never_written_is_written_again() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("database");
    fs::write(&path, [0; 4096]).unwrap();
    let connection = open(&path, LAYOUT);
    create(&connection);
    assert_eq!(pragma::<String>(&connection, "flashgrain_layout"), LAYOUT);
    check(&connection);
}

/// Another process gives an empty file its layout, and is killed within a later transaction: a connection
/// that has opened the file before finds the journal by the name that the layout gives it.
#[test]
fn what_another_process_has_made_of_a_file_is_seen_with_its_journal() {
    for layout in LAYOUTS {
        let folder = tempfile::tempdir().unwrap();
        let [path, other] = ["database", "other"].map(|name| folder.path().join(name));
        let connection = open(&path, "plain");
        assert_eq!(pragma::<u32>(&connection, "page_count"), 0);
        let killed = open(&other, layout);
        create(&killed);
        fill(&killed, 0..100);
        killed.execute_batch("PRAGMA cache_size = 2; BEGIN; DELETE FROM records").unwrap();
        fill(&killed, 1000..3000);
        let ending = if layout == "plain" { "-journal" } else { "-grainjournal" };
        fs::copy(beside(&other, ending), beside(&path, ending)).unwrap();
        // The file stays the one that is open.
        fs::write(&path, fs::read(&other).unwrap()).unwrap();
        assert_eq!(count(&connection), 100, "{layout}");
        check(&connection);
    }
}
