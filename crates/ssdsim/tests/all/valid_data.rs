//! Lasting writes by the volume of valid data: the term for garbage collection is kept where a drive
//! collects, and dropped where it does not.

use flashgrain_model::Collection;
use flashgrain_profile::schema::Sustain;
use flashgrain_profile::{Config, ExperimentName, SustainLimits};
use flashgrain_ssdsim::SimConfig;
use flashgrain_ssdsim::config::MediumConfig;

use crate::common::profile;
use crate::host::{NAND, XPOINT};

const CAPACITY_BYTES: u64 = 64 << 20;

/// Steady states with 35 % of the drive to all of it valid.
fn sustained(drive: &SimConfig, round_s: f64) -> Sustain {
    let config = Config {
        experiments: vec![ExperimentName::Sustain],
        region_bytes: Some(drive.capacity_bytes),
        budget_s: 5.0,
        sustain: SustainLimits { seconds: 100.0, write_bytes: 4 << 30, round_s, ..SustainLimits::default() },
        sustain_valid_shares: vec![0.8, 0.35, 0.5, 0.65, 0.9],
        resamples: 20,
        verify: false,
        ..Config::default()
    };
    profile(drive, &config).profile.measurements.sustain.unwrap()
}

fn drive(text: &str) -> SimConfig {
    SimConfig { capacity_bytes: CAPACITY_BYTES, ..SimConfig::from_toml(text, "drive").unwrap() }
}

#[test]
fn a_drive_that_collects_garbage_has_the_term_with_its_room() {
    let mut flash = drive(NAND);
    let MediumConfig::Nand(nand) = &mut flash.medium else { panic!() };
    nand.over_provisioning = 0.15;
    let found = sustained(&flash, 0.3);
    assert_eq!(found.by_valid_data.len(), 6);
    assert!(found.by_valid_data.is_sorted_by(|few, many| few.valid_bytes < many.valid_bytes));
    let Some(Collection::Kept { room_bytes, left_out_error, left_out_error_without, .. }) = found.collection
    else {
        panic!("{:?}", found.collection)
    };
    let room = room_bytes / CAPACITY_BYTES as f64;
    assert!((1.0..1.3).contains(&room), "{room} of the capacity");
    assert!(
        left_out_error < 0.15 && left_out_error_without > 0.4,
        "{left_out_error} {left_out_error_without}"
    );
    let whole = found.sustained_bytes_per_second.value().unwrap();
    let predicted = found.collection.unwrap().bytes_per_second(CAPACITY_BYTES as f64).unwrap();
    assert!((predicted / whole - 1.0).abs() < 0.25, "{predicted}, {whole}");
}

#[test]
fn a_drive_that_writes_in_place_has_none() {
    let found = sustained(&drive(XPOINT), 0.02);
    assert_eq!(found.by_valid_data.len(), 6);
    let Some(Collection::None { why }) = found.collection else { panic!("{:?}", found.collection) };
    assert!(why.contains("left-out steady states"), "{why}");
}
