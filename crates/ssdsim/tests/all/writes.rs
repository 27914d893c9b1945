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
