//! `flashgrain vfs`: copies of databases into a layout and out of it.

use std::fs;

use serde_json::Value;

use crate::support::{fails, flashgrain, folder, stderr, stdout};

/// A profile of the paper's SSD-S, which is hot in the middle of its chunks.
const PROFILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../advisor/tests/fixtures/960evo.json");

/// A profile that knows no chunks.
const WITHOUT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../profile/tests/fixtures/profile-v1.json");

/// What SQLite's databases begin with, and more.
fn database() -> Vec<u8> {
    let mut bytes: Vec<u8> = (0..102_400_u32).map(|at| (at % 251) as u8).collect();
    bytes[..16].copy_from_slice(b"SQLite format 3\0");
    bytes[16..20].copy_from_slice(&[16, 0, 1, 1]);
    // Its header has no number of its pages that holds.
    bytes[28..32].fill(0);
    bytes
}

#[test]
fn a_database_goes_into_the_layout_of_a_profile_and_comes_back() {
    let folder = folder();
    fs::write(folder.path().join("plain.db"), database()).unwrap();
    let run =
        |arguments: &[&str]| flashgrain().current_dir(&folder).arg("vfs").args(arguments).assert().success();
    let said = stderr(&run(&["import", "plain.db", "laid.db", "--profile", PROFILE]));
    assert!(said.contains("hot:65536:32768"), "{said}");
    let info: Value = serde_json::from_str(&stdout(&run(&["info", "laid.db", "--json"]))).unwrap();
    assert_eq!(info["layout"], "hot:65536:32768");
    assert_eq!((&info["page_bytes"], &info["database_bytes"]), (&4096.into(), &102_400.into()));
    assert_eq!(info["file_bytes"], 102_400 + (32 << 10));
    let text = stdout(&run(&["info", "plain.db"]));
    assert!(text.contains("plain") && text.contains("4 KiB") && text.contains("rollback journal"), "{text}");
    run(&["export", "laid.db", "back.db"]);
    assert_eq!(fs::read(folder.path().join("back.db")).unwrap(), database());
}

#[test]
fn pages_get_checksums_and_damage_is_told() {
    let folder = folder();
    let mut whole = database();
    fs::write(folder.path().join("plain.db"), &whole).unwrap();
    let run = |arguments: &[&str]| {
        let mut command = flashgrain();
        command.current_dir(&folder).arg("vfs").args(arguments);
        command
    };
    let import = ["import", "plain.db", "laid.db", "--layout", "hot:4096:0", "--checksums"];
    whole[20] = 0;
    fs::write(folder.path().join("plain.db"), &whole).unwrap();
    fails(&mut run(&import), 1, &["reserves 0 bytes", "needs 8"]);
    whole[20] = 8;
    whole.chunks_exact_mut(4096).for_each(|page| page[4088..].fill(0));
    fs::write(folder.path().join("plain.db"), &whole).unwrap();
    run(&import).assert().success();
    let text = stdout(&run(&["info", "laid.db"]).assert().success());
    assert!(text.contains("hot:4096:0+checksums"), "{text}");
    run(&["export", "laid.db", "back.db"]).assert().success();
    assert!(fs::read(folder.path().join("back.db")).unwrap() == whole);
    let mut laid = fs::read(folder.path().join("laid.db")).unwrap();
    laid[4096 + 10 * 4096] ^= 1;
    fs::write(folder.path().join("laid.db"), laid).unwrap();
    fails(&mut run(&["export", "laid.db", "new.db"]), 1, &["laid.db is damaged: page 11", "backup"]);
    assert!(!folder.path().join("new.db").exists());
}

#[test]
fn what_cannot_be_copied_is_refused_with_the_reason() {
    let folder = folder();
    fs::write(folder.path().join("plain.db"), database()).unwrap();
    fs::write(folder.path().join("text"), "once upon a time").unwrap();
    let refused = |arguments: &[&str], code: i32, texts: &[&str]| {
        fails(flashgrain().current_dir(&folder).arg("vfs").args(arguments), code, texts);
    };
    let layout = ["--layout", "hot:4096:0"];
    refused(&["import", "plain.db", "new.db"], 2, &["--profile", "--layout"]);
    refused(&["import", "plain.db", "new.db", "--layout", "hot:4096:4096"], 2, &["less than the chunk"]);
    refused(&["import", "plain.db", "new.db", "--profile", WITHOUT], 1, &["stay as they are"]);
    refused(&["import", "plain.db", "text", layout[0], layout[1]], 1, &["text", "exists"]);
    refused(&["import", "text", "new.db", layout[0], layout[1]], 1, &["no SQLite database"]);
    refused(&["export", "plain.db", "new.db"], 1, &["any program can open it"]);
    refused(&["info", "none.db"], 1, &["none.db"]);
    fs::write(folder.path().join("cut.db"), &database()[..100_000]).unwrap();
    refused(&["import", "cut.db", "new.db", layout[0], layout[1]], 1, &["cut off", "25 pages", "backup"]);
    let text = stdout(&flashgrain().current_dir(&folder).args(["vfs", "info", "cut.db"]).assert().success());
    assert!(text.contains("2.3 KiB of its pages missing"), "{text}");
    fs::hard_link(folder.path().join("plain.db"), folder.path().join("second.db")).unwrap();
    refused(&["import", "second.db", "new.db", layout[0], layout[1]], 1, &["2 names", "find -samefile"]);
    fs::remove_file(folder.path().join("second.db")).unwrap();
    fs::write(folder.path().join("plain.db-wal"), "frames").unwrap();
    refused(&["import", "plain.db", "new.db", layout[0], layout[1]], 1, &["plain.db-wal", "close"]);
    assert!(!folder.path().join("new.db").exists());
}

#[test]
fn volumes_are_made_in_new_files_only() {
    let folder = folder();
    let make = |files: &[&str]| {
        let mut command = flashgrain();
        command.current_dir(&folder).args(["vfs", "create-volume", "--size", "8MiB"]).args(files);
        command
    };
    let said = stderr(&make(&["one", "other"]).assert().success());
    assert!(said.contains("8 MiB"), "{said}");
    fails(&mut make(&["new", "one"]), 2, &["one exists"]);
    fails(&mut make(&["new", "./new"]), 2, &["./new is named twice"]);
    let mut small = flashgrain();
    small.current_dir(&folder).args(["vfs", "create-volume", "--size", "1KiB", "new"]);
    fails(&mut small, 2, &["too small", "3 MiB"]);
    assert!(!folder.path().join("new").exists());
}
