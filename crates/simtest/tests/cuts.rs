//! Stores that are compacted, and drives that become shorter, while commits and checkpoints go on.

use std::sync::atomic::AtomicBool;

use flashgrain::testing::Bug;
use flashgrain_simtest::campaign::{Crash, Extent, Hunt, run};

#[test]
fn whatever_a_power_cut_leaves_of_a_drive_that_becomes_shorter_is_recovered() {
    let extent = Extent { seed: 0, cases: 30_000, jobs: 2 };
    let report = run(&Crash::about_cuts(), &extent, &AtomicBool::new(false), &|_| {});
    println!("{}; {} seeds", report.counts, report.seeds);
    assert_eq!(report.failure, None, "{}", report.counts);
    assert!(report.counts.of("times cut") > report.seeds, "{}", report.counts);
}

/// What the campaign cannot find, it does not exclude.
#[test]
fn cuts_at_the_wrong_moment_are_found() {
    let trial = Hunt::default().run(Bug::CutBeforeSuperblock);
    println!("{trial}");
    assert!(trial.caught.is_some(), "{trial}");
}
