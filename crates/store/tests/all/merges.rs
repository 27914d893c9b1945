//! Merge operators: operands that are written without reading, and what is made of them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use flashgrain::{
    AddOperator, AppendOperator, Builder, Db, Error, ErrorKind, IndexKind, MergeOperator, OperatorError,
    Readable, Tree, TreeOptions, Value,
};

use super::bad_input::folder;

const KINDS: [IndexKind; 3] = [IndexKind::BTree, IndexKind::Lsm, IndexKind::BeTree];

fn options(kind: IndexKind, operator: &str) -> TreeOptions {
    TreeOptions::new().kind(kind).merge_operator(operator)
}

fn builder(path: &std::path::Path) -> Builder {
    Db::builder().path(path).cache_bytes(16 << 20).workers(2)
}

fn text(tree: &Tree, key: &str) -> Option<String> {
    tree.get(key).unwrap().map(|value| String::from_utf8_lossy(&value).into_owned())
}

/// Appends, removes the record at an operand `-`, and at `/` if there is one, fails at `!` and panics at `?`
/// while it is told to.
struct Moody(Arc<AtomicBool>);

impl MergeOperator for Moody {
    fn name(&self) -> &str {
        "test.moody"
    }

    fn full_merge(
        &self,
        _key: &[u8],
        existing: Option<&[u8]>,
        operands: &[&[u8]],
    ) -> Result<Option<Vec<u8>>, OperatorError> {
        let mut value = existing.map(<[u8]>::to_vec);
        for operand in operands {
            match *operand {
                b"-" => value = None,
                b"/" if value.is_some() => value = None,
                b"!" if self.0.load(Ordering::Relaxed) => return Err("it is in a bad mood".into()),
                b"?" if self.0.load(Ordering::Relaxed) => panic!("it loses its temper"),
                operand => value.get_or_insert_default().extend_from_slice(operand),
            }
        }
        Ok(value)
    }
}

#[test]
fn a_removed_range_counts_no_record_that_an_own_merge_has_removed() {
    for kind in KINDS {
        let mood = Arc::new(AtomicBool::new(false));
        let folder = folder();
        let db = builder(folder.path()).merge_operator(Moody(Arc::clone(&mood))).create().unwrap();
        let tree = db.tree_with("t", &options(kind, "test.moody")).unwrap();
        for key in ["a", "b", "c"] {
            tree.insert(key, "x").unwrap();
        }
        let mut transaction = db.begin().unwrap();
        transaction.merge(&tree, "b", "-").unwrap();
        transaction.merge(&tree, "c", "!").unwrap();
        transaction.merge(&tree, "d", "-").unwrap();
        transaction.merge(&tree, "e", "y").unwrap();
        let seen = transaction.iter(&tree).unwrap().count();
        // What the operator fails at is there.
        mood.store(true, Ordering::Relaxed);
        let removed = transaction.remove_range(&tree, "a".."z").unwrap();
        assert_eq!((seen, removed), (3, 3), "{kind:?}");
        transaction.commit().unwrap();
        assert_eq!(tree.iter().unwrap().count(), 0);
    }
}

