//! Several connections, and several databases in one transaction.

use crate::support::{LAYOUTS, check, count, create, files, open, pragma, write_side_by_side};

#[test]
fn writers_and_readers_share_a_database() {
    for mode in ["delete", "wal"] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("database");
        let connection = open(&path, LAYOUTS[0]);
        pragma::<String>(&connection, &format!("journal_mode = {mode}"));
        create(&connection);
        write_side_by_side(&path, "off");
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
