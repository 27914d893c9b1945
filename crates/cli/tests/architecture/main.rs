//! The rules of ARCHITECTURE.md that a compiler does not check.
#![expect(clippy::unwrap_used, reason = "helpers of tests fail like tests")]

mod decisions;
mod modules;
mod named;
mod source;
mod style;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

/// Workspace crates that each crate may use. A new crate is added here and to the code map in
/// ARCHITECTURE.md.
const EDGES: &[(&str, &[&str])] = &[
    ("flashgrain_device", &[]),
    ("flashgrain_ssdsim", &["flashgrain_device"]),
    ("flashgrain_layout", &[]),
    ("flashgrain_cost", &[]),
    ("flashgrain_what_if", &["flashgrain_cost"]),
    ("flashgrain_model", &["flashgrain_cost"]),
    ("flashgrain_settings", &["flashgrain_cost", "flashgrain_device"]),
    ("flashgrain_profile", &["flashgrain_device", "flashgrain_model", "flashgrain_settings"]),
    ("flashgrain_trace", &["flashgrain_device", "flashgrain_model", "flashgrain_profile"]),
    ("flashgrain_recorder", &["flashgrain_device", "flashgrain_trace"]),
    (
        "flashgrain_advisor",
        &["flashgrain_cost", "flashgrain_model", "flashgrain_profile", "flashgrain_settings"],
    ),
    (
        "flashgrain_report",
        &[
            "flashgrain_advisor",
            "flashgrain_cost",
            "flashgrain_model",
            "flashgrain_profile",
            "flashgrain_trace",
        ],
    ),
    ("flashgrain", &["flashgrain_device", "flashgrain_profile", "flashgrain_settings"]),
    ("flashgrain_c", &["flashgrain"]),
    ("flashgrain_raft", &["flashgrain"]),
    ("flashgrain_simtest", &["flashgrain", "flashgrain_device", "flashgrain_ssdsim"]),
    ("flashgrain_record_files", &["flashgrain_layout"]),
    ("flashgrain_preload", &["flashgrain_record_files"]),
    ("flashgrain_sqlite_vfs", &["flashgrain_device", "flashgrain_layout"]),
    (
        "flashgrain_bench",
        &[
            "flashgrain",
            "flashgrain_advisor",
            "flashgrain_cost",
            "flashgrain_device",
            "flashgrain_layout",
            "flashgrain_model",
            "flashgrain_profile",
            "flashgrain_report",
            "flashgrain_sqlite_vfs",
            "flashgrain_ssdsim",
        ],
    ),
    (
        "flashgrain_fuzz_targets",
        &[
            "flashgrain",
            "flashgrain_advisor",
            "flashgrain_model",
            "flashgrain_profile",
            "flashgrain_report",
            "flashgrain_sqlite_vfs",
            "flashgrain_ssdsim",
            "flashgrain_trace",
        ],
    ),
    (
        "flashgrain_cli",
        &[
            "flashgrain_advisor",
            "flashgrain_cost",
            "flashgrain_device",
            "flashgrain_ssdsim",
            "flashgrain_layout",
            "flashgrain_model",
            "flashgrain_profile",
            "flashgrain_record_files",
            "flashgrain_recorder",
            "flashgrain_report",
            "flashgrain",
            "flashgrain_bench",
            "flashgrain_sqlite_vfs",
            "flashgrain_trace",
        ],
    ),
];

/// Places in which `unsafe` may stand: below the device's contract, where requests are handed to it, where
/// tests make up drives, fork processes or load extensions, where the kernel takes programs, where benchmarks
/// call stores written in C, where SQLite or a program in C calls us, and where a program believes us to be
/// the C library.
const UNSAFE_FOLDERS: &[&str] = &[
    "crates/bench/src/engine/c.rs",
    "crates/bench/src/engine/c/",
    "crates/bench/src/study/hidden_parameters/vfs.rs",
    "crates/c/src/",
    "crates/device/",
    "crates/fuzz-targets/src/allocation.rs",
    "crates/simtest/src/media/",
    "crates/ssdsim/",
    "crates/profile/src/load/",
    "crates/profile/tests/",
    "crates/preload/src/",
    "crates/record-files/src/lock.rs",
    "crates/recorder/src/bpf/",
    "crates/recorder/src/precedence.rs",
    "crates/sqlite-vfs/examples/",
    "crates/sqlite-vfs/src/native/",
    "crates/sqlite-vfs/src/volume/lane.rs",
    "crates/sqlite-vfs/tests/",
    "crates/store/src/task/",
    "crates/store/src/io_context/",
    "crates/store/src/pool/",
    "crates/store/src/segment/",
    "crates/store/src/log/",
    "crates/store/tests/opening/",
];

const FILE_LINES_MAX: usize = 1000;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

fn packages() -> Vec<Value> {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--no-deps", "--offline", "--format-version", "1"])
        .current_dir(root())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let mut metadata: Value = serde_json::from_slice(&output.stdout).unwrap();
    serde_json::from_value(metadata["packages"].take()).unwrap()
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or_default()
}

