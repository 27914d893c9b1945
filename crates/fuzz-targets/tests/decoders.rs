//! Every decoder with the corpus and with mutations of it, as many as `FLASHGRAIN_FUZZ_INPUTS` says per
//! target (20,000), from the seed `FLASHGRAIN_SEED` (1).
#![expect(clippy::unwrap_used, reason = "helpers of tests fail like tests")]

use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::{env, fs};

use flashgrain_fuzz_targets::mutate::mutate;
use flashgrain_fuzz_targets::{TARGETS, Target, corpus, run};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;

const INPUTS: u64 = 20_000;

fn setting(name: &str, otherwise: u64) -> u64 {
    env::var(name)
        .map_or(otherwise, |text| text.parse().unwrap_or_else(|_| panic!("{name}: a number, not `{text}`")))
}

/// Keeps an input that makes a target fail where the fuzzer looks for such.
fn try_one(target: &Target, name: &str, input: &[u8]) {
    if catch_unwind(AssertUnwindSafe(|| run(target.name, input))).is_err() {
        let path = env::temp_dir().join(format!("flashgrain-{}-{}", target.name, name.replace(' ', "-")));
        fs::File::create(&path).unwrap().write_all(input).unwrap();
        panic!("{}: {name} failed, see above; it is in {}", target.name, path.display());
    }
}

/// Most of a profile is parsed as JSON before anything of ours sees it.
fn inputs_of(target: &Target) -> u64 {
    let all = setting("FLASHGRAIN_FUZZ_INPUTS", INPUTS);
    if target.input_bytes_max > 64 << 10 { all / 20 } else { all }
}

fn replay_and_mutate(targets: &[Target]) {
    let seed = setting("FLASHGRAIN_SEED", 1);
    for target in targets {
        let inputs =
            corpus(target.name).unwrap_or_else(|error| panic!("the corpus of {}: {error}", target.name));
        assert!(!inputs.is_empty(), "{} has a corpus", target.name);
        inputs.iter().for_each(|(name, input)| try_one(target, name, input));
        let mut random = Pcg64::seed_from_u64(seed);
        for number in 0..inputs_of(target) {
            let [one, other] = [(); 2].map(|()| &inputs[random.random_range(0..inputs.len())].1);
            let input = mutate(&mut random, one, other, target.input_bytes_max);
            try_one(target, &format!("seed {seed} input {number}"), &input);
        }
    }
}

#[test]
fn decoders_of_pages_take_any_bytes() {
    replay_and_mutate(part(&["image", "image_in_blocks", "node", "part", "overflow", "map"]).as_slice());
}

#[test]
fn decoders_of_sectors_and_the_log_take_any_bytes() {
    let names = [
        "superblock",
        "label",
        "durable_mark",
        "log_block",
        "log_stream",
        "log_record",
        "reference",
        "catalog_entry",
    ];
    replay_and_mutate(part(&names).as_slice());
}

#[test]
fn decoders_of_files_take_any_bytes() {
    let names = [
        "profile",
        "samples_csv",
        "drive_toml",
        "mqsim_drive",
        "mqsim_workload",
        "mqsim_trace",
        "workload_toml",
        "observed",
        "trace",
    ];
    replay_and_mutate(part(&names).as_slice());
}

#[test]
fn decoders_of_sqlite_s_files_take_any_bytes() {
    replay_and_mutate(part(&["volume_directory", "log_statement"]).as_slice());
}

fn part(names: &[&str]) -> Vec<Target> {
    let found: Vec<_> = TARGETS.iter().filter(|target| names.contains(&target.name)).copied().collect();
    assert_eq!(found.len(), names.len());
    found
}

#[test]
fn every_target_is_in_a_test_and_has_a_binary() {
    assert_eq!(TARGETS.len(), 25, "a new target goes into one of the tests above, and into fuzz/");
    for target in TARGETS {
        let manifest = include_str!("../../../fuzz/Cargo.toml");
        assert!(
            manifest.contains(&format!("name = \"{}\"", target.name)),
            "fuzz/Cargo.toml lacks {}",
            target.name
        );
    }
}
