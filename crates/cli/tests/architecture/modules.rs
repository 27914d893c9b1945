//! Reads from the source which files of a crate use which.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use crate::source;

/// A module's path below the crate; the root's is empty.
pub type Module = Vec<String>;

/// Every module that is a file, and the modules that it uses.
pub type Uses = BTreeMap<Module, BTreeSet<Module>>;

/// Reads the modules below `folder`, which is a crate's `src`.
pub fn uses(folder: &Path) -> Uses {
    let mut texts = BTreeMap::new();
    for path in source::files(folder) {
        texts.insert(module(path.strip_prefix(folder).unwrap()), fs::read_to_string(&path).unwrap());
    }
    uses_of(&texts)
}

/// The same for modules whose text is given.
pub fn uses_of(texts: &BTreeMap<Module, String>) -> Uses {
    let known: BTreeSet<&Module> = texts.keys().filter(|module| !is_for_tests(texts, module)).collect();
    let of = |(module, text): (&Module, &String)| {
        let paths = paths(&tokens(&source::code(text)));
        let resolved = paths.iter().filter_map(|path| resolve(path, module, &known));
        (module.clone(), resolved.filter(|used| used != module).collect())
    };
    texts.iter().filter(|(module, _)| known.contains(module)).map(of).collect()
}

/// Whether only tests compile a module: it, or one that it is part of, is declared below a `cfg` of tests.
fn is_for_tests(texts: &BTreeMap<Module, String>, module: &Module) -> bool {
    (1..=module.len()).any(|length| {
        let Some(text) = texts.get(&module[..length - 1]) else { return false };
        let declared = format!("mod {};", module[length - 1]);
        let lines: Vec<&str> = text.lines().map(str::trim).collect();
        let at = lines.iter().position(|line| *line == declared || line.ends_with(&format!(" {declared}")));
        let above = at.and_then(|at| at.checked_sub(1)).map_or("", |above| lines[above]);
        above.starts_with("#[cfg(") && above.contains("test")
    })
}

/// `bench/mod.rs` and `bench.rs` are the module `bench`; `main.rs` and `lib.rs` are the root.
fn module(file: &Path) -> Module {
    let mut parts: Module =
        file.with_extension("").iter().map(|part| part.to_str().unwrap().to_owned()).collect();
    if parts.last().is_some_and(|last| ["mod", "main", "lib"].contains(&last.as_str())) {
        parts.pop();
    }
    parts
}

/// Identifiers, `::`, and other marks one by one.
fn tokens(code: &str) -> Vec<String> {
    let mut tokens: Vec<String> = Vec::new();
    let mut follows = false;
    for mark in code.chars() {
        let is_word = mark.is_alphanumeric() || mark == '_';
        match tokens.last_mut() {
            Some(last) if follows && is_word && last.chars().all(|of| of.is_alphanumeric() || of == '_') => {
                last.push(mark);
            }
            Some(last) if follows && mark == ':' && last == ":" => last.push(mark),
            _ if !mark.is_whitespace() => tokens.push(mark.to_string()),
            _ => {}
        }
        follows = !mark.is_whitespace();
    }
    tokens
}

/// All paths of at least two parts; those of `use` with their groups resolved.
fn paths(tokens: &[String]) -> Vec<Module> {
    let is_word =
        |token: &String| token.chars().next().is_some_and(|mark| mark.is_alphabetic() || mark == '_');
    let mut found = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        if tokens[at] == "use" {
            at = tree(tokens, at + 1, &[], &mut found);
        } else if is_word(&tokens[at]) {
            let mut path = vec![tokens[at].clone()];
            while tokens.get(at + 1).is_some_and(|next| next == "::")
                && tokens.get(at + 2).is_some_and(is_word)
            {
                at += 2;
                path.push(tokens[at].clone());
            }
            found.push(path);
            at += 1;
        } else {
            at += 1;
        }
    }
    found.retain(|path| path.len() > 1);
    found
}

