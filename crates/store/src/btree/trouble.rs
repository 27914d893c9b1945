//! A node that cannot be read or changed, at every single occasion of a history of growth and shrinking.

use std::collections::BTreeMap;

use super::*;
use crate::index::{Direction, Piece};
use crate::pool::testing::pool_in_memory;
use crate::testing::Trouble;
use crate::{Error, ErrorKind};

type Model = BTreeMap<Vec<u8>, Vec<u8>>;

/// So long that few fill a node.
fn key(number: u32) -> Vec<u8> {
    let mut key = (number * 7919 % 64).to_be_bytes().to_vec();
    key.resize(900, b'.');
    key
}

/// Three levels come and go.
fn history() -> impl Iterator<Item = (Vec<u8>, Option<Vec<u8>>)> {
    let put = (0..64).map(|number| (key(number), Some(vec![number as u8; 8])));
    put.chain((0..64).map(|number| (key(number), None)))
}

fn change(tree: &BTree, key: &[u8], value: Option<&[u8]>) -> Result<(), Error> {
    tree.update(key, &mut |_| value.map_or(Change::Remove, Change::Put))
}

fn records(tree: &BTree) -> Model {
    let mut found = Model::new();
    let census = tree.check(&mut |key, value| drop(found.insert(key.to_vec(), value.to_vec())));
    let census = census.unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(census.records, found.len() as u64);
    found
}

/// After a failure the change is done or not, nothing else has changed, and the tree can still be used.
#[test]
fn a_tree_is_whole_after_any_failure() {
    for trouble in [Trouble::Page, Trouble::Frame, Trouble::Write] {
        let mut failures = 0;
        for nth in 1.. {
            let pool = pool_in_memory(1 << 20);
            let tree = BTree::create(&pool, 0, false).unwrap();
            let mut model = Model::new();
            let troubled = trouble.at(nth);
            let mut left = history();
            let failed = left.by_ref().find_map(|(key, value)| {
                let changed = change(&tree, &key, value.as_deref());
                let before = model.clone();
                match value {
                    Some(value) => drop(model.insert(key, value)),
                    None => drop(model.remove(&key)),
                }
                changed.err().map(|error| (error, before))
            });
            let is_over = troubled.asked() < nth;
            drop(troubled);
            let found = records(&tree);
            if let Some((error, before)) = failed {
                assert!(
                    matches!(error, Error::Io { .. } | Error::Poisoned { .. }),
                    "{trouble:?} at {nth}: {error}"
                );
                assert!(found == model || found == before, "{trouble:?} at {nth}");
                failures += 1;
                model = found;
            }
            assert!(records(&tree) == model, "{trouble:?} at {nth}");
            for (key, value) in left {
                change(&tree, &key, value.as_deref()).unwrap();
                match value {
                    Some(value) => drop(model.insert(key, value)),
                    None => drop(model.remove(&key)),
                }
            }
            assert!(records(&tree) == model, "{trouble:?} at {nth}, later");
            if is_over {
                break;
            }
        }
        assert!(failures > 10, "{trouble:?}: {failures}");
    }
}

/// For each node, also those that are read ahead.
#[test]
fn a_scan_says_when_it_cannot_go_on() {
    let pool = pool_in_memory(1 << 20);
    let tree = BTree::create(&pool, 0, false).unwrap();
    history().take(64).for_each(|(key, value)| change(&tree, &key, value.as_deref()).unwrap());
    let expected = records(&tree);
    for direction in [Direction::Forward, Direction::Backward] {
        for nth in 1.. {
            let (mut scan, mut piece) = (Scan::new(direction, b"", None, 8), Piece::default());
            let mut found = Model::new();
            let mut step = || -> Result<bool, Error> {
                let more = tree.step(&mut scan, &mut piece)?;
                found.extend(piece.iter().map(|(key, value)| (key.to_vec(), value.to_vec())));
                Ok(more)
            };
            let troubled = Trouble::Page.at(nth);
            let failed = std::iter::repeat_with(&mut step).find_map(|more| match more {
                Ok(true) => None,
                Ok(false) => Some(None),
                Err(error) => Some(Some(error)),
            });
            let is_over = troubled.asked() < nth;
            drop(troubled);
            assert_eq!(failed.flatten().is_some(), !is_over, "{direction:?} at {nth}");
            // The scan continues at its position.
            while step().unwrap() {}
            assert!(found == expected, "{direction:?} at {nth}");
            if is_over {
                break;
            }
        }
    }
}

/// Whether a dropped tree is whole is found out node by node.
#[test]
fn whether_a_tree_is_cut_off_is_not_known_when_a_node_cannot_be_read() {
    let pool = pool_in_memory(1 << 20);
    let tree = BTree::create(&pool, 0, false).unwrap();
    history().take(64).for_each(|(key, value)| change(&tree, &key, value.as_deref()).unwrap());
    for nth in 1.. {
        let troubled = Trouble::Page.at(nth);
        let found = tree.is_cut_off();
        let is_over = troubled.asked() < nth;
        drop(troubled);
        assert_eq!(found.map_err(|error| error.kind()), if is_over { Ok(false) } else { Err(ErrorKind::Io) });
        if is_over {
            assert!(nth > 2, "three levels");
            break;
        }
    }
}
