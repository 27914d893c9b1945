//! A cap before a drive is recognised as what it is, nothing is said of what it hides, and no drive without
//! one is said to have one.

use flashgrain_profile::schema::{Cap, DeviceProfile, Learned, Point};
use flashgrain_profile::{Config, ExperimentName, Profiled};
use flashgrain_ssdsim::config::CapConfig;
use flashgrain_ssdsim::{SimConfig, preset};

use crate::common::{as_a_user, profile};

const BUDGET_S: f64 = 20.0;

fn profiled(cap: CapConfig, budget_s: f64) -> DeviceProfile {
    let mut drive = preset::find("980pro").unwrap();
    drive.host.cap = Some(cap);
    let config = Config { budget_s, resamples: 20, ..as_a_user(&drive, 1) };
    let Profiled { profile, .. } = profile(&drive, &config);
    profile
}

fn assert_near(what: &str, found: Option<f64>, right: Option<u64>) {
    let is_near = match (found, right) {
        (Some(found), Some(right)) => (found / right as f64 - 1.0).abs() <= 0.02,
        (None, None) => true,
        _ => false,
    };
    assert!(is_near, "{what}: {found:?} instead of {right:?}");
}

/// Nothing is said of what the cap hides.
fn assert_hidden(learned: &Learned) {
    for value in [
        &learned.desirable_write_bytes,
        &learned.stripe_bytes,
        &learned.chunk_bytes,
        &learned.hot_offset_bytes,
        &learned.hot_latency_drop,
        &learned.flash_page_bytes,
        &learned.parallelism,
        &learned.half_bandwidth_bytes,
    ] {
        assert!(value.estimate.value().is_none() && value.confidence == 0.0, "{value:?}");
    }
}

fn points(profile: &DeviceProfile) -> impl Iterator<Item = &Point> {
    let all = &profile.measurements;
    [&all.order, &all.parallel, &all.size, &all.depth, &all.mix, &all.sequential].into_iter().flatten()
}

fn assert_no_point_above(cap: &Cap, profile: &DeviceProfile) {
    for point in points(profile) {
        let bytes = point.workload.request_bytes;
        let limit = 1.1 * cap.requests_per_second_of(bytes) * bytes;
        assert!(point.bytes_per_second_max <= limit * 1.001, "{point:?}");
    }
}

#[test]
fn caps_of_clouds_are_recognised_and_hide_what_lies_behind() {
    for (requests_per_s, bytes_per_s) in [
        (Some(3000), Some(125_000_000)),
        (Some(12_000), Some(1_000_000_000)),
        (Some(15_000), Some(240_000_000)),
        (Some(500), None),
        (None, Some(125_000_000)),
    ] {
        let profile = profiled(CapConfig { requests_per_s, bytes_per_s, ..CapConfig::default() }, BUDGET_S);
        let cap = profile.learned.cap.as_ref().unwrap();
        assert_near("requests", cap.requests_per_second, requests_per_s);
        assert_near("bytes", cap.bytes_per_second, bytes_per_s);
        assert!(cap.credits.is_none(), "{cap:?}");
        assert_hidden(&profile.learned);
        assert_no_point_above(cap, &profile);
        for decision in profile.decisions.iter().filter(|decision| !decision.from_default) {
            assert!(decision.because.starts_with("under a cap of "), "{decision:?}");
        }
    }
}

#[test]
fn credits_that_run_out_are_said_and_nothing_is_made_from_them() {
    for cap in [
        CapConfig { requests_per_s: Some(3000), burst_requests: 100_000, ..CapConfig::default() },
        CapConfig { bytes_per_s: Some(125_000_000), burst_bytes: 4_000_000_000, ..CapConfig::default() },
    ] {
        let profile = profiled(cap.clone(), BUDGET_S);
        let found = profile.learned.cap.as_ref().unwrap();
        assert_near("requests", found.requests_per_second, cap.requests_per_s);
        assert_near("bytes", found.bytes_per_second, cap.bytes_per_s);
        assert!(found.credits.is_some_and(|credits| credits.repeats >= 3), "{found:?}");
        assert_no_point_above(found, &profile);
    }
}

#[test]
fn no_preset_is_said_to_be_capped() {
    for name in preset::names() {
        let drive: SimConfig = preset::find(name).unwrap();
        let config = Config {
            budget_s: 2.0,
            verify: false,
            resamples: 5,
            experiments: vec![
                ExperimentName::Parallel,
                ExperimentName::Size,
                ExperimentName::Depth,
                ExperimentName::Sequential,
            ],
            ..as_a_user(&drive, 1)
        };
        let found = profile(&drive, &config).profile.learned.cap;
        assert!(found.is_none(), "{name}: {found:?}");
    }
}