/// All Rust files of the workspace, relative to its root.
fn sources() -> Vec<String> {
    let found = source::files(&root().join("crates"));
    assert!(found.len() > 20, "the walk must find the sources");
    found.iter().map(|path| path.strip_prefix(root()).unwrap().to_str().unwrap().to_owned()).collect()
}

#[test]
fn crates_use_only_those_below_them() {
    let allowed: BTreeMap<_, BTreeSet<_>> =
        EDGES.iter().map(|(name, uses)| (*name, uses.iter().copied().collect())).collect();
    let packages = packages();
    assert_eq!(
        packages.iter().map(|package| text(package, "name")).collect::<BTreeSet<_>>(),
        allowed.keys().copied().collect(),
        "every crate of the workspace has a row in EDGES"
    );
    for package in &packages {
        let name = text(package, "name");
        for dependency in package["dependencies"].as_array().unwrap() {
            let uses = text(dependency, "name");
            // Tests may reach for anything below the command line, to build what they need.
            let in_tests_only = text(dependency, "kind") == "dev";
            let within = allowed[name].contains(uses) || (in_tests_only && uses != "flashgrain_cli");
            assert!(!uses.starts_with("flashgrain") || within, "{name} must not depend on {uses}");
        }
    }
}

/// Somebody who wants the store alone is not to compile what measures drives and fits models.
#[test]
fn the_store_alone_needs_few_crates() {
    const CRATES_MAX: usize = 29;
    let output = Command::new(env!("CARGO"))
        .args(["tree", "--offline", "--package", "flashgrain", "--edges", "normal,build", "--prefix", "none"])
        .args(["--no-dedupe", "--format", "{p}"])
        .current_dir(root())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let tree = String::from_utf8(output.stdout).unwrap();
    let crates: BTreeSet<_> = tree.lines().collect();
    assert!(crates.len() > 5 && crates.len() <= CRATES_MAX, "{} crates: {crates:#?}", crates.len());
    assert!(!tree.contains("flashgrain_profile") && !tree.contains("nalgebra"), "{tree}");
}

/// A published crate uses only published crates, each by a version.
#[test]
fn published_crates_use_published_ones_by_version() {
    let packages = packages();
    let is_published = |package: &Value| package["publish"].is_null();
    let published: BTreeSet<_> = packages
        .iter()
        .filter(|package| is_published(package))
        .map(|package| text(package, "name"))
        .collect();
    assert!(published.contains("flashgrain"), "{published:?}");
    for package in packages.iter().filter(|package| is_published(package)) {
        assert!(!text(package, "readme").is_empty(), "{} lacks a readme", text(package, "name"));
        for dependency in package["dependencies"].as_array().unwrap() {
            let uses = text(dependency, "name");
            let is_ours = uses.starts_with("flashgrain");
            assert!(!is_ours || published.contains(uses), "{} uses {uses}", text(package, "name"));
            assert!(text(dependency, "req") != "*", "{} uses any {uses}", text(package, "name"));
        }
    }
}

/// Crates whose folders form no circle: what one does can be understood without those that use it.
const FOLDERS_WITHOUT_CIRCLES: &[&str] = &["bench", "cli"];

/// Crates of which that is true of the folders and files right below `src`.
const ENTRIES_WITHOUT_CIRCLES: &[&str] = &["store"];

/// Crates of which that is true of every file.
const FILES_WITHOUT_CIRCLES: &[&str] = &["cli"];

fn uses_in(name: &str) -> modules::Uses {
    let uses = modules::uses(&root().join("crates").join(name).join("src"));
    assert!(uses.len() > 10, "the files of `{name}` must be found");
    uses
}

/// A line for each module that is part of a circle.
fn shown(circles: modules::Uses) -> String {
    let line = |(from, to): (modules::Module, BTreeSet<modules::Module>)| {
        let to: Vec<String> = to.iter().map(|module| module.join("/")).collect();
        format!("{} uses {}\n", from.join("/"), to.join(", "))
    };
    circles.into_iter().map(line).collect()
}

#[test]
fn files_form_no_circles() {
    for name in FILES_WITHOUT_CIRCLES {
        let circles = shown(modules::circles(&uses_in(name)));
        assert!(circles.is_empty(), "in `{name}`:\n{circles}");
    }
}

/// Of two files one is below the other, and can be understood without it.
#[test]
fn no_two_files_use_each_other() {
    let mut found = BTreeSet::new();
    for folder in fs::read_dir(root().join("crates")).unwrap() {
        let folder = folder.unwrap();
        for (one, other) in modules::pairs(&modules::uses(&folder.path().join("src"))) {
            let name = folder.file_name().into_string().unwrap();
            found.insert(format!("{name}: {} and {}", one.join("/"), other.join("/")));
        }
    }
    assert!(found.is_empty(), "one of the two is to be below the other: {found:#?}");
}

#[test]
fn entries_form_no_circles() {
    for name in ENTRIES_WITHOUT_CIRCLES {
        let circles = shown(modules::circles(&modules::between_entries(&uses_in(name), &[])));
        assert!(circles.is_empty(), "in `{name}`:\n{circles}");
    }
}

