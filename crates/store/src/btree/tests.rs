//! Trees against a sorted map, over long random histories.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Bound;
use std::sync::Arc;

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

use super::node::Node;
use super::reshape::cut;
use super::tree::{Attempt, Wish};
use super::*;
use crate::Error;
use crate::index::{Census, Direction, KeySlot, LeafHint, Piece};
use crate::pool::testing::pool_in_memory;
use crate::pool::{Access, Denied, OptimisticGuard, Pool};
use crate::sync::explored::explore;
use shuttle::thread::spawn;

type Model = BTreeMap<Vec<u8>, Vec<u8>>;

/// How keys look in a history.
#[derive(Clone, Copy, Debug)]
enum Keys {
    /// Eight bytes, ascending numbers.
    Numbers,
    /// Long common prefixes, various lengths.
    Paths,
    /// Few different bytes, so that keys are each other's prefixes; empty ones, too.
    Zeros,
    /// Up to a quarter of a page, often differing in their last byte only: two or three fill a node.
    Long,
}

impl Keys {
    fn draw(self, random: &mut Pcg64Mcg, count: u32) -> Vec<u8> {
        let number = random.random_range(0..count);
        match self {
            Self::Numbers => u64::from(number).to_be_bytes().into(),
            Self::Paths => {
                format!("users/{:03}/{}", number % 50, "x".repeat(number as usize / 50)).into_bytes()
            }
            Self::Zeros => {
                let length = random.random_range(0..14);
                (0..length).map(|_| random.random_range(0..2_u8)).collect()
            }
            Self::Long => {
                let length = random.random_range(1..=1024);
                let mut key = vec![b'a'; length];
                for _ in 0..random.random_range(0..4) {
                    let at = [0, length / 2, length - 1][random.random_range(0..3)];
                    key[at] = b'a' + (number % 3) as u8;
                }
                key
            }
        }
    }
}

fn value(random: &mut Pcg64Mcg, longest: usize) -> Vec<u8> {
    let length = if random.random_range(0..4) == 0 {
        random.random_range(0..=longest)
    } else {
        random.random_range(0..12)
    };
    (0..length).map(|_| random.random()).collect()
}

/// Returns the old value.
fn change(tree: &BTree, key: &[u8], change: Change<'_>) -> Option<Vec<u8>> {
    let mut old = None;
    tree.update(key, &mut |found| {
        old = found.map(<[u8]>::to_vec);
        change
    })
    .unwrap();
    old
}

fn put(tree: &BTree, key: &[u8], value: &[u8]) -> Option<Vec<u8>> {
    change(tree, key, Change::Put(value))
}

fn remove(tree: &BTree, key: &[u8]) -> Option<Vec<u8>> {
    change(tree, key, Change::Remove)
}

fn get(tree: &BTree, key: &[u8]) -> Option<Vec<u8>> {
    let mut value = vec![1, 2, 3];
    tree.get(key, &mut value, &mut None).unwrap().then(|| value.split_off(3))
}

fn head(value: &[u8]) -> u64 {
    value.iter().take(8).rev().fold(0, |head, byte| head << 8 | u64::from(*byte))
}

fn records(
    tree: &BTree,
    direction: Direction,
    lower: &[u8],
    upper: Option<&[u8]>,
    ahead: u32,
) -> Vec<(Vec<u8>, Vec<u8>)> {
    let (mut scan, mut piece, mut found) =
        (Scan::new(direction, lower, upper, ahead), Piece::default(), Vec::new());
    while tree.step(&mut scan, &mut piece).unwrap() {
        assert!(!piece.is_empty());
        let mut part: Vec<_> = piece.iter().map(|(key, value)| (key.to_vec(), value.to_vec())).collect();
        if direction == Direction::Backward {
            part.reverse();
        }
        found.extend(part);
    }
    assert!(piece.is_empty());
    found
}

fn check(tree: &BTree, model: &Model) -> Census {
    let mut found = Vec::new();
    // The walk is from right to left.
    let census = tree.check(&mut |key, value| found.push((key.to_vec(), value.to_vec()))).unwrap();
    assert_eq!(census.records, model.len() as u64);
    found.sort();
    assert!(found.into_iter().eq(model.clone()));
    census
}

