//! The commands of each page run in a folder of their own, one after the other, as a reader types them.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};
use std::sync::OnceLock;

use tempfile::TempDir;

use crate::listed::{Here, LISTED};
use crate::pages::{Page, pages, root};

/// Makes the profile that commands read.
const PROFILE: &str =
    "flashgrain profile sim:960evo --only depth,order,sequential --seconds 12 --file-size 64MiB";

/// Makes the workload that they read.
const WORKLOAD: &str = "flashgrain advise --workload ycsb-a --print-workload > mine.toml";

/// Folders of a user's drives, which are folders in the one of the test.
const PLACES: &[&str] = &["data", "backup"];

/// Blocks that are files: page, language, the file's name and a command that reads it.
const FILES: &[(&str, &str, &str, &str)] = &[
    ("docs/advise.md", "toml", "orders.toml", "flashgrain advise --workload orders.toml"),
    (
        "docs/faults.md",
        "toml",
        "fault.toml",
        "flashgrain sim show 960evo | cat - fault.toml > faulty.toml; flashgrain sim run faulty.toml --seconds 0.1",
    ),
    ("docs/samples-csv.md", "csv", "samples.csv", "flashgrain compare samples.csv"),
];

/// Blocks of printed output: page, and the command within a sentence that prints it. Lines may end with an
/// omission.
const PRINTED: &[(&str, &str)] =
    &[("docs/commands.md", "flashgrain sim run 960evo --read-share 70% --state steady-random")];

/// Runs a script as a shell does that stops at the first failure; `flashgrain` is the program under test.
fn bash(script: &str, folder: &Path) -> Output {
    let program = Path::new(env!("CARGO_BIN_EXE_flashgrain")).parent().unwrap();
    let path = format!("{}:{}", program.display(), std::env::var("PATH").unwrap());
    let file = folder.join("script.sh");
    fs::write(&file, script).unwrap();
    let mut command = Command::new("bash");
    command
        .args(["-ev", "-o", "pipefail"])
        .arg(file)
        .current_dir(folder)
        .env("PATH", path)
        .env("HOME", folder);
    command.output().unwrap()
}

#[track_caller]
fn succeeds(page: &str, output: &Output) {
    assert!(output.status.success(), "{page}: the last of\n{}", String::from_utf8_lossy(&output.stderr));
}

fn folder() -> TempDir {
    TempDir::new_in(env!("CARGO_TARGET_TMPDIR")).unwrap()
}

/// A folder with the files that commands read and no page makes.
fn with_files() -> TempDir {
    static PROFILED: OnceLock<TempDir> = OnceLock::new();
    let profiled = PROFILED.get_or_init(|| {
        let folder = folder();
        succeeds("with_files", &bash(PROFILE, folder.path()));
        folder
    });
    let folder = folder();
    let copy = |from: &Path, to: &str| {
        let to = folder.path().join(to);
        fs::create_dir_all(to.parent().unwrap()).unwrap();
        fs::copy(from, to).unwrap();
    };
    for name in ["profile.json", "before.json", "after.json"] {
        copy(&profiled.path().join("flashgrain-out/profile.json"), name);
    }
    copy(&profiled.path().join("flashgrain-out/samples.csv"), "samples.csv");
    let fixtures = root().join("crates/advisor/tests/fixtures");
    copy(&fixtures.join("960evo.json"), "flashgrain-out/profile.json");
    copy(&fixtures.join("rocksdb-log.txt"), "data/rocksdb/LOG");
    let fixtures = root().join("crates/ssdsim/tests/fixtures/mqsim");
    for name in ["ssdconfig.xml", "workload.xml", "traces/small.trace"] {
        copy(&fixtures.join(name), name);
    }
    fs::write(folder.path().join("plain.db"), database()).unwrap();
    fs::write(folder.path().join("app.trace"), trace()).unwrap();
    succeeds("with_files", &bash(WORKLOAD, folder.path()));
    folder
}

