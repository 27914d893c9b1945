//! How long functions are, how wide comments, and how constants that bound something are named.

use std::collections::BTreeMap;
use std::fs;

use crate::{root, source, sources};

/// A function has no more lines, from its first to its closing brace.
const FUNCTION_LINES_MAX: usize = 70;

/// How many longer functions each crate still has. The numbers may fall, and not rise.
const LONGER_FUNCTIONS: &[(&str, usize)] = &[("profile", 4), ("report", 3), ("store", 1)];

/// A comment ends at this column.
const COMMENT_COLUMNS_MAX: usize = 110;

/// How many wider lines of comments each crate still has: drawings, and code in examples. The numbers may
/// fall, and not rise.
const WIDER_COMMENTS: &[(&str, usize)] = &[("model", 1), ("store", 8)];

/// Words for bounds and parts in names of constants, instead of `_MIN`, `_MAX`, `_FRACTION` and `_DIVISOR`.
const OTHER_WORDS: &[&str] = &["LEAST", "MOST", "SMALLEST", "LARGEST", "SHORTEST", "LONGEST", "SHARE"];

/// How many constants of each crate are named with these words: names of columns.
const NAMED_OTHERWISE: &[(&str, usize)] = &[("model", 2)];

/// Counts what `found` finds in each crate's files and compares it with what is still allowed there.
fn count(allowed: &[(&str, usize)], found: impl Fn(&str) -> Vec<String>) {
    let mut counts: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for path in sources().into_iter().filter(|path| !path.split('/').any(|part| part == "tests")) {
        let text = fs::read_to_string(root().join(&path)).unwrap();
        let name = path.split('/').nth(1).unwrap().to_owned();
        let lines = found(source::without_tests(&text)).into_iter().map(|what| format!("{path}:{what}"));
        counts.entry(name).or_default().extend(lines);
    }
    let mut risen = String::new();
    for (name, found) in counts {
        let most = allowed.iter().find(|(of, _)| *of == name).map_or(0, |(_, most)| *most);
        if found.len() > most {
            risen += &format!("{} in `{name}`, at most {most}:\n{}\n", found.len(), found.join("\n"));
        }
    }
    assert!(risen.is_empty(), "{risen}");
}

#[test]
fn functions_are_short() {
    count(LONGER_FUNCTIONS, long_functions);
}

#[test]
fn comments_are_narrow() {
    count(WIDER_COMMENTS, wide_comments);
}

#[test]
fn bounds_are_minima_and_maxima() {
    count(NAMED_OTHERWISE, otherwise_named);
}

/// Constants named with one of the [`OTHER_WORDS`], or with a bound's word in front.
fn otherwise_named(text: &str) -> Vec<String> {
    let name = |line: &str| line.split("const ").nth(1)?.split(':').next().map(str::to_owned);
    let is_odd = |name: &String| {
        let is_constant = name.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_');
        let starts_with_bound = name.starts_with("MIN_") || name.starts_with("MAX_");
        is_constant && (starts_with_bound || name.split('_').any(|word| OTHER_WORDS.contains(&word)))
    };
    let named = text.lines().enumerate().filter_map(|(number, line)| Some((number, name(line)?)));
    named.filter(|(_, name)| is_odd(name)).map(|(number, name)| format!("{}: {name}", number + 1)).collect()
}

/// Those that are too long. The formatter has put the closing brace right below the first line.
fn long_functions(text: &str) -> Vec<String> {
    let lines: Vec<&str> = text.lines().collect();
    let indent = |line: &str| line.len() - line.trim_start().len();
    let mut found = Vec::new();
    for (first, line) in lines.iter().enumerate().filter(|(_, line)| is_function(line)) {
        let ends = |other: &&str| indent(other) == indent(line) && matches!(other.trim(), "}" | ";" | ");");
        let Some(last) = lines[first..].iter().position(ends) else { continue };
        let signature_only =
            lines[first..=first + last].iter().take_while(|line| !line.ends_with('{')).count();
        let is_declared = signature_only > last || line.trim_end().ends_with(['}', ';']);
        if !is_declared && last + 1 > FUNCTION_LINES_MAX {
            found.push(format!("{}: {} lines: {}", first + 1, last + 1, line.trim()));
        }
    }
    found
}

fn is_function(line: &str) -> bool {
    let mut words = line.trim_start().split(' ').take_while(|word| !word.starts_with("//"));
    let is_before = |word: &&str| {
        ["pub", "const", "unsafe", "async", "extern"].contains(word)
            || word.starts_with("pub(")
            || word.starts_with('"')
    };
    words.find(|word| !is_before(word)) == Some("fn")
}

/// Those that are too wide, unless a long address is the reason.
fn wide_comments(text: &str) -> Vec<String> {
    let is_wide = |line: &&str| {
        line.trim_start().starts_with("//")
            && line.chars().count() > COMMENT_COLUMNS_MAX
            && !line.contains("://")
    };
    let wide = text.lines().enumerate().filter(|(_, line)| is_wide(line));
    wide.map(|(number, line)| format!("{}: {} columns", number + 1, line.chars().count())).collect()
}

#[test]
fn long_functions_and_wide_comments_are_found() {
    let body = "        work();\n".repeat(FUNCTION_LINES_MAX);
    let text = format!("impl A {{\n    pub const fn short() {{ 1 }}\n\n    fn long() {{\n{body}    }}\n}}\n");
    let found = long_functions(&text);
    assert!(found.len() == 1 && found[0].starts_with("4: 72 lines"), "{found:?}");
    let fits = format!("// {}\n", "x".repeat(COMMENT_COLUMNS_MAX - 3));
    assert!(wide_comments(&fits).is_empty());
    assert_eq!(wide_comments(&format!("{fits}    /{fits}")).len(), 1);
}

#[test]
fn bounds_with_other_names_are_found() {
    let text = "const BYTES_MAX: u64 = 1;\npub(crate) const MOST_BYTES: u64 = 1;\nconst fn least() {}\n    const TIME_SHARE: f64 = 0.1;\nconst ALMOST: u8 = 1;\nconst MAX_X: u8 = 1;";
    assert_eq!(otherwise_named(text), ["2: MOST_BYTES", "4: TIME_SHARE", "6: MAX_X"]);
}
