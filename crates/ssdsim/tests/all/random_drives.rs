//! What was configured is what is learned, on random drives. `FLASHGRAIN_RANDOM_DRIVES=200 cargo test --release -p flashgrain_ssdsim --test
//! all random_drives -- --nocapture` tries two hundred; without it there are few. `FLASHGRAIN_RANDOM_SEED=n` begins with another one.

use flashgrain_profile::{Config, ExperimentName};
use flashgrain_ssdsim::config::MediumConfig;
use flashgrain_ssdsim::random_drive;

use crate::common::profile;
use crate::score::{Hidden, Verdict};

/// Drives in an ordinary run of the tests.
const FEW: u64 = 12;

fn from_environment(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).map_or(otherwise, |text| text.parse().unwrap())
}

/// A disk needs milliseconds where flash needs microseconds.
fn budget_s(medium: &MediumConfig) -> f64 {
    match medium {
        MediumConfig::Disk(_) => 1200.0,
        _ => 20.0,
    }
}

#[test]
fn random_drives_are_learned_as_they_are_configured() {
    let first = from_environment("FLASHGRAIN_RANDOM_SEED", 0);
    let drives = from_environment("FLASHGRAIN_RANDOM_DRIVES", FEW);
    let (mut right, mut wrong, mut undetermined) = (0, 0, 0);
    let mut confidently_wrong = Vec::new();
    for seed in first..first + drives {
        let drive = random_drive(seed);
        let config = Config {
            experiments: vec![ExperimentName::RequestSize, ExperimentName::Location],
            budget_s: budget_s(&drive.medium),
            write_bytes: 512 << 20,
            seed,
            ..Config::default()
        };
        let learned = profile(&drive, &config).profile.learned;
        for row in Hidden::of(&drive).rows(&learned) {
            match row.verdict {
                Verdict::Right => right += 1,
                Verdict::Undetermined => undetermined += 1,
                Verdict::Wrong => {
                    wrong += 1;
                    println!(
                        "seed {seed} ({}):\n{}\n  {}",
                        drive.about.summary,
                        row.text(),
                        row.learned.evidence
                    );
                }
            }
            if row.confidently_wrong() {
                confidently_wrong.push((seed, row.parameter));
            }
        }
    }
    println!("{drives} drives: {right} right, {wrong} wrong, {undetermined} undetermined");
    assert!(confidently_wrong.is_empty(), "{confidently_wrong:?}");
    assert!(20 * right >= 19 * (right + wrong), "{wrong} of {} reported values are wrong", right + wrong);
    // A profiler that never says anything is never wrong.
    assert!(right >= 2 * drives, "{right} right of {drives} drives");
}
