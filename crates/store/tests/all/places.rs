//! Stores in directories: created, opened, striped, with the log elsewhere.

use std::sync::Arc;

use flashgrain::{BackendKind, DATA_FILE, Db, ErrorKind, LOG_FILE};
use flashgrain_device::MemoryDevice;
use tempfile::TempDir;

/// On a disk: `/tmp` may be in memory.
fn folder() -> TempDir {
    TempDir::new_in(env!("CARGO_TARGET_TMPDIR")).unwrap()
}

fn small() -> flashgrain::Builder {
    Db::builder().cache_bytes(4 << 20).workers(1).recovery_log_bytes(1 << 20)
}

#[test]
fn a_store_is_found_again_with_everything_in_it() {
    let folder = folder();
    let path = folder.path().join("made").join("too");
    for round in 0..3_u32 {
        let db = small().path(&path).open_or_create().unwrap();
        let tree = db.tree("t").unwrap();
        assert_eq!(tree.iter().unwrap().count() as u32, round * 100);
        for key in 0..100_u32 {
            tree.insert((round * 100 + key).to_be_bytes(), "value").unwrap();
        }
        assert!(db.stats().recovery.was_closed);
        drop(tree);
        db.close().unwrap();
    }
}

#[test]
fn a_striped_store_with_its_log_elsewhere_is_found_again() {
    let (one, other, log) = (folder(), folder(), folder());
    let builder = || small().path(one.path()).path(other.path()).log_path(log.path());
    let db = builder().create().unwrap();
    let tree = db.tree("t").unwrap();
    for key in 0..2000_u32 {
        tree.insert(key.to_be_bytes(), [7; 100]).unwrap();
    }
    drop(tree);
    db.close().unwrap();
    assert!(one.path().join(DATA_FILE).exists() && other.path().join(DATA_FILE).exists());
    assert!(log.path().join(LOG_FILE).exists());
    let db = builder().open().unwrap();
    assert_eq!(db.check().unwrap().records, 2000);
    db.close().unwrap();
    // The members know their order.
    let db = small().path(other.path()).path(one.path()).log_path(log.path()).open().unwrap();
    assert_eq!(db.check().unwrap().records, 2000);
}

#[test]
fn a_second_opener_is_told_so() {
    let folder = folder();
    let db = small().path(folder.path()).create().unwrap();
    let error = small().path(folder.path()).open().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Locked);
    assert!(error.to_string().contains(&folder.path().display().to_string()), "{error}");
    drop(db);
    small().path(folder.path()).open().unwrap();
}

#[test]
fn creating_never_harms_what_is_there() {
    let folder = folder();
    std::fs::write(folder.path().join("letter"), "dear").unwrap();
    assert_eq!(small().path(folder.path()).create().unwrap_err().kind(), ErrorKind::Exists);
    let path = folder.path().join("store");
    drop(small().path(&path).create().unwrap());
    let error = small().path(&path).create().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Exists);
    assert!(error.to_string().contains("open it"), "{error}");
    let error = small().path(folder.path().join("letter")).create().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Exists);
    assert_eq!(std::fs::read_to_string(folder.path().join("letter")).unwrap(), "dear");
}

#[test]
fn creating_that_fails_leaves_nothing_behind() {
    let folder = folder();
    let path = folder.path().join("store");
    small().path(&path).write_unit_bytes(12345).create().unwrap_err();
    assert!(!path.exists());
    // The second member cannot be made.
    std::fs::write(folder.path().join("file"), "").unwrap();
    small().path(&path).path(folder.path().join("file")).create().unwrap_err();
    assert!(!path.exists());
}

/// Where superblocks are, and what is there while a store is being made: see docs/store-format.md.
const SUPERBLOCKS: [u64; 4] = [0, 16 << 10, 64 << 10, 80 << 10];
const MAKING: [u8; 8] = *b"flshgrn0";

fn overwrite_superblocks(path: &std::path::Path, with: [u8; 8]) {
    use std::os::unix::fs::FileExt;
    let file = std::fs::OpenOptions::new().write(true).open(path.join(DATA_FILE)).unwrap();
    let mut block = [0; 4096];
    block[..8].copy_from_slice(&with);
    SUPERBLOCKS.iter().for_each(|at| file.write_all_at(&block, *at).unwrap());
}