fn check_scan(tree: &BTree, model: &Model, lower: &[u8], upper: Option<&[u8]>, ahead: u32) {
    let end = upper.map_or(Bound::Unbounded, |upper| Bound::Excluded(upper.to_vec()));
    let expected: Vec<_> = if upper.is_some_and(|upper| upper <= lower) {
        Vec::new()
    } else {
        model
            .range((Bound::Included(lower.to_vec()), end))
            .map(|(key, value)| (key.clone(), value.clone()))
            .collect()
    };
    assert_eq!(records(tree, Direction::Forward, lower, upper, ahead), expected);
    let backward: Vec<_> = expected.into_iter().rev().collect();
    assert_eq!(records(tree, Direction::Backward, lower, upper, ahead), backward);
}

/// The positions of keys when they were looked at, which may have been long ago.
#[derive(Default)]
struct Looks {
    last: VecDeque<(Vec<u8>, Option<LeafHint>)>,
    /// Changes that did not begin at the root.
    saved: u32,
}

impl Looks {
    fn note(&mut self, key: &[u8], hint: Option<LeafHint>) {
        self.last.truncate(63);
        self.last.push_front((key.to_vec(), hint));
    }

    /// A change of a key, beginning with its hint. Hints of other keys in the same leaf are updated.
    fn change(&mut self, tree: &BTree, key: &[u8], what: Change<'_>) -> Option<Vec<u8>> {
        let before = self.last.iter().find(|(looked, _)| looked == key).and_then(|(_, hint)| *hint);
        let mut hint = before;
        let old = get(tree, key);
        tree.change_at(key, &mut hint, what).unwrap();
        self.saved += u32::from(hint.is_some());
        let is_beside = |other: &Option<LeafHint>| {
            before.zip(*other).is_some_and(|(before, other)| before.is_beside(other))
        };
        for (_, other) in self.last.iter_mut().filter(|(_, other)| is_beside(other)) {
            *other = hint.map(LeafHint::of_another_key);
        }
        old
    }
}

/// A history: grows, shrinks to nothing, and so on, while all answers are compared with the model's.
fn history(pool: &Arc<Pool>, class: usize, keys: Keys, steps: u32, seed: u64) -> Census {
    let random = &mut Pcg64Mcg::seed_from_u64(seed);
    let (tree, mut model) = (BTree::create(pool, class, false).unwrap(), Model::new());
    let (mut most, longest) = (Census::default(), tree.value_bytes_max());
    let mut looks = Looks::default();
    for step in 0..steps {
        let key = match random.random_range(0..2) {
            0 => looks.last.get(random.random_range(0..64)).map(|(key, _)| key.clone()),
            _ => None,
        };
        let key = key.unwrap_or_else(|| keys.draw(random, 4000));
        // Half of the time it grows, half of the time it shrinks.
        let puts = if (step * 4 / steps).is_multiple_of(2) { 75 } else { 15 };
        match random.random_range(0..100) {
            draw if draw < puts => {
                let value = value(random, longest);
                let old = looks.change(&tree, &key, Change::Put(&value));
                assert_eq!(old, model.insert(key, value), "seed {seed} step {step}");
            }
            draw if draw < 95 => {
                let old = looks.change(&tree, &key, Change::Remove);
                assert_eq!(old, model.remove(&key), "seed {seed} step {step}")
            }
            _ => {
                let expected = model.get(&key);
                assert_eq!(get(&tree, &key).as_ref(), expected, "seed {seed} step {step}");
                let mut hint = None;
                assert_eq!(tree.head(&key, &mut hint).unwrap(), expected.map(|value| head(value)));
                looks.note(&key, hint);
                // Another one's place, which may be in the same leaf.
                let other = keys.draw(random, 4000);
                let mut found = Vec::new();
                if let Some(is_there) = tree.get_resident(&other, &mut found, &mut hint) {
                    assert_eq!(is_there.then_some(&found), model.get(&other), "seed {seed} step {step}");
                    looks.note(&other, hint);
                }
            }
        }
        if step.is_multiple_of(steps / 20) {
            let census = check(&tree, &model);
            most = if census.leaves > most.leaves { census } else { most };
            let (lower, upper) = (keys.draw(random, 4000), keys.draw(random, 4000));
            check_scan(&tree, &model, &lower, Some(&upper), random.random_range(0..20));
            check_scan(&tree, &model, b"", None, random.random_range(0..20));
        }
    }
    while let Some((key, value)) = model.pop_first() {
        assert_eq!(remove(&tree, &key), Some(value));
    }
    let census = check(&tree, &model);
    assert!(census.leaves * 10 <= most.leaves.max(10), "{census:?} is left of {most:?}");
    assert!(looks.saved > steps / 100, "{} of {steps} changes began where the key was", looks.saved);
    most
}

