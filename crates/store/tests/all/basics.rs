//! Trees, iterators, cursors, batches, transactions: what they promise.

use flashgrain::{Db, Durability, ErrorKind, Readable, Tree, TreeOptions};

fn db() -> Db {
    Db::in_memory(16 << 20).unwrap()
}

fn numbers(db: &Db, count: u32) -> Tree {
    let tree = db.tree("numbers").unwrap();
    let mut batch = db.batch();
    for number in 0..count {
        batch.insert(&tree, number.to_be_bytes(), number.to_string()).unwrap();
    }
    batch.commit().unwrap();
    tree
}

fn number(key: &[u8]) -> u32 {
    u32::from_be_bytes(key.try_into().unwrap())
}

#[test]
fn an_iterator_from_both_ends_meets_itself_once() {
    let db = db();
    let tree = numbers(&db, 1000);
    let (mut front, mut back) = (Vec::new(), Vec::new());
    let mut iter = tree.range(100_u32.to_be_bytes()..900_u32.to_be_bytes()).unwrap();
    loop {
        // Unequal steps, so that they meet in the middle of a leaf.
        for _ in 0..3 {
            front.extend(iter.next().map(|record| number(&record.unwrap().0)));
        }
        match iter.next_back() {
            Some(record) => back.push(number(&record.unwrap().0)),
            None => break,
        }
    }
    assert!(iter.next().is_none() && iter.next_back().is_none());
    back.reverse();
    front.extend(back);
    assert_eq!(front, (100..900).collect::<Vec<_>>());
}

#[test]
fn ranges_take_every_kind_of_bound() {
    let db = db();
    let tree = db.tree("t").unwrap();
    for key in ["a", "ab", "b", "ba", "c"] {
        tree.insert(key, "").unwrap();
    }
    let keys = |iter: flashgrain::Iter| -> Vec<String> {
        iter.map(|record| String::from_utf8(record.unwrap().0.to_vec()).unwrap()).collect()
    };
    assert_eq!(keys(tree.range("ab".."ba").unwrap()), ["ab", "b"]);
    assert_eq!(keys(tree.range("ab"..="ba").unwrap()), ["ab", "b", "ba"]);
    assert_eq!(keys(tree.range("b"..).unwrap()), ["b", "ba", "c"]);
    assert_eq!(keys(tree.range(.."b").unwrap()), ["a", "ab"]);
    assert_eq!(keys(tree.range("c".."a").unwrap()), Vec::<String>::new());
    assert_eq!(keys(tree.prefix("b").unwrap()), ["b", "ba"]);
    assert_eq!(keys(tree.prefix("").unwrap()).len(), 5);
    assert_eq!(tree.first_key_value().unwrap().unwrap().0, "a");
    assert_eq!(tree.last_key_value().unwrap().unwrap().0, "c");
}

#[test]
fn an_iterator_sees_nothing_that_comes_later() {
    let db = db();
    let tree = numbers(&db, 500);
    let mut iter = tree.iter().unwrap();
    assert_eq!(number(&iter.next().unwrap().unwrap().0), 0);
    for key in 0..500_u32 {
        match key % 2 {
            0 => tree.remove(key.to_be_bytes()).unwrap(),
            _ => tree.insert(key.to_be_bytes(), "changed").unwrap(),
        }
        tree.insert((1000 + key).to_be_bytes(), "new").unwrap();
    }
    let rest: Vec<(u32, String)> = iter
        .map(|record| record.unwrap())
        .map(|(key, value)| (number(&key), String::from_utf8(value.to_vec()).unwrap()))
        .collect();
    assert_eq!(rest, (1..500).map(|key| (key, key.to_string())).collect::<Vec<_>>());
}

