//! Every page size, growing and shrinking.

use crate::support::{LAYOUTS, check, count, create, fill, open, pragma};

#[test]
fn pages_of_every_size_are_written_moved_and_given_back() {
    let folder = tempfile::tempdir().unwrap();
    for layout in LAYOUTS {
        for page_bytes in (9..=16).map(|shift| 1_u32 << shift) {
            let path = folder.path().join(format!("{layout}-{page_bytes}"));
            let connection = open(&path, layout);
            let setup = format!("PRAGMA page_size = {page_bytes}; PRAGMA auto_vacuum = incremental");
            connection.execute_batch(&setup).unwrap();
            create(&connection);
            connection.execute_batch("BEGIN").unwrap();
            fill(&connection, 0..1500);
            connection.execute_batch("COMMIT; DELETE FROM records WHERE number % 4 != 0").unwrap();
            let pages: u32 = pragma(&connection, "page_count");
            connection.execute_batch("PRAGMA incremental_vacuum").unwrap();
            assert!(pragma::<u32>(&connection, "page_count") < pages, "{layout} {page_bytes}");
            check(&connection);
            connection.execute_batch("VACUUM").unwrap();
            check(&connection);
            drop(connection);
            let connection = open(&path, "plain");
            assert_eq!(pragma::<u32>(&connection, "page_size"), page_bytes);
            assert_eq!(count(&connection), 375);
            check(&connection);
        }
    }
}

#[test]
fn a_vacuum_changes_the_page_size() {
    let folder = tempfile::tempdir().unwrap();
    let connection = open(&folder.path().join("database"), LAYOUTS[0]);
    create(&connection);
    fill(&connection, 0..300);
    for page_bytes in [512, 65536, 4096] {
        connection.execute_batch(&format!("PRAGMA page_size = {page_bytes}; VACUUM")).unwrap();
        assert_eq!(pragma::<u32>(&connection, "page_size"), page_bytes);
        check(&connection);
    }
    assert_eq!(count(&connection), 300);
}
