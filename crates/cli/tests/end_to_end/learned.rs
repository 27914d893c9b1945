//! What is learned of a simulated drive whose hidden parameters are known.

use serde_json::Value;

use crate::support::{flashgrain, folder, stdout};

/// The first seed is one of those for which a single region of each size has led to 128 KiB.
#[test]
fn hidden_parameters_come_from_repeats_and_take_the_budget_while_they_are_open() {
    for seed in ["1", "2"] {
        let folder = folder();
        let mut command = flashgrain();
        command.current_dir(&folder).args(["profile", "sim:xg5", "--only", "request-size,location"]);
        let profile = stdout(&command.args(["--json", "--quiet", "--seed", seed]).assert().success());
        let profile: Value = serde_json::from_str(&profile).unwrap();
        let learned = |name: &str| &profile["learned"][name]["estimate"];
        let desirable = learned("desirable_write_bytes");
        assert!(
            desirable["state"] == "undetermined" || desirable["value"] == 65_536.0,
            "{seed}: {desirable}"
        );
        let stripe = learned("stripe_bytes");
        assert!(stripe["state"] == "undetermined" || stripe["value"] == 65_536.0, "{seed}: {stripe}");
        let is_open = desirable["state"] == "undetermined" || stripe["state"] == "undetermined";
        let used_s = profile["budget"]["used_s"].as_f64().unwrap();
        assert!(!is_open || used_s > 40.0, "{seed}: {used_s} of 60 s, and something is open");
    }
}
