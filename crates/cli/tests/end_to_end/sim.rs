//! Simulated drives: named as targets, listed, shown, run, exported, and refused where they make no drive.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::support::{contents, fails, flashgrain, folder, stderr, stdout};

/// A file of the simulator's tests.
fn fixture(name: &str) -> String {
    let path: PathBuf = [env!("CARGO_MANIFEST_DIR"), "../ssdsim/tests/fixtures/mqsim", name].iter().collect();
    path.to_str().unwrap().to_owned()
}

fn printed(arguments: &[&str]) -> String {
    stdout(&flashgrain().args(arguments).assert().success())
}

fn json(arguments: &[&str]) -> Value {
    serde_json::from_str(&printed(&[arguments, &["--json"]].concat())).unwrap()
}

/// The description of a preset with some text replaced, in a file.
fn changed(folder: &Path, preset: &str, from: &str, to: &str) -> String {
    let text = printed(&["sim", "show", preset]);
    assert!(text.contains(from), "{from} is not in:\n{text}");
    let path = folder.join("mine.toml");
    fs::write(&path, text.replace(from, to)).unwrap();
    path.to_str().unwrap().to_owned()
}

#[test]
fn the_list_has_every_papers_drive_and_each_can_be_shown() {
    let rows = json(&["sim", "list"]);
    let names: Vec<_> = rows.as_array().unwrap().iter().map(|row| row["name"].as_str().unwrap()).collect();
    for paper in
        ["960evo", "905p", "xg5", "m500", "980pro", "990pro", "pm1733", "intel-750", "wd-red-6tb-2018"]
    {
        assert!(names.contains(&paper), "{names:?}");
    }
    let table = printed(&["sim", "list"]);
    for name in names {
        assert!(table.contains(name), "{table}");
        let text = printed(&["sim", "show", name]);
        assert!(text.contains("calibrated = [") && text.contains("assumed = ["), "{text}");
    }
}

#[test]
fn a_run_shows_the_drive_from_outside_and_inside_and_repeats_exactly() {
    let arguments = [
        "sim",
        "run",
        "960evo",
        "--read-share",
        "70%",
        "--requests",
        "20000",
        "--depth",
        "16",
        "--seed",
        "5",
    ];
    let (one, other) = (json(&arguments), json(&arguments));
    for key in ["elapsed_s", "read", "write", "inside"] {
        assert_eq!(one[key], other[key], "{key}");
        assert!(!one[key].is_null(), "{key}");
    }
    let inside = &one["inside"];
    let stages = inside["read_stages"].as_object().unwrap();
    let sum: f64 =
        stages.iter().filter(|(name, _)| *name != "total_us").map(|(_, us)| us.as_f64().unwrap()).sum();
    assert!((sum / stages["total_us"].as_f64().unwrap() - 1.0).abs() < 1e-6, "{stages:?}");
    // The host sees the whole of it.
    let latency = &one["read"]["latency"];
    assert!((sum / latency["mean_us"].as_f64().unwrap() - 1.0).abs() < 0.01, "{latency} {sum}");
    let percentiles = ["p50_us", "p90_us", "p99_us", "p99_9_us", "p99_99_us", "max_us"];
    assert!(percentiles.map(|key| latency[key].as_f64().unwrap()).is_sorted(), "{latency}");
    let counts = |key: &str| inside["counters"][key].as_u64().unwrap();
    assert_eq!(counts("reads") + counts("writes"), 20_000);
    assert!((inside["mean_in_flight"].as_f64().unwrap() / 16.0 - 1.0).abs() < 0.05, "{inside}");
    let seed = json(&[&arguments[..arguments.len() - 1], &["6"]].concat());
    assert_ne!(seed["inside"]["digest"], inside["digest"]);
}

