//! What is refused: each with an error of its own that says what to do.

use std::fs;
use std::io::{Seek, SeekFrom, Write};
use std::os::unix::fs::FileExt;

use flashgrain::{Builder, DATA_FILE, Db, Error, ErrorKind, Readable};
use tempfile::TempDir;

pub fn folder() -> TempDir {
    TempDir::new_in(env!("CARGO_TARGET_TMPDIR")).unwrap()
}

fn small() -> Builder {
    Db::builder().cache_bytes(4 << 20).workers(1).recovery_log_bytes(1 << 20)
}

/// Bit by bit: no part of the store is trusted to check itself.
pub fn crc32c(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0, |crc, byte| {
        (0..8).fold(
            crc ^ u32::from(*byte),
            |crc, _| if crc & 1 == 1 { crc >> 1 ^ 0x82f6_3b78 } else { crc >> 1 },
        )
    })
}

#[test]
fn keys_over_the_limit_and_empty_ones() {
    let db = Db::in_memory(8 << 20).unwrap();
    let tree = db.tree("t").unwrap();
    let limit = tree.key_bytes_max();
    assert!((900..=1024).contains(&limit), "a quarter of a node of 4 KiB, not {limit}");
    let longest = vec![b'k'; limit];
    tree.insert(&longest, "v").unwrap();
    assert_eq!(tree.get(&longest).unwrap().unwrap(), "v");
    for key in [vec![], vec![b'k'; limit + 1]] {
        let is_right = |error: Error| matches!(error, Error::KeyLength { got, limit: l } if got == key.len() && l == limit);
        assert!(is_right(tree.insert(&key, "v").unwrap_err()));
        assert!(is_right(tree.remove(&key).unwrap_err()));
        assert!(is_right(db.batch().insert(&tree, &key, "v").unwrap_err()));
        assert!(is_right(db.begin().unwrap().insert(&tree, &key, "v").unwrap_err()));
        // There is no such record, which is an answer.
        assert!(db.get(&tree, &key).unwrap().is_none());
    }
}

#[test]
fn a_directory_that_is_not_a_store() {
    let folder = folder();
    for path in [folder.path().to_owned(), folder.path().join("missing")] {
        let error = small().path(&path).open().unwrap_err();
        assert!(matches!(&error, Error::NotAStore { path: named, .. } if *named == path), "{error}");
    }
    let file = folder.path().join("file");
    fs::write(&file, "text").unwrap();
    assert!(matches!(small().path(&file).open().unwrap_err(), Error::NotAStore { .. }));
    fs::write(folder.path().join(DATA_FILE), vec![7; 1 << 20]).unwrap();
    let error = small().path(folder.path()).open().unwrap_err();
    assert!(matches!(error, Error::NotAStore { .. }), "{error}");
}

#[test]
fn a_store_of_another_format_version() {
    let folder = folder();
    small().path(folder.path()).create().unwrap().close().unwrap();
    let file = fs::OpenOptions::new().read(true).write(true).open(folder.path().join(DATA_FILE)).unwrap();
    let mut head = vec![0; 256 << 10];
    file.read_exact_at(&mut head, 0).unwrap();
    // Wherever a superblock or label is: its version, and the checksum before it, which covers the rest of
    // the sector.
    for (number, sector) in head.chunks_exact_mut(512).enumerate() {
        if sector.starts_with(b"flshgrn") {
            sector[12..16].copy_from_slice(&99_u32.to_le_bytes());
            let checksum = crc32c(&sector[12..]);
            sector[8..12].copy_from_slice(&checksum.to_le_bytes());
            file.write_all_at(sector, number as u64 * 512).unwrap();
        }
    }
    let error = small().path(folder.path()).open().unwrap_err();
    assert!(matches!(error, Error::FormatVersion { got: 99, supported: 13 }), "{error}");
}

#[test]
fn a_cache_that_is_too_small() {
    let error = Db::in_memory(1000).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Argument);
    assert!(error.to_string().contains("at least 1048576"), "{error}");
}

#[test]
fn options_that_cannot_be() {
    for (builder, text) in [
        (small().workers(0), "use 1 to 1024"),
        (small().tasks_per_worker(0), "at least one"),
        (small().node_bytes(5000), "a power of two from 4096 to 65536"),
        (small().segment_bytes(7), "a multiple of the write unit"),
        (small(), "no place"),
    ] {
        let folder = folder();
        let placed = if text == "no place" { builder } else { builder.path(folder.path().join("store")) };
        let error = placed.create().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Argument, "{error}");
        assert!(error.to_string().contains(text), "{error}");
    }
    let db = Db::in_memory(8 << 20).unwrap();
    for name in [String::new(), "n".repeat(257)] {
        assert_eq!(db.tree(&name).unwrap_err().kind(), ErrorKind::Argument);
    }
}

#[test]
fn a_missing_member_and_a_foreign_one() {
    let (one, other, third) = (folder(), folder(), folder());
    small().path(one.path()).path(other.path()).create().unwrap().close().unwrap();
    small().path(third.path()).create().unwrap().close().unwrap();
    let is_member = |builder: Builder| {
        let error = builder.open().unwrap_err();
        assert!(matches!(error, Error::Member { .. }), "{error}");
        error.to_string()
    };
    let text = is_member(small().path(one.path()));
    assert!(text.contains("2 members, 1 of them"), "{text}");
    let text = is_member(small().path(one.path()).path(third.path()));
    assert!(text.contains("another store") && text.contains(&third.path().display().to_string()), "{text}");
    fs::remove_file(other.path().join(DATA_FILE)).unwrap();
    let text = is_member(small().path(one.path()).path(other.path()));
    assert!(text.starts_with(&other.path().display().to_string()) && text.contains("missing"), "{text}");
}

#[test]
fn a_truncated_file() {
    let folder = folder();
    let db = small().path(folder.path()).create().unwrap();
    let tree = db.tree("t").unwrap();
    (0..1000_u32).for_each(|key| tree.insert(key.to_be_bytes(), [1; 500]).unwrap());
    drop(tree);
    db.close().unwrap();
    let path = folder.path().join(DATA_FILE);
    let mut file = fs::OpenOptions::new().write(true).open(&path).unwrap();
    let length = file.seek(SeekFrom::End(0)).unwrap();
    file.set_len(length / 2).unwrap();
    file.flush().unwrap();
    let error = small().path(folder.path()).open().unwrap_err();
    assert!(matches!(error, Error::Member { .. }) && error.to_string().contains("truncated"), "{error}");
}

#[test]
fn a_log_that_is_missing_or_too_many() {
    let (data, log) = (folder(), folder());
    small().path(data.path()).log_path(log.path()).create().unwrap().close().unwrap();
    let error = small().path(data.path()).open().unwrap_err();
    assert!(matches!(error, Error::Member { .. }) && error.to_string().contains("log"), "{error}");
    small().path(data.path()).log_path(log.path()).open().unwrap();
}
