//! Cached records agree with their leaves, and memory goes where it is of use.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;
use crate::hash::hash;
use crate::pool::Pool;
use crate::pool::testing::pool_in_memory;

fn record(key: &[u8]) -> RecordKey<'_> {
    RecordKey { tree: 7, hash: hash(1, key), key }
}

fn recalled(pool: &Pool, key: &[u8]) -> Option<Vec<u8>> {
    let mut value = vec![9];
    let found = pool.records().recall(&record(key), &mut value);
    found.then(|| value.split_off(1))
}

fn frames_in_use(pool: &Pool) -> u64 {
    pool.records.frames.load(Ordering::Relaxed)
}

/// An operation on a key.
#[derive(Clone, Debug)]
enum Step {
    Read,
    Put(Vec<u8>),
    Remove,
}

fn steps() -> impl Strategy<Value = Vec<(u16, Step)>> {
    let value = prop_oneof![1 => (0..200_usize).boxed(), 5 => Just(40).boxed()]
        .prop_flat_map(|length| proptest::collection::vec(any::<u8>(), length));
    let step = prop_oneof![8 => Just(Step::Read), 3 => value.prop_map(Step::Put), 1 => Just(Step::Remove)];
    proptest::collection::vec((0..3000_u16, step), 0..4000)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn what_is_known_of_a_record_is_what_its_leaf_has(steps in steps(), budget_kib in 160_u64..900) {
        let pool = pool_in_memory(budget_kib << 10);
        let mut leaves: BTreeMap<u16, Vec<u8>> = (0..2000).map(|key| (key, vec![key as u8; 24])).collect();
        for (number, step) in steps {
            let key = format!("{number:0>width$}", width = 4 + usize::from(number % 40));
            let key = key.as_bytes();
            match step {
                Step::Read => {
                    let known = recalled(&pool, key);
                    if let Some(value) = known {
                        prop_assert_eq!(Some(&value), leaves.get(&number));
                    } else if let Some(value) = leaves.get(&number) {
                        pool.records().keep(&record(key), value, || true);
                    }
                }
                Step::Put(value) => {
                    pool.records().amend(&record(key), Some(&value));
                    leaves.insert(number, value);
                }
                Step::Remove => {
                    pool.records().amend(&record(key), None);
                    leaves.remove(&number);
                }
            }
            prop_assert!(frames_in_use(&pool) <= frames_of(pool.pages.budget_bytes()));
        }
    }
}

#[test]
fn records_that_are_used_stay_and_others_make_room_for_new_ones() {
    let pool = pool_in_memory(4 << 20);
    let key = |number: u32| number.to_be_bytes();
    let used: Vec<u32> = (0..2000).step_by(10).collect();
    for number in 0..40_000 {
        pool.records().keep(&record(&key(number)), &[1; 100], || true);
        if number % 50 == 0 {
            used.iter().for_each(|number| drop(recalled(&pool, &key(*number))));
        }
    }
    let still = |numbers: &mut dyn Iterator<Item = u32>| {
        numbers.filter(|number| recalled(&pool, &key(*number)).is_some()).count()
    };
    // Some go where a bucket or a frame has too many that are used.
    assert!(still(&mut used.iter().copied()) > used.len() / 5 * 4);
    assert!(still(&mut (20_000..21_000)) < 10);
    assert!(
        pool.records_bytes() <= pool.pages.budget_bytes() / RECORDS_MAX_DIVISOR * 5 / 4,
        "{}",
        pool.records_bytes()
    );
}

/// A frame is a row of records. Each begins where the one before it ends.
#[test]
fn a_record_that_becomes_shorter_leaves_those_behind_it_where_they_are() {
    let pool = pool_in_memory(4 << 20);
    let key = |number: u32| number.to_be_bytes();
    let used: Vec<u32> = (0..400).collect();
    let use_all = |numbers: &mut dyn Iterator<Item = &u32>| {
        numbers.filter(|number| recalled(&pool, &key(**number)).is_some()).count()
    };
    used.iter().for_each(|number| pool.records().keep(&record(&key(*number)), &[1; 100], || true));
    used.iter().step_by(2).for_each(|number| pool.records().amend(&record(&key(*number)), Some(&[2; 60])));
    assert_eq!(use_all(&mut used.iter().skip(1).step_by(2)), used.len() / 2);
    // The frames turn: records that were used since then are taken out of them, one after the other.
    for number in 1000..40_000 {
        pool.records().keep(&record(&key(number)), &[1; 100], || true);
        if number % 50 == 0 {
            use_all(&mut used.iter());
        }
    }
    let kept = use_all(&mut used.iter().skip(1).step_by(2));
    assert!(kept > used.len() / 2 / 5 * 4, "{kept}");
}

#[test]
fn of_a_leaf_that_has_changed_nothing_is_kept() {
    let pool = pool_in_memory(4 << 20);
    pool.records().keep(&record(b"key"), b"old", || false);
    assert_eq!(recalled(&pool, b"key"), None);
    pool.records().keep(&record(b"key"), b"new", || true);
    assert_eq!(recalled(&pool, b"key").as_deref(), Some(&b"new"[..]));
    let of_another_tree = RecordKey { tree: 8, ..record(b"key") };
    assert!(!pool.records().recall(&of_another_tree, &mut Vec::new()));
    pool.records().amend(&record(b"key"), Some(b"longer than it was"));
    assert_eq!(recalled(&pool, b"key"), None);
}

#[test]
fn memory_goes_to_where_it_is_of_more_use() {
    let pool = pool_in_memory(4 << 20);
    let frames = pool.records.budget_frames;
    let target = || pool.records.target.load(Ordering::Relaxed);
    let fill =
        || (0..2000_u32).for_each(|key| pool.records().keep(&record(&key.to_be_bytes()), &[1; 100], || true));
    fill();
    for _ in 0..frames {
        pool.records.note_pages(10, 0);
        pool.records.balance();
    }
    assert_eq!(target(), pool.records.frames_min, "pages are of use, and no records are");
    for _ in 0..frames {
        pool.records.rings.iter().for_each(|ring| ring.lock().saved += 1);
        pool.records.balance();
    }
    assert_eq!(target(), pool.records.frames_max, "it is the other way round");
}

#[test]
fn who_finds_no_memory_gets_that_of_records() {
    let pool = pool_in_memory(4 << 20);
    (0..2000_u32).for_each(|key| pool.records().keep(&record(&key.to_be_bytes()), &[1; 100], || true));
    let before = frames_in_use(&pool);
    let all: Vec<_> =
        std::iter::from_fn(|| pool.reserve(0).ok().filter(|_| pool.records().give_up())).collect();
    assert!(all.len() as u64 > before / 2 && frames_in_use(&pool) < before / 2);
    drop(all);
    assert_eq!(recalled(&pool, &1_u32.to_be_bytes()), None);
}
