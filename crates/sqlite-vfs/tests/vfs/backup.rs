//! SQLite's own ways to copy a database, into a layout and out of it.

use rusqlite::Connection;
use rusqlite::backup::Backup;

use crate::support::{LAYOUT, check, count, create, fill, open, open_plainly, pragma};

fn copy(from: &Connection, to: &mut Connection) {
    let backup = Backup::new(from, to).unwrap();
    while backup.step(7).unwrap() == rusqlite::backup::StepResult::More {}
}

#[test]
fn backups_go_into_a_layout_and_out_of_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let plain = open_plainly(&path("plain"));
    create(&plain);
    fill(&plain, 0..500);
    let mut laid = open(&path("laid"), LAYOUT);
    copy(&plain, &mut laid);
    check(&laid);
    assert_eq!(pragma::<String>(&laid, "flashgrain_layout"), LAYOUT);
    fill(&laid, 500..600);
    let mut back = open_plainly(&path("back"));
    copy(&laid, &mut back);
    check(&back);
    assert_eq!(count(&back), 600);
    // The file is put over a database that is longer.
    copy(&plain, &mut laid);
    check(&laid);
    assert_eq!(count(&laid), 500);
}

#[test]
fn a_vacuum_into_a_file_gives_it_its_own_layout() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("copy");
    let connection = open(&folder.path().join("database"), LAYOUT);
    create(&connection);
    fill(&connection, 0..200);
    let into = format!("VACUUM INTO 'file:{}?layout=hot:4096:0'", path.display());
    connection.execute_batch(&into).unwrap();
    let copied = open(&path, "plain");
    assert_eq!(pragma::<String>(&copied, "flashgrain_layout"), "hot:4096:0");
    assert_eq!(count(&copied), 200);
    check(&copied);
}