fn steps() -> u32 {
    std::env::var("FLASHGRAIN_TREE_STEPS").ok().and_then(|steps| steps.parse().ok()).unwrap_or(20_000)
}

#[test]
fn a_tree_is_a_sorted_map() {
    for (seed, keys) in [Keys::Numbers, Keys::Paths, Keys::Zeros, Keys::Long].into_iter().enumerate() {
        // Once with everything in memory, once with a memory so small that nearly every step loads and evicts
        // pages.
        for (class, budget_bytes) in [(0, 64 << 20), (2, 64 << 20), (0, 160 << 10)] {
            let most = history(&pool_in_memory(budget_bytes), class, keys, steps(), seed as u64);
            println!("{keys:?} class {class}, {budget_bytes} bytes: {most:?}");
            assert!(most.levels >= 2, "{most:?}");
        }
    }
}

#[test]
fn long_keys_make_deep_trees() {
    let pool = pool_in_memory(64 << 20);
    let (tree, mut model) = (BTree::create(&pool, 0, false).unwrap(), Model::new());
    let random = &mut Pcg64Mcg::seed_from_u64(1);
    while model.len() < 2000 {
        // No two have a common prefix, and separators are as long as keys.
        let mut key = vec![random.random::<u8>(); 1024];
        key[1023] = random.random();
        let value = vec![random.random(); tree.value_bytes_max()];
        assert_eq!(put(&tree, &key, &value), model.insert(key, value));
    }
    let census = check(&tree, &model);
    assert!(census.levels >= 5, "{census:?}");
    for key in model.keys().cloned().collect::<Vec<_>>() {
        assert_eq!(remove(&tree, &key), model.remove(&key));
    }
    let census = check(&tree, &model);
    assert!(census.levels <= 2, "{census:?}");
}

#[test]
fn ascending_keys_fill_leaves_wherever_they_come() {
    let pool = pool_in_memory(64 << 20);
    let tree = BTree::create(&pool, 0, false).unwrap();
    // Three interleaved runs.
    for number in 0..5000_u64 {
        for run in [1_u64, 2, 3] {
            put(&tree, &(run << 32 | number).to_be_bytes(), &[7; 100]);
        }
    }
    let census = tree.check(&mut |_, _| {}).unwrap();
    let fill = census.used_bytes as f64 / census.page_bytes as f64;
    assert!(fill > 0.9, "{fill} {census:?}");
}

#[test]
fn keys_and_values_over_the_limit_are_refused() {
    let tree = BTree::create(&pool_in_memory(1 << 20), 0, false).unwrap();
    let (key, value) = (vec![1; tree.key_bytes_max() + 1], vec![1; tree.value_bytes_max() + 1]);
    let refused = tree.update(&key, &mut |_| Change::Put(b""));
    assert!(matches!(refused, Err(Error::KeyLength { got: 1025, limit: 1024 })), "{refused:?}");
    let refused = tree.update(&key[1..], &mut |_| Change::Put(&value));
    assert!(matches!(refused, Err(Error::ValueLength { got: 957, limit: 956 })), "{refused:?}");
    put(&tree, &key[1..], &value[1..]);
    assert_eq!(get(&tree, &key[1..]).as_deref(), Some(&value[1..]));
}

#[test]
fn keeping_a_value_changes_nothing() {
    let pool = pool_in_memory(1 << 20);
    let tree = BTree::create(&pool, 0, false).unwrap();
    put(&tree, b"key", b"value");
    let before = tree.leaf(b"key").unwrap();
    tree.update(b"key", &mut |_| Change::Keep).unwrap();
    tree.update(b"other", &mut |_| Change::Remove).unwrap();
    assert!(before.is_valid());
    put(&tree, b"key", b"other");
    assert!(!before.is_valid());
}