/// A file that begins as SQLite's databases do, with pages of 4 KiB.
fn database() -> Vec<u8> {
    let mut bytes = vec![0; 64 << 10];
    bytes[..20].copy_from_slice(b"SQLite format 3\0\x10\0\x01\x01");
    bytes
}

fn trace() -> String {
    let write = |number: u64| format!("W {} 1 0:{} - 4096 -\n", number * 1_000_000, number * 8192);
    let writes: String = (0..100).map(write).collect();
    format!("flashgrain trace 1\nname 0 /d/f\n{writes}F 100000000 1 0:0 - 0 -\nend\n")
}

/// The commands of a block: each has as many lines as the shell needs to understand it.
fn commands(page: &str, code: &str) -> Vec<String> {
    let (mut commands, mut command) = (Vec::new(), String::new());
    for line in code.lines() {
        command = format!("{command}{line}\n");
        if Command::new("bash").args(["-n", "-c", &command]).output().unwrap().status.success() {
            commands.push(std::mem::take(&mut command));
        }
    }
    assert!(command.is_empty(), "{page}: bash does not understand\n{command}");
    commands
}

/// A command as it runs here, or nothing; its place in the list goes to `used`.
fn here(page: &str, command: &str, used: &mut BTreeSet<usize>) -> Option<String> {
    let listed = LISTED.iter().position(|(of, begin, _)| *of == page && command.starts_with(begin));
    used.extend(listed);
    let mut command = match listed.map(|at| &LISTED[at].2) {
        None => command.to_owned(),
        Some(Here::Not(reason)) => {
            println!("{page} does not run: {} ({reason})", command.lines().next()?);
            return None;
        }
        Some(Here::With(arguments)) => format!("{} {arguments}\n", command.split(" #").next()?.trim_end()),
    };
    for place in PLACES {
        command = command.replace(&format!(" /{place}"), &format!(" {place}"));
    }
    Some(command)
}

/// A page's blocks as a script.
fn script(page: &Page, used: &mut BTreeSet<usize>) -> String {
    let mut script = String::new();
    for (_, language, file, read) in FILES.iter().filter(|(of, ..)| *of == page.name) {
        let blocks = page.blocks();
        let block = blocks.iter().find(|block| block.language == *language).unwrap();
        script += &format!("cat > {file} <<'THE_END'\n{}THE_END\n{read}\n", block.code);
    }
    for block in page.blocks().iter().filter(|block| block.language == "sh") {
        let commands = commands(&page.name, &block.code);
        script.extend(commands.iter().filter_map(|command| here(&page.name, command, used)));
    }
    script
}

#[test]
fn the_commands_of_every_page_run() {
    let mut used = BTreeSet::new();
    for page in pages() {
        let script = script(&page, &mut used);
        if !script.is_empty() {
            succeeds(&page.name, &bash(&script, with_files().path()));
        }
    }
    let unused: Vec<_> = (0..LISTED.len()).filter(|at| !used.contains(at)).map(|at| LISTED[at].1).collect();
    assert!(unused.is_empty(), "no page has these listed commands: {unused:#?}");
}

#[test]
fn commands_print_what_the_pages_show() {
    for (name, command) in PRINTED {
        let page = pages().into_iter().find(|page| page.name == *name).unwrap();
        assert!(page.text.contains(&format!("`{command}`")), "{name} has no {command}");
        let output = bash(command, folder().path());
        succeeds(name, &output);
        let printed = String::from_utf8(output.stdout).unwrap();
        let block = page.blocks().into_iter().find(|block| block.language == "text").unwrap();
        for line in block.code.lines() {
            let begin = line.trim_end_matches('…');
            let is_there = printed.lines().any(|of| of == line || begin != line && of.starts_with(begin));
            assert!(is_there, "{command} does not print\n{line}\nbut\n{printed}");
        }
    }
}
