//! Flushes that merge memtables.

use std::collections::BTreeMap;

use flashgrain::{Db, Durability, Error, IndexKind, LsmOptions, Readable, Simulated, Tree, TreeOptions};

use super::bulk::{COSTS, drive, on};

/// Keys that are written one after the other, again and again: more than a memtable has room for.
const KEYS: u32 = 400;
const ROUNDS: u32 = 15;

type Map = BTreeMap<Vec<u8>, Vec<u8>>;

fn key(number: u32) -> Vec<u8> {
    number.to_be_bytes().to_vec()
}

/// Writes all keys, removes a range of them by one record, and some by themselves.
fn write(tree: &Tree, round: u32, map: &mut Map) -> Result<(), Error> {
    for number in 0..KEYS {
        let value = vec![(number ^ round) as u8; 300 + number as usize % 90];
        if (number + round).is_multiple_of(50) {
            tree.remove(key(number))?;
            map.remove(&key(number));
        } else {
            tree.insert(key(number), &value)?;
            map.insert(key(number), value);
        }
    }
    let (first, end) = (key(20 * round), key(20 * round + 10));
    tree.clear_range(first.clone()..end.clone())?;
    map.retain(|key, _| *key < first || *key >= end);
    Ok(())
}

fn look(source: &impl Readable, tree: &Tree, map: &Map) -> Result<(), Error> {
    let all: Result<Map, Error> =
        source.iter(tree)?.map(|record| record.map(|(key, value)| (key.to_vec(), value.to_vec()))).collect();
    assert!(all? == *map, "other records than were written");
    for number in (0..KEYS).step_by(7) {
        assert_eq!(source.get(tree, key(number))?.as_deref(), map.get(&key(number)).map(Vec::as_slice));
    }
    Ok(())
}

fn live(db: &Db, merged: u32) -> Result<(u64, Map), Error> {
    let lsm = LsmOptions::new().memtable_bytes(128 << 10).merged_memtables(merged);
    let tree = db.tree_with("t", &TreeOptions::new().kind(IndexKind::Lsm).lsm(lsm))?;
    let (mut map, mut held) = (Map::new(), None);
    for round in 0..ROUNDS {
        write(&tree, round, &mut map)?;
        if round == ROUNDS / 2 {
            held = Some((db.snapshot()?, map.clone()));
        }
        look(db, &tree, &map)?;
    }
    if let Some((snapshot, map)) = held {
        look(&snapshot, &tree, &map)?;
    }
    db.checkpoint()?;
    Ok((tree.lsm_stats().map_or(0, |stats| stats.levels[0].written_bytes), map))
}

/// Bytes that flushes write.
fn flushed_bytes(merged: u32) -> u64 {
    let device = drive(1);
    let builder = || {
        on(&device)
            .segment_bytes(128 << 10)
            .write_unit_bytes(64 << 10)
            .cache_bytes(4 << 20)
            .recovery_log_bytes(16 << 20)
    };
    let mut simulated = Simulated::create(builder().durability(Durability::None), COSTS).unwrap();
    let (bytes, map) = simulated.run(move |db| live(db, merged)).unwrap();
    simulated.abandon();
    let mut simulated = Simulated::open(builder(), COSTS).unwrap();
    simulated.run(move |db| look(db, &db.existing_tree("t").unwrap(), &map)).unwrap();
    bytes
}

#[test]
fn merged_memtables_lose_nothing_and_write_less_where_keys_are_written_again() {
    let (alone, merged) = (flushed_bytes(1), flushed_bytes(4));
    assert!(merged * 10 < alone * 7, "{merged} bytes flushed instead of {alone}");
}