/// Threads that each own every n-th key of a common tree: changes of their own keys are visible at once, and
/// the values that they read of others are whole.
#[test]
fn threads_share_a_tree() {
    share(64 << 20, steps() * 2);
}

#[test]
fn threads_share_a_tree_that_is_mostly_not_in_memory() {
    share(256 << 10, steps());
}

fn share(budget_bytes: u64, turns: u32) {
    const THREADS: u64 = 4;
    let tree = &BTree::create(&pool_in_memory(budget_bytes), 0, false).unwrap();
    // Keys of different owners are interleaved, so all change the same leaves.
    let key_of = |owner: u64, number: u64| (number * THREADS + owner).to_be_bytes();
    let value_of = |key: &[u8], turn: u32| -> Vec<u8> {
        [key, &turn.to_le_bytes(), &vec![turn as u8; turn as usize % 100]].concat()
    };
    let is_whole = |key: &[u8], value: &[u8]| {
        let turn = value.get(8..12).and_then(|turn| turn.first_chunk()).map(|turn| u32::from_le_bytes(*turn));
        turn.is_some_and(|turn| value_of(key, turn) == value)
    };
    let live = |owner: u64| {
        let random = &mut Pcg64Mcg::seed_from_u64(owner);
        let mut model = Model::new();
        for turn in 0..turns {
            let grows = (turn / 5000).is_multiple_of(2);
            let key = key_of(owner, random.random_range(0..1500));
            if random.random_range(0..10) < if grows { 7 } else { 3 } {
                let value = value_of(&key, turn);
                assert_eq!(put(tree, &key, &value), model.insert(key.to_vec(), value));
            } else {
                assert_eq!(remove(tree, &key), model.remove(key.as_slice()));
            }
            let other = key_of(random.random_range(0..THREADS), random.random_range(0..1500));
            if let Some(value) = get(tree, &other) {
                assert!(is_whole(&other, &value), "{other:?} {value:?}");
            }
            if turn.is_multiple_of(2000) {
                let direction = if random.random() { Direction::Forward } else { Direction::Backward };
                let mut found = records(tree, direction, b"", None, 4);
                if direction == Direction::Backward {
                    found.reverse();
                }
                assert!(found.is_sorted_by(|(a, _), (b, _)| a < b));
                assert!(found.iter().all(|(key, value)| is_whole(key, value)));
                found.retain(|(key, _)| u64::from(key[7]) % THREADS == owner);
                assert!(found.into_iter().eq(model.clone()));
            }
        }
        model
    };
    let models: Vec<Model> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS).map(|owner| scope.spawn(move || live(owner))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    check(tree, &models.into_iter().flatten().collect());
}

#[test]
fn a_tree_that_is_given_up_leaves_no_pages() {
    let pool = pool_in_memory(1 << 20);
    let before = pool.pages.count();
    let tree = BTree::create(&pool, 0, false).unwrap();
    // Several times the pool's memory: most leaves are not in memory when they are freed.
    for number in 0..40_000_u64 {
        put(&tree, &number.wrapping_mul(0x9E37_79B9_7F4A_7C15).to_be_bytes(), &[3; 100]);
    }
    assert!(tree.check(&mut |_, _| {}).unwrap().page_bytes > 4 << 20);
    tree.clear(&|| Ok(())).unwrap();
    assert_eq!(tree.check(&mut |_, _| {}).unwrap().leaves, 1);
    assert_eq!(pool.pages.count(), before + 1);
    put(&tree, b"key", b"value");
    tree.free_all().unwrap();
    assert_eq!(pool.pages.count(), before);
}

/// Its last inner nodes have no children for a moment: the old bytes of their slots must not be taken for
/// children, as those pages may belong to another tree by then.
#[test]
fn regression_a_tree_that_is_cut_off_leads_into_no_other_tree() {
    let pool = pool_in_memory(1 << 20);
    let tree = BTree::create(&pool, 0, false).unwrap();
    let key = |number: u64| number.to_be_bytes();
    for number in 0..30_000 {
        put(&tree, &key(number), &[3; 100]);
    }
    assert!(!tree.is_cut_off().unwrap());
    let (mut turns, mut without_children) = (0, 0);
    while !tree.free_some().unwrap() {
        turns += 1;
        assert!(tree.is_cut_off().unwrap(), "turn {turns}");
        let other = BTree::create(&pool, 0, false).unwrap();
        for number in 0..200 {
            put(&other, &key(number), &[4; 100]);
        }
        match tree.get(&key(0), &mut Vec::new(), &mut None) {
            Ok(found) => assert!(found, "turn {turns}"),
            Err(Error::Corrupt { .. }) => without_children += 1,
            Err(error) => panic!("turn {turns}: {error}"),
        }
        other.free_all().unwrap();
    }
    assert!(turns > 10 && without_children > 0, "{turns}, {without_children}");
    assert!(!tree.is_cut_off().unwrap());
}

