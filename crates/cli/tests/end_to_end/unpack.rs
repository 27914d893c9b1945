//! `flashgrain unpack`: files of records become plain files.

use std::fs;

use crate::support::{fails, flashgrain, folder, stderr, stdout};

/// Five records of 400 bytes.
const RECORDS: &[u8] = include_bytes!("../../../record-files/tests/fixtures/counts-512");

#[test]
fn records_become_plain_and_plain_files_stay() {
    let folder = folder();
    let path = |name: &str| folder.path().join(name);
    fs::write(path("host-bin.000001"), RECORDS).unwrap();
    fs::write(path("host-bin.000002"), b"plain").unwrap();
    let run = || {
        let mut command = flashgrain();
        command.current_dir(&folder).args(["unpack", "host-bin.000001", "host-bin.000002"]);
        command
    };
    let done = run().assert().success();
    assert!(stdout(&done).contains("host-bin.000001: 2000 bytes"), "{}", stdout(&done));
    assert!(stderr(&done).contains("host-bin.000002: plain already"), "{}", stderr(&done));
    let wanted: Vec<u8> =
        (0..5).flat_map(|step| (0..400).map(move |at| (at * 7 + step * 31 + 1) as u8)).collect();
    assert_eq!(fs::read(path("host-bin.000001")).unwrap(), wanted);
    assert_eq!(fs::read(path("host-bin.000002")).unwrap(), b"plain");
    // Given again, it changes nothing.
    run().assert().success();
    assert_eq!(fs::read(path("host-bin.000001")).unwrap(), wanted);
    fs::remove_file(path("host-bin.000001")).unwrap();
    fails(&mut run(), 1, &["host-bin.000001"]);
}
