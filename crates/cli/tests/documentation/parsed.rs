//! Whether a program takes the command lines that the pages have for it.

mod pages;

use std::collections::BTreeSet;

use clap::error::ErrorKind;

/// Words within sentences that begin like a command and are none: the name of a format, and a command
/// without the name in it.
const NO_COMMANDS: &[&str] = &["flashgrain device profile", "flashgrain study NAME"];

/// The arguments that a line has for the program, its name first. `cargo run` without a package is
/// `flashgrain`.
fn arguments(line: &str, program: &str) -> Option<Vec<String>> {
    let words = pages::words(line);
    if words.first()? == program {
        return Some(words);
    }
    let [cargo, run, ..] = words.as_slice() else { return None };
    if (cargo.as_str(), run.as_str()) != ("cargo", "run") {
        return None;
    }
    let (cargo, own) = words.split_at(words.iter().position(|word| word == "--")?);
    let package = cargo.iter().skip_while(|word| *word != "-p").nth(1);
    let runs = package.map_or("flashgrain".to_owned(), |package| package.replace('_', "-"));
    let is_it = runs == program && !cargo.contains(&"--example".to_owned());
    is_it.then(|| [&[runs], &own[1..]].concat())
}

/// Each documented command of the program that `parse` refuses, with the error.
pub fn refused<T>(program: &str, parse: impl Fn(Vec<String>) -> Result<T, clap::Error>) -> Vec<String> {
    let (mut refused, mut found, mut none) = (Vec::new(), 0, BTreeSet::new());
    for page in pages::pages() {
        let lines = page.lines().into_iter().map(|line| (line, true));
        for (line, is_whole) in lines.chain(page.spans().into_iter().map(|span| (span, false))) {
            let Some(arguments) = arguments(&line, program) else { continue };
            found += 1;
            let Err(error) = parse(arguments) else { continue };
            let is_unknown =
                matches!(error.kind(), ErrorKind::UnknownArgument | ErrorKind::InvalidSubcommand);
            match NO_COMMANDS.iter().find(|text| !is_whole && **text == line) {
                Some(text) => none.extend([*text]),
                // Within sentences, commands may be incomplete.
                None if is_whole || is_unknown => refused.push(format!("{}: {line}\n{error}", page.name)),
                None => {}
            }
        }
    }
    assert!(found > 0, "the pages must have commands for {program}");
    let of_program = NO_COMMANDS.iter().filter(|text| text.split(' ').next() == Some(program));
    assert!(of_program.eq(&none), "words that no page has, or that are a command by now: not {none:?}");
    refused
}