/// A tree of `use` that begins at `at`; gives where it ends.
fn tree(tokens: &[String], mut at: usize, prefix: &[String], found: &mut Vec<Module>) -> usize {
    let mut path = prefix.to_vec();
    while let Some(token) = tokens.get(at) {
        match token.as_str() {
            "::" => {}
            "as" => at += 1,
            "{" => loop {
                at = tree(tokens, at + 1, &path, found);
                if tokens.get(at).is_none_or(|token| token != ",") {
                    // Behind the group's end nothing of this tree follows.
                    return at + 1;
                }
            },
            "," | "}" | ";" => break,
            part => path.push(part.to_owned()),
        }
        at += 1;
    }
    found.push(path);
    at
}

/// The module that a path within `from` leads to, if it is one of this crate.
fn resolve(path: &[String], from: &Module, known: &BTreeSet<&Module>) -> Option<Module> {
    let (mut base, mut rest) = (from.clone(), path);
    match path.first()?.as_str() {
        "crate" => (base, rest) = (Vec::new(), &path[1..]),
        "self" => rest = &path[1..],
        "super" => {
            while rest.first().is_some_and(|part| part == "super") {
                base.pop()?;
                rest = &rest[1..];
            }
        }
        child => {
            base.push(child.to_owned());
            if !known.contains(&base) {
                return None;
            }
            rest = &path[1..];
        }
    }
    for part in rest {
        base.push(part.clone());
        if !known.contains(&base) {
            base.pop();
            break;
        }
    }
    Some(base)
}

/// The same between the folders and files right below `folder`. Uses by and of the folder itself are left
/// out.
pub fn between_entries(uses: &Uses, folder: &[String]) -> Uses {
    let entry = |module: &Module| {
        let is_below = module.len() > folder.len() && module.iter().zip(folder).all(|(part, of)| part == of);
        is_below.then(|| module[..=folder.len()].to_vec())
    };
    let mut entries = Uses::new();
    for (module, used) in uses {
        let Some(from) = entry(module) else { continue };
        let to: Vec<Module> = used.iter().filter_map(entry).filter(|to| *to != from).collect();
        entries.entry(from).or_default().extend(to);
    }
    entries
}

/// Modules that use each other, each pair once. A file and one in its own folder, which it declares, are no
/// pair.
pub fn pairs(uses: &Uses) -> BTreeSet<(Module, Module)> {
    let is_used = |by: &Module, module: &Module| uses.get(by).is_some_and(|used| used.contains(module));
    let is_pair =
        |one: &Module, other: &Module| one < other && !other.starts_with(one) && is_used(other, one);
    let of = |(one, used): (&Module, &BTreeSet<Module>)| {
        let others = used.iter().filter(|other| is_pair(one, other));
        others.map(|other| (one.clone(), other.clone())).collect::<Vec<_>>()
    };
    uses.iter().flat_map(of).collect()
}

/// The modules that remain when modules are removed, one after another, that use no remaining one: circles,
/// and modules that lead to them.
pub fn circles(uses: &Uses) -> Uses {
    let mut left = uses.clone();
    loop {
        let known: BTreeSet<Module> = left.keys().cloned().collect();
        left.values_mut().for_each(|used| used.retain(|module| known.contains(module)));
        let before = left.len();
        left.retain(|_, used| !used.is_empty());
        if left.len() == before {
            return used_only(left);
        }
    }
}

