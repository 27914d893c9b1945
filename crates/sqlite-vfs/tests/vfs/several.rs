//! Several connections, and several databases in one transaction.

use std::thread;

use crate::support::{LAYOUTS, check, count, create, files, fill, open, pragma};

#[test]
fn writers_and_readers_share_a_database() {
    for mode in ["delete", "wal"] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("database");
        let connection = open(&path, LAYOUTS[0]);
        pragma::<String>(&connection, &format!("journal_mode = {mode}"));
        create(&connection);
        thread::scope(|scope| {
            for writer in 0..2 {
                let path = &path;
                scope.spawn(move || {
                    let connection = open(path, "plain");
                    pragma::<i64>(&connection, "busy_timeout = 60000");
                    connection.execute_batch("PRAGMA synchronous = off").unwrap();
                    for round in 0..20 {
                        connection.execute_batch("BEGIN IMMEDIATE").unwrap();
                        let first = writer * 1000 + round * 10;
                        fill(&connection, first..first + 10);
                        connection.execute_batch("COMMIT").unwrap();
                    }
                });
            }
            let reader = open(&path, "plain");
            pragma::<i64>(&reader, "busy_timeout = 60000");
            for _ in 0..50 {
                assert!(count(&reader).is_multiple_of(10), "transactions are seen whole");
            }
        });
        assert_eq!(count(&connection), 400);
        check(&connection);
    }
}

#[test]
fn transactions_over_several_databases_commit_and_roll_back() {
    let folder = tempfile::tempdir().unwrap();
    let [first, second] = ["first", "second"].map(|name| folder.path().join(name));
    let connection = open(&first, LAYOUTS[0]);
    let attach = format!("ATTACH 'file:{}?layout={}' AS other", second.display(), LAYOUTS[2]);
    connection.execute_batch(&attach).unwrap();
    create(&connection);
    connection.execute_batch("CREATE TABLE other.records (number INTEGER PRIMARY KEY)").unwrap();
    let write = "BEGIN; INSERT INTO main.records (number) VALUES (1); INSERT INTO other.records VALUES (1);";
    connection.execute_batch(&format!("{write} ROLLBACK")).unwrap();
    connection.execute_batch(&format!("{write} COMMIT")).unwrap();
    for schema in ["main", "other"] {
        let count: u32 = connection
            .query_row(&format!("SELECT count(*) FROM {schema}.records"), [], |row| row.get(0))
            .unwrap();
        assert_eq!(count, 1, "{schema}");
    }
    check(&connection);
    drop(connection);
    assert_eq!(files(folder.path()), ["first", "second"]);
    assert_eq!(pragma::<String>(&open(&second, "plain"), "flashgrain_layout"), LAYOUTS[2]);
}
