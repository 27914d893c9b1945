//! Commands for those who have the sources name packages, targets and scripts that exist.

use crate::pages::{pages, root, words};

/// The words after each `option`.
fn values<'a>(words: &'a [String], option: &str) -> impl Iterator<Item = &'a str> {
    words.windows(2).filter(move |pair| pair[0] == option).map(|pair| pair[1].as_str())
}

/// The paths that a command needs below the root, each with alternatives.
fn needs(words: &[String]) -> Vec<Vec<String>> {
    let Some(program) = words.first() else { return Vec::new() };
    if program.starts_with("scripts/") {
        return vec![vec![program.clone()]];
    }
    if program != "cargo" {
        return Vec::new();
    }
    let mut needed = Vec::new();
    let words = words.split(|word| word == "--").next().unwrap_or_default();
    for package in values(words, "-p") {
        let folder = match package.strip_prefix("flashgrain_") {
            None => "crates/store".to_owned(),
            Some(name) => format!("crates/{}", name.replace('_', "-")),
        };
        needed.push(vec![format!("{folder}/Cargo.toml")]);
        for (option, kind) in [("--test", "tests"), ("--example", "examples"), ("--bench", "benches")] {
            for name in values(words, option) {
                needed.push(["", "/main"].map(|end| format!("{folder}/{kind}/{name}{end}.rs")).to_vec());
            }
        }
    }
    needed.extend(values(words, "--path").map(|path| vec![path.to_owned()]));
    needed
}

#[test]
fn packages_targets_and_scripts_exist() {
    let (mut missing, mut found) = (Vec::new(), 0);
    for page in pages() {
        for line in page.lines().into_iter().chain(page.spans()) {
            for paths in needs(&words(&line)) {
                found += 1;
                if !paths.iter().any(|path| root().join(path).exists()) {
                    missing.push(format!("{}: {}: {}", page.name, line, paths.join(" or ")));
                }
            }
        }
    }
    assert!(found > 50, "the commands must be found: {found}");
    assert!(missing.is_empty(), "{missing:#?}");
}

#[test]
fn what_is_missing_is_found() {
    let needs = |line: &str| needs(&words(line)).concat();
    assert_eq!(
        needs("A=1 cargo test -p flashgrain_fuzz_targets --test store in -- --test x # --test y"),
        [
            "crates/fuzz-targets/Cargo.toml",
            "crates/fuzz-targets/tests/store.rs",
            "crates/fuzz-targets/tests/store/main.rs"
        ]
    );
    assert_eq!(needs("scripts/gone.sh 'a b'"), ["scripts/gone.sh"]);
    assert!(needs("flashgrain io /data -p x").is_empty());
}
