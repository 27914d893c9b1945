//! The profiler, not told the truth, learns the affine table from the five disks (dictionaries paper §4.2,
//! Table 2).

use flashgrain_model::{Access, line_fit};
use flashgrain_profile::{Config, DeviceProfile, ExperimentName};
use flashgrain_ssdsim::preset;

use crate::common;

/// Seconds of setup, seconds per 4 KiB, their ratio and R².
#[derive(Clone, Copy)]
struct Row {
    setup_s: f64,
    transfer_s: f64,
    alpha: f64,
    r_squared: f64,
}

const fn row(setup_s: f64, transfer_s: f64, alpha: f64, r_squared: f64) -> Row {
    Row { setup_s, transfer_s, alpha, r_squared }
}

/// As the paper prints them.
const TABLE: [(&str, Row); 5] = [
    ("seagate-250gb-2006", row(0.015, 0.000_033, 0.0022, 0.9997)),
    ("hitachi-1tb-2009", row(0.013, 0.000_041, 0.0031, 0.9999)),
    ("wd-black-1tb-2011", row(0.012, 0.000_035, 0.0029, 0.9997)),
    ("seagate-2tb-2012", row(0.018, 0.000_021, 0.0012, 0.9994)),
    ("wd-red-6tb-2018", row(0.016, 0.000_026, 0.0017, 0.9972)),
];

/// Virtual time of one run, more than it needs.
const BUDGET_S: f64 = 3600.0;

/// Only the affine experiment, which reads the whole drive.
fn profile(name: &str, seed: u64) -> DeviceProfile {
    let config = Config {
        budget_s: BUDGET_S,
        write_bytes: 0,
        experiments: vec![ExperimentName::Size],
        tight_enough: 0.03,
        verify: false,
        seed,
        ..Config::default()
    };
    common::profile(&preset::find(name).unwrap(), &config).profile
}

/// The model's constants, and the R² of the line through time over size, as in the paper.
fn learned(profile: &DeviceProfile) -> Row {
    let affine = profile.models.as_ref().and_then(|models| models.affine.as_ref()).unwrap();
    let setup_s = affine.setup_seconds(Access::Read).unwrap();
    let transfer_s = affine.transfer_seconds_per_byte(Access::Read).unwrap() * 4096.0;
    let times: Vec<(f64, f64)> = profile
        .measurements
        .size
        .iter()
        .map(|point| (point.workload.request_bytes, point.workload.request_bytes / point.bytes_per_second))
        .collect();
    assert_eq!(times.len(), 13, "4 KiB to 16 MiB");
    let r_squared = line_fit(&times, 0, 1).unwrap().r_squared.unwrap();
    Row { setup_s, transfer_s, alpha: transfer_s / setup_s, r_squared }
}

/// More seeds: `FLASHGRAIN_SEEDS=20 cargo test --release -p flashgrain_ssdsim --test all affine --
/// --nocapture`.
#[test]
fn the_affine_table_is_learned_from_the_disks() {
    let seeds = std::env::var("FLASHGRAIN_SEEDS").map_or(1, |seeds| seeds.parse().unwrap());
    println!("{:<20} {:>19} {:>19} {:>19} {:>17}", "learned (paper)", "s, ms", "t, us/4 KiB", "alpha", "R2");
    for seed in 1..=seeds {
        for (name, paper) in TABLE {
            let got = learned(&profile(name, seed));
            println!(
                "{name:<20} {:>10.2} ({:>6.2}) {:>10.2} ({:>6.2}) {:>10.5} ({:.4}) {:>8.4} ({:.4})",
                got.setup_s * 1e3,
                paper.setup_s * 1e3,
                got.transfer_s * 1e6,
                paper.transfer_s * 1e6,
                got.alpha,
                paper.alpha,
                got.r_squared,
                paper.r_squared
            );
            for (what, got, paper) in [
                ("alpha", got.alpha, paper.alpha),
                ("s", got.setup_s, paper.setup_s),
                ("t", got.transfer_s, paper.transfer_s),
            ] {
                assert!(
                    (got / paper - 1.0).abs() < 0.05,
                    "{name}, seed {seed}: {what} is {got}, not {paper}"
                );
            }
            assert!(got.r_squared >= 0.99, "{name}, seed {seed}: R² is {}", got.r_squared);
        }
    }
}