#[test]
fn hot_records_come_to_lie_in_leaves_of_their_own() {
    let (tree, mut model) = (BTree::create(&pool_in_memory(1 << 20), 0, false).unwrap(), Model::new());
    for number in 0..200_u64 {
        let (key, value) = (number.to_be_bytes(), [7; 100]);
        put(&tree, &key, &value);
        model.insert(key.into(), value.into());
    }
    for hot in [0_u64, 77, 78, 199] {
        let mut leaves = check(&tree, &model).leaves;
        loop {
            tree.part(&hot.to_be_bytes()).unwrap();
            let now = check(&tree, &model).leaves;
            if now == leaves {
                break;
            }
            leaves = now;
        }
        let leaf = tree.leaf(&hot.to_be_bytes()).unwrap();
        let records = super::node::Node::new(leaf.page()).count();
        assert!(records < 4, "{records} records beside {hot}");
    }
}

/// A split where keys ascend leaves an empty leaf for the next one: a writer that was refused with that key,
/// and comes later, finds room there and no damage.
#[test]
fn regression_room_that_another_has_made_is_no_damage() {
    let tree = BTree::create(&pool_in_memory(1 << 20), 0, false).unwrap();
    (0..20_u32).for_each(|number| assert_eq!(put(&tree, &number.to_be_bytes(), &[7; 100]), None));
    let next = 20_u32.to_be_bytes();
    for _ in 0..4 {
        tree.make_room(&next).unwrap();
    }
    let empty = tree.leaf(&next).unwrap();
    assert_eq!(Node::new(empty.page()).count(), 0);
    assert_eq!(tree.check(&mut |_, _| ()).unwrap().leaves, 2);
    assert_eq!(put(&tree, &next, &[7; 100]), None);
}

/// Tasks that take turns on one thread would otherwise keep each other from splitting it for ever.
#[test]
fn regression_who_finds_a_leaf_full_is_in_nobody_s_way() {
    let tree = BTree::create(&pool_in_memory(1 << 20), 0, false).unwrap();
    let key = |number: u32| number.to_be_bytes();
    let put = |guard: &OptimisticGuard<'_>, number, value: &[u8]| {
        tree.attempt(guard, KeySlot::Unknown, &key(number), &mut Wish::Is(Change::Put(value))).unwrap()
    };
    let leaf = || tree.leaf(&key(0)).unwrap();
    let last = (0..).find(|number| matches!(put(&leaf(), *number, &[7; 100]), Attempt::Full)).unwrap();
    let guard = leaf();
    assert!(matches!(put(&guard, last, &[7; 100]), Attempt::Full));
    assert!(matches!(put(&guard, 0, &[7; 500]), Attempt::Full), "nor for a longer value");
    assert!(guard.is_valid());
    // Nor has a parent changed whose child could not be split.
    tree.make_room(&key(last)).unwrap();
    let path = tree.path(&key(0), 0).unwrap();
    let [parent, child] = path.as_slice() else { panic!("a root and its only child") };
    assert!(matches!(put(&child.guard, 0, &[8; 100]), Attempt::Done(_)));
    let cut = cut(child.node(), 1, &key(1)).unwrap();
    assert!(matches!(tree.split_below(parent, &child.guard, &cut).unwrap(), Err(Denied::Changed)));
    assert!(parent.guard.is_valid());
}

