//! The parameters of an LSM tree that a mix of operations wants on a drive.

use super::LsmTree;
use crate::IoModel;
use crate::dictionary::{Cost, Demand, Design, Operation, Situation, price};

/// Values to try for each parameter, in the order of what they cost beside throughput: of trees that are
/// nearly equally fast, the first wins. An empty list keeps the tree's own value.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SearchSpace {
    /// F.
    pub fanouts: Vec<f64>,
    /// T, in bytes, while T·C stays what it is: level 0 and level 1 have fewer, larger files. A memtable is
    /// as large and takes memory from the cache.
    pub file_bytes: Vec<f64>,
    /// T·C, in bytes: level 1, and level 0 when it is compacted. C follows, and queries find half as many
    /// files in level 0 on average.
    pub level_one_bytes: Vec<f64>,
    /// Compactions at the same time.
    pub compaction_threads: Vec<f64>,
}

impl SearchSpace {
    /// The values that RocksDB's users choose from: F from 2 to 32, T from 8 MiB to 256 MiB, level 1 from 256
    /// MiB to 2 GiB, and up to `threads_max` compactions.
    pub fn usual(threads_max: u32) -> Self {
        let powers = |from: u32, until: u32| (from..=until).map(|power| f64::from(1u32 << power)).collect();
        Self {
            fanouts: vec![2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0, 12.0, 16.0, 20.0, 24.0, 32.0],
            file_bytes: powers(23, 28),
            level_one_bytes: powers(28, 31),
            compaction_threads: (1..=threads_max.max(1)).map(f64::from).collect(),
        }
    }

    /// All trees of the space that differ from `base` in its parameters alone.
    pub fn trees(&self, base: LsmTree) -> Vec<LsmTree> {
        let or_own = |values: &[f64], own: f64| if values.is_empty() { vec![own] } else { values.to_vec() };
        let mut trees = vec![base];
        let mut vary = |values: Vec<f64>, set: fn(&mut LsmTree, f64)| {
            trees = values
                .iter()
                .flat_map(|value| {
                    trees.iter().map(|tree| {
                        let mut tree = *tree;
                        set(&mut tree, *value);
                        tree
                    })
                })
                .collect();
        };
        vary(or_own(&self.fanouts, base.fanout), |tree, value| tree.fanout = value);
        vary(self.level_one_bytes_or(base), |tree, bytes| set_files(tree, tree.file_bytes, bytes));
        vary(or_own(&self.file_bytes, base.file_bytes), |tree, bytes| {
            set_files(tree, bytes, tree.level_one_bytes());
        });
        vary(or_own(&self.compaction_threads, base.compaction_threads), |tree, value| {
            tree.compaction_threads = value;
        });
        let is_usual = |files: f64| (LEVEL_ONE_FILES_MIN..=LEVEL_ONE_FILES_MAX).contains(&files);
        let keeps_files = |tree: &LsmTree| tree.level_one_files == base.level_one_files;
        trees.retain(|tree| keeps_files(tree) || is_usual(tree.level_one_files));
        trees
    }

    fn level_one_bytes_or(&self, base: LsmTree) -> Vec<f64> {
        if self.level_one_bytes.is_empty() {
            vec![base.level_one_bytes()]
        } else {
            self.level_one_bytes.clone()
        }
    }
}

/// Fewer files of level 0 would be merged one by one; more come near RocksDB's threshold for stopping writers
/// (36). A tree that has another C already keeps it.
const LEVEL_ONE_FILES_MIN: f64 = 2.0;
/// See [`LEVEL_ONE_FILES_MIN`].
const LEVEL_ONE_FILES_MAX: f64 = 32.0;

/// Sets T and T·C, and what follows; a tree that is asked for nothing new stays as it is.
fn set_files(tree: &mut LsmTree, file_bytes: f64, level_one_bytes: f64) {
    if file_bytes == tree.file_bytes && level_one_bytes == tree.level_one_bytes() {
        return;
    }
    tree.file_bytes = file_bytes;
    tree.level_one_files = (level_one_bytes / file_bytes).max(1.0);
    tree.level_zero_files = tree.level_one_files / 2.0;
}

