//! Rust files, and what of them is code.

use std::fs;
use std::path::{Path, PathBuf};

/// All Rust files below a folder.
pub fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
    found.sort();
    found
}

/// The lines before a file's inline tests.
pub fn without_tests(text: &str) -> &str {
    text.find("#[cfg(test)]\nmod ").map_or(text, |end| &text[..end])
}

/// The code of a file: without its inline tests, comments and what is in quotation marks. Lines stay lines.
pub fn code(text: &str) -> String {
    let text = without_tests(text);
    let mut code = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(mark) = rest.chars().next() {
        let skipped = if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else if rest.starts_with("/*") {
            rest.find("*/").map_or(rest.len(), |end| end + 2)
        } else if mark == '"' {
            quoted(rest)
        } else if let Some(hashes) = raw_string(rest, code.chars().next_back()) {
            let end = format!("\"{}", "#".repeat(hashes));
            let start = hashes + 2;
            rest[start..].find(&end).map_or(rest.len(), |at| start + at + end.len())
        } else {
            character(rest)
        };
        if skipped == 0 {
            code.push(mark);
            rest = &rest[mark.len_utf8()..];
        } else {
            code.extend(rest[..skipped].matches('\n'));
            rest = &rest[skipped..];
        }
    }
    code
}

/// Bytes of the string that `rest` begins with.
fn quoted(rest: &str) -> usize {
    let mut escaped = false;
    for (at, mark) in rest.char_indices().skip(1) {
        match mark {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return at + 1,
            _ => {}
        }
    }
    rest.len()
}

/// How many `#` the raw string has that `rest` begins with, if it does.
fn raw_string(rest: &str, before: Option<char>) -> Option<usize> {
    let behind = rest.strip_prefix('r')?;
    let hashes = behind.len() - behind.trim_start_matches('#').len();
    let is_name = before.is_some_and(|mark| mark.is_alphanumeric() || mark == '_');
    (behind[hashes..].starts_with('"') && !is_name).then_some(hashes)
}

/// Bytes of the character in quotation marks that `rest` begins with; 0 if it is none, but perhaps a
/// lifetime.
fn character(rest: &str) -> usize {
    let Some(behind) = rest.strip_prefix('\'') else { return 0 };
    let mut marks = behind.char_indices();
    match (marks.next(), marks.next()) {
        (Some((_, '\\')), Some(_)) => behind[2..].find('\'').map_or(0, |end| end + 4),
        (Some(_), Some((at, '\''))) => at + 2,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_code_is_left() {
        let text = "fn a<'x>(_: &'x str) { b('\"', '\\'', \"a \\\" b\", r#\"c \" d\"#) } // e\n/* f */ g\n#[cfg(test)]\nmod tests { h }";
        assert_eq!(code(text), "fn a<'x>(_: &'x str) { b(, , , ) } \n g\n");
    }
}