#[test]
fn a_transaction_reads_its_own_writes_in_order() {
    let db = db();
    let tree = numbers(&db, 10);
    let mut tx = db.begin().unwrap();
    tx.insert(&tree, 3_u32.to_be_bytes(), "mine").unwrap();
    tx.remove(&tree, 5_u32.to_be_bytes()).unwrap();
    tx.insert(&tree, 20_u32.to_be_bytes(), "new").unwrap();
    let expected = [0, 1, 2, 3, 4, 6, 7, 8, 9, 20];
    let forward: Vec<u32> = tx.iter(&tree).unwrap().map(|record| number(&record.unwrap().0)).collect();
    let mut backward: Vec<u32> =
        tx.iter(&tree).unwrap().rev().map(|record| number(&record.unwrap().0)).collect();
    backward.reverse();
    assert_eq!((forward, backward), (expected.to_vec(), expected.to_vec()));
    assert_eq!(tx.get(&tree, 3_u32.to_be_bytes()).unwrap().unwrap(), "mine");
    assert!(!tx.contains_key(&tree, 5_u32.to_be_bytes()).unwrap());
    // Nobody else sees any of it.
    assert_eq!(tree.get(3_u32.to_be_bytes()).unwrap().unwrap(), "3");
    tx.commit().unwrap();
    let after: Vec<u32> = tree.iter().unwrap().map(|record| number(&record.unwrap().0)).collect();
    assert_eq!(after, expected);
}

#[test]
fn a_rolled_back_transaction_never_was() {
    let db = db();
    let tree = numbers(&db, 3);
    let mut tx = db.begin().unwrap();
    tx.insert(&tree, "x", "y").unwrap();
    tx.rollback();
    tx.commit().unwrap();
    let mut dropped = db.begin().unwrap();
    dropped.insert(&tree, "x", "y").unwrap();
    drop(dropped);
    assert_eq!(tree.iter().unwrap().count(), 3);
}

#[test]
fn concurrent_increments_are_never_lost() {
    let db = db();
    let tree = db.tree("counters").unwrap();
    let tasks: Vec<_> = (0..8)
        .map(|_| {
            let (db, tree) = (db.clone(), tree.clone());
            db.clone().spawn(move || {
                for _ in 0..50 {
                    db.transaction(|tx| {
                        let count = tx
                            .get(&tree, "n")?
                            .map_or(0, |bytes| u64::from_le_bytes(bytes[..].try_into().unwrap()));
                        tx.insert(&tree, "n", (count + 1).to_le_bytes())
                    })
                    .unwrap();
                }
            })
        })
        .collect();
    tasks.into_iter().for_each(|task| task.join().unwrap());
    assert_eq!(tree.get("n").unwrap().unwrap(), 400_u64.to_le_bytes());
}

/// Where a key was found is remembered for its neighbours, too, but those are elsewhere in the leaf.
#[test]
fn regression_removing_what_is_not_there_does_not_misplace_its_neighbours() {
    let db = db();
    let tree = db.tree("t").unwrap();
    tree.insert("b", "old").unwrap();
    let mut batch = db.batch();
    batch.remove(&tree, "a").unwrap();
    ["b", "c", "d"].iter().for_each(|key| batch.insert(&tree, key, "new").unwrap());
    batch.commit().unwrap();
    let found: Vec<_> = tree.iter().unwrap().map(Result::unwrap).collect();
    let expected = ["b", "c", "d"].map(|key| (key.as_bytes().to_vec(), b"new".to_vec()));
    assert!(found.iter().map(|(key, value)| (key.to_vec(), value.to_vec())).eq(expected), "{found:?}");
}

#[test]
fn a_cursor_goes_both_ways_and_anywhere() {
    let db = db();
    let tree = numbers(&db, 300);
    let mut cursor = tree.cursor().unwrap();
    assert!(cursor.prev().unwrap().is_none());
    for expected in 0..300 {
        assert_eq!(number(&cursor.next().unwrap().unwrap().0), expected);
    }
    assert!(cursor.next().unwrap().is_none() && cursor.next().unwrap().is_none());
    for expected in (0..300).rev() {
        assert_eq!(number(&cursor.prev().unwrap().unwrap().0), expected);
    }
    cursor.seek(150_u32.to_be_bytes());
    assert_eq!(number(&cursor.next().unwrap().unwrap().0), 150);
    cursor.seek_behind(150_u32.to_be_bytes());
    assert_eq!(number(&cursor.prev().unwrap().unwrap().0), 150);
    cursor.seek_end();
    assert_eq!(number(&cursor.prev().unwrap().unwrap().0), 299);
}

