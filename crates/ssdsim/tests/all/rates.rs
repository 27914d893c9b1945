//! Short trials say the rate that long ones say, at all depths, and no more than the link carries.

use flashgrain_model::{Access, Workload};
use flashgrain_profile::load::Measured;
use flashgrain_ssdsim::{SimDevice, preset};

use crate::common;

/// Trials of `bytes` by `depth` streams, as long as so many mean latencies, beside a long one.
struct Case {
    name: &'static str,
    bytes: f64,
    depth: f64,
    /// Largest relative deviation for 2, 6, 20 and 100 latencies.
    off_max: [f64; 4],
}

const LATENCIES: [f64; 4] = [2.0, 6.0, 20.0, 100.0];

/// Rate of so many trials together, so that the chances of their places even out.
fn rate_of(device: &SimDevice, workload: Workload, seconds: f64, trials: u64) -> f64 {
    let measured: Vec<Measured> =
        (0..trials).map(|seed| common::seeded(device, workload, seconds, seed)).collect();
    let bytes: u64 = measured.iter().map(|one| one.bytes_read + one.bytes_written).sum();
    bytes as f64 / measured.iter().map(|one| one.elapsed.seconds()).sum::<f64>()
}

#[test]
fn short_trials_say_the_rate_of_long_ones() {
    let nvme = |depth| Case { name: "980pro", bytes: 4096.0, depth, off_max: [0.02, 0.01, 0.01, 0.01] };
    // Large requests that were asked together share the link evenly at first and queue behind each other
    // later: that takes a few of them.
    let large = |depth| Case { name: "860evo", bytes: 409_600.0, depth, off_max: [0.15, 0.05, 0.01, 0.01] };
    let deep = Case { off_max: [0.01; 4], ..large(128.0) };
    for Case { name, bytes, depth, off_max } in
        [nvme(1.0), nvme(8.0), nvme(64.0), nvme(4096.0), large(4.0), deep]
    {
        let config = preset::find(name).unwrap();
        let workload = Workload::random(Access::Read, bytes, depth);
        let device = SimDevice::new(&config, "a simulated drive", 3).unwrap();
        let truth = rate_of(&device, workload, 0.1, 1);
        let latency_s = depth * bytes / truth;
        for (latencies, off_max) in LATENCIES.into_iter().zip(off_max) {
            let trials = ((4e3 / depth / latencies) as u64).clamp(2, 100);
            let rate = rate_of(&device, workload, latencies * latency_s, trials);
            let off = rate / truth - 1.0;
            assert!(off.abs() < off_max, "{name} {bytes} x {depth}: {off:+.4} in {latencies} latencies");
        }
        assert!(truth <= config.host.link_bytes_per_s as f64 * 1.001, "{name} {bytes} x {depth}: {truth}");
    }
}
