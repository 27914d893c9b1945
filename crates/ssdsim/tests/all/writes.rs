//! Writes that the cache takes and writes behind it are told apart.

use flashgrain_model::{Access, ModelName};
use flashgrain_profile::schema::{Regime, WriteRates};
use flashgrain_profile::{Config, DeviceProfile, ExperimentName};
use flashgrain_ssdsim::preset;

use crate::common;

/// `order` alone, as `profile --only order` runs it.
fn order(name: &str, budget_s: f64, write_bytes: u64) -> DeviceProfile {
    let config = Config {
        budget_s,
        write_bytes,
        holds_data: true,
        experiments: vec![ExperimentName::Order],
        resamples: 20,
        ..Config::default()
    };
    common::profile(&preset::find(name).unwrap(), &config).profile
}

/// Median relative error of fresh writes of a regime.
fn verified(profile: &DeviceProfile, regime: Regime) -> f64 {
    let is_of = |one: &&flashgrain_profile::schema::Verification| {
        one.regime == Some(regime) && one.workload.access() == Some(Access::Write)
    };
    let mut errors: Vec<f64> =
        profile.verification.iter().filter(is_of).map(|one| one.relative_error).collect();
    errors.sort_by(f64::total_cmp);
    errors[errors.len() / 2]
}

#[test]
fn a_small_cache_before_slow_flash_shows_and_both_rates_are_predicted() {
    let profile = order("intel-530", 60.0, 16 << 30);
    let measured = &profile.measurements;
    let WriteRates::Sustained { burst_bytes } = measured.write_rates() else { panic!("no cache was found") };
    let cache_bytes = measured.write_cache.as_ref().unwrap().capacity_bytes.estimate.value().unwrap();
    let true_bytes = f64::from(16 << 20);
    assert!((cache_bytes / true_bytes - 1.0).abs() < 0.1 && burst_bytes > cache_bytes, "{cache_bytes}");
    // 64 KiB x 8 for 10 s writes 99 MB/s.
    let writes = measured.order.iter().filter(|point| point.workload.access() == Some(Access::Write));
    for point in writes {
        assert_eq!(point.regime, Some(Regime::Sustained));
        let rate = point.bytes_per_second;
        assert!((90e6..110e6).contains(&rate), "{:?}: {rate}", point.workload);
    }
    let fastest = measured.burst.iter().map(|point| point.bytes_per_second).fold(0.0, f64::max);
    assert!(fastest > 400e6, "{fastest}");
    let rows = &profile.comparison.as_ref().unwrap().rows;
    let held_out =
        rows.iter().find(|row| row.model == ModelName::Mqssd && row.access == Some(Access::Write)).unwrap();
    assert!(held_out.median_relative_error < 0.15, "{}", held_out.median_relative_error);
    let [sustained, burst] = [Regime::Sustained, Regime::Burst].map(|regime| verified(&profile, regime));
    assert!(sustained < 0.05 && burst < 0.25, "{sustained} {burst}");
}

#[test]
fn a_drive_whose_rate_does_not_fall_has_no_regimes() {
    let profile = order("860evo", 10.0, 1 << 30);
    let measured = &profile.measurements;
    assert!(matches!(measured.write_rates(), WriteRates::NoFall { .. }), "{:?}", measured.write_cache);
    assert!(measured.burst.is_empty() && measured.order.iter().all(|point| point.regime.is_none()));
    assert!(profile.burst_models.is_none());
}

/// Mixed and pure writes of a drive, in about the time and the bytes that the default budget leaves them.
fn of_user(name: &str) -> DeviceProfile {
    let config = Config {
        budget_s: 40.0,
        write_bytes: 3 << 30,
        holds_data: true,
        experiments: vec![ExperimentName::Order, ExperimentName::Mix],
        resamples: 20,
        ..Config::default()
    };
    common::profile(&preset::find(name).unwrap(), &config).profile
}

/// A 960 EVO takes bursts at 3.2 GB/s and passes on 1.5 of large writes, less of small ones.
#[test]
fn sustained_writes_are_no_faster_than_the_drive_passes_on() {
    let profile = of_user("960evo");
    let measured = &profile.measurements;
    let found = measured.write_cache.as_ref().unwrap();
    let passed_on = found.sustained_bytes_per_second.estimate.value().unwrap();
    let (mut pure, mut mixed) = (0, 0);
    for point in measured.order.iter().chain(&measured.mix) {
        let workload = &point.workload;
        if workload.access() == Some(Access::Read) {
            continue;
        }
        *(if workload.access().is_some() { &mut pure } else { &mut mixed }) += 1;
        let written = point.bytes_per_second * (1.0 - workload.read_share);
        assert!(written <= 1.25 * passed_on, "{workload:?}: {written} of {passed_on}");
        assert!(point.bytes_per_second_max < 4.0 * point.bytes_per_second_min, "{point:?}");
    }
    assert!(pure >= 25 && mixed >= 10, "{pure} pure and {mixed} mixed workloads are left");
    let rows = &profile.comparison.as_ref().unwrap().rows;
    for (access, most) in [(Some(Access::Write), 0.4), (None, 0.25)] {
        let row = rows.iter().find(|row| row.model == ModelName::Mqssd && row.access == access).unwrap();
        println!("{access:?}: {} of {} points", row.median_relative_error, row.points);
        assert!(row.median_relative_error <= most, "{access:?}: {}", row.median_relative_error);
    }
}