#[test]
fn options_of_a_tree_can_be_read_back_and_stay() {
    let db = db();
    let small = db.tree_with("small", &TreeOptions::new().node_bytes(4096)).unwrap();
    let large = db.tree_with("large", &TreeOptions::new().node_bytes(65536)).unwrap();
    assert_eq!(small.options().size_of_nodes(), Some(4096));
    assert!(large.key_bytes_max() > small.key_bytes_max());
    let again = db.tree_with("small", &TreeOptions::new().node_bytes(65536)).unwrap();
    assert_eq!(again.options().size_of_nodes(), Some(4096));
    assert_eq!(db.tree_names(), ["large", "small"]);
}

#[test]
fn a_dropped_tree_is_gone_and_its_name_is_free() {
    let db = db();
    let tree = numbers(&db, 1000);
    db.drop_tree("numbers").unwrap();
    assert_eq!(tree.insert("key", "value").unwrap_err().kind(), ErrorKind::Dropped);
    assert_eq!(db.existing_tree("numbers").unwrap_err().kind(), ErrorKind::NotFound);
    assert_eq!(db.drop_tree("numbers").unwrap_err().kind(), ErrorKind::NotFound);
    let again = db.tree("numbers").unwrap();
    assert_eq!(again.iter().unwrap().count(), 0);
    again.insert("key", "value").unwrap();
    assert_eq!(db.check().unwrap().records, 1);
}

#[test]
fn overflow_values_come_back_whole() {
    let db = db();
    let tree = db.tree("large").unwrap();
    let value = |length: u32| -> Vec<u8> { (0..length).map(|at| (at % 251) as u8).collect() };
    for length in [900_u32, 1100, 4096, 100_000, 3_000_000] {
        tree.insert(length.to_be_bytes(), value(length)).unwrap();
    }
    let mut tx = db.begin().unwrap();
    tx.insert(&tree, "in a transaction", value(50_000)).unwrap();
    tx.commit().unwrap();
    assert_eq!(tree.get("in a transaction").unwrap().unwrap(), value(50_000));
    for record in tree.range(..=3_000_000_u32.to_be_bytes()).unwrap() {
        let (key, found) = record.unwrap();
        assert!(found == value(number(&key)), "{key:?}");
    }
    assert!(db.check().unwrap().overflow_values >= 4);
    tree.insert(3_000_000_u32.to_be_bytes(), "small").unwrap();
    assert_eq!(tree.get(3_000_000_u32.to_be_bytes()).unwrap().unwrap(), "small");
}

#[test]
fn a_closed_store_says_so() {
    let db = db();
    let tree = numbers(&db, 3);
    let other = db.clone();
    db.close().unwrap();
    assert_eq!(tree.get("a").unwrap_err().kind(), ErrorKind::Closed);
    assert_eq!(tree.insert("a", "b").unwrap_err().kind(), ErrorKind::Closed);
    assert_eq!(other.snapshot().unwrap_err().kind(), ErrorKind::Closed);
    assert_eq!(other.close().unwrap_err().kind(), ErrorKind::Closed);
}

#[test]
fn the_last_handle_may_be_dropped_by_a_task() {
    let db = db();
    let task = db.spawn({
        let db = db.clone();
        move || db.tree("t").map(|tree| tree.insert("a", "b"))
    });
    drop(db);
    task.join().unwrap().unwrap().unwrap();
}

#[test]
fn every_durability_is_visible_at_once() {
    let db = db();
    let tree = db.tree("t").unwrap();
    for (key, durability) in [("s", Durability::Sync), ("b", Durability::Buffered), ("n", Durability::None)] {
        let mut batch = db.batch().durability(durability);
        batch.insert(&tree, key, "v").unwrap();
        assert_eq!((batch.len(), batch.is_empty()), (1, false));
        batch.commit().unwrap();
        assert!(tree.contains_key(key).unwrap());
    }
    db.sync().unwrap();
    let syncs = db.stats().log.syncs;
    assert!(syncs >= 1, "{syncs}");
}

