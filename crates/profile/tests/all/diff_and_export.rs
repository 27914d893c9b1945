//! Comparing profiles, and saying them in other software's words.

use std::sync::atomic::AtomicBool;

use crate::common::{Character, TestDrive};
use flashgrain_model::Estimate;
use flashgrain_profile::schema::{Cap, Sustain};
use flashgrain_profile::{Config, DeviceProfile, ExperimentName, Silent, Target, diff, export, run};

fn profile(character: Character, seed: u64) -> DeviceProfile {
    let drive = TestDrive::new(Character { capacity_bytes: 64 << 20, ..character });
    let config = Config {
        budget_s: 6.0,
        write_bytes: 600 << 20,
        experiments: vec![
            ExperimentName::Depth,
            ExperimentName::Mix,
            ExperimentName::Size,
            ExperimentName::Sequential,
        ],
        resamples: 20,
        verify: false,
        seed,
        ..Config::default()
    };
    run(&Target::new(&drive), &config, &mut Silent, &AtomicBool::new(false)).unwrap().profile
}

#[test]
fn the_same_drive_profiled_twice_shows_no_change_of_rate() {
    let noisy = Character { noise: 0.3, ..Character::default() };
    let found = diff::diff(&profile(noisy.clone(), 1), &profile(noisy, 2)).unwrap();
    assert!(found.compared > 50, "{}", found.compared);
    assert!(found.rates.len() <= 1, "{:?}", found.rates);
    let names: Vec<&str> = found.provenance.iter().map(|change| change.name.as_str()).collect();
    assert!(names.contains(&"seed") && !names.contains(&"identity.target"), "{names:?}");
}

#[test]
fn a_slower_drive_shows_in_rates_and_in_what_was_learned() {
    let slow = Character { read_setup_s: 160e-6, ..Character::default() };
    let found = diff::diff(&profile(Character::default(), 1), &profile(slow, 1)).unwrap();
    assert!(found.rates.len() > 20, "{}", found.rates.len());
    let first = &found.rates[0];
    assert!(first.ratio < 0.7 && first.after_bytes_per_second < first.before_bytes_per_second, "{first:?}");
    assert!(found.rates.windows(2).all(|pair| pair[0].ratio.ln().abs() >= pair[1].ratio.ln().abs()));
    let names: Vec<&str> = found.learned.iter().map(|change| change.name.as_str()).collect();
    assert!(names.contains(&"half_bandwidth_bytes"), "{names:?}");
}

#[test]
fn a_cap_that_came_or_went_is_among_the_circumstances() {
    let before = profile(Character::default(), 1);
    assert!(before.learned.cap.is_none(), "eight servers are no cap: {:?}", before.learned.cap);
    let mut after = before.clone();
    after.learned.cap = Some(Cap {
        requests_per_second: Some(3000.0),
        bytes_per_second: None,
        credits: None,
        evidence: String::new(),
    });
    let found = diff::diff(&before, &after).unwrap();
    let change = found.provenance.iter().find(|change| change.name == "cap before the drive").unwrap();
    assert_eq!((change.before.as_deref(), change.after.as_deref()), (None, Some("3000 requests/s")));
}

#[test]
fn exports_carry_the_measured_rates() {
    let profile = profile(Character::default(), 1);
    let yaml = export::iotune_yaml(&profile, "/data").unwrap();
    let lines: Vec<&str> = yaml.lines().collect();
    assert_eq!(lines[0], "disks:");
    assert_eq!(lines[1], "  - mountpoint: /data");
    let number = |key: &str| -> f64 {
        let line = lines.iter().find(|line| line.trim_start().starts_with(key)).unwrap();
        line.split(": ").nth(1).unwrap().parse().unwrap()
    };
    // Eight servers of 80 µs; a link of 2 GB/s.
    assert!((number("read_iops") / 1e5 - 1.0).abs() < 0.15, "{yaml}");
    assert!((number("read_bandwidth") / 2e9 - 1.0).abs() < 0.1, "{yaml}");
    assert!(number("write_iops") > number("read_iops"));

    let line = export::iocost_line(&profile, "259:0").unwrap();
    assert!(line.starts_with("259:0 ctrl=user model=linear rbps="), "{line}");
    let keys: Vec<&str> = line.split(' ').skip(3).filter_map(|pair| pair.split('=').next()).collect();
    assert_eq!(keys, ["rbps", "rseqiops", "rrandiops", "wbps", "wseqiops", "wrandiops"]);
    for wrong in ["", "nvme0n1", "259", "259:", "259:0 rbps=1"] {
        assert!(export::iocost_line(&profile, wrong).is_err(), "{wrong}");
    }
}

#[test]
fn exports_are_about_sustained_writes_where_these_are_known() {
    let mut profile = profile(Character::default(), 1);
    let written = |profile: &DeviceProfile| {
        let line = export::iocost_line(profile, "259:0").unwrap();
        let value = |key: &str| -> f64 {
            line.split(' ').find_map(|pair| pair.strip_prefix(key)).unwrap().parse().unwrap()
        };
        [value("wbps="), 4096.0 * value("wseqiops="), 4096.0 * value("wrandiops=")]
    };
    assert!(
        export::iotune_yaml(&profile, "/data").unwrap().contains("# writes: the rate did not fall within")
    );
    let bursts = written(&profile);
    profile.measurements.sustain = Some(Sustain {
        request_bytes: 4096,
        concurrency: 32,
        rounds: Vec::new(),
        steady: true,
        steady_from_round: Some(1),
        burst_bytes_per_second: bursts[0],
        sustained_bytes_per_second: Estimate::Determined { value: 1e8, low: 1e8, high: 1e8 },
        by_valid_data: Vec::new(),
        collection: None,
    });
    assert!(bursts.into_iter().all(|rate| rate > 1.1e8), "{bursts:?}");
    assert!(written(&profile).into_iter().all(|rate| rate <= 1.001e8), "{:?}", written(&profile));
    assert!(export::iotune_yaml(&profile, "/data").unwrap().contains("# writes: sustained"));
}

#[test]
fn an_export_without_its_measurements_says_what_to_run() {
    let mut profile = profile(Character::default(), 1);
    profile.measurements.sequential.clear();
    let error = export::iotune_yaml(&profile, "/data").unwrap_err().to_string();
    assert!(error.contains("sequential"), "{error}");
}
