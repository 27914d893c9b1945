//! Drives that grow while checkpoints are made.

use std::sync::atomic::AtomicBool;

use flashgrain_simtest::campaign::{Crash, Extent, run};
use flashgrain_simtest::world::Habits;

#[test]
fn regression_a_store_that_grew_during_a_checkpoint_opens_whatever_of_its_length_is_durable() {
    let habits = Habits {
        grows: 1.0,
        overflow: 0.5,
        keys: 150,
        steps: 100,
        tasks: 6,
        checkpoint: 0.3,
        backup: 0.0,
        ..Habits::default()
    };
    let crash = Crash { habits: Some(habits), only_while_length_uncertain: true, ..Crash::default() };
    let extent = Extent { seed: 0, cases: 6_000, jobs: 2 };
    let report = run(&crash, &extent, &AtomicBool::new(false), &|_| {});
    assert_eq!(report.failure, None, "{}", report.counts);
}