/// A tree and what a mix of operations costs with it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Optimum {
    /// The tree.
    pub tree: LsmTree,
    /// Cost of the mean operation.
    pub cost: Cost,
}

/// Trees within this share of the best throughput count as equally fast.
const TOLERANCE: f64 = 0.002;

/// The tree with the most operations per second for a mix of operations with their shares; of nearly equal
/// ones the first. `None` if there are no trees or the model does not know a kind of access.
pub fn best_of(
    trees: &[LsmTree],
    mix: &[(f64, Operation)],
    situation: &Situation,
    io: &dyn IoModel,
) -> Option<Optimum> {
    let optimum = |tree: &LsmTree| {
        let parts = mix.iter().map(|(share, operation)| (*share, tree.demand(*operation, situation)));
        let cost = price(&Demand::mix(parts), io, situation)?;
        Some(Optimum { tree: *tree, cost })
    };
    let optima: Vec<Optimum> = trees.iter().filter_map(optimum).collect();
    let fastest = optima.iter().map(|optimum| optimum.cost.operations_per_second).fold(0.0, f64::max);
    optima.into_iter().find(|optimum| optimum.cost.operations_per_second >= (1.0 - TOLERANCE) * fastest)
}

#[cfg(test)]
mod tests {
    use super::super::Layout;
    use super::*;
    use crate::dictionary::Records;
    use crate::{Affine, AffineCosts, FitOptions, Models, Sample, Workload, fit};

    fn situation() -> Situation {
        Situation::new(Records { count: 1e8, key_bytes: 16.0, value_bytes: 1008.0 }, 4e9, 16.0)
    }

    fn affine(setup: f64) -> Affine {
        let costs = AffineCosts { setup_seconds: setup, transfer_seconds_per_byte: 1e-9 };
        Affine::from_costs(4096.0, costs, costs)
    }

    fn mix(read_share: f64) -> [(f64, Operation); 2] {
        [(read_share, Operation::PointHit), (1.0 - read_share, Operation::Update)]
    }

    /// The best tree of the usual space in one parameter, with the others as they are.
    fn best(
        keep: fn(SearchSpace) -> SearchSpace,
        base: LsmTree,
        read_share: f64,
        io: &dyn IoModel,
    ) -> Optimum {
        let trees = keep(SearchSpace::usual(32)).trees(base);
        best_of(&trees, &mix(read_share), &situation(), io).unwrap()
    }

    fn fanouts(space: SearchSpace) -> SearchSpace {
        SearchSpace { fanouts: space.fanouts, ..SearchSpace::default() }
    }

    fn file_sizes(space: SearchSpace) -> SearchSpace {
        SearchSpace { file_bytes: space.file_bytes, ..SearchSpace::default() }
    }

    fn threads(space: SearchSpace) -> SearchSpace {
        SearchSpace { compaction_threads: space.compaction_threads, ..SearchSpace::default() }
    }

    #[test]
    fn readers_want_larger_fanouts_than_writers() {
        let base = LsmTree::new(Layout::Leveled);
        let fanout = |read_share| best(fanouts, base, read_share, &affine(1e-4)).tree.fanout;
        let (writers, readers) = (fanout(0.0), fanout(0.99));
        println!("fanout of writers {writers}, of readers {readers}");
        assert!(writers < readers);
    }

    #[test]
    fn files_grow_until_they_outweigh_the_setup_of_the_drive() {
        let base = LsmTree { level_one_files: 16.0, ..LsmTree::new(Layout::Leveled) };
        let bytes = |setup| best(file_sizes, base, 0.0, &affine(setup)).tree.file_bytes;
        let (fast, slow) = (bytes(1e-5), bytes(1e-1));
        println!("file size with 10 µs of setup {fast:.1e}, with 100 ms {slow:.1e}");
        // A file is worth its setup from the half-bandwidth size on.
        assert!(fast < slow && slow >= 0.1 / 1e-9);
    }

