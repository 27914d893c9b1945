//! Every call that takes a handle of a tree refuses one of another store, of an earlier opening and of a
//! dropped tree, before it does anything.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use flashgrain::{Batch, Db, Error, ErrorKind, Readable, Snapshot, Transaction, Tree};
use flashgrain_device::{Device, MemoryDevice};

/// What a store has that a handle can be given to.
struct Takers {
    db: Db,
    batch: Batch,
    snapshot: Snapshot,
    transaction: Transaction,
}

type Call = fn(&mut Takers, &Tree) -> Result<(), Error>;

type OwnCall = fn(&Tree) -> Result<(), Error>;

/// A call of [`Readable`] with each of those who are readable.
macro_rules! reading {
    ($name:literal, |$from:ident, $tree:ident| $call:expr) => {{
        let calls: [(&str, &str, Call); 3] = [
            ("Db", $name, |takers, $tree| {
                let $from = &takers.db;
                $call.map(drop)
            }),
            ("Snapshot", $name, |takers, $tree| {
                let $from = &takers.snapshot;
                $call.map(drop)
            }),
            ("Transaction", $name, |takers, $tree| {
                let $from = &takers.transaction;
                $call.map(drop)
            }),
        ];
        calls
    }};
}

/// All calls that take a handle.
fn calls() -> Vec<(&'static str, &'static str, Call)> {
    let writing: [(&str, &str, Call); 9] = [
        ("Batch", "insert", |takers, tree| takers.batch.insert(tree, "k", "v")),
        ("Batch", "insert_from", |takers, tree| takers.batch.insert_from(tree, "k", &b"v"[..]).map(drop)),
        ("Batch", "merge", |takers, tree| takers.batch.merge(tree, "k", "v")),
        ("Batch", "remove", |takers, tree| takers.batch.remove(tree, "k")),
        ("Transaction", "insert", |takers, tree| takers.transaction.insert(tree, "k", "v")),
        ("Transaction", "insert_from", |takers, tree| {
            takers.transaction.insert_from(tree, "k", &b"v"[..]).map(drop)
        }),
        ("Transaction", "merge", |takers, tree| takers.transaction.merge(tree, "k", "v")),
        ("Transaction", "remove", |takers, tree| takers.transaction.remove(tree, "k")),
        ("Transaction", "remove_range", |takers, tree| {
            takers.transaction.remove_range::<&str>(tree, ..).map(drop)
        }),
    ];
    let mut all = writing.to_vec();
    all.extend(reading!("get", |from, tree| from.get(tree, "k")));
    all.extend(reading!("get_into", |from, tree| from.get_into(tree, "k", &mut Vec::new())));
    all.extend(reading!("reader", |from, tree| from.reader(tree, "k")));
    all.extend(reading!("get_many", |from, tree| from.get_many(tree, ["k", "l"])));
    all.extend(reading!("contains_key", |from, tree| from.contains_key(tree, "k")));
    all.extend(reading!("first_key_value", |from, tree| from.first_key_value(tree)));
    all.extend(reading!("last_key_value", |from, tree| from.last_key_value(tree)));
    all.extend(reading!("iter", |from, tree| from.iter(tree)));
    all.extend(reading!("range", |from, tree| from.range(tree, "a".."z")));
    all.extend(reading!("prefix", |from, tree| from.prefix(tree, "k")));
    all.extend(reading!("cursor", |from, tree| from.cursor(tree)));
    all
}

/// What a dropped tree's own handle refuses.
fn own_calls() -> Vec<(&'static str, OwnCall)> {
    vec![
        ("get", |tree| tree.get("k").map(drop)),
        ("get_into", |tree| tree.get_into("k", &mut Vec::new()).map(drop)),
        ("reader", |tree| tree.reader("k").map(drop)),
        ("insert_from", |tree| tree.insert_from("k", &b"v"[..]).map(drop)),
        ("get_many", |tree| tree.get_many(["k", "l"]).map(drop)),
        ("prefetch", |tree| tree.prefetch(["k"])),
        ("contains_key", |tree| tree.contains_key("k").map(drop)),
        ("first_key_value", |tree| tree.first_key_value().map(drop)),
        ("last_key_value", |tree| tree.last_key_value().map(drop)),
        ("iter", |tree| tree.iter().map(drop)),
        ("range", |tree| tree.range("a".."z").map(drop)),
        ("prefix", |tree| tree.prefix("k").map(drop)),
        ("cursor", |tree| tree.cursor().map(drop)),
        ("insert", |tree| tree.insert("k", "v")),
        ("merge", |tree| tree.merge("k", "v")),
        ("remove", |tree| tree.remove("k")),
        ("remove_range", |tree| tree.remove_range::<&str>(..).map(drop)),
        ("load", |tree| tree.load([("k", "v")]).map(drop)),
    ]
}