#[test]
fn everything_that_is_asked_of_a_closed_store_is_refused() {
    let db = db();
    let tree = db.tree("t").unwrap();
    tree.insert("a", "b").unwrap();
    let (other, mut begun, mut batch) = (db.clone(), db.begin().unwrap(), db.batch());
    begun.insert(&tree, "a", "c").unwrap();
    let snapshot = db.snapshot().unwrap();
    let (mut iter, mut cursor) = (tree.iter().unwrap(), tree.cursor().unwrap());
    batch.insert(&tree, "a", "c").unwrap();
    db.close().unwrap();
    let refused = [
        ("tree", other.tree("t").err()),
        ("another tree", other.tree("new").err()),
        ("drop_tree", other.drop_tree("t").err()),
        ("begin", other.begin().err()),
        ("transaction", other.transaction(|_| Ok(())).err()),
        ("sync", other.sync().err()),
        ("checkpoint", other.checkpoint().err()),
        ("check", other.check().err()),
        ("reclaim", other.reclaim().err()),
        ("backup", other.backup(Db::builder()).err()),
        ("commit", begun.commit().err()),
        ("batch", batch.commit().err()),
        ("contains_key", tree.contains_key("a").err()),
        ("first", tree.first_key_value().err()),
        ("last", tree.last_key_value().err()),
        ("iter", tree.iter().err()),
        ("cursor", tree.cursor().err()),
        ("snapshot", snapshot.get(&tree, "a").err()),
        ("iterator", iter.next().and_then(Result::err)),
        ("cursor that was there", cursor.next().err()),
        ("remove", tree.remove("a").err()),
        ("remove_range", tree.remove_range::<&[u8]>(..).err()),
        ("load", tree.load([("b", "c")]).err()),
    ];
    for (what, error) in refused {
        assert_eq!(error.map(|error| error.kind()), Some(ErrorKind::Closed), "{what}");
    }
}

#[test]
fn what_a_transaction_refuses_leaves_it_as_it_was() {
    let db = db();
    let tree = db.tree("t").unwrap();
    let long = vec![7; tree.key_bytes_max() + 1];
    let mut batch = db.batch();
    batch.insert(&tree, "a", "1").unwrap();
    assert_eq!(batch.remove(&tree, &long).unwrap_err().kind(), ErrorKind::Argument);
    assert_eq!(batch.insert(&tree, &long, "1").unwrap_err().kind(), ErrorKind::Argument);
    batch.commit().unwrap();
    let mut transaction = db.begin().unwrap();
    transaction.insert(&tree, "b", "2").unwrap();
    assert_eq!(transaction.remove(&tree, "").unwrap_err().kind(), ErrorKind::Argument);
    transaction.commit().unwrap();
    assert_eq!(tree.iter().unwrap().count(), 2);
    // An error of its body ends it, and nothing is done.
    let failed = db.transaction(|transaction| {
        transaction.insert(&tree, "c", "3")?;
        transaction.insert(&tree, &long, "4")
    });
    assert_eq!(failed.unwrap_err().kind(), ErrorKind::Argument);
    assert!(!tree.contains_key("c").unwrap());
}

/// The last record is taken from the front, so that the iterator from behind comes to it as well.
#[test]
fn an_iterator_that_is_taken_from_both_ends_gives_each_record_once() {
    let db = db();
    for count in [1, 2, 5, 1000] {
        let tree = db.tree(&format!("numbers {count}")).unwrap();
        tree.load((0..count).map(|key: u32| (key.to_be_bytes(), "x"))).unwrap();
        for front_at_a_time in 1..4 {
            let (mut iter, mut seen) = (tree.iter().unwrap(), Vec::new());
            loop {
                let front: Vec<_> = iter.by_ref().take(front_at_a_time).map(Result::unwrap).collect();
                let back = iter.next_back().transpose().unwrap();
                if front.is_empty() && back.is_none() {
                    break;
                }
                seen.extend(front.into_iter().chain(back).map(|(key, _)| number(&key)));
            }
            seen.sort_unstable();
            assert_eq!(seen, (0..count).collect::<Vec<_>>(), "{front_at_a_time} at a time");
        }
    }
}

/// A commit with more than 256 keys is validated with its locks only.
#[test]
fn a_transaction_with_very_many_keys_loses_to_a_faster_one_like_any_other() {
    let db = db();
    let tree = numbers(&db, 600);
    for keys in [2, 255, 256, 257, 600_u32] {
        let mut slower = db.begin().unwrap();
        for key in 0..keys {
            slower.insert(&tree, key.to_be_bytes(), "slower").unwrap();
        }
        tree.insert((keys - 1).to_be_bytes(), "faster").unwrap();
        assert_eq!(slower.commit().unwrap_err().kind(), ErrorKind::Conflict, "{keys} keys");
        assert_eq!(tree.get((keys - 1).to_be_bytes()).unwrap().unwrap(), "faster");
    }
}
