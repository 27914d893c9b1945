//! A page that cannot be read, at every single occasion that a reader has for it, and from then on none.

use flashgrain::testing::{Small, Trouble};
use flashgrain::{CpuCosts, Db, Error, ErrorKind, Readable, Simulated, Snapshot, Tree, Value};

use super::bulk::drive;

type Records = Vec<(Vec<u8>, Vec<u8>)>;
type Look = fn(&Db, &Tree, &Snapshot) -> Result<Records, Error>;

const KEYS: u32 = 60;

/// More than the pages that a record names.
const LONG_BYTES: usize = 40 << 10;

fn value(key: u32, fill: u8) -> Vec<u8> {
    vec![fill ^ key as u8; if key == 7 { LONG_BYTES } else { 700 }]
}

fn own(record: Result<(Value, Value), Error>) -> Result<(Vec<u8>, Vec<u8>), Error> {
    record.map(|(key, value)| (key.to_vec(), value.to_vec()))
}

fn each(
    keys: impl Iterator<Item = u32>,
    get: impl Fn(&[u8]) -> Result<Option<Value>, Error>,
) -> Result<Records, Error> {
    let look = |key: u32| {
        let key = key.to_be_bytes();
        Ok(get(&key)?.map(|value| (key.to_vec(), value.to_vec())))
    };
    keys.filter_map(|key| look(key).transpose()).collect()
}

/// Ways to look at a store.
const LOOKS: [(&str, Look); 8] = [
    ("get", |_, tree, _| each(0..KEYS + 1, |key| tree.get(key))),
    ("get a long value", |_, tree, _| each(7..8, |key| tree.get(key))),
    ("get many", |_, tree, _| {
        let keys: Vec<_> = (0..KEYS + 1).map(u32::to_be_bytes).collect();
        let values = tree.get_many(&keys)?;
        let found = keys.iter().zip(values).filter_map(|(key, value)| Some((key.to_vec(), value?.to_vec())));
        Ok(found.collect())
    }),
    ("scan", |_, tree, _| tree.iter()?.map(own).collect()),
    ("scan backwards", |_, tree, _| tree.iter()?.rev().map(own).collect()),
    ("scan under own writes", |db, tree, _| {
        let mut transaction = db.begin()?;
        transaction.insert(tree, 30_u32.to_be_bytes(), "new")?;
        transaction.remove(tree, 31_u32.to_be_bytes())?;
        transaction.iter(tree)?.map(own).collect()
    }),
    ("get old", |_, tree, snapshot| each(0..KEYS + 1, |key| snapshot.get(tree, key))),
    ("scan old", |_, tree, snapshot| snapshot.iter(tree)?.map(own).collect()),
];

#[test]
fn a_reader_is_told_or_gets_what_is_there() {
    let store = Db::builder().device(drive(1)).small(&Small::default());
    let mut simulated = Simulated::create(store, CpuCosts::default()).unwrap();
    simulated.run(|db| {
        let tree = db.tree("fruit").unwrap();
        (0..KEYS).for_each(|key| tree.insert(key.to_be_bytes(), value(key, 1)).unwrap());
        let snapshot = db.snapshot().unwrap();
        (0..KEYS).step_by(3).for_each(|key| tree.insert(key.to_be_bytes(), value(key, 2)).unwrap());
        tree.remove(8_u32.to_be_bytes()).unwrap();
        for (what, look) in LOOKS {
            let expected = look(db, &tree, &snapshot).unwrap();
            for trouble in [Trouble::Page, Trouble::Pages] {
                let mut told = 0;
                for nth in 1.. {
                    let troubled = trouble.at(nth);
                    let found = look(db, &tree, &snapshot);
                    let is_over = troubled.asked() < nth;
                    drop(troubled);
                    match found {
                        Ok(found) => assert!(found == expected, "{what}, {trouble:?} at {nth}"),
                        Err(error) => {
                            assert_eq!(error.kind(), ErrorKind::Io, "{what}, {trouble:?} at {nth}: {error}");
                            told += 1;
                        }
                    }
                    if is_over {
                        break;
                    }
                }
                assert!(told > 2, "{what}, {trouble:?}: {told}");
                assert!(look(db, &tree, &snapshot).unwrap() == expected, "{what}, afterwards");
            }
        }
    });
}
