//! A forked child must not use its parent's store, and whatever it tries does no harm to that.

use flashgrain::{Db, Error};

use crate::folder;

/// Runs `work` in a forked child; whether all was as it should be, and the child has ended by itself.
fn in_child(work: impl FnOnce() -> bool) -> bool {
    // SAFETY: the child uses nothing of other threads but memory, which `malloc` of this system takes care
    // of, and ends without destructors.
    let child = unsafe { libc::fork() };
    if child == 0 {
        // SAFETY: ends the child if it hangs.
        unsafe { libc::alarm(20) };
        let is_right = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work)).unwrap_or(false);
        // SAFETY: ends this process.
        unsafe { libc::_exit(i32::from(!is_right)) };
    }
    let mut status = 0;
    // SAFETY: the kernel writes one word.
    let ended = unsafe { libc::waitpid(child, &raw mut status, 0) };
    ended == child && status == 0
}

#[test]
fn a_forked_child_is_refused_and_its_parent_goes_on() {
    let folder = folder();
    let path = folder.path().join("store");
    let small = || Db::builder().path(&path).cache_bytes(4 << 20).workers(2).recovery_log_bytes(1 << 20);
    let db = small().create().unwrap();
    let tree = db.tree("t").unwrap();
    let mut next = 0_u64;
    let mut insert = |count: u64| {
        for _ in 0..count {
            tree.insert(next.to_be_bytes(), [7; 100]).unwrap();
            next += 1;
        }
    };
    insert(1000);
    let forked = |error: Option<Error>| matches!(error, Some(Error::Forked));
    let (snapshot, mut scan, mut batch) = (db.snapshot().unwrap(), tree.iter().unwrap(), db.batch());
    batch.insert(&tree, "batch", "child").unwrap();
    let copies = (db.clone(), tree.clone());
    assert!(in_child(move || {
        let (db, tree) = copies;
        let refused = [
            forked(tree.insert("child", "x").err()),
            forked(tree.remove([0; 8]).err()),
            forked(tree.get([0; 8]).err()),
            forked(tree.iter().err()),
            forked(scan.next().and_then(Result::err)),
            forked(db.begin().err()),
            forked(db.snapshot().err()),
            forked(db.sync().err()),
            forked(db.checkpoint().err()),
            forked(db.check().err()),
            forked(db.tree("other").err()),
            forked(batch.commit().err()),
            db.spawn(|| ()).join().is_err(),
            matches!(small().open(), Err(Error::Locked { .. })),
        ];
        drop((snapshot, scan));
        let closed = forked(db.close().err());
        drop(tree);
        closed && refused.iter().all(|refused| *refused)
    }));
    insert(1000);
    // A child that lives on keeps nobody from opening.
    let (wait, mut go) = std::io::pipe().unwrap();
    // SAFETY: as in `in_child`.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let mut byte = [0; 1];
        // SAFETY: reads one byte of a pipe into memory of that length, or the pipe ends; then this process
        // does.
        unsafe {
            libc::alarm(20);
            libc::read(std::os::fd::AsRawFd::as_raw_fd(&wait), byte.as_mut_ptr().cast(), 1);
            libc::_exit(0);
        }
    }
    insert(100);
    drop(tree);
    db.close().unwrap();
    let db = Db::open(&path).unwrap();
    let tree = db.tree("t").unwrap();
    assert_eq!(tree.iter().unwrap().count() as u64, next);
    assert!(tree.get("child").unwrap().is_none() && tree.get("batch").unwrap().is_none());
    db.check().unwrap();
    std::io::Write::write_all(&mut go, b"x").unwrap();
    // SAFETY: waits for the child.
    unsafe { libc::waitpid(child, std::ptr::null_mut(), 0) };
}

#[test]
fn a_child_opens_a_store_of_its_own() {
    let folder = folder();
    let small = |name: &str| Db::builder().path(folder.path().join(name)).cache_bytes(4 << 20).workers(1);
    let parents = small("parent").create().unwrap();
    assert!(in_child(|| {
        let db = small("child").create().unwrap();
        db.tree("t").unwrap().insert("key", "child").unwrap();
        db.close().is_ok()
    }));
    parents.tree("t").unwrap().insert("key", "parent").unwrap();
    parents.close().unwrap();
    assert!(small("child").open().unwrap().tree("t").unwrap().contains_key("key").unwrap());
}
