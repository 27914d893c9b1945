//! No rate lies above what the link carries, however short the span and whatever is in the cache.

use flashgrain_model::{Access, Workload};
use flashgrain_ssdsim::{SimDevice, preset};

use crate::common;

#[test]
fn nothing_is_faster_than_the_link() {
    let config = preset::find("860evo").unwrap();
    for (bytes, streams) in [(65_536.0, 8.0), (409_600.0, 32.0), (1_363_968.0, 16.0), (4_096_000.0, 4.0)] {
        for access in [Access::Read, Access::Write] {
            // One drive for all spans: its cache is found full, empty, and between.
            let device = SimDevice::new(&config, "a simulated drive", 3).unwrap();
            for seconds in [0.01, 0.02, 0.03, 0.05, 0.1] {
                let measured = common::loaded(&device, Workload::random(access, bytes, streams), seconds);
                let link = config.host.link_bytes_per_s as f64;
                let rate = measured.bytes_per_second();
                assert!(rate <= link * 1.001, "{access:?} {bytes} x {streams} for {seconds} s: {rate}");
            }
        }
    }
}
