//! The NVMe paper's array: eight PM1733 as one stripe set (§2).

use flashgrain_model::{Access, Workload};
use flashgrain_ssdsim::config::StartState;
use flashgrain_ssdsim::{SimConfig, SimDevice, preset};

use crate::common::{loaded, random_reads};

/// Requests in flight that saturate eight drives in the paper.
const SATURATING: u32 = 3000;

fn array() -> SimConfig {
    preset::find("8xpm1733").unwrap()
}

/// Requests per second, millions.
fn millions_per_s(config: &SimConfig, workload: Workload, seconds: f64) -> f64 {
    let device = SimDevice::new(config, "sim:8xpm1733", 1).unwrap();
    loaded(&device, workload, seconds).iops() / 1e6
}

fn assert_near(what: &str, found: f64, published: f64) {
    println!("{what}: {found:.3} M/s, published {published:.2}");
    assert!((found / published - 1.0).abs() <= 0.05, "{what}: {found} M/s instead of {published}");
}

#[test]
fn eight_drives_read_twelve_and_a_half_million_pages_per_second() {
    assert_near("8 drives", millions_per_s(&array(), random_reads(4096, SATURATING), 0.01), 12.5);
}

#[test]
fn reads_grow_in_proportion_to_the_drives() {
    for drives in [1, 2, 4] {
        let config = SimConfig { drives, ..array() };
        let found = millions_per_s(&config, random_reads(4096, drives * SATURATING / 8), 0.01);
        assert_near(&format!("{drives} drives"), found, 1.5625 * f64::from(drives));
    }
}

#[test]
fn writes_cost_what_the_paper_found() {
    for (write_percent, state, published) in
        [(10, StartState::Filled, 8.9), (25, StartState::Filled, 7.0), (100, StartState::Fresh, 4.7)]
    {
        let workload = Workload {
            read_share: 1.0 - f64::from(write_percent) / 100.0,
            ..Workload::random(Access::Read, 4096.0, f64::from(SATURATING))
        };
        let config = SimConfig { state, ..array() };
        assert_near(&format!("{write_percent} % writes"), millions_per_s(&config, workload, 0.06), published);
    }
}

#[test]
fn a_thousand_requests_give_a_decent_share_and_three_thousand_saturate() {
    let found = [64, 256, 1000, 3000, 6000].map(|depth| {
        let found = millions_per_s(&array(), random_reads(4096, depth), 0.01);
        println!("{depth} in flight: {found:.2} M/s");
        found
    });
    let [.., thousand, three_thousand, most] = found;
    assert!((0.6..0.9).contains(&(thousand / most)), "{thousand} of {most}");
    assert!(three_thousand / most >= 0.95, "{three_thousand} of {most}");
}

#[test]
fn pages_of_four_kib_give_the_most_requests() {
    let config = SimConfig { drives: 1, ..array() };
    let sizes = [512_u64, 1 << 10, 2 << 10, 4 << 10, 8 << 10, 16 << 10, 64 << 10];
    let found = sizes.map(|bytes| {
        let rate = millions_per_s(&config, random_reads(bytes, 512), 0.01);
        println!("{bytes} bytes: {rate:.3} M/s, {:.2} GiB/s", rate * 1e6 * bytes as f64 / f64::from(1 << 30));
        rate
    });
    let gib_per_s = |index: usize| found[index] * 1e6 * sizes[index] as f64 / f64::from(1 << 30);
    for (index, rate) in found.iter().enumerate() {
        assert!(index == 3 || rate * 1.1 < found[3], "{} bytes: {rate} M/s", sizes[index]);
    }
    assert!((gib_per_s(3) / 6.0 - 1.0).abs() <= 0.05 && (gib_per_s(6) / 6.5 - 1.0).abs() <= 0.05);
}