/// Looks at the entries of `src` and of the folders right below it.
#[test]
fn folders_form_no_circles() {
    for name in FOLDERS_WITHOUT_CIRCLES {
        let uses = uses_in(name);
        let above = |module: &[String]| module[..module.len().saturating_sub(1).min(1)].to_vec();
        let mut folders: BTreeSet<modules::Module> = uses.keys().map(|module| above(module)).collect();
        folders.insert(Vec::new());
        for folder in folders {
            let circles = shown(modules::circles(&modules::between_entries(&uses, &folder)));
            assert!(circles.is_empty(), "in `{name}`, folder `{}`:\n{circles}", folder.join("/"));
        }
    }
}

#[test]
fn path_dependencies_stay_inside_the_workspace() {
    for package in packages() {
        for dependency in package["dependencies"].as_array().unwrap() {
            let Some(path) = dependency["path"].as_str() else { continue };
            assert!(Path::new(path).starts_with(root()), "{} depends on {path}", text(&package, "name"));
        }
    }
}

#[test]
fn every_crate_takes_the_workspace_lints_and_says_what_it_is() {
    for package in packages() {
        let manifest = fs::read_to_string(text(&package, "manifest_path")).unwrap();
        assert!(manifest.contains("[lints]\nworkspace = true"), "{} lacks the lints", text(&package, "name"));
        for key in ["description", "license", "rust_version"] {
            assert!(!text(&package, key).is_empty(), "{} lacks {key}", text(&package, "name"));
        }
    }
}

#[test]
fn files_have_one_subject() {
    for source in sources() {
        let lines = fs::read_to_string(root().join(&source)).unwrap().lines().count();
        assert!(lines <= FILE_LINES_MAX, "{source} has {lines} lines: it holds more than one subject");
    }
}

#[test]
fn unsafe_code_stands_only_at_the_device() {
    let this = file!();
    for source in sources() {
        if source == this || UNSAFE_FOLDERS.iter().any(|folder| source.starts_with(folder)) {
            continue;
        }
        let content = fs::read_to_string(root().join(&source)).unwrap();
        for (number, line) in content.lines().enumerate() {
            let code = line.split("//").next().unwrap_or_default();
            let found = ["unsafe {", "unsafe fn", "unsafe impl", "unsafe extern"]
                .iter()
                .any(|form| code.contains(form));
            assert!(!found, "{source}:{}: unsafe code belongs into {UNSAFE_FOLDERS:?}", number + 1);
        }
    }
}

#[test]
fn the_code_map_names_every_crate() {
    let map = fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
    for package in packages() {
        let folder = Path::new(text(&package, "manifest_path")).parent().unwrap().to_owned();
        let folder = folder.strip_prefix(root()).unwrap().display().to_string();
        assert!(map.contains(&format!("`{folder}`")), "ARCHITECTURE.md does not mention `{folder}`");
    }
}

#[test]
fn the_page_of_commands_lists_all_commands() {
    let help = Command::new(env!("CARGO_BIN_EXE_flashgrain")).arg("--help").output().unwrap();
    let help = String::from_utf8(help.stdout).unwrap();
    let section = help.split("Commands:\n").nth(1).unwrap().split("\n\n").next().unwrap();
    let in_help: BTreeSet<_> = section
        .lines()
        .filter_map(|line| line.strip_prefix("  ")?.split(' ').next())
        .filter(|name| !["", "help"].contains(name))
        .collect();
    let page = fs::read_to_string(root().join("docs/commands.md")).unwrap();
    let on_page: BTreeSet<_> = page
        .lines()
        .filter_map(|line| line.strip_prefix("| `flashgrain ")?.split([' ', '`']).next())
        .collect();
    assert!(in_help.contains("tune"), "{help}");
    assert_eq!(on_page, in_help, "the table of docs/commands.md");
}

#[test]
fn the_page_of_the_simulated_drive_explains_every_field_and_names_every_preset() {
    let page = fs::read_to_string(root().join("docs/simulated-drive.md")).unwrap();
    let run = |arguments: &[&str]| -> Value {
        let output =
            Command::new(env!("CARGO_BIN_EXE_flashgrain")).args(arguments).arg("--json").output().unwrap();
        serde_json::from_slice(&output.stdout).unwrap()
    };
    let presets = run(&["sim", "list"]);
    for preset in presets.as_array().unwrap() {
        let name = text(preset, "name");
        assert!(page.contains(&format!("`{name}`")), "the preset {name} is missing");
        for (key, value) in fields(&run(&["sim", "show", name])) {
            let explained = page.contains(&format!("{key}`")) || page.contains(&format!("{key} ="));
            assert!(explained, "the field {key} ({value}) of {name} is missing");
        }
    }
}

/// Names and values of all fields that are numbers, flags or words.
fn fields(value: &Value) -> Vec<(String, Value)> {
    let Value::Object(object) = value else { return Vec::new() };
    let of = |(key, value): (&String, &Value)| match value {
        Value::Object(_) => fields(value),
        _ => vec![(key.clone(), value.clone())],
    };
    object.iter().flat_map(of).collect()
}