/// Threads that append to the end of a tree whose only leaf is full, and remove records that another may have
/// appended.
#[test]
fn threads_append_side_by_side() {
    const THREADS: u32 = 3;
    const BEFORE: u32 = 7;
    explore(4000, || {
        let tree = Arc::new(BTree::create(&pool_in_memory(1 << 20), 0, false).unwrap());
        let value = [7; 500];
        (0..BEFORE).for_each(|number| assert_eq!(put(&tree, &number.to_be_bytes(), &value), None));
        assert_eq!(tree.check(&mut |_, _| ()).unwrap().leaves, 1);
        let threads: Vec<_> = (0..THREADS)
            .map(|own| {
                let tree = Arc::clone(&tree);
                spawn(move || {
                    for first in [BEFORE, BEFORE + THREADS] {
                        put(&tree, &(first + own).to_be_bytes(), &value);
                        if own == 0 {
                            remove(&tree, &(first + 1).to_be_bytes());
                        }
                    }
                })
            })
            .collect();
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        let is_left = |number: &u32| *number < BEFORE || (number - BEFORE) % THREADS != 1;
        let left = (0..BEFORE + 2 * THREADS).filter(is_left);
        assert!(left.into_iter().all(|number| get(&tree, &number.to_be_bytes()).is_some()));
        tree.check(&mut |_, _| ()).unwrap();
    });
}

/// A tree with two levels, after `spoil` has changed the root's page.
fn spoilt(spoil: impl Fn(Node<'_>)) -> BTree {
    let tree = BTree::create(&pool_in_memory(1 << 20), 0, false).unwrap();
    for number in 0..400_u32 {
        tree.update(&number.to_be_bytes(), &mut |_| Change::Put(b"value")).unwrap();
    }
    let root = tree.pool.read(tree.root(), Access::Normal).unwrap();
    assert_eq!(Node::new(root.page()).level(), 1);
    spoil(Node::new(root.page()));
    tree
}

fn scans(tree: &BTree) -> [Result<usize, Error>; 2] {
    [Direction::Forward, Direction::Backward].map(|direction| {
        let (mut scan, mut piece, mut records) = (Scan::new(direction, &[], None, 8), Piece::default(), 0);
        while tree.step(&mut scan, &mut piece)? {
            records += piece.len();
        }
        Ok(records)
    })
}

#[test]
fn a_leaf_whose_fence_leads_back_ends_a_scan_with_an_error() {
    assert!(scans(&spoilt(|_| ())).into_iter().all(|records| records.unwrap() == 400));
    let tree = spoilt(|root| {
        // All keys lead to the second leaf.
        (0..root.count()).for_each(|slot| root.page().set_long(120 + 16 * slot + 8, root.child(1).0));
    });
    for end in scans(&tree) {
        assert!(matches!(end, Err(Error::Corrupt { .. })), "{end:?}");
    }
}

#[test]
fn an_inner_node_without_children_ends_a_scan_with_an_error() {
    let tree = spoilt(|root| (0..root.count()).rev().for_each(|slot| root.remove(slot)));
    for end in scans(&tree) {
        assert!(matches!(end, Err(Error::Corrupt { .. })), "{end:?}");
    }
}

#[test]
fn garbage_of_more_than_a_page_does_not_add_up() {
    let tree = spoilt(|root| root.page().set_word(36, u32::MAX));
    assert!(matches!(tree.check(&mut |_, _| ()), Err(Error::Corrupt { .. })));
}

/// Its halves would have no room either, nor theirs.
#[test]
fn a_node_whose_bytes_do_not_add_up_is_not_split_for_ever() {
    const COUNT: u32 = 32;
    let pool = pool_in_memory(1 << 20);
    for (class, count) in [(0, 0xffff), (2, 0x634)] {
        let tree = BTree::create(&pool, class, false).unwrap();
        let key = |number: u32| format!("{number:08}").into_bytes();
        (0..20).for_each(|number| assert_eq!(put(&tree, &key(number), &[7; 100]), None));
        let pages = pool.pages.count();
        let root = pool.read(tree.root(), Access::Normal).unwrap();
        let (_, prefix) = root.page().halves(COUNT);
        root.page().set_halves(COUNT, count, prefix);
        let update = |number: u32| tree.update(&key(number), &mut |_| Change::Put(&[7; 100]));
        let refused = (20..2000).find_map(|number| update(number).err());
        assert!(matches!(refused, Some(Error::Corrupt { .. })), "{refused:?}");
        assert!(pool.pages.count() <= pages + 1, "no page was made of nonsense");
    }
}
