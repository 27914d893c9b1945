//! Values that are longer than a node, a page, or a quarter of one.

use flashgrain_cost::Access;
use flashgrain_cost::dictionary::{
    BTree, Design, Durability, Operation, OutOfPlaceBEpsilonTree, OutOfPlaceBTree, Records, Situation,
};
use flashgrain_cost::lsm::{Layout, LsmTree, OutOfPlaceLsmTree};

use crate::designs;
use crate::simulated::b_tree::{KEY_BYTES, Run, run};
use crate::simulated::draws::Draws;
use crate::simulated::lsm_tree::{Shape, Tree};

/// Look-ups, updates and space beside those of a simulated tree.
#[test]
fn a_b_tree_reads_writes_and_takes_what_a_simulated_one_does() {
    for (page_bytes, value_bytes) in [
        (4096.0, 100.0),
        (4096.0, 900.0),
        (4096.0, 1100.0),
        (4096.0, 2900.0),
        (4096.0, 50_000.0),
        (4096.0, 1_048_576.0),
        (65_536.0, 2900.0),
        (65_536.0, 50_000.0),
    ] {
        let records = Records { count: 20_000.0, key_bytes: KEY_BYTES, value_bytes };
        let cache_bytes = 0.2 * records.total_bytes();
        let of_run = Run {
            records: 20_000,
            value_bytes,
            page_bytes,
            cache_bytes,
            skew: 0.0,
            checkpoint: 2000,
            operations: 40_000,
        };
        let situation =
            Situation { changes_per_checkpoint: Some(2000.0), ..Situation::new(records, cache_bytes, 1.0) };
        let tree = BTree::new(page_bytes);
        let (hit, update) =
            (tree.demand(Operation::PointHit, &situation), tree.demand(Operation::Update, &situation));
        let (look_ups, updates) = (run(of_run, false), run(of_run, true));
        let pairs = [
            ("reads", hit.requests(Access::Read), look_ups.reads),
            ("bytes read", hit.bytes(Access::Read), look_ups.read_bytes),
            ("bytes read by an update", update.bytes(Access::Read), updates.read_bytes),
            ("writes", update.requests(Access::Write), updates.writes),
            ("bytes written", update.bytes(Access::Write), updates.written_bytes),
            ("space", tree.space_amplification(&situation) * records.total_bytes(), look_ups.space_bytes),
        ];
        for (name, model, simulated) in pairs {
            println!("{page_bytes}, {value_bytes}: {name} {model:.3}, simulated {simulated:.3}");
        }
        for (name, model, simulated) in pairs {
            // A few requests for leaves, which values push out of the memory now and then.
            let slack = if name.contains("bytes") { 0.07 * page_bytes } else { 0.07 };
            let near = (model - simulated).abs() < 0.15 * simulated + slack;
            assert!(near, "{page_bytes}, {value_bytes}: {name} {model}, simulated {simulated}");
        }
    }
}

