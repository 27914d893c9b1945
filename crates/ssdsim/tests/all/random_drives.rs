//! What was configured is what is learned, on random drives. `FLASHGRAIN_RANDOM_DRIVES=200 cargo test --release -p flashgrain_ssdsim --test
//! all random_drives -- --nocapture` tries two hundred; without it there are few. `FLASHGRAIN_RANDOM_SEED=n` begins with another one.

use flashgrain_model::segmented_fit;
use flashgrain_profile::load::Stop;
use flashgrain_profile::{Config, ExperimentName};
use flashgrain_ssdsim::config::MediumConfig;
use flashgrain_ssdsim::{SimConfig, SimDevice, random_drive};

use crate::common::{profile, random_reads, until};
use crate::score::{Hidden, Row, Verdict, parallel_rows};

/// Drives in an ordinary run of the tests.
const FEW: u64 = 12;

fn from_environment(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).map_or(otherwise, |text| text.parse().unwrap())
}

/// Reads of a round of the reference.
const READS_OF_A_ROUND: u64 = 4000;

/// A disk needs milliseconds where flash needs microseconds.
fn budget_s(medium: &MediumConfig) -> f64 {
    match medium {
        MediumConfig::Disk(_) => 1200.0,
        _ => 20.0,
    }
}

/// P and saturation, bytes per second, by the regression of the dictionaries paper §4.1 through rounds of many reads; `None` where these show
/// no knee.
fn reference(drive: &SimConfig, seed: u64) -> (Option<f64>, Option<f64>) {
    let device = SimDevice::new(drive, "the reference", seed).unwrap();
    let round = |streams: u32| {
        let stop = Stop { after_requests: Some(READS_OF_A_ROUND), ..Stop::default() };
        (f64::from(streams), until(&device, random_reads(64 << 10, streams), stop).bytes_per_second())
    };
    let fit = segmented_fit(&[1, 2, 3, 4, 5, 6, 7, 8, 16, 32, 64].map(round), 100, seed).unwrap();
    (fit.knee.value(), fit.plateau.value())
}

/// Everything about one drive.
fn rows(seed: u64) -> (SimConfig, Vec<Row>) {
    let drive = random_drive(seed);
    let budget_s = budget_s(&drive.medium);
    let config = Config {
        experiments: vec![ExperimentName::RequestSize, ExperimentName::Location],
        budget_s,
        write_bytes: 512 << 20,
        seed,
        ..Config::default()
    };
    let mut rows = Hidden::of(&drive).rows(&profile(&drive, &config).profile.learned);
    // Reads of the whole drive, as in the reference.
    let config = Config {
        experiments: vec![ExperimentName::Parallel],
        budget_s: budget_s / 10.0,
        write_bytes: 0,
        ..config
    };
    let (parallelism, saturation) = reference(&drive, seed + 1000);
    rows.extend(parallel_rows(parallelism, saturation, &profile(&drive, &config).profile.learned));
    (drive, rows)
}

#[test]
fn random_drives_are_learned_as_they_are_configured() {
    let first = from_environment("FLASHGRAIN_RANDOM_SEED", 0);
    let drives = from_environment("FLASHGRAIN_RANDOM_DRIVES", FEW);
    let (mut right, mut wrong, mut undetermined) = (0, 0, 0);
    let mut confidently_wrong = Vec::new();
    for seed in first..first + drives {
        let (drive, rows) = rows(seed);
        for row in rows {
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
