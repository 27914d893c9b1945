//! Caches and checkpoints of B-trees whose records are used by Zipf's law.

use flashgrain_cost::Access;
use flashgrain_cost::dictionary::{BTree, Design, Operation, Records, Situation, Skew};

use crate::simulated::b_tree::{KEY_BYTES, Run, run};

#[test]
fn a_b_tree_reads_and_writes_what_a_simulated_one_does() {
    const RECORDS: usize = 20_000;
    for (page_bytes, value_bytes) in [(4096.0, 100.0), (4096.0, 3000.0), (16_384.0, 900.0)] {
        for skew in [0.0, 0.99, 1.2] {
            for cached in [0.05, 0.4] {
                let records = Records { count: RECORDS as f64, key_bytes: KEY_BYTES, value_bytes };
                let cache_bytes = cached * records.total_bytes();
                let checkpoint = RECORDS / 5;
                let of_run = Run {
                    records: RECORDS,
                    value_bytes,
                    page_bytes,
                    cache_bytes,
                    skew,
                    checkpoint,
                    operations: 2 * RECORDS,
                };
                let situation = Situation {
                    skew: if skew == 0.0 { Skew::Uniform } else { Skew::Zipf { exponent: skew } },
                    changes_per_checkpoint: Some(checkpoint as f64),
                    ..Situation::new(records, cache_bytes, 1.0)
                };
                let demand = |operation| BTree::new(page_bytes).demand(operation, &situation);
                let (hit, update) = (demand(Operation::PointHit), demand(Operation::Update));
                let (look_ups, updates) = (run(of_run, false), run(of_run, true));
                let name = format!("{page_bytes}, {value_bytes}, Zipf {skew}, {cached} cached");
                let (reads, writes) = (hit.requests(Access::Read), update.requests(Access::Write));
                println!(
                    "{name}: reads {reads:.3}, simulated {:.3}; writes {writes:.3}, simulated {:.3}",
                    look_ups.reads, updates.writes
                );
                assert!((reads - look_ups.reads).abs() < 0.1 * look_ups.reads + 0.05, "{name}");
                assert!((writes - updates.writes).abs() < 0.15 * updates.writes + 0.05, "{name}");
            }
        }
    }
}