#[test]
fn the_tables_of_a_run_fit_the_terminal() {
    let text = printed(&["sim", "run", "xg5", "--read-share", "50%", "--requests", "5000", "--quiet"]);
    for word in
        ["IOPS", "p99.99", "queue", "link", "gc wait", "total", "write amplification", "digest", "simulation"]
    {
        assert!(text.contains(word), "expected {word:?} in:\n{text}");
    }
    assert!(text.lines().take(6).all(|line| line.chars().count() <= 100), "{text}");
}

#[test]
fn a_state_is_chosen_and_nonsense_is_refused() {
    let reads = |state: &str| {
        let result = json(&["sim", "run", "960evo", "--requests", "2000", "--depth", "1", "--state", state]);
        result["read"]["latency"]["mean_us"].as_f64().unwrap()
    };
    assert!(reads("fresh") < 0.6 * reads("filled"), "a drive that was never written has nothing to sense");
    fails(flashgrain().args(["sim", "run", "960evo", "--state", "dusty"]), 2, &["steady-random:85%"]);
}

#[test]
fn a_simulated_drive_is_a_target_of_io() {
    let arguments = ["io", "sim:905p", "--seconds", "0.05", "--warmup", "0.01", "--read-share", "50%"];
    let (one, other) = (json(&arguments), json(&arguments));
    assert_eq!((&one["read"], &one["write"]), (&other["read"], &other["write"]));
    assert_eq!(
        (one["identity"]["kind"].as_str(), one["identity"]["backend"].as_str()),
        (Some("simulated"), Some("sim"))
    );
    let text = printed(&arguments);
    assert!(text.contains("of simulation per I/O over") && text.contains("of virtual time"), "{text}");
}

#[test]
fn a_simulated_drive_is_tuned_like_a_real_one() {
    let folder = folder();
    let assert = flashgrain()
        .current_dir(&folder)
        .args(["tune", "sim:905p", "--seconds", "2", "--write-bytes", "256MiB"])
        .assert()
        .success();
    let (said, summary) = (stderr(&assert), stdout(&assert));
    for text in ["2 s of virtual time", "simulated: 447 GiB of it", "of virtual time took"] {
        assert!(said.contains(text), "expected {text:?} in:\n{said}");
    }
    assert!(summary.contains("sim:905p (simulated)"), "{summary}");
    assert!(summary.contains("interface: the target is reached in one way only"), "{summary}");
    let profile = folder.path().join("flashgrain-out/profile.json");
    let profile: Value = serde_json::from_slice(&fs::read(profile).unwrap()).unwrap();
    assert!(profile["budget"]["used_write_bytes"].as_u64().unwrap() <= 256 << 20);
    assert!(folder.path().join("flashgrain-out/report.html").exists());
}

#[test]
fn what_makes_no_sense_on_a_simulated_drive_is_refused() {
    let folder = folder();
    for (arguments, text) in [
        (&["io", "sim:905p", "--backend", "libaio"][..], "--backend"),
        (&["io", "sim:905p", "--buffered"], "--buffered"),
        (&["io", "sim:905p", "--workers", "2"], "--workers"),
        (&["io", "sim:905p", "--file-size", "1GiB"], "--region"),
        (&["io", "sim:905p", "sim:960evo"], "8xpm1733"),
        (&["io", "sim:905p", "."], "used alone"),
        (&["tune", "sim:905p", "--file-size", "10TiB"], "447 GiB"),
        (&["sim", "run"], "DRIVE"),
        (&["sim", "run", "960evo", "--requests", "0"], "--requests"),
        (&["sim", "run", "960evo", "--block-size", "1GiB"], "64 MiB"),
    ] {
        fails(flashgrain().current_dir(&folder).args(arguments), 2, &[text]);
    }
    assert!(contents(folder.path()).is_empty(), "something was left behind");
}

