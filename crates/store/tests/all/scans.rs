//! What scans bring into memory, and what they leave there.

use flashgrain::{Db, Tree};

const RECORDS: u32 = 20_000;

/// A store on a device whose records are not in memory, and how many of them a leaf holds.
struct Cold {
    _folder: tempfile::TempDir,
    db: Db,
    tree: Tree,
    leaf: u32,
}

fn cold(cache_bytes: u64) -> Cold {
    cold_with(RECORDS, cache_bytes)
}

fn cold_with(records: u32, cache_bytes: u64) -> Cold {
    let folder = tempfile::TempDir::new_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let builder = || Db::builder().path(folder.path().join("store")).cache_bytes(cache_bytes);
    let db = builder().create().unwrap();
    let all = (0..records).map(|number| (number.to_be_bytes(), [7; 100]));
    db.tree("t").unwrap().load(all).unwrap();
    db.close().unwrap();
    let db = builder().open().unwrap();
    let tree = db.tree("t").unwrap();
    assert_eq!(tree.iter().unwrap().count(), records as usize);
    let leaf = (u64::from(records) / db.stats().cache.misses) as u32;
    drop(tree);
    db.close().unwrap();
    let db = builder().open().unwrap();
    let tree = db.tree("t").unwrap();
    Cold { _folder: folder, db, tree, leaf }
}

/// Pages that `act` has loaded, and reads of the device.
fn loaded_by(db: &Db, act: impl FnOnce()) -> (u64, u64) {
    let count = || {
        // By then the leaves are on their way that nobody waits for: also those of who was there before.
        db.checkpoint().unwrap();
        let stats = db.stats();
        (stats.cache.misses, stats.device.reads)
    };
    let before = count();
    act();
    let after = count();
    (after.0 - before.0, after.1 - before.1)
}

/// Pages that `act` has loaded.
fn loaded(db: &Db, act: impl FnOnce()) -> u64 {
    loaded_by(db, act).0
}

#[test]
fn a_short_scan_loads_little_more_than_it_gives() {
    let Cold { db, tree, leaf, .. } = &cold(16 << 20);
    let (count, apart) = (3 * leaf, 16 * leaf);
    let starts = (0..RECORDS - apart).step_by(apart as usize);
    let scans = starts.len() as u64;
    let (pages, reads) = loaded_by(db, || {
        for start in starts.clone() {
            let records = tree.range(start.to_be_bytes()..).unwrap();
            assert_eq!(records.take(count as usize).count(), count as usize);
        }
    });
    // Four leaves each, and the inner nodes once.
    assert!(pages <= 5 * scans, "{pages} pages for {scans} scans");
    // Two leaves lie side by side, then the next two.
    assert!(reads <= 3 * scans, "{reads} reads for {scans} scans");
}

#[test]
fn a_scan_of_a_range_loads_nothing_behind_its_end() {
    for backward in [false, true] {
        let Cold { db, tree, leaf, .. } = &cold(16 << 20);
        let (count, apart) = (6 * leaf, 30 * leaf);
        let starts = (apart..RECORDS - apart).step_by(apart as usize);
        let scans = starts.len() as u64;
        let pages = loaded(db, || {
            for start in starts.clone() {
                let records = tree.range(start.to_be_bytes()..(start + count).to_be_bytes()).unwrap();
                let given = if backward { records.rev().count() } else { records.count() };
                assert_eq!(given, count as usize);
            }
        });
        // Seven leaves each, and the inner nodes once.
        assert!(pages <= 8 * scans, "{pages} pages for {scans} scans, backward: {backward}");
    }
}

#[test]
fn what_short_scans_read_stays_while_a_long_one_passes() {
    let Cold { db, tree, leaf, .. } = &cold(1 << 20);
    let short = || {
        assert_eq!(tree.range(500_u32.to_be_bytes()..).unwrap().take(*leaf as usize).count(), *leaf as usize)
    };
    short();
    assert_eq!(tree.iter().unwrap().count(), RECORDS as usize);
    assert_eq!(loaded(db, short), 0);
}

#[test]
fn a_scan_whose_leaves_were_pushed_out_asks_for_them_again() {
    // Room for many times what the scan asks for.
    let records = 4 * RECORDS;
    let loaded_after_that = || {
        let Cold { db, tree, leaf, .. } = &cold_with(records, 8 << 20);
        let mut scan = tree.iter().unwrap();
        let mut go_on = |leaves: u32| {
            let count = (leaves * leaf) as usize;
            assert_eq!(scan.by_ref().take(count).count(), count);
        };
        go_on(100);
        // A long scan takes the scans' share of the memory.
        assert_eq!(tree.iter().unwrap().count(), records as usize);
        for _ in 0..4 {
            go_on(1);
            // By then what the scan asks for is on its way.
            db.checkpoint().unwrap();
        }
        loaded(db, || go_on(8))
    };
    // All that is next is in memory again: half as much as before, and so the scan does not ask for more yet,
    // unless something was pushed out before and it asked for half as much even then.
    assert!((0..5).any(|_| loaded_after_that() == 0));
}