#[test]
fn regression_a_store_whose_making_was_cut_off_is_made_again() {
    let folder = folder();
    let path = folder.path().join("store");
    let file = path.join(DATA_FILE);
    std::fs::create_dir(&path).unwrap();
    for bytes in [0, 4096, 1 << 20] {
        std::fs::write(&file, vec![0; bytes]).unwrap();
        let error = small().path(&path).open().unwrap_err();
        assert!(matches!(error, flashgrain::Error::NotAStore { .. }), "{bytes} bytes: {error}");
        let db = small().path(&path).open_or_create().unwrap();
        db.tree("t").unwrap().insert("key", "value").unwrap();
        db.close().unwrap();
        overwrite_superblocks(&path, MAKING);
        let db = small().path(&path).open_or_create().unwrap();
        assert!(db.tree_names().is_empty());
        db.close().unwrap();
    }
    // While another one makes it, it is his.
    overwrite_superblocks(&path, MAKING);
    let locked = std::fs::File::open(&file).unwrap();
    locked.try_lock().unwrap();
    assert_eq!(small().path(&path).open_or_create().unwrap_err().kind(), ErrorKind::Locked);
}

#[test]
fn a_store_without_superblocks_is_not_made_again() {
    let folder = folder();
    let db = small().path(folder.path()).create().unwrap();
    db.close().unwrap();
    overwrite_superblocks(folder.path(), [0; 8]);
    let before = std::fs::read(folder.path().join(DATA_FILE)).unwrap();
    assert_eq!(small().path(folder.path()).open_or_create().unwrap_err().kind(), ErrorKind::Exists);
    assert!(std::fs::read(folder.path().join(DATA_FILE)).unwrap() == before);
}

/// All members of a set agree: the store is unfinished only if no member has anything else.
#[test]
fn a_cut_off_member_of_a_complete_store_is_no_unfinished_store() {
    use std::os::unix::fs::FileExt;
    let folder = folder();
    let places = ["one", "other", "log"].map(|name| folder.path().join(name));
    let [one, other, log] = &places;
    let builder = || small().path(one).path(other).log_path(log);
    builder().create().unwrap().close().unwrap();
    let files = [one.join(DATA_FILE), other.join(DATA_FILE), log.join(LOG_FILE)];
    let begins = |file: &std::path::Path| {
        let mut mark = [0; 8];
        std::fs::File::open(file).unwrap().read_exact_at(&mut mark, 0).unwrap();
        mark == MAKING
    };
    let mark = |file: &std::path::Path| {
        let file = std::fs::OpenOptions::new().write(true).open(file).unwrap();
        file.write_all_at(&MAKING, 0).unwrap();
    };
    assert!(!begins(&files[1]) && !begins(&files[2]), "marks of a complete store");
    // Cut off between the first superblock and the end of the marks: it is complete, and opening ends that.
    files[1..].iter().for_each(|file| mark(file));
    assert_eq!(builder().create().unwrap_err().kind(), ErrorKind::Exists);
    builder().open().unwrap().close().unwrap();
    assert!(!begins(&files[1]) && !begins(&files[2]));
    // Without any superblock, it is not.
    overwrite_superblocks(one, MAKING);
    assert_eq!(
        builder().open_or_create().unwrap_err().kind(),
        ErrorKind::Exists,
        "a member without a mark may be another store's"
    );
    files[1..].iter().for_each(|file| mark(file));
    assert!(matches!(builder().open().unwrap_err(), flashgrain::Error::NotAStore { .. }));
    builder().create().unwrap().close().unwrap();
    // Some files are missing, too.
    overwrite_superblocks(one, MAKING);
    mark(&files[2]);
    std::fs::remove_file(&files[1]).unwrap();
    builder().open_or_create().unwrap().close().unwrap();
    builder().open().unwrap();
}

#[test]
fn one_place_is_not_taken_twice() {
    let folder = folder();
    let path = folder.path().join("store");
    let error = small().path(&path).log_path(&path).create().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Argument, "{error}");
    assert!(!path.exists());
}

#[test]
fn a_way_of_io_that_a_place_cannot_have_is_refused() {
    let folder = folder();
    let path = folder.path().join("store");
    let asked = [
        small().path(&path).backend(BackendKind::NvmePassthrough),
        small().path(&path).backend(BackendKind::Libaio).poll_completions(true),
        small().path(&path).backend(BackendKind::Sync).poll_completions(true),
    ];
    for builder in asked {
        let error = builder.create().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Argument, "{error}");
        assert!(!path.exists());
    }
    let device = Arc::new(MemoryDevice::new(64 << 20, 64 << 20).unwrap());
    let on_device = || small().device(device.clone());
    for builder in [on_device().backend(BackendKind::Sync), on_device().poll_completions(true)] {
        let error = builder.create().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Argument, "{error}");
    }
    // Only the log is in a file.
    let builder = on_device().log_path(&path).backend(BackendKind::Sync);
    builder.create().unwrap().close().unwrap();
}
