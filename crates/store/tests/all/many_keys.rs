//! Whoever asks for many keys at once waits for their leaves at the same time.

use std::sync::Arc;
use std::time::Duration;

use flashgrain::{CpuCosts, Db, Durability, Readable, Simulated};
use flashgrain_ssdsim::{SimConfig, SimDevice};

const RECORDS: u64 = 150_000;
const MANY: u64 = 200;

/// Keys that are far from each other.
fn keys(round: u64) -> impl Iterator<Item = [u8; 8]> {
    (0..MANY).map(move |number| ((number * 7919 + round * 131) % RECORDS).to_be_bytes())
}

/// A store with some ten times as many leaves as fit into its cache.
fn store() -> Simulated {
    let config = SimConfig::named("905p").unwrap();
    let drive = SimDevice::new(&config, "sim:905p", 1).unwrap();
    let store = Db::builder()
        .cache_bytes(4 << 20)
        .workers(1)
        .durability(Durability::Buffered)
        .device(Arc::new(drive));
    let mut simulated =
        Simulated::create(store, CpuCosts { task_ns: 500, request_ns: 500, ..CpuCosts::NONE }).unwrap();
    simulated.run(|db| {
        let tree = db.tree("tree").unwrap();
        tree.load((0..RECORDS).map(|number| (number.to_be_bytes(), [number as u8; 200]))).unwrap();
        // So that nothing is written while the time is taken.
        db.checkpoint().unwrap();
    });
    simulated.run_until_idle();
    simulated
}

fn span(db: &Db, act: impl FnOnce()) -> Duration {
    let begun = db.now();
    act();
    db.now() - begun
}

#[test]
fn looking_many_keys_up_takes_a_fraction_of_one_after_the_other() {
    let (together, alone) = store().run(|db| {
        let tree = db.tree("tree").unwrap();
        let together = span(db, || {
            let found = db.get_many(&tree, keys(0)).unwrap();
            assert!(
                found.iter().zip(keys(0)).all(|(value, key)| value.as_deref() == Some(&[key[7]; 200][..]))
            );
        });
        let alone = span(db, || {
            keys(1).for_each(|key| assert!(tree.contains_key(key).unwrap()));
        });
        (together, alone)
    });
    assert!(together * 5 < alone, "{together:?} together, {alone:?} one after the other");
}

#[test]
fn writing_many_keys_as_one_takes_a_fraction_of_one_after_the_other() {
    let (together, alone) = store().run(|db| {
        let tree = db.tree("tree").unwrap();
        let together = span(db, || {
            let mut batch = db.batch();
            keys(0).for_each(|key| batch.insert(&tree, key, "new").unwrap());
            batch.commit().unwrap();
        });
        let alone = span(db, || keys(1).for_each(|key| tree.insert(key, "new").unwrap()));
        assert_eq!(tree.get(keys(0).next().unwrap()).unwrap().unwrap(), "new");
        (together, alone)
    });
    assert!(together * 3 < alone, "{together:?} together, {alone:?} one after the other");
}
