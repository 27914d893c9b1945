//! Blocks that are no commands: which test each has.

use std::collections::BTreeSet;
use std::fs;
use std::process::Command;

use flashgrain_model::Estimate;
use tempfile::TempDir;

use crate::pages::{Block, pages, root};

/// Page, language, and the file of the test, which names the page.
const TESTS: &[(&str, &str, &str)] = &[
    ("README.md", "rust", "crates/store/src/lib.rs"),
    ("crates/store/README.md", "rust", "crates/store/src/lib.rs"),
    ("docs/advise.md", "toml", "crates/cli/tests/documentation/commands.rs"),
    ("docs/c.md", "c", "crates/c/tests/programs/guide.rs"),
    ("docs/faults.md", "rust", "crates/ssdsim/src/lib.rs"),
    ("docs/faults.md", "toml", "crates/cli/tests/documentation/commands.rs"),
    ("docs/profile-format.md", "json", "crates/cli/tests/documentation/languages.rs"),
    ("docs/python.md", "python", "python/tests/test_guide.py"),
    ("docs/raft.md", "rust", "crates/raft/src/lib.rs"),
    ("docs/samples-csv.md", "csv", "crates/cli/tests/documentation/commands.rs"),
    ("docs/sqlite.md", "console", "crates/sqlite-vfs/tests/extension.rs"),
    ("docs/sqlite.md", "rust", "crates/sqlite-vfs/src/lib.rs"),
    ("docs/store.md", "rust", "crates/store/src/lib.rs"),
    ("docs/store.md", "toml", "crates/cli/tests/documentation/languages.rs"),
    ("python/README.md", "python", "python/tests/test_guide.py"),
];

/// Tested as commands, and printed output and drawings: tests of the latter are optional.
const ON_ANY_PAGE: &[&str] = &["sh", "text"];

/// The block of a language on a page.
fn block(name: &str, language: &str) -> Block {
    let page = pages().into_iter().find(|page| page.name == name).unwrap();
    page.blocks().into_iter().find(|block| block.language == language).unwrap()
}

#[test]
fn every_block_has_a_test() {
    let mut found = BTreeSet::new();
    for page in pages() {
        for Block { language, code } in page.blocks() {
            // Programs that do not run are compiled.
            let language = language.trim_end_matches(",no_run");
            let test =
                TESTS.iter().position(|(of, in_language, _)| (*of, *in_language) == (&page.name, language));
            let is_tested = test.is_some() || ON_ANY_PAGE.contains(&language);
            assert!(is_tested, "{}: no test has this block in {language:?}:\n{code}", page.name);
            found.extend(test);
        }
    }
    for (at, (page, language, test)) in TESTS.iter().enumerate() {
        assert!(found.contains(&at), "{page} has no block in {language}");
        let text = fs::read_to_string(root().join(test)).unwrap();
        let of_package = page.rsplit("python/").next().unwrap();
        let file = of_package.rsplit("crates/store/").next().unwrap();
        assert!(text.contains(file), "{test} does not name {page}");
    }
}

#[test]
fn the_estimates_of_the_format_can_be_read() {
    for line in block("docs/profile-format.md", "json").code.lines() {
        let estimate: Estimate = serde_json::from_str(line).unwrap();
        assert_eq!(
            serde_json::to_value(&estimate).unwrap()["state"],
            if line.contains("value") { "determined" } else { "undetermined" }
        );
    }
}

#[test]
fn a_program_finds_the_store_as_its_dependency() {
    let folder = TempDir::new_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let program = folder.path().join("program");
    fs::create_dir_all(program.join("src")).unwrap();
    fs::write(program.join("src/main.rs"), "fn main() {}\n").unwrap();
    std::os::unix::fs::symlink(root(), folder.path().join("flashgrain")).unwrap();
    let dependencies = block("docs/store.md", "toml").code;
    let package = "[package]\nname = \"program\"\nedition = \"2024\"\n\n[workspace]\n";
    fs::write(program.join("Cargo.toml"), format!("{package}\n{dependencies}")).unwrap();
    fs::copy(root().join("Cargo.lock"), program.join("Cargo.lock")).unwrap();
    let mut tree = Command::new(env!("CARGO"));
    tree.args(["tree", "--offline", "--depth", "1"]).current_dir(&program);
    let output = tree.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(String::from_utf8(output.stdout).unwrap().contains("flashgrain v"));
}
