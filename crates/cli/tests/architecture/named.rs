//! The names in ARCHITECTURE.md, the pages on the store's code and the decision notes: files and folders
//! exist, an item is in the file that follows it, and the words of any other item occur in code.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Folders that paths on the page may be relative to, besides the crates and their `src`.
const BASES: &[&str] = &["", "crates/store/src", "docs", "docs/decisions"];

/// The texts between backquotes and the targets of links, outside of blocks of code, each with what stands
/// between it and the one before.
fn spans(page: &str) -> Vec<(&str, &str)> {
    let mut spans = Vec::new();
    for text in page.split("```").step_by(2) {
        let mut pieces = text.split('`');
        let mut before = pieces.next().unwrap_or_default();
        while let (Some(span), Some(after)) = (pieces.next(), pieces.next()) {
            spans.push((before, span));
            before = after;
        }
        let targets = text.split("](").skip(1).filter_map(|rest| rest.split(')').next());
        spans.extend(targets.filter(|target| !target.contains("//")).map(|target| ("", target)));
    }
    spans
}

/// Whether a text is meant as a path: it has no blanks, and a slash or the ending of a file.
fn is_path(text: &str) -> bool {
    let allowed = |c: char| c.is_ascii_alphanumeric() || "._-/*#".contains(c);
    text.chars().all(allowed)
        && !text.starts_with('/')
        && (text.contains('/') || text.ends_with(".rs") || text.ends_with(".md"))
}

/// Where a path leads, from the root, a crate or one of the [`BASES`]. Of a path with a `*` the part before
/// it must lead somewhere.
fn find(root: &Path, path: &str) -> Option<PathBuf> {
    let fixed = path.split(['*', '#']).next()?;
    let crates = fs::read_dir(root.join("crates")).ok()?.filter_map(Result::ok).map(|entry| entry.path());
    let crates = crates.flat_map(|folder| [folder.join("src"), folder]);
    let mut bases = BASES.iter().map(|base| root.join(base)).chain(crates);
    bases.find_map(|base| Some(base.join(fixed)).filter(|found| found.exists()))
}

/// Whether a file defines the item: for `Type::function` the function, and the type is mentioned.
fn defines(file: &str, item: &str) -> bool {
    let is_name = |c: char| c.is_alphanumeric() || c == '_';
    let has =
        |text: &str| file.match_indices(text).any(|(at, _)| !file[at + text.len()..].starts_with(is_name));
    let (of, name) = item.rsplit_once("::").unwrap_or(("", item));
    let keywords = ["fn", "struct", "enum", "trait", "type", "const", "mod"];
    // A function of a module stands in the module's file.
    let of = of.rsplit("::").next().filter(|of| of.starts_with(char::is_uppercase)).unwrap_or_default();
    keywords.iter().any(|keyword| has(&format!("{keyword} {name}"))) && (of.is_empty() || has(of))
}

/// The names of the page without a file or an item.
fn missing(root: &Path, page: &str) -> Vec<String> {
    let (mut missing, mut item) = (Vec::new(), "");
    for (before, span) in spans(page) {
        if !is_path(span) {
            item = span;
            continue;
        }
        match find(root, span) {
            None => missing.push(format!("there is no {span}")),
            // A line may end between the item and its file.
            Some(path) if before.trim_start() == "(" && !item.is_empty() => {
                let text = fs::read_to_string(&path).unwrap_or_default();
                if !defines(&text, item) {
                    missing.push(format!("{span} defines no {item}"));
                }
            }
            Some(_) => {}
        }
        item = "";
    }
    missing
}

/// All words of the workspace's code.
fn words(root: &Path) -> HashSet<String> {
    let mut words = HashSet::new();
    for source in super::sources() {
        let text = fs::read_to_string(root.join(source)).unwrap();
        for word in text.split(|c: char| !c.is_alphanumeric() && c != '_') {
            if !words.contains(word) {
                words.insert(word.to_owned());
            }
        }
    }
    words
}

/// The items of the page, such as `Type::function`, of which a word occurs nowhere in code.
fn unknown<'a>(words: &HashSet<String>, page: &'a str) -> Vec<&'a str> {
    let is_item = |span: &str| {
        let name = |part: &str| !part.is_empty() && part.chars().all(|c| c.is_alphanumeric() || c == '_');
        span.contains("::") && span.split("::").all(name)
    };
    let items = spans(page).into_iter().map(|(_, span)| span.split('(').next().unwrap_or_default());
    items.filter(|span| is_item(span) && !span.split("::").all(|part| words.contains(part))).collect()
}

#[test]
fn everything_that_decision_notes_name_is_there() {
    let root = super::root();
    let (words, mut paths) = (words(&root), 0);
    for entry in fs::read_dir(root.join("docs/decisions")).unwrap() {
        let path = entry.unwrap().path();
        let text = fs::read_to_string(&path).unwrap();
        // Names of a note that another one replaces as a whole may be gone.
        if text.contains("\nStatus: superseded by ") {
            continue;
        }
        paths += spans(&text).into_iter().filter(|(_, span)| is_path(span)).count();
        let (missing, unknown) = (missing(&root, &text), unknown(&words, &text));
        assert!(missing.is_empty() && unknown.is_empty(), "{}: {missing:#?} {unknown:#?}", path.display());
    }
    assert!(paths > 100, "the paths of the notes must be found: {paths}");
}

#[test]
fn everything_that_the_pages_name_is_there() {
    let root = super::root();
    for (page, least) in [
        ("ARCHITECTURE.md", 50),
        ("docs/glossary.md", 50),
        ("docs/store-steps.md", 50),
        ("docs/store-format.md", 2),
        ("docs/store.md", 20),
        ("docs/trust.md", 5),
    ] {
        let text = fs::read_to_string(root.join(page)).unwrap();
        let paths = spans(&text).into_iter().filter(|(_, span)| is_path(span)).count();
        assert!(paths > least, "the paths of {page} must be found: {paths}");
        let missing = missing(&root, &text);
        assert!(missing.is_empty(), "{page}: {missing:#?}");
    }
}

#[test]
fn paths_and_items_that_are_missing_are_found() {
    let root = super::root();
    let page = "`crates/device/` and `crates/*/tests`, `src/lib.rs`, [one](docs/store.md#the-store), `a / b`, `x`\n\
                `BTree::descend` (`btree/descent.rs`), `slots::save` (`checkpoint/slots.rs`)\n\
                ```\nno/such/path.rs\n```\n";
    assert_eq!(missing(&root, page), Vec::<String>::new());
    let page = "`crates/gone/`, `gone.rs`, [one](docs/gone.md), `BTree::gone` (`btree/descent.rs`), \
                `BTree::descen` (`btree/descent.rs`), `Gone::descend` (`btree/descent.rs`)";
    let expected = [
        "there is no crates/gone/",
        "there is no gone.rs",
        "btree/descent.rs defines no BTree::gone",
        "btree/descent.rs defines no BTree::descen",
        "btree/descent.rs defines no Gone::descend",
        "there is no docs/gone.md",
    ];
    assert_eq!(missing(&root, page), expected);
    assert_eq!(missing(&root, "`BTree::gone`\n(`btree/descent.rs`)"), [expected[2]]);

    let words = ["Tree", "insert"].map(str::to_owned).into();
    let page = "`Tree::insert`, `Tree::insert(key)`, `a / b`, `Tree::gone`, `Gone::insert(key)`";
    assert_eq!(unknown(&words, page), ["Tree::gone", "Gone::insert"]);
}