#[test]
fn merges_are_seen_by_all_ways_of_reading() {
    for kind in KINDS {
        let db = Db::in_memory(32 << 20).unwrap();
        let tree = db.tree_with("t", &options(kind, AppendOperator::NAME)).unwrap();
        tree.insert("a", "x").unwrap();
        tree.merge("a", "y").unwrap();
        tree.merge("b", "1").unwrap();
        let before = db.snapshot().unwrap();
        tree.merge("b", "2").unwrap();
        tree.insert("c", "gone").unwrap();
        tree.remove("c").unwrap();
        tree.merge("c", "new").unwrap();
        for flushed in [false, true] {
            if flushed {
                db.checkpoint().unwrap();
                db.checkpoint().unwrap();
            }
            let all = |pairs: &[(&str, &str)]| -> Vec<(Vec<u8>, Vec<u8>)> {
                pairs
                    .iter()
                    .map(|(key, value)| (key.as_bytes().to_vec(), value.as_bytes().to_vec()))
                    .collect()
            };
            let now = all(&[("a", "xy"), ("b", "12"), ("c", "new")]);
            let read = |records: flashgrain::Iter| -> Vec<(Vec<u8>, Vec<u8>)> {
                records
                    .map(|record| record.unwrap())
                    .map(|(key, value)| (key.to_vec(), value.to_vec()))
                    .collect()
            };
            assert_eq!(read(tree.iter().unwrap()), now);
            let mut back: Vec<_> = tree
                .iter()
                .unwrap()
                .rev()
                .map(|record| record.unwrap())
                .map(|(key, value)| (key.to_vec(), value.to_vec()))
                .collect();
            back.reverse();
            assert_eq!(back, now);
            assert_eq!(read(before.iter(&tree).unwrap()), all(&[("a", "xy"), ("b", "1")]));
            assert_eq!(before.get(&tree, "b").unwrap().unwrap(), "1");
            let many = tree.get_many(["c", "d", "a"]).unwrap();
            assert_eq!(
                many.iter().map(|value| value.as_deref()).collect::<Vec<_>>(),
                [Some(&b"new"[..]), None, Some(&b"xy"[..])]
            );
            assert!(tree.contains_key("b").unwrap() && !tree.contains_key("d").unwrap());
            assert_eq!(tree.reader("b").unwrap().unwrap().length(), 2);
        }
    }
}

#[test]
fn a_transaction_reads_its_own_merges_over_its_snapshot() {
    for kind in KINDS {
        let db = Db::in_memory(32 << 20).unwrap();
        let tree = db.tree_with("t", &options(kind, AppendOperator::NAME)).unwrap();
        tree.insert("a", "x").unwrap();
        let mut own = db.begin().unwrap();
        own.merge(&tree, "a", "1").unwrap();
        own.merge(&tree, "a", "2").unwrap();
        own.merge(&tree, "b", "3").unwrap();
        own.insert(&tree, "c", "put").unwrap();
        own.merge(&tree, "c", "4").unwrap();
        own.remove(&tree, "d").unwrap();
        own.merge(&tree, "d", "5").unwrap();
        tree.insert("e", "unseen").unwrap();
        let seen = |own: &flashgrain::Transaction| -> Vec<String> {
            let one = |record: Result<(flashgrain::Value, flashgrain::Value), flashgrain::Error>| {
                let (key, value) = record.unwrap();
                format!("{}={}", String::from_utf8_lossy(&key), String::from_utf8_lossy(&value))
            };
            own.iter(&tree).unwrap().map(one).collect()
        };
        assert_eq!(seen(&own), ["a=x12", "b=3", "c=put4", "d=5"]);
        assert_eq!(own.get(&tree, "a").unwrap().unwrap(), "x12");
        let mut value = b"kept".to_vec();
        assert!(own.get_into(&tree, "b", &mut value).unwrap() && value == b"3");
        assert!(own.contains_key(&tree, "b").unwrap());
        assert_eq!(own.reader(&tree, "a").unwrap().unwrap().length(), 3);
        own.commit().unwrap();
        let now: Vec<_> = ["a", "b", "c", "d", "e"].iter().map(|key| text(&tree, key).unwrap()).collect();
        assert_eq!(now, ["x12", "3", "put4", "5", "unseen"]);
    }
}

#[test]
fn merges_of_transactions_conflict_and_single_ones_do_not() {
    for kind in KINDS {
        let db = Db::in_memory(32 << 20).unwrap();
        let tree = db.tree_with("t", &options(kind, AddOperator::NAME)).unwrap();
        let mut own = db.begin().unwrap();
        own.merge(&tree, "a", 1_u64.to_le_bytes()).unwrap();
        tree.merge("a", 5_u64.to_le_bytes()).unwrap();
        assert_eq!(own.commit().unwrap_err().kind(), ErrorKind::Conflict);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for number in 0..50_u64 {
                        tree.merge("a", 1_u64.to_le_bytes()).unwrap();
                        let mut batch = db.batch();
                        batch.merge(&tree, "a", 1_u64.to_le_bytes()).unwrap();
                        batch.merge(&tree, "b", number.to_le_bytes()).unwrap();
                        batch.commit().unwrap();
                    }
                });
            }
        });
        assert_eq!(tree.get("a").unwrap().unwrap(), 405_u64.to_le_bytes());
        assert_eq!(tree.get("b").unwrap().unwrap(), 4900_u64.to_le_bytes());
    }
}

