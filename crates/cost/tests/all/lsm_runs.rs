//! Runs and merges of LSM-trees beside those of simulated ones.

use flashgrain_cost::Access;
use flashgrain_cost::dictionary::{Design, Operation, Records, Situation, Skew};
use flashgrain_cost::lsm::{Layout, LsmTree};

use crate::simulated::draws::Draws;
use crate::simulated::lsm_tree::{Shape, Tree};

const RECORDS: usize = 50_000;
const FILE_KEYS: usize = 250;
const LEVEL_ONE_FILES: usize = 4;
const RECORD_BYTES: f64 = 100.0;

const LAYOUTS: [(Layout, usize); 6] = [
    (Layout::Leveled, 4),
    (Layout::Leveled, 10),
    (Layout::Tiered, 4),
    (Layout::Tiered, 8),
    (Layout::LazyLeveled, 4),
    (Layout::LazyLeveled, 8),
];

fn simulated(layout: Layout, fanout: usize) -> Tree {
    Tree::new(Shape { layout, fanout, file_keys: FILE_KEYS, level_one_files: LEVEL_ONE_FILES })
}

fn modelled(layout: Layout, fanout: usize) -> LsmTree {
    LsmTree {
        fanout: fanout as f64,
        file_bytes: FILE_KEYS as f64 * RECORD_BYTES,
        level_one_files: LEVEL_ONE_FILES as f64,
        level_zero_files: (LEVEL_ONE_FILES as f64 - 1.0) / 2.0,
        level_zero_batch_files: LEVEL_ONE_FILES as f64,
        levels_max: 20,
        ..LsmTree::new(layout)
    }
}

fn situation(count: usize, skew: f64) -> Situation {
    let records = Records { count: count as f64, key_bytes: 16.0, value_bytes: RECORD_BYTES - 16.0 };
    let skew = if skew == 0.0 { Skew::Uniform } else { Skew::Zipf { exponent: skew } };
    Situation { skew, ..Situation::new(records, 0.0, 1.0) }
}

/// Trees that grow: runs, their keys and the keys written for each, averaged over sizes.
#[test]
fn a_growing_tree_has_the_runs_and_merges_of_a_simulated_one() {
    for (layout, fanout) in LAYOUTS {
        let (mut tree, model) = (simulated(layout, fanout), modelled(layout, fanout));
        let mut keys = Draws::permutation(RECORDS, 3);
        let (mut runs, mut of_model, mut written, mut samples) = (0.0, 0.0, 0.0, 0.0);
        for count in 1..=RECORDS {
            tree.change(keys.next().unwrap());
            if count % FILE_KEYS != 0 || count < RECORDS / 4 {
                continue;
            }
            let situation = situation(count, 0.0);
            let all = model.runs(&situation);
            let sum: f64 = all.iter().map(|runs| runs.bytes()).sum();
            assert!((sum / situation.records.total_bytes() - 1.0).abs() < 1e-9, "{model:?} {all:?}");
            runs += tree.runs() as f64;
            of_model += all.iter().map(|runs| runs.count).sum::<f64>();
            written += model.demand(Operation::Insert, &situation).bytes(Access::Write) / RECORD_BYTES;
            samples += 1.0;
        }
        let (runs, of_model, written) = (runs / samples, of_model / samples, written / samples);
        let drawn = (tree.flushed + tree.written) as f64 / tree.changes as f64;
        println!(
            "{layout} F {fanout}: runs {of_model:.2}, simulated {runs:.2}; written {written:.2}, simulated {drawn:.2}"
        );
        assert!((of_model / runs - 1.0).abs() < 0.2 && (written / drawn - 1.0).abs() < 0.25);
    }
}

/// Trees whose level 0 has a good part of all records.
#[test]
fn level_zero_of_a_small_tree_takes_the_space_of_a_simulated_one() {
    for layout in [Layout::Leveled, Layout::Tiered, Layout::LazyLeveled] {
        const FILES: usize = 40;
        let count = FILES * FILE_KEYS;
        let mut tree = simulated(layout, 4);
        Draws::permutation(count, 3).for_each(|key| tree.change(key));
        let mut draws = Draws::new(count, 0.0, 4);
        (0..20 * count).for_each(|_| tree.change(draws.draw()));
        let (mut kept, mut samples) = (0.0, 0.0);
        for change in 0..20 * count {
            tree.change(draws.draw());
            if change % (FILE_KEYS / 2) == 0 {
                kept += tree.keys() as f64 / count as f64;
                samples += 1.0;
            }
        }
        let space = modelled(layout, 4).space_amplification(&situation(count, 0.0));
        println!("{layout}: space {space:.2}, simulated {:.2}", kept / samples);
        assert!((space * samples / kept - 1.0).abs() < 0.2, "{layout}: {space}");
    }
}

/// Trees whose records are changed again and again.
#[test]
fn changes_by_zipfs_law_are_written_as_often_as_in_a_simulated_tree() {
    for (layout, fanout) in LAYOUTS {
        for skew in [0.0, 0.8, 0.99, 1.2] {
            let mut tree = simulated(layout, fanout);
            Draws::permutation(RECORDS, 3).for_each(|key| tree.change(key));
            let mut draws = Draws::new(RECORDS, skew, 4);
            let rounds = if layout == Layout::Tiered { 40 } else { 3 };
            (0..rounds / 3 * RECORDS).for_each(|_| tree.change(draws.draw()));
            tree.reset();
            let (mut kept, mut samples) = (0.0, 0.0);
            for change in 0..rounds * RECORDS {
                tree.change(draws.draw());
                if change % FILE_KEYS == 0 {
                    kept += tree.keys() as f64 / RECORDS as f64;
                    samples += 1.0;
                }
            }
            let (model, situation) = (modelled(layout, fanout), situation(RECORDS, skew));
            let demand = model.demand(Operation::Update, &situation);
            let each = |keys: usize| keys as f64 / tree.changes as f64;
            let written = each(tree.flushed + tree.written);
            let of_model = demand.bytes(Access::Write) / RECORD_BYTES;
            let (read, read_of_model) = (each(tree.read), demand.bytes(Access::Read) / RECORD_BYTES);
            let (space, space_of_model) = (kept / samples, model.space_amplification(&situation));
            println!(
                "{layout} F {fanout}, Zipf {skew}: written {of_model:.2}, simulated {written:.2}; read \
                 {read_of_model:.2}, simulated {read:.2}; space {space_of_model:.2}, simulated {space:.2}; {:?}",
                tree.level_keys()
            );
            let near = |one: f64, other: f64, within: f64| (one / other - 1.0).abs() < within;
            assert!(near(of_model, written, 0.15) && near(read_of_model, read, 0.2), "{model:?}");
            assert!(near(space_of_model, space, 0.2), "{model:?}");
        }
    }
}
