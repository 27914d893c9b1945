//! The shortest budget: little is said, and nothing of it is wrong.

use flashgrain_model::Estimate;
use flashgrain_profile::Config;
use flashgrain_profile::schema::LearnedValue;
use flashgrain_ssdsim::preset;

use crate::common::{as_a_user, profile};
use crate::score::{Hidden, Verdict};

#[test]
fn a_second_says_nothing_wrong_of_any_preset() {
    for name in preset::names() {
        let drive = preset::find(name).unwrap();
        let config = Config { budget_s: Config::BUDGET_S_MIN, resamples: 20, ..as_a_user(&drive, 1) };
        let found = profile(&drive, &config).profile;
        let learned = &found.learned;
        for row in Hidden::of(&drive).rows(learned) {
            assert_ne!(row.verdict, Verdict::Wrong, "{name}: {}", row.text());
        }
        if let Some(rate) = learned.saturation_bytes_per_second.estimate.value() {
            let link = drive.host.link_bytes_per_s as f64;
            assert!(rate <= 1.01 * link, "{name}: {rate} bytes/s over a link of {link}");
        }
        // Of two sizes, the ends of a coarse grid, the better is not the best.
        let sizes: Vec<f64> =
            found.measurements.depth.iter().map(|point| point.workload.request_bytes).collect();
        let says = |value: &LearnedValue| matches!(value.estimate, Estimate::Determined { .. });
        let is_said = says(&learned.best_page_iops_bytes) || says(&learned.best_page_latency_bytes);
        let neighbours = |bytes: &f64| [bytes / 2.0, bytes * 2.0].iter().any(|near| sizes.contains(near));
        assert!(!is_said || sizes.iter().all(neighbours), "{name}: {sizes:?}");
    }
}
