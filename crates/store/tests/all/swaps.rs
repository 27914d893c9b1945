//! Reading and writing a record as one, own errors in transactions, what is refused when a batch grows too
//! long, keys without their values.

use flashgrain::{Db, Error, ErrorKind, Readable};

fn db() -> Db {
    Db::in_memory(16 << 20).unwrap()
}

#[test]
fn previous_values_come_back_and_only_what_changes_is_written() {
    let db = db();
    let tree = db.tree("t").unwrap();
    let large = vec![7; 100_000];
    assert_eq!(tree.replace("k", "one").unwrap(), None);
    assert_eq!(tree.replace("k", &large).unwrap().unwrap(), "one");
    assert_eq!(tree.take("k").unwrap().unwrap(), large);
    let records = db.stats().log.records;
    assert_eq!(tree.take("k").unwrap(), None);
    assert_eq!(tree.update("k", |_| None::<&str>).unwrap(), None);
    assert!(tree.compare_and_swap("k", Some(b"other"), Some(b"new")).unwrap().is_err());
    assert_eq!(db.stats().log.records, records, "nothing was to be written");
    assert_eq!(tree.update("k", |old| old.is_none().then_some("new")).unwrap(), None);
    assert_eq!(tree.update("k", |old| old.is_none().then_some("gone")).unwrap().unwrap(), "new");
    assert!(!tree.contains_key("k").unwrap());
    assert!(tree.compare_and_swap("k", None, Some(&large)).unwrap().is_ok());
    let refused = tree.compare_and_swap("k", None, None).unwrap().unwrap_err();
    assert_eq!(refused.current.unwrap(), large);
    assert!(tree.compare_and_swap("k", Some(&large), None).unwrap().is_ok());
    assert_eq!(tree.iter().unwrap().count(), 0);
}

#[test]
fn no_update_and_no_swap_of_several_threads_is_lost() {
    const THREADS: u64 = 4;
    const ROUNDS: u64 = 200;
    let db = db();
    let tree = db.tree("t").unwrap();
    let number =
        |bytes: Option<&[u8]>| bytes.map_or(0, |bytes| u64::from_le_bytes(bytes.try_into().unwrap()));
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                for _ in 0..ROUNDS {
                    tree.update("updated", |old| Some((number(old) + 1).to_le_bytes())).unwrap();
                    let mut old = tree.get("swapped").unwrap();
                    loop {
                        let new = (number(old.as_deref()) + 1).to_le_bytes();
                        match tree.compare_and_swap("swapped", old.as_deref(), Some(&new)).unwrap() {
                            Ok(()) => break,
                            Err(refused) => old = refused.current,
                        }
                    }
                }
            });
        }
    });
    for key in ["updated", "swapped"] {
        assert_eq!(number(tree.get(key).unwrap().as_deref()), THREADS * ROUNDS, "{key}");
    }
}

#[derive(Debug, PartialEq)]
enum Refusal {
    TooPoor,
    Store(ErrorKind),
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        Self::Store(error.kind())
    }
}

#[test]
fn a_transaction_ends_with_an_error_of_its_users_and_does_nothing() {
    let db = db();
    let tree = db.tree("t").unwrap();
    let spend = |cost: u8| {
        db.try_transaction(|transaction| {
            let money = transaction.get(&tree, "money")?.map_or(5, |value| value[0]);
            transaction.insert(&tree, "tried", "yes")?;
            let remaining = money.checked_sub(cost).ok_or(Refusal::TooPoor)?;
            transaction.insert(&tree, "money", [remaining])?;
            Ok(remaining)
        })
    };
    assert_eq!(spend(6), Err(Refusal::TooPoor));
    assert!(!tree.contains_key("tried").unwrap());
    assert_eq!(spend(2), Ok(3));
    let refused = db.try_transaction(|transaction| Ok::<_, Refusal>(transaction.insert(&tree, "", "")?));
    assert_eq!(refused, Err(Refusal::Store(ErrorKind::Argument)));
}

#[test]
fn a_batch_is_refused_when_it_grows_over_the_limit() {
    let db = db();
    let tree = db.tree("t").unwrap();
    let (value, mut batch, mut taken) = ([1; 500], db.batch(), 0_u32);
    let refused = loop {
        match batch.insert(&tree, taken.to_be_bytes(), value) {
            Ok(()) => taken += 1,
            Err(error) => break error,
        }
    };
    let Error::BatchLength { got, limit } = refused else { panic!("{refused}") };
    assert!(got > limit && got - limit < 1000, "{refused}");
    // It stays as it was, and takes what replaces others, or is short enough.
    assert!(batch.insert(&tree, 0_u32.to_be_bytes(), [2; 499]).is_ok());
    assert!(batch.insert(&tree, u32::MAX.to_be_bytes(), value).is_err());
    assert_eq!(batch.len(), taken as usize);
    batch.commit().unwrap();
    assert_eq!(tree.iter().unwrap().count(), taken as usize);
}

#[test]
fn writes_that_replace_each_other_do_not_add_up() {
    let db = db();
    let tree = db.tree("t").unwrap();
    let (value, mut transaction) = ([1; 1000], db.begin().unwrap());
    for key in 0..50_000_u32 {
        transaction.insert(&tree, (key % 100).to_be_bytes(), value).unwrap();
    }
    assert_eq!(transaction.remove_range::<&str>(&tree, ..).unwrap(), 100);
    transaction.commit().unwrap();
}

#[test]
fn asking_for_a_key_does_not_read_its_overflow_value() {
    let db = db();
    let tree = db.tree("t").unwrap();
    tree.insert("large", vec![7; 4 << 20]).unwrap();
    let looked_at = |work: &dyn Fn()| {
        let before = db.stats().cache;
        work();
        let after = db.stats().cache;
        after.hits + after.misses - before.hits - before.misses
    };
    let snapshot = db.snapshot().unwrap();
    let transaction = db.begin().unwrap();
    let asked = looked_at(&|| {
        assert!(tree.contains_key("large").unwrap() && !tree.contains_key("larger").unwrap());
        assert!(snapshot.contains_key(&tree, "large").unwrap());
        assert!(transaction.contains_key(&tree, "large").unwrap());
    });
    let read = looked_at(&|| assert!(tree.get("large").unwrap().is_some()));
    assert!(asked < 8 && read > 12, "{asked} pages to ask, {read} to read");
}

#[test]
fn open_or_create_makes_a_store_once() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store");
    Db::open_or_create(&path).unwrap().tree("t").unwrap().insert("k", "v").unwrap();
    assert_eq!(Db::open_or_create(&path).unwrap().tree("t").unwrap().get("k").unwrap().unwrap(), "v");
}
