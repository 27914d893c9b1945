//! The headers have the functions of the source, and the programs call all of them.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

use crate::compile::root;

/// The exported functions in the files of a folder.
fn exported(folder: &Path) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for entry in fs::read_dir(folder).unwrap() {
        let text = fs::read_to_string(entry.unwrap().path()).unwrap();
        for function in text.split("#[unsafe(no_mangle)]").skip(1) {
            let name = function.split("fn ").nth(1).and_then(|rest| rest.split('(').next());
            names.insert(name.unwrap().to_owned());
        }
    }
    names
}

/// The functions that a text in C declares or calls: words with this prefix before a bracket.
fn named(text: &str, prefix: &str) -> BTreeSet<String> {
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let words = text.split('(').map(|before| before.rsplit(|c| !is_name(c)).next().unwrap_or_default());
    words.filter(|word| word.starts_with(prefix)).map(str::to_owned).collect()
}

#[test]
fn the_headers_have_each_exported_function_and_the_programs_call_it() {
    let cases = [
        ("src/abi", "fg_", "include/flashgrain.h", "tests/c/flashgrain_functions.c"),
        ("src/leveldb", "leveldb_", "include/leveldb/c.h", "tests/c/leveldb_functions.c"),
    ];
    for (folder, prefix, header, program) in cases {
        let exported = exported(&root().join(folder));
        assert!(exported.len() > 60, "{exported:?}");
        let read = |path: &str| fs::read_to_string(root().join(path)).unwrap();
        assert_eq!(named(&read(header), prefix), exported, "{header}: run scripts/build-c-header.sh");
        let called = named(&read(program), prefix);
        let missing: Vec<_> = exported.difference(&called).collect();
        assert!(missing.is_empty(), "{program} does not call {missing:?}");
    }
}

/// The places of results among a function's parameters, but for that of the error.
fn places(function: &str) -> BTreeSet<&str> {
    let parameters = function.split(") -> ").next().unwrap().lines();
    let place = |line: &'_ str| line.contains(": Option<&mut MaybeUninit<").then(|| line.find(':'))?;
    parameters
        .filter_map(|line| place(line).map(|end| line[..end].trim()))
        .filter(|name| *name != "error")
        .collect()
}

#[test]
fn each_function_empties_the_places_of_its_results_first() {
    let mut checked = 0;
    for entry in fs::read_dir(root().join("src/abi")).unwrap() {
        let text = fs::read_to_string(entry.unwrap().path()).unwrap();
        for function in text.split("#[unsafe(no_mangle)]").skip(1) {
            let places = places(function);
            if places.is_empty() {
                continue;
            }
            let body = function.split("call(error, || {").nth(1).unwrap_or_else(|| panic!("{function}"));
            let first = body.trim_start().strip_prefix("places!(").unwrap_or_else(|| panic!("{function}"));
            let emptied = first.split(')').next().unwrap().split(", ").collect::<BTreeSet<_>>();
            assert_eq!(emptied, places, "{function}");
            checked += 1;
        }
    }
    assert!(checked > 25, "{checked} functions have places");
}

#[test]
fn the_header_has_each_status_by_its_number() {
    let header = fs::read_to_string(root().join("include/flashgrain.h")).unwrap();
    let source = fs::read_to_string(root().join("src/status.rs")).unwrap();
    let numbers = |text: &str, from: &str, to: &str| -> Vec<i32> {
        let body = text.split(from).nth(1).unwrap().split(to).next().unwrap().to_owned();
        let number = |line: &str| line.split(" = ").nth(1)?.trim_end_matches(',').parse().ok();
        body.lines().filter_map(number).collect()
    };
    let declared = numbers(&header, "enum fg_status", "};");
    assert_eq!(declared, numbers(&source, "pub enum Status {", "\n}"));
    assert!(declared.len() > 20, "{declared:?}");
}

/// In C++ the functions have the names of C.
#[test]
fn the_headers_are_those_of_programs_in_c_plus_plus_too() {
    let folder = tempfile::tempdir().unwrap();
    let code = folder.path().join("program.cc");
    let text = "#include <flashgrain.h>\n#include <leveldb/c.h>\nint main() {\n  fg_status status = FG_STATUS_OK;\n  return status == FG_STATUS_OK ? 0 : 1;\n}\n";
    fs::write(&code, text).unwrap();
    let output = Command::new("c++")
        .args(["-Wall", "-Wextra", "-Werror", "-fsyntax-only", "-I"])
        .arg(root().join("include"))
        .arg(&code)
        .output();
    // A compiler of C alone builds all there is.
    let Ok(output) = output else { return };
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}
