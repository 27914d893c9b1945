//! Files of records become plain files, or stay what they are.
#![expect(clippy::unwrap_used, reason = "helpers of tests fail like tests")]

use std::fs::{self, File, OpenOptions};
use std::io::ErrorKind;
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt};
use std::path::Path;

use flashgrain_record_files::{Records, lock, unpack};

/// A file of records, and its bytes as a program sees them.
fn records(path: &Path) -> Vec<u8> {
    let file = OpenOptions::new().read(true).write(true).create_new(true).open(path).unwrap();
    let mut records = Records::create(&file, 512).unwrap();
    let mut all = Vec::new();
    for number in 0..5000_usize {
        let record = vec![number as u8; 1 + number * 37 % 700];
        records.append(&file, &record).unwrap();
        all.extend(record);
    }
    records.sync(&file).unwrap();
    records.finish(&file).unwrap();
    all
}

fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn records_become_plain_bytes_with_their_owner_and_time() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log.1");
    let all = records(&path);
    fs::set_permissions(&path, PermissionsExt::from_mode(0o640)).unwrap();
    let before = fs::metadata(&path).unwrap();
    // A crash has left a part of a copy.
    fs::write(folder.path().join(".log.1.flashgrain-unpacked"), b"a part").unwrap();
    assert_eq!(unpack(&path).unwrap(), Some(all.len() as u64));
    assert!(fs::read(&path).unwrap() == all);
    let after = fs::metadata(&path).unwrap();
    assert_eq!((after.mode(), after.uid(), after.gid()), (before.mode(), before.uid(), before.gid()));
    assert_eq!(after.modified().unwrap(), before.modified().unwrap());
    assert_eq!(names(folder.path()), ["log.1"]);
    // What is plain stays.
    assert_eq!(unpack(&path).unwrap(), None);
    assert!(fs::read(&path).unwrap() == all);
}

#[test]
fn links_are_followed_and_empty_files_are_empty() {
    let folder = tempfile::tempdir().unwrap();
    let (path, link) = (folder.path().join("log.1"), folder.path().join("last"));
    let all = records(&path);
    std::os::unix::fs::symlink("log.1", &link).unwrap();
    assert_eq!(unpack(&link).unwrap(), Some(all.len() as u64));
    assert!(fs::read(&path).unwrap() == all && fs::symlink_metadata(&link).unwrap().is_symlink());
    let empty = folder.path().join("log.2");
    Records::create(&File::create_new(&empty).unwrap(), 512).unwrap();
    assert_eq!(unpack(&empty).unwrap(), Some(0));
    assert_eq!(fs::metadata(&empty).unwrap().len(), 0);
    // A crash has kept the length of a new file, and lost its header.
    fs::write(&empty, [0; 64]).unwrap();
    assert_eq!(unpack(&empty).unwrap(), None);
    assert_eq!(fs::metadata(&empty).unwrap().len(), 0);
}

#[test]
fn what_cannot_be_unpacked_stays_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log.1");
    let all = records(&path);
    let laid_out = fs::read(&path).unwrap();
    let assert_refused = |kind: ErrorKind, said: &str| {
        let error = unpack(&path).unwrap_err();
        assert!(error.kind() == kind && error.to_string().contains(said), "{error:?}");
        assert_eq!(names(folder.path()).iter().filter(|name| name.contains("unpacked")).count(), 0);
    };
    let in_use = File::open(&path).unwrap();
    lock::note_use(&in_use).unwrap();
    assert_refused(ErrorKind::ResourceBusy, "a program has it open");
    drop(in_use);
    fs::hard_link(&path, folder.path().join("log.2")).unwrap();
    assert_refused(ErrorKind::InvalidInput, "2 names");
    fs::remove_file(folder.path().join("log.2")).unwrap();
    let file = OpenOptions::new().read(true).write(true).open(&path).unwrap();
    file.write_all_at(&[0xfd, 1, 2, 0xfe], 4096).unwrap();
    assert_refused(ErrorKind::InvalidData, "at byte 4096");
    file.write_all_at(&laid_out[4096..4100], 4096).unwrap();
    assert!(fs::read(&path).unwrap() == laid_out);
    assert_eq!(unpack(folder.path()).unwrap_err().kind(), ErrorKind::IsADirectory);
    assert_eq!(unpack(&folder.path().join("none")).unwrap_err().kind(), ErrorKind::NotFound);
    // While it is being unpacked, no program begins to use it.
    lock::have_alone(&file).unwrap();
    let error = lock::note_use(&File::open(&path).unwrap()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ResourceBusy);
    drop(file);
    assert_eq!(unpack(&path).unwrap(), Some(all.len() as u64));
}
