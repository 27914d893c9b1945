//! Trees that are dropped while something of them is still wanted.

use flashgrain::{Db, Readable};

/// They were looked for in pages that were free, or another tree's: giving old versions up failed, and they stayed.
#[test]
fn regression_tombstones_of_a_dropped_tree_are_not_looked_for_in_it() {
    let db = Db::in_memory(8 << 20).unwrap();
    let stays = db.tree("stays").unwrap();
    for round in 0..10u32 {
        let goes = db.tree("goes").unwrap();
        for key in 0..300u32 {
            goes.insert(key.to_be_bytes(), [round as u8; 100]).unwrap();
        }
        let snapshot = db.snapshot().unwrap();
        for key in 0..300u32 {
            goes.remove(key.to_be_bytes()).unwrap();
        }
        assert_eq!(
            snapshot.get(&goes, 7u32.to_be_bytes()).unwrap().as_deref(),
            Some(&[round as u8; 100][..])
        );
        assert!(db.stats().history.records >= 300);
        drop(goes);
        db.drop_tree("goes").unwrap();
        drop(snapshot);
        // Where it was, others are by now.
        for key in 0..300u32 {
            stays.insert((round * 1000 + key).to_be_bytes(), [round as u8; 100]).unwrap();
        }
        db.reclaim().unwrap_or_else(|error| panic!("round {round}: {error}"));
        assert_eq!(db.stats().history.records, 0, "round {round}");
    }
    db.check().unwrap();
    assert_eq!(stays.iter().unwrap().count(), 3000);
}