#[test]
fn an_unknown_drive_is_answered_with_those_that_there_are() {
    for arguments in [
        &["io", "sim:960ev"][..],
        &["sim", "run", "960ev"],
        &["sim", "show", "960ev"],
        &["tune", "sim:960ev"],
    ] {
        fails(
            flashgrain().args(arguments),
            2,
            &["'960ev'", "did you mean '960evo'", "905p", "sim:FILE.toml"],
        );
    }
    fails(
        flashgrain().args(["sim", "show", "nowhere/drive.toml"]),
        1,
        &["nowhere/drive.toml", "No such file"],
    );
}

#[test]
fn what_makes_no_drive_names_the_field_its_value_and_what_is_allowed() {
    let folder = folder();
    for (from, to, texts) in [
        ("\nchannels = 8", "\nchannels = 0", &["medium.nand.channels is 0", "1 to 1024"][..]),
        ("page_bytes = 16384", "page_bytes = 20000", &["medium.nand.page_bytes is 20000", "power of two"]),
        ("pages_per_block = ", "pages_per_block = 0 #", &["medium.nand.pages_per_block is 0", "1 to"]),
        (
            "\nbytes = ",
            "\nbytes = 9000000000000 #",
            &["medium.nand.write_cache.bytes is 9000000000000", "0 to 500"],
        ),
        ("queue_depth", "queue_depht", &["unknown field `queue_depht`", "`queue_depth`", "mine.toml"]),
        ("erase_us = ", "# ", &["missing field `erase_us`"]),
        ("erase_us = ", "erase_us = nan #", &["medium.nand.erase_us is NaN", "0.001 to"]),
        ("[medium.nand", "[medium.nandd", &["nandd", "3d-xpoint"]),
    ] {
        let file = changed(folder.path(), "960evo", from, to);
        fails(flashgrain().args(["sim", "run", &file]), 2, texts);
        fails(flashgrain().args(["io", &format!("sim:{file}")]), 2, texts);
    }
}

#[test]
fn a_drive_of_ones_own_runs() {
    let folder = folder();
    let file =
        changed(folder.path(), "905p", "link_bytes_per_s = 2600000000", "link_bytes_per_s = 100000000");
    let bandwidth = |drive: &str| {
        let result = json(&["sim", "run", drive, "--block-size", "64KiB", "--requests", "2000"]);
        result["read"]["bytes_per_s"].as_f64().unwrap()
    };
    let narrow = bandwidth(&file);
    assert!((narrow / 1e8 - 1.0).abs() < 0.02, "the link is the narrowest stage: {narrow}");
    assert!(bandwidth("905p") > 10.0 * narrow);
}

#[test]
fn files_of_mqsim_are_run_and_shown() {
    let (config, workload) = (fixture("ssdconfig.xml"), fixture("workload.xml"));
    let results = json(&["sim", "run", "--config", &config, "--workload", &workload]);
    let flows: Vec<usize> =
        results.as_array().unwrap().iter().map(|result| result["flows"].as_array().unwrap().len()).collect();
    assert_eq!(flows, [2, 1]);
    assert_eq!(results, json(&["sim", "run", &config, "--workload", &workload]).without_cpu(&results));
    let text = printed(&["sim", "run", &config, "--workload", &workload, "--scenario", "2"]);
    assert!(text.contains("flow 1 writes") && !text.contains("flow 2"), "{text}");
    assert!(printed(&["sim", "show", &config]).contains("interleave = \"chip-busy\""));
    for (arguments, text) in [(&["--scenario", "3"][..], "there are 2"), (&["--depth", "4"], "--depth")] {
        fails(
            flashgrain().args(["sim", "run", &config, "--workload", &workload]).args(arguments),
            2,
            &[text],
        );
    }
    let folder = folder();
    let broken = folder.path().join("broken.xml");
    fs::write(
        &broken,
        fs::read_to_string(&config).unwrap().replace("Flash_Channel_Count", "Flash_Chanel_Count"),
    )
    .unwrap();
    let known = "Flash_Channel_Count";
    fails(
        flashgrain().args(["sim", "run"]).arg(&broken),
        2,
        &["line ", "unknown field Flash_Chanel_Count (value \"8\")", known],
    );
    fs::write(
        &broken,
        fs::read_to_string(&config).unwrap().replace("<Flash_Channel_Count>8", "<Flash_Channel_Count>0"),
    )
    .unwrap();
    fails(
        flashgrain().args(["sim", "run"]).arg(&broken),
        2,
        &["Flash_Channel_Count is 0", "a number from 1 to"],
    );
}

