//! Whatever an LSM tree's parameters are, its costs are numbers that make sense, and simulations end.

use flashgrain_cost::dictionary::{Design, Operation, Records, Situation, Skew, price};
use flashgrain_cost::lsm::{Layout, LsmTree};
use flashgrain_cost::{Access, AffineCosts};
use proptest::prelude::*;

use crate::lsm_simulation::{Candidate, ConcurrentRun, Movement, TreeShape, files_touched, run_concurrently};

fn layouts() -> impl Strategy<Value = Layout> {
    proptest::sample::select(Layout::ALL.to_vec())
}

fn trees() -> impl Strategy<Value = LsmTree> {
    let shape = (
        layouts(),
        prop_oneof![1.0..40.0f64, 1.0..1e6f64, Just(f64::INFINITY)],
        prop_oneof![1e3..1e6f64, 1e6..1e10f64],
        0.0..64.0f64,
        0.0..64.0f64,
        0usize..12,
    );
    let reads = (512.0..1e6f64, 0.0..24.0f64, 0.0..1e7f64, 0.0..200.0f64, 0.0..200.0f64);
    (shape, reads).prop_map(|(shape, reads)| {
        let (layout, fanout, file_bytes, level_one_files, level_zero_batch_files, levels_max) = shape;
        let (block_bytes, filter_bits_per_key, read_ahead_bytes, compaction_threads, subcompactions) = reads;
        LsmTree {
            fanout,
            file_bytes,
            level_one_files,
            level_zero_files: level_one_files / 2.0,
            level_zero_batch_files,
            levels_max,
            block_bytes,
            filter_bits_per_key,
            read_ahead_bytes,
            compaction_threads,
            subcompactions,
            ..LsmTree::new(layout)
        }
    })
}

fn situations() -> impl Strategy<Value = Situation> {
    let skew = prop_oneof![Just(Skew::Uniform), Just(Skew::Zipf { exponent: 0.99 })];
    let records = (1.0..1e11f64, 1.0..1e3f64, 0.0..1e6f64);
    (records, 0.0..1e12f64, 1.0..300.0f64, skew).prop_map(|(records, cache_bytes, clients, skew)| {
        let (count, key_bytes, value_bytes) = records;
        let records = Records { count, key_bytes, value_bytes };
        Situation { skew, ..Situation::new(records, cache_bytes, clients) }
    })
}

const OPERATIONS: [Operation; 6] = [
    Operation::PointHit,
    Operation::PointMiss,
    Operation::Insert,
    Operation::Update,
    Operation::Delete,
    Operation::Range { bytes: 1e5 },
];

proptest! {
    #[test]
    fn every_tree_has_costs_that_make_sense(tree in trees(), situation in situations()) {
        let drive = AffineCosts { setup_seconds: 1e-4, transfer_seconds_per_byte: 1e-9 };
        for operation in OPERATIONS {
            let demand = tree.demand(operation, &situation);
            for transfer in &demand.transfers {
                prop_assert!(transfer.requests.is_finite() && transfer.requests > 0.0, "{transfer:?}");
                prop_assert!(transfer.bytes_each.is_finite() && transfer.bytes_each > 0.0, "{transfer:?}");
                prop_assert!(transfer.concurrency.is_finite() && transfer.concurrency >= 1.0, "{transfer:?}");
            }
            let cost = price(&demand, &drive, &situation).unwrap();
            prop_assert!(cost.device_seconds.is_finite() && cost.device_seconds >= 0.0, "{cost:?}");
            if let (Operation::Insert, Some(amplification)) = (operation, demand.write_amplification()) {
                // A flush and a step below it.
                prop_assert!(amplification >= 1.999, "{amplification}");
            }
        }
        let space = tree.space_amplification(&situation);
        prop_assert!(space.is_finite() && space >= 1.0, "{space}");
        let threads = tree.effective_threads(&situation);
        prop_assert!(threads >= 1.0 && threads <= tree.compaction_threads.max(1.0), "{threads}");
        let hit = tree.blocks_per_query(true, &situation);
        prop_assert!(hit.is_finite() && hit > 0.999, "the key is in one run: {hit}");
    }

    #[test]
    fn more_memory_and_more_filters_never_mean_more_reads(
        tree in trees(),
        situation in situations(),
        more in 1.0..10.0f64,
    ) {
        let larger = Situation { cache_bytes: more * situation.cache_bytes, ..situation };
        for operation in OPERATIONS {
            let reads = |situation| tree.demand(operation, situation).requests(Access::Read);
            prop_assert!(reads(&larger) <= reads(&situation) * (1.0 + 1e-9));
        }
        let filtered = LsmTree { filter_bits_per_key: tree.filter_bits_per_key + more, ..tree };
        for is_hit in [false, true] {
            let blocks = |tree: &LsmTree| tree.blocks_per_query(is_hit, &situation);
            prop_assert!(blocks(&filtered) <= blocks(&tree) * (1.0 + 1e-9));
        }
    }
}

/// Picks by numbers that are drawn before.
struct Drawn(Vec<usize>);

impl Movement for Drawn {
    fn pick(&mut self, _: usize, candidates: &[Candidate]) -> usize {
        self.0.rotate_left(1);
        self.0[0] % candidates.len()
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    /// Debug assertions in the tree check that merges keep every key and levels stay disjoint.
    #[test]
    fn simulations_end_under_any_policy_and_shape(
        fanout in prop_oneof![1.0..20.0f64, Just(f64::INFINITY)],
        level_one_files in 0usize..8,
        levels_max in 0usize..8,
        keys_per_file in 0usize..20,
        threads in 0usize..40,
        level_zero_files_max in 0usize..40,
        picks in proptest::collection::vec(any::<usize>(), 1..20),
        seed in any::<u64>(),
    ) {
        let shape = TreeShape { fanout, level_one_files, levels_max, keys_per_file, seed };
        let mut movement = Drawn(picks);
        if let Some(touched) = files_touched(&shape, 60, &mut movement) {
            prop_assert!(touched.mean >= 1.0);
        }
        let run = ConcurrentRun { shape, files: 60, threads, level_zero_files_max };
        let outcome = run_concurrently(&run, &mut movement, |threads| 1.0 / (1.0 + threads as f64));
        prop_assert!(outcome.time.is_finite() && outcome.write_amplification >= 1.0);
        // One compaction of level 0 may be split beside the others.
        prop_assert!(outcome.threads_mean <= 2.0 * threads.max(1) as f64);
    }
}