/// A result may be longer than a record of a table, a long operand makes an overflow value, and operands may
/// be over one.
#[test]
fn long_values_come_of_operands() {
    for kind in KINDS {
        let (folder, mut expected) = (folder(), Vec::new());
        let db = builder(folder.path()).create().unwrap();
        let tree = db.tree_with("t", &options(kind, AppendOperator::NAME)).unwrap();
        for round in 0..4_u32 {
            for number in 0..300_u32 {
                let operand = (round * 1000 + number).to_le_bytes().repeat(5);
                tree.merge("long", &operand).unwrap();
                expected.extend_from_slice(&operand);
            }
            db.checkpoint().unwrap();
            db.checkpoint().unwrap();
            assert_eq!(tree.get("long").unwrap().unwrap(), expected, "round {round}");
        }
        let operand = [7; 50_000];
        tree.merge("long", operand).unwrap();
        expected.extend_from_slice(&operand);
        tree.merge("long", "end").unwrap();
        expected.extend_from_slice(b"end");
        assert_eq!(tree.get("long").unwrap().unwrap(), expected);
        drop((db, tree));
        let db = builder(folder.path()).open().unwrap();
        let tree = db.existing_tree("t").unwrap();
        assert_eq!(tree.get("long").unwrap().unwrap(), expected);
        assert_eq!(tree.iter().unwrap().next().unwrap().unwrap().1, expected);
        db.check().unwrap();
    }
}

#[test]
fn an_operator_that_fails_loses_nothing_and_stops_nothing() {
    for kind in KINDS {
        let mood = Arc::new(AtomicBool::new(false));
        let (folder, copy) = (folder(), folder());
        let db = builder(folder.path()).merge_operator(Moody(Arc::clone(&mood))).create().unwrap();
        let tree = db.tree_with("moods", &options(kind, "test.moody")).unwrap();
        for key in ["a", "b", "c"] {
            tree.insert(key, "x").unwrap();
        }
        tree.merge("a", "!").unwrap();
        tree.merge("b", "?").unwrap();
        tree.merge("c", "y").unwrap();
        mood.store(true, Ordering::Relaxed);
        if kind != IndexKind::BTree {
            db.checkpoint().unwrap();
            let failed = tree.get("a").unwrap_err();
            assert_eq!(failed.kind(), ErrorKind::Operator);
            let said = failed.to_string();
            assert!(["test.moody", "`moods`", "bad mood"].iter().all(|part| said.contains(part)), "{said}");
            assert!(tree.get("b").unwrap_err().to_string().contains("loses its temper"));
            assert!(tree.iter().unwrap().any(|record| record.is_err()));
        } else {
            assert_eq!(tree.merge("a", "!").unwrap_err().kind(), ErrorKind::Operator);
        }
        assert_eq!(text(&tree, "c").unwrap(), "xy");
        for round in 0..3 {
            tree.insert("d", format!("{round}")).unwrap();
            db.checkpoint().unwrap();
        }
        db.check().unwrap();
        db.backup(Db::builder().path(copy.path()).cache_bytes(16 << 20)).unwrap();
        mood.store(false, Ordering::Relaxed);
        let copied = builder(copy.path()).merge_operator(Moody(mood)).open().unwrap();
        for tree in [tree, copied.existing_tree("moods").unwrap()] {
            let all: Vec<_> = ["a", "b", "c", "d"].iter().map(|key| text(&tree, key).unwrap()).collect();
            assert_eq!(all, ["x!", "x?", "xy", "2"]);
        }
    }
}