/// Without modules that nothing uses: they only lead to a circle.
fn used_only(mut left: Uses) -> Uses {
    loop {
        let used: BTreeSet<Module> = left.values().flatten().cloned().collect();
        let before = left.len();
        left.retain(|module, _| used.contains(module));
        if left.len() == before {
            return left;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(texts: &[(&str, &str)]) -> BTreeMap<Module, String> {
        texts.iter().map(|(path, text)| (module(Path::new(path)), (*text).to_owned())).collect()
    }

    fn path(text: &str) -> Module {
        text.split('/').map(str::to_owned).collect()
    }

    #[test]
    fn uses_are_found_in_all_their_forms() {
        let uses = uses_of(&texts(&[
            ("main.rs", "mod a; mod b;\nuse a::run;\nfn main() { b::c::go() }"),
            ("a.rs", "use std::io;\nuse crate::{b::{self, c::{One, Two}}, d as other};\nfn run() {}"),
            ("b/mod.rs", "mod c;\npub use c::One;\n"),
            (
                "b/c.rs",
                "// crate::a is not used\nconst TEXT: &str = \"crate::a::x\";\nfn go() { super::super::d::f() }",
            ),
            ("d.rs", "fn f() {}\n#[cfg(test)]\nmod tests { use crate::a::run; }"),
        ]));
        let of = |module: &[String]| uses[module].iter().map(|used| used.join("/")).collect::<Vec<_>>();
        assert_eq!(of(&[]), ["a", "b/c"]);
        assert_eq!(of(&path("a")), ["b", "b/c", "d"]);
        assert_eq!(of(&path("b")), ["b/c"]);
        assert_eq!(of(&path("b/c")), ["d"]);
        assert!(of(&path("d")).is_empty() && circles(&uses).is_empty());
    }

    #[test]
    fn modules_of_tests_are_left_out() {
        let uses = uses_of(&texts(&[
            ("lib.rs", "mod a;\nmod b;\n#[cfg(test)]\npub(crate) mod c;\n"),
            ("a.rs", "#[cfg(all(test, feature = \"x\"))]\nmod tests;"),
            ("a/tests.rs", "use crate::b::f;"),
            ("b.rs", "use crate::a::g; use crate::c::h;"),
            ("c/mod.rs", "mod d;"),
            ("c/d.rs", "use crate::b::f;"),
        ]));
        assert_eq!(uses.keys().cloned().collect::<Vec<_>>(), [vec![], path("a"), path("b")]);
        assert!(circles(&uses).is_empty());
    }

    #[test]
    fn circles_are_found_without_what_only_touches_them() {
        let uses = uses_of(&texts(&[
            ("lib.rs", "use a::One;"),
            ("a.rs", "use crate::b::Two;"),
            ("b.rs", "use crate::c::x; use crate::d::y;"),
            ("c.rs", "fn x() { crate::a::f() }"),
            ("d.rs", ""),
        ]));
        let found = circles(&uses);
        assert_eq!(found.into_keys().collect::<Vec<_>>(), [path("a"), path("b"), path("c")]);
    }

    #[test]
    fn pairs_are_files_that_use_each_other_outside_of_their_own_folder() {
        let uses = uses_of(&texts(&[
            ("lib.rs", "mod a; mod b; mod c; use a::One;"),
            ("a/mod.rs", "mod in_a; use in_a::Two; use crate::b::Three; use crate::c::Four;"),
            ("a/in_a.rs", "use super::Five; use crate::b::Six;"),
            ("b.rs", "fn f() { crate::a::in_a::g() } use crate::a::One; use crate::One as Root;"),
            ("c.rs", ""),
        ]));
        let found: Vec<_> = pairs(&uses).into_iter().collect();
        assert_eq!(found, [(path("a"), path("b")), (path("a/in_a"), path("b"))]);
    }

    #[test]
    fn folders_may_form_a_circle_though_their_files_do_not() {
        let uses = uses_of(&texts(&[
            ("x/mod.rs", "mod a; mod b;"),
            ("y/mod.rs", "mod a; mod b;"),
            ("x/a.rs", "use crate::y::a::One;"),
            ("y/b.rs", "use crate::x::b::Two;"),
            ("y/a.rs", ""),
            ("x/b.rs", ""),
        ]));
        assert!(circles(&uses).is_empty());
        assert_eq!(circles(&between_entries(&uses, &[])).len(), 2);
        assert!(circles(&between_entries(&uses, &["x".to_owned()])).is_empty());
    }
}
