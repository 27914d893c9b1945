//! Logs that move to longer places while commits and checkpoints go on.

use std::sync::atomic::AtomicBool;

use flashgrain::testing::Bug;
use flashgrain_simtest::campaign::{Crash, Extent, Hunt, run};

#[test]
fn whatever_a_power_cut_leaves_of_a_log_that_moves_is_recovered() {
    let extent = Extent { seed: 0, cases: 60_000, jobs: 2 };
    let report = run(&Crash::about_moves(), &extent, &AtomicBool::new(false), &|_| {});
    println!("{}; {} seeds", report.counts, report.seeds);
    assert_eq!(report.failure, None, "{}", report.counts);
    assert!(report.counts.of("times the log moved") > report.seeds, "{}", report.counts);
}

#[test]
fn a_log_that_moves_into_growth_is_recovered_without_the_growth() {
    let extent = Extent { seed: 0, cases: 4_000, jobs: 2 };
    let report = run(&Crash::about_moves_into_growth(), &extent, &AtomicBool::new(false), &|_| {});
    println!("{}; {} seeds", report.counts, report.seeds);
    assert_eq!(report.failure, None, "{}", report.counts);
    assert!(report.counts.of("times the log moved") > report.seeds, "{}", report.counts);
}

/// A campaign that cannot find these bugs does not exclude them.
#[test]
fn moves_in_the_wrong_order_are_found() {
    for bug in [Bug::LogMovedBeforeSuperblock, Bug::OldRingFreedTooEarly, Bug::MovedOntoStaleCopies] {
        let trial = Hunt::default().run(bug);
        println!("{trial}");
        assert!(trial.caught.is_some(), "{trial}");
    }
}