/// Keys up to an error, and whether there was one.
fn keys_until_error(records: impl Iterator<Item = Result<(Value, Value), Error>>) -> (Vec<Value>, bool) {
    let (mut keys, mut has_failed) = (Vec::new(), false);
    for record in records {
        assert!(!has_failed, "an iterator has ended after an error");
        match record {
            Ok((key, _)) => keys.push(key),
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::Operator);
                has_failed = true;
            }
        }
    }
    (keys, has_failed)
}

#[test]
fn a_record_that_the_operator_fails_at_spoils_no_other() {
    for (kind, is_flushed) in KINDS[1..].iter().flat_map(|kind| [(*kind, false), (*kind, true)]) {
        let mood = Arc::new(AtomicBool::new(true));
        let folder = folder();
        let db = builder(folder.path()).merge_operator(Moody(mood)).create().unwrap();
        let tree = db.tree_with("moods", &options(kind, "test.moody")).unwrap();
        ["a", "b", "y", "z"].iter().for_each(|key| tree.insert(key, "1").unwrap());
        ["m", "n"].iter().for_each(|key| tree.merge(key, "!").unwrap());
        if is_flushed {
            db.checkpoint().unwrap();
            db.checkpoint().unwrap();
        }
        let mut transaction = db.begin().unwrap();
        transaction.insert(&tree, "c", "own").unwrap();
        for view in [tree.iter(), transaction.iter(&tree)] {
            let (keys, has_failed) = keys_until_error(view.unwrap());
            assert!(has_failed && keys[..2] == ["a", "b"] && keys.len() < 4, "{kind:?}: {keys:?}");
        }
        let (keys, has_failed) = keys_until_error(transaction.iter(&tree).unwrap().rev());
        assert!(has_failed && keys == ["z", "y"], "{kind:?}: {keys:?}");
        let mut cursor = db.cursor(&tree).unwrap();
        let mut next = || cursor.next().map(|record| record.unwrap().0);
        assert_eq!((next().unwrap(), next().unwrap()), ("a".into(), "b".into()));
        assert!(next().is_err() && next().is_err());
        cursor.seek_behind("n");
        assert_eq!(cursor.next().unwrap().unwrap().0, "y");
        // Of what the transaction replaces or removes, no value is needed; of what it merges with, one is.
        transaction.insert(&tree, "m", "own").unwrap();
        transaction.remove(&tree, "n").unwrap();
        let (keys, has_failed) = keys_until_error(transaction.iter(&tree).unwrap());
        assert!(!has_failed && keys == ["a", "b", "c", "m", "y", "z"], "{kind:?}: {keys:?}");
        transaction.rollback();
        transaction.merge(&tree, "m", "+").unwrap();
        assert!(keys_until_error(transaction.iter(&tree).unwrap()).1);
        transaction.rollback();
        assert_eq!(transaction.remove_range(&tree, "b".."z").unwrap(), 4);
        assert_eq!(keys_until_error(transaction.iter(&tree).unwrap()), (vec!["a".into(), "z".into()], false));
        drop(transaction);
        assert_eq!(tree.remove_range("b".."z").unwrap(), 4);
        assert_eq!(keys_until_error(tree.iter().unwrap()), (vec!["a".into(), "z".into()], false));
    }
}