    /// A larger file is a file less in level 0 for readers, and memory that the cache does not get.
    #[test]
    fn readers_want_fewer_files_in_level_0_than_writers() {
        let base = LsmTree { level_one_files: 16.0, ..LsmTree::new(Layout::Leveled) };
        let trees = file_sizes(SearchSpace::usual(1)).trees(base);
        // A cache would hold level 0.
        let situation = Situation { cache_bytes: 0.0, ..situation() };
        let files = |read_share| {
            best_of(&trees, &mix(read_share), &situation, &affine(1e-4)).unwrap().tree.level_one_files
        };
        let (writers, readers) = (files(0.0), files(0.99));
        println!("C of writers {writers}, of readers {readers}");
        assert!(readers < writers);
    }

    /// A drive with one request at a time has no use for more threads, one with many as far as the tree has.
    #[test]
    fn threads_are_as_many_as_tree_and_drive_can_use() {
        let models = fitted();
        let used = |io: &dyn IoModel, fanout| {
            let base = LsmTree { fanout, subcompactions: 32.0, ..LsmTree::new(Layout::Leveled) };
            best(threads, base, 0.0, io).tree.compaction_threads
        };
        assert_eq!(used(&affine(1e-4), 8.0), 1.0);
        let mqssd = models.iter().find(|model| model.name() == crate::ModelName::Mqssd).unwrap();
        let (many_levels, few_levels) = (used(mqssd, 2.0), used(mqssd, 32.0));
        println!("threads: F 2 {many_levels}, F 32 {few_levels}");
        assert!(few_levels > 1.0 && few_levels < many_levels && many_levels < 32.0);
    }

    /// Samples of a drive whose costs fall with the concurrency, up to 16 at a time.
    fn fitted() -> Models {
        let mut samples = Vec::new();
        for read_share in [0.0, 1.0] {
            for power in 0..6 {
                let concurrency = f64::from(1 << power);
                for request_bytes in [4096.0, 65_536.0, 1_048_576.0, 16_777_216.0] {
                    let gain = concurrency.min(16.0);
                    let setup = 1e-4 / gain;
                    let transfer = request_bytes * 2e-9 / gain;
                    samples.push(Sample {
                        experiment: "synthetic".into(),
                        repeat: 0,
                        workload: Workload { read_share, request_bytes, random_share: 1.0, concurrency },
                        bytes_per_second: request_bytes / (setup + transfer),
                    });
                }
            }
        }
        fit(&samples, &FitOptions { resamples: 20, ..FitOptions::default() }).unwrap()
    }

    #[test]
    fn every_model_of_a_drive_has_an_optimum_that_no_other_tree_beats() {
        let situation = situation();
        let mix = [
            (0.5, Operation::PointHit),
            (0.2, Operation::Insert),
            (0.2, Operation::Update),
            (0.1, Operation::Range { bytes: 1e5 }),
        ];
        let models = fitted();
        assert_eq!(models.iter().count(), 4);
        for model in models.iter() {
            for layout in Layout::ALL {
                let base = LsmTree { filter_bits_per_key: 10.0, ..LsmTree::new(layout) };
                let trees = SearchSpace::usual(8).trees(base);
                assert_eq!(trees.len(), 12 * 17 * 8);
                let found = best_of(&trees, &mix, &situation, model).unwrap();
                println!(
                    "{:>6} {layout}: F {} T {:.0} MiB C {} threads {}: {:.0} op/s",
                    model.name(),
                    found.tree.fanout,
                    found.tree.file_bytes / 1_048_576.0,
                    found.tree.level_one_files,
                    found.tree.compaction_threads,
                    found.cost.operations_per_second
                );
                for tree in trees.iter().step_by(37) {
                    let other = best_of(&[*tree], &mix, &situation, model).unwrap().cost;
                    assert!(found.cost.operations_per_second >= 0.997 * other.operations_per_second);
                }
            }
        }
    }

    #[test]
    fn an_empty_space_keeps_the_tree() {
        let base = LsmTree { fanout: 7.0, ..LsmTree::new(Layout::Tiered) };
        assert_eq!(SearchSpace::default().trees(base), [base]);
        assert_eq!(best_of(&[], &mix(0.5), &situation(), &affine(1e-4)), None);
    }
}