/// Updates, look-ups and space of a tree of the store, whose merges leave long values where they are, beside a
/// simulated tree of keys.
#[test]
fn merges_of_an_lsm_tree_move_references_of_long_values() {
    const KEYS: usize = 40_000;
    const REFERENCE_BYTES: usize = 16;
    for (layout, value_bytes) in [
        (Layout::Leveled, 100),
        (Layout::Leveled, 3000),
        (Layout::Tiered, 3000),
        (Layout::Leveled, 20_000),
        (Layout::LazyLeveled, 1 << 20),
    ] {
        let is_long = value_bytes > 1024;
        let moved_bytes = KEY_BYTES as usize + if is_long { REFERENCE_BYTES } else { value_bytes };
        let shape = Shape { layout, fanout: 4, file_keys: 256, level_one_files: 4 };
        let mut simulated = Tree::new(shape);
        let mut keys = Draws::new(KEYS, 0.0, 3);
        (0..KEYS).for_each(|key| simulated.change(key * 7919 % KEYS));
        (0..4 * KEYS).for_each(|_| simulated.change(keys.draw()));
        simulated.reset();
        let mut versions = 0;
        for _ in 0..4 * KEYS {
            simulated.change(keys.draw());
            versions += simulated.keys();
        }
        let (changes, versions) = (simulated.changes as f64, versions as f64 / simulated.changes as f64);
        let outside_bytes = if is_long { value_bytes as f64 } else { 0.0 };
        let merged = (simulated.flushed + simulated.written) as f64 * moved_bytes as f64 / changes;
        let space = versions * (moved_bytes as f64 + outside_bytes) / KEYS as f64;

        let records = Records { count: KEYS as f64, key_bytes: KEY_BYTES, value_bytes: value_bytes as f64 };
        let situation = Situation::new(records, 0.0, 1.0);
        let tree = LsmTree {
            fanout: 4.0,
            file_bytes: 256.0 * moved_bytes as f64,
            levels_max: 20,
            filter_bits_per_key: 20.0,
            ..LsmTree::new(layout)
        };
        // A store with much room moves nothing that is live.
        let pages = OutOfPlaceBTree { utilisation: 0.01, ..OutOfPlaceBTree::new(4096.0, 65_536.0) };
        let design = OutOfPlaceLsmTree { tree, pages };
        let demand = |operation| design.demand(operation, &situation);
        let values = f64::from(u8::from(is_long));
        let hit = demand(Operation::PointHit);
        let pairs = [
            ("bytes written", demand(Operation::Update).bytes(Access::Write), merged + outside_bytes),
            ("reads", hit.requests(Access::Read), 1.0 + values),
            ("bytes read", hit.bytes(Access::Read), 4096.0 + outside_bytes),
            (
                "space",
                design.space_amplification(&situation) * records.record_bytes(),
                space + outside_bytes * versions / KEYS as f64 * 99.0,
            ),
        ];
        for (name, priced, simulated) in pairs {
            println!("{layout} {value_bytes}: {name} {priced:.3}, simulated {simulated:.3}");
        }
        for (name, priced, simulated) in pairs {
            // How many runs a tiered tree has depends on when it is asked.
            let near = (priced / simulated - 1.0).abs() < if name == "space" { 0.25 } else { 0.15 };
            assert!(near, "{layout} {value_bytes}: {name} {priced}, simulated {simulated}");
        }
    }
}

/// No tree reads less than it returns, writes less than is changed or takes less than it has.
#[test]
fn every_design_moves_and_keeps_at_least_its_records() {
    for (name, design) in designs() {
        for value_bytes in [0.0, 100.0, 2000.0, 4000.0, 30_000.0, 1_048_576.0, 3e7] {
            let records = Records { count: 1e9, key_bytes: 24.0, value_bytes };
            let situation =
                Situation::new(records, design.memory_bytes(&Situation::new(records, 0.0, 1.0)), 1.0);
            let at_least = |what: &str, bytes: f64, least: f64| {
                assert!(bytes >= 0.999 * least, "{name}, values of {value_bytes}: {what} {bytes} < {least}");
            };
            let demand = |operation| design.demand(operation, &situation);
            at_least(
                "a look-up reads",
                demand(Operation::PointHit).bytes(Access::Read),
                records.record_bytes(),
            );
            let bytes = 50.0 * records.record_bytes();
            at_least("a range reads", demand(Operation::Range { bytes }).bytes(Access::Read), 0.95 * bytes);
            for operation in [Operation::Insert, Operation::Update] {
                let written = demand(operation).bytes(Access::Write);
                at_least("a change writes", written, records.record_bytes());
            }
            at_least("space", design.space_amplification(&situation), 1.0);
        }
    }
}

/// The store writes a long value to its pages, and a reference to the log; a B-tree in place logs the value.
#[test]
fn the_log_of_a_store_has_references_to_long_values() {
    let records = Records { count: 1e5, key_bytes: 16.0, value_bytes: 1_048_576.0 };
    let trees: [(&dyn Design, bool); 3] = [
        (&OutOfPlaceBTree::new(4096.0, 262_144.0), false),
        (&OutOfPlaceBEpsilonTree::new(1_048_576.0, 8.0, 4096.0, 262_144.0), false),
        (&BTree::new(4096.0), true),
    ];
    for (tree, has_values) in trees {
        let written = |durability| {
            let situation = Situation { durability, ..Situation::new(records, 1e9, 1.0) };
            tree.demand(Operation::Update, &situation).bytes(Access::Write)
        };
        let logged = written(Durability::Synced { changes_per_write: 1.0 }) - written(Durability::NoLog);
        println!("{}: {logged:.0}", tree.name());
        assert_eq!(logged > records.value_bytes, has_values, "{}: {logged}", tree.name());
        assert!(has_values || logged <= 4096.0, "{}: {logged}", tree.name());
    }
}