#[test]
fn a_store_without_the_operator_opens_and_says_what_is_missing() {
    for kind in KINDS {
        let mood = || Moody(Arc::default());
        let (folder, copy) = (folder(), folder());
        let db = builder(folder.path()).merge_operator(mood()).create().unwrap();
        let tree = db.tree_with("moods", &options(kind, "test.moody")).unwrap();
        tree.insert("b", "x").unwrap();
        tree.merge("a", "1").unwrap();
        tree.merge("b", "2").unwrap();
        drop((db, tree));
        let db = builder(folder.path()).open().unwrap();
        let tree = db.existing_tree("moods").unwrap();
        assert_eq!(tree.options().name_of_merge_operator(), Some("test.moody"));
        let refused = tree.merge("a", "3").unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Operator);
        assert!(refused.to_string().contains("`test.moody`") && refused.to_string().contains("`moods`"));
        tree.insert("c", "written").unwrap();
        assert_eq!(text(&tree, "c").unwrap(), "written");
        db.check().unwrap();
        db.backup(Db::builder().path(copy.path()).cache_bytes(16 << 20)).unwrap();
        let no_operator = db.tree_with("plain", &TreeOptions::new().kind(kind)).unwrap();
        assert!(no_operator.merge("a", "1").unwrap_err().to_string().contains("no merge operator"));
        assert_eq!(db.tree_with("new", &options(kind, "nobody's")).unwrap_err().kind(), ErrorKind::Argument);
        drop((db, tree, no_operator));
        for folder in [&folder, &copy] {
            let db = builder(folder.path()).merge_operator(mood()).open().unwrap();
            let tree = db.existing_tree("moods").unwrap();
            assert_eq!((text(&tree, "a").unwrap(), text(&tree, "b").unwrap()), ("1".into(), "x2".into()));
        }
    }
}

const MANY: usize = 4000;

/// The log has the merges before a removal that an operator has brought about, and not what they were over.
#[test]
fn a_record_that_was_merged_away_stays_away() {
    [IndexKind::Lsm, IndexKind::BeTree].into_iter().for_each(a_record_stays_away);
}

fn a_record_stays_away(kind: IndexKind) {
    let mood = || Moody(Arc::default());
    let (folder, crashed) = (folder(), folder());
    // No checkpoint comes before it is asked for.
    let db = builder(folder.path()).log_bytes(8 << 20).merge_operator(mood()).create().unwrap();
    let tree = db.tree_with("moods", &options(kind, "test.moody")).unwrap();
    let other = db.tree_with("other", &TreeOptions::new().kind(kind)).unwrap();
    tree.insert("a", "x").unwrap();
    db.checkpoint().unwrap();
    other.insert("keeps the log", "x").unwrap();
    // Over nothing it is a value.
    tree.merge("a", "/").unwrap();
    // So many that they push it to where nothing is left of it.
    let mut many = db.batch();
    (0..MANY).for_each(|number| many.insert(&tree, format!("b{number:05}"), [7; 100]).unwrap());
    many.commit().unwrap();
    db.checkpoint().unwrap();
    assert_eq!(text(&tree, "a"), None);
    assert_eq!(tree.iter().unwrap().count(), MANY);
    // The log still has the merge, as the other tree needs it from before that on.
    super::crashed::copy(folder.path(), crashed.path());
    let after = builder(crashed.path()).merge_operator(mood()).open().unwrap();
    assert!(!after.stats().recovery.was_closed);
    let tree = after.existing_tree("moods").unwrap();
    assert_eq!(text(&tree, "a"), None);
    tree.merge("a", "y").unwrap();
    assert_eq!(text(&tree, "a").unwrap(), "y");
}

#[test]
fn a_range_that_was_removed_is_not_merged_with() {
    for kind in KINDS {
        let db = Db::in_memory(32 << 20).unwrap();
        let tree = db.tree_with("t", &options(kind, AppendOperator::NAME)).unwrap();
        tree.insert("a", "x").unwrap();
        tree.merge("a", "y").unwrap();
        let before = db.snapshot().unwrap();
        tree.clear_range("a".."b").unwrap();
        tree.merge("a", "new").unwrap();
        for _ in 0..3 {
            assert_eq!(text(&tree, "a").unwrap(), "new");
            assert_eq!(before.get(&tree, "a").unwrap().unwrap(), "xy");
            assert_eq!(tree.iter().unwrap().next().unwrap().unwrap().1, "new");
            db.checkpoint().unwrap();
        }
        tree.remove("a").unwrap();
        tree.merge("a", "newer").unwrap();
        assert_eq!(text(&tree, "a").unwrap(), "newer");
    }
}