/// How fast the simulation was is all that may differ.
trait WithoutCpu {
    fn without_cpu(self, like: &Value) -> Value;
}

impl WithoutCpu for Value {
    fn without_cpu(mut self, like: &Value) -> Value {
        for (one, other) in self.as_array_mut().unwrap().iter_mut().zip(like.as_array().unwrap()) {
            one["cpu_us_per_request"] = other["cpu_us_per_request"].clone();
        }
        self
    }
}

/// 4 KiB random reads per second at a depth.
fn reads_per_s(drive: &str, depth: &str) -> f64 {
    let result = json(&["sim", "run", drive, "--depth", depth, "--requests", "50000"]);
    result["read"]["requests_per_s"].as_f64().unwrap()
}

#[test]
fn a_learned_profile_becomes_a_drive_that_behaves_like_the_one_it_was_learned_from() {
    let folder = folder();
    let out = folder.path().to_str().unwrap();
    flashgrain()
        .args([
            "profile",
            "sim:970evo",
            "--seconds",
            "3",
            "--only",
            "depth,parallel,sequential,flush,order",
            "--out",
            out,
        ])
        .assert()
        .success();
    let profile = folder.path().join("profile.json");
    let profile = profile.to_str().unwrap();
    flashgrain().args(["sim", "export", "--mqsim", "--toml", profile, "--output", out]).assert().success();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    for (drive, tolerance) in [(path("drive.toml"), 0.05), (path("ssdconfig.xml"), 0.25)] {
        for (depth, tolerance) in [("1", 0.05), ("256", tolerance)] {
            let (learned, original) = (reads_per_s(&drive, depth), reads_per_s("970evo", depth));
            assert!(
                (learned / original - 1.0).abs() < tolerance,
                "{drive} at {depth}: {learned} and {original}"
            );
        }
    }
    let xml = printed(&["sim", "export", "--mqsim", profile]);
    assert_eq!(xml, fs::read_to_string(path("ssdconfig.xml")).unwrap());
    for text in ["<!-- learned: ", "<!-- assumed: ", "<!-- MQSim's default -->", "Page_Metadat_Capacity"] {
        assert!(xml.contains(text), "expected {text:?} in:\n{xml}");
    }
    let toml = fs::read_to_string(path("drive.toml")).unwrap();
    assert!(toml.contains("medium.nand.read_us: a 4 KiB read takes"), "{toml}");
}

#[test]
fn what_cannot_be_exported_says_why() {
    fails(flashgrain().args(["sim", "export", "--mqsim", "905p"]), 2, &["medium is", "flash only"]);
    fails(flashgrain().args(["sim", "export", "--mqsim", "--toml", "960evo"]), 2, &["--output"]);
    fails(flashgrain().args(["sim", "export", "960evo"]), 2, &["--mqsim", "--toml"]);
    let folder = folder();
    let profile = folder.path().join("profile.json");
    fs::write(&profile, "{}").unwrap();
    fails(flashgrain().args(["sim", "export", "--mqsim"]).arg(&profile), 1, &["profile.json"]);
    let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join("../profile/tests/fixtures/profile-v1.json");
    let mut without_reads: Value = serde_json::from_slice(&fs::read(fixture).unwrap()).unwrap();
    for experiment in ["order", "depth", "mix"] {
        without_reads["measurements"][experiment] = Value::Array(Vec::new());
    }
    fs::write(&profile, without_reads.to_string()).unwrap();
    fails(
        flashgrain().args(["sim", "export", "--mqsim"]).arg(&profile),
        1,
        &["profile.json", "one at a time", "--only depth"],
    );
}