fn takers(db: &Db) -> Takers {
    let (batch, snapshot, transaction) = (db.batch(), db.snapshot().unwrap(), db.begin().unwrap());
    Takers { db: db.clone(), batch, snapshot, transaction }
}

/// A store with a tree `own` of the record `k`.
fn store(device: &Arc<dyn Device>) -> (Db, Tree) {
    let db = Db::builder().device(Arc::clone(device)).cache_bytes(8 << 20).create().unwrap();
    let own = db.tree("own").unwrap();
    own.insert("k", "untouched").unwrap();
    (db, own)
}

fn memory() -> Arc<dyn Device> {
    Arc::new(MemoryDevice::new(128 << 20, 0).unwrap())
}

fn refused_everywhere(db: &Db, own: &Tree, tree: &Tree, kind: ErrorKind) {
    for (taker, name, call) in calls() {
        let mut takers = takers(db);
        let refused = call(&mut takers, tree);
        assert_eq!(refused.map_err(|error| error.kind()), Err(kind), "{taker}::{name}");
        // Nothing of it stayed behind.
        takers.batch.commit().unwrap();
        takers.transaction.commit().unwrap();
        assert_eq!(own.get("k").unwrap().unwrap(), "untouched", "{taker}::{name}");
    }
    assert_eq!(db.check().unwrap().records, 1);
}

#[test]
fn a_handle_of_another_store_is_refused() {
    let ((db, own), (other, foreign)) = (store(&memory()), store(&memory()));
    refused_everywhere(&db, &own, &foreign, ErrorKind::OtherStore);
    assert_eq!(foreign.get("k").unwrap().unwrap(), "untouched");
    assert_eq!(other.check().unwrap().records, 1);
}

#[test]
fn a_handle_of_an_earlier_opening_is_refused() {
    let device = memory();
    let (earlier, old) = store(&device);
    earlier.close().unwrap();
    let db = Db::builder().device(device).cache_bytes(8 << 20).open().unwrap();
    refused_everywhere(&db, &db.tree("own").unwrap(), &old, ErrorKind::OtherOpening);
    assert_eq!(old.get("k").unwrap_err().kind(), ErrorKind::Closed);
}

#[test]
fn a_handle_of_a_dropped_tree_is_refused() {
    let (db, own) = store(&memory());
    let gone = db.tree("gone").unwrap();
    gone.insert("k", "v").unwrap();
    let (mut batch, mut transaction) = (db.batch(), db.begin().unwrap());
    batch.insert(&gone, "k", "late").unwrap();
    transaction.insert(&gone, "k", "late").unwrap();
    let mut iter = gone.iter().unwrap();
    db.drop_tree("gone").unwrap();
    assert_eq!(batch.commit().unwrap_err().kind(), ErrorKind::Dropped);
    assert_eq!(transaction.commit().unwrap_err().kind(), ErrorKind::Dropped);
    assert_eq!(iter.next().unwrap().unwrap().1, "v", "an iterator that there is goes on");
    refused_everywhere(&db, &own, &gone, ErrorKind::Dropped);
    // A tree of the same name is another one.
    let again = db.tree("gone").unwrap();
    for (name, call) in own_calls() {
        assert_eq!(call(&gone).map_err(|error| error.kind()), Err(ErrorKind::Dropped), "Tree::{name}");
    }
    assert!(again.iter().unwrap().next().is_none());
}

/// A call that is added later must come into the tables above.
#[test]
fn the_tables_have_every_call() {
    let source = |name: &str| {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/db").join(name);
        std::fs::read_to_string(path).unwrap()
    };
    // The functions whose parameters contain one of these texts.
    let taking = |text: &str, parameters: &[&str]| -> BTreeSet<String> {
        text.split("\n    pub fn ")
            .skip(1)
            .chain(text.split("\n    fn ").skip(1))
            .filter(|rest| {
                let until = rest.find(" {\n").unwrap_or(rest.len());
                parameters.iter().any(|parameter| rest[..until].contains(parameter))
            })
            .map(|rest| rest.split(['<', '(']).next().unwrap().to_owned())
            .collect()
    };
    let listed = |of: &str| -> BTreeSet<String> {
        calls().iter().filter(|(taker, ..)| *taker == of).map(|(_, name, _)| (*name).to_owned()).collect()
    };
    assert_eq!(taking(&source("batch.rs"), &["tree: &Tree"]), listed("Batch"));
    assert_eq!(taking(&source("readable.rs"), &["tree: &Tree"]), listed("Db"));
    let writing = source("transaction.rs");
    let writing = writing.split("\nimpl Source").next().unwrap();
    let of_transactions = taking(writing, &["tree: &Tree"]);
    assert!(of_transactions.len() >= 3 && of_transactions.is_subset(&listed("Transaction")));
}
