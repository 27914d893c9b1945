//! The profiler learns the configured parameters of random drives, with a profile as users make it: all
//! experiments within the default budget. `FLASHGRAIN_RANDOM_DRIVES=200 cargo test --release -p
//! flashgrain_ssdsim --test all random_drives -- --nocapture` tries two hundred; without it there are few.
//! `FLASHGRAIN_RANDOM_SEED=n` begins with another one.

use flashgrain_model::segmented_fit;
use flashgrain_profile::load::Stop;
use flashgrain_ssdsim::{SimConfig, SimDevice, random_drive};

use crate::common::{as_a_user, at_places, profile, random_reads};
use crate::score::{Hidden, Row, Verdict, parallel_rows};

/// Drives in an ordinary run of the tests.
const FEW: u64 = 6;

/// Variable that asks for every value, not only for wrong ones.
const SHOW_ALL: &str = "FLASHGRAIN_RANDOM_ROWS";

/// Share of the values that may be left open.
const UNDETERMINED_PERCENT_MAX: u64 = 55;

fn from_environment(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).map_or(otherwise, |text| text.parse().unwrap())
}

/// Reads of a round of the reference.
const READS_OF_A_ROUND: u64 = 4000;

/// Streams that saturate whatever can be saturated: four times as many as the profile tries.
const SATURATING_STREAMS: u32 = 256;

/// P by the regression of the dictionaries paper §4.1 through rounds of many reads, `None` where these show
/// no knee; and the saturation, bytes per second, as more streams than the profile tries reach it. The
/// plateau of the regression is no reference for it: where rates bend gradually, it lies below what many
/// streams reach, and moves with how often each number of streams was tried.
fn reference(drive: &SimConfig, seed: u64) -> (Option<f64>, f64) {
    let device = SimDevice::new(drive, "the reference", seed).unwrap();
    let round = |streams: u32| {
        let stop = Stop { after_requests: Some(READS_OF_A_ROUND), ..Stop::default() };
        // Other places in each round: those of the round before would find their mappings in the cache, and
        // the rate would rise with the rounds instead of the streams.
        let places = u64::from(streams);
        (
            f64::from(streams),
            at_places(&device, random_reads(64 << 10, streams), stop, places).bytes_per_second(),
        )
    };
    let fit = segmented_fit(&[1, 2, 3, 4, 5, 6, 7, 8, 16, 32, 64].map(round), 100, seed).unwrap();
    (fit.knee.value(), round(SATURATING_STREAMS).1)
}

/// Everything about one drive.
fn rows(seed: u64) -> (SimConfig, Vec<Row>) {
    let drive = random_drive(seed);
    let found = profile(&drive, &as_a_user(&drive, seed)).profile;
    if std::env::var_os(SHOW_ALL).is_some() {
        println!("seed {seed}: {:#?} {:?}", found.budget.experiments, found.budget.left_out);
    }
    let learned = found.learned;
    let mut rows = Hidden::of(&drive).rows(&learned);
    let (parallelism, saturation) = reference(&drive, seed + 1000);
    rows.extend(parallel_rows(parallelism, saturation, &learned));
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
        let verbose = std::env::var_os(SHOW_ALL).is_some();
        for row in rows {
            if verbose {
                println!("seed {seed}{}\n    {:?}", row.text(), row.learned.estimate);
            }
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
    let all = right + wrong + undetermined;
    assert!(100 * undetermined <= UNDETERMINED_PERCENT_MAX * all, "{undetermined} of {all} are undetermined");
}
