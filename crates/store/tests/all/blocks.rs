//! B+-trees whose nodes are in blocks.

use std::collections::BTreeMap;

use flashgrain::{BeTreeOptions, Bytes, Count, Db, ErrorKind, NodeBlocks, Setting, Tree, TreeOptions};
use rand::{RngExt as _, SeedableRng as _};
use rand_pcg::Pcg64;

use super::bad_input::folder;

const SEED: u64 = 1;

fn options(blocks: u32) -> TreeOptions {
    // A B+-tree does not keep what Bε-trees would be like.
    let options = TreeOptions::new().be_tree(BeTreeOptions::default());
    options.node_bytes(4096).node_blocks(NodeBlocks::Of(blocks))
}

fn key(number: u32) -> Vec<u8> {
    format!("key/{:08}", number.wrapping_mul(2_654_435_761) >> 4).into_bytes()
}

/// Changes and look-ups in turn, of records many times the cache.
fn work(db: &Db, tree: &Tree, model: &mut BTreeMap<Vec<u8>, Vec<u8>>, random: &mut Pcg64, steps: u32) {
    for step in 0..steps {
        let key = key(random.random_range(0..20_000));
        match random.random_range(0..10) {
            0..4 => {
                let value = vec![step as u8; random.random_range(0..300)];
                tree.insert(&key, &value).unwrap();
                model.insert(key, value);
            }
            4 => {
                tree.remove(&key).unwrap();
                model.remove(&key);
            }
            _ => {
                let found = tree.get(&key).unwrap().map(|value| value.to_vec());
                assert_eq!(found.as_ref(), model.get(&key), "seed {SEED}, step {step}");
            }
        }
        if step % 5_000 == 0 {
            db.checkpoint().unwrap();
        }
    }
}

fn all(tree: &Tree) -> BTreeMap<Vec<u8>, Vec<u8>> {
    let record = |record: Result<(_, _), _>| {
        let (key, value): (flashgrain::Value, flashgrain::Value) = record.unwrap();
        (key.to_vec(), value.to_vec())
    };
    tree.iter().unwrap().map(record).collect()
}

#[test]
fn records_in_blocks_are_found_changed_and_there_after_a_restart() {
    let folder = folder();
    let random = &mut Pcg64::seed_from_u64(SEED);
    let builder = || Db::builder().path(folder.path()).cache_bytes(1 << 20).workers(2);
    for blocks in [2, 4, 8, 16] {
        let name = format!("of {blocks}");
        let mut model = BTreeMap::new();
        let db = builder().open_or_create().unwrap();
        let tree = db.tree_with(&name, &options(blocks)).unwrap();
        assert_eq!(tree.options(), options(blocks));
        work(&db, &tree, &mut model, random, 15_000);
        db.close().unwrap();
        drop(tree);
        let db = builder().open().unwrap();
        let tree = db.existing_tree(&name).unwrap();
        assert_eq!(tree.options(), options(blocks));
        work(&db, &tree, &mut model, random, 15_000);
        assert_eq!(all(&tree), model);
        assert_eq!(tree.check().unwrap().records, model.len() as u64);
        let read = db.stats().device;
        db.close().unwrap();
        drop(tree);
        assert!(read.reads > 1_000, "the cache is much smaller than the tree: {read:?}");
    }
}

#[test]
fn blocks_follow_from_the_drive_or_are_given() {
    let db = Db::in_memory(4 << 20).unwrap();
    let of_drive = TreeOptions::new().node_blocks(NodeBlocks::OfDrive);
    let decided = db.layout_of(&of_drive).unwrap();
    let blocks = decided.iter().find_map(|decision| match decision.setting {
        Setting::NodeBlocks(count) => Some((count, decision.because.clone())),
        _ => None,
    });
    // Without a profile a read-ahead is 512 KiB.
    let (count, because) = blocks.unwrap();
    assert_eq!(count, Count(8));
    assert!(because.contains("P = 8"), "{because}");
    assert!(decided.iter().any(|decision| decision.setting == Setting::Node(Bytes(4096))));
    let tree = db.tree_with("of drive", &of_drive).unwrap();
    assert_eq!(tree.options().blocks_of_nodes(), Some(NodeBlocks::Of(8)));
    assert_eq!(tree.key_bytes_max(), 1024);
    for (node_bytes, blocks) in [(4096, 3), (4096, 1), (4096, 32), (32 << 10, 4), (64 << 10, 2)] {
        let wrong = TreeOptions::new().node_bytes(node_bytes).node_blocks(NodeBlocks::Of(blocks));
        let error = db.tree_with("wrong", &wrong).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Argument, "{error}");
    }
}
