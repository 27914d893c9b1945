//! Each decision note has a status below its title, and the list of notes repeats it.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// The numbers and texts of all notes in `docs/decisions`.
fn notes() -> BTreeMap<String, String> {
    let folder = super::root().join("docs/decisions");
    let files = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path());
    let notes: BTreeMap<_, _> = files.filter_map(|path| Some((note_name(&path)?, path))).collect();
    assert!(notes.len() > 60, "the notes must be found: {}", notes.len());
    notes.into_iter().map(|(name, path)| (name, fs::read_to_string(path).unwrap())).collect()
}

/// The file's name, if it is a note: four digits, a hyphen and words.
fn note_name(path: &Path) -> Option<String> {
    let name = path.file_name()?.to_str()?;
    let is_note = name.split('-').next()?.chars().all(|c| c.is_ascii_digit()) && name.ends_with(".md");
    is_note.then(|| name.to_owned())
}

/// The status of the note `name`: `accepted`, or the link to the later note that supersedes it or a part of
/// it.
///
/// # Errors
/// The rule that the note breaks.
fn status(name: &str, note: &str, exists: impl Fn(&str) -> bool) -> Result<String, String> {
    let number: u32 = name[..4].parse().map_err(|_| "the name begins with four digits".to_owned())?;
    if !note.starts_with(&format!("# {number}. ")) {
        return Err(format!("the title begins with `# {number}. `"));
    }
    let paragraph = note.split("\n\n").nth(1).unwrap_or_default().replace('\n', " ");
    let Some(status) = paragraph.strip_prefix("Status: ") else {
        return Err("`Status: ` follows the title".to_owned());
    };
    if status == "accepted" {
        return Ok(status.to_owned());
    }
    let rest = status.strip_prefix("partly ").unwrap_or(status);
    let link = rest.strip_prefix("superseded by [").and_then(|rest| rest.split_once("]("));
    let Some((by, (target, after))) = link.and_then(|(by, rest)| Some((by, rest.split_once(')')?))) else {
        return Err(
            "a status is `accepted`, or `superseded by` or `partly superseded by` with a link".to_owned()
        );
    };
    let is_later = by.parse::<u32>().is_ok_and(|by| by > number && target.starts_with(&format!("{by:04}-")));
    if !is_later || !exists(target) {
        return Err(format!("{target} is no later note with the number {by}"));
    }
    if status.starts_with("partly ") != (after.starts_with(" (") && after.ends_with(')')) {
        return Err("a partly superseded note says which part, in parentheses, and no other does".to_owned());
    }
    Ok(status[..status.len() - after.len()].to_owned())
}

#[test]
fn each_decision_has_a_status_which_the_list_repeats() {
    let notes = notes();
    let list = fs::read_to_string(super::root().join("docs/decisions/README.md")).unwrap();
    for (name, note) in &notes {
        let status = status(name, note, |target| notes.contains_key(target));
        let status = status.unwrap_or_else(|rule| panic!("docs/decisions/{name}: {rule}"));
        let row = list.lines().find(|line| line.contains(&format!("({name}) | ")));
        let row = row.unwrap_or_else(|| panic!("docs/decisions/README.md does not list {name}"));
        assert!(row.ends_with(&format!(" | {status} |")), "the status of {name} is `{status}`: {row}");
    }
}

#[test]
fn statuses_that_break_a_rule_are_found() {
    let of = |paragraph: &str| {
        status("0002-two.md", &format!("# 2. Two\n\n{paragraph}\n\nText.\n"), |target| {
            target == "0003-three.md"
        })
    };
    assert_eq!(of("Status: accepted").unwrap(), "accepted");
    let superseded = "superseded by [3](0003-three.md)";
    assert_eq!(of(&format!("Status: {superseded}")).unwrap(), superseded);
    assert_eq!(
        of(&format!("Status: partly {superseded} (a\npart)")).unwrap(),
        format!("partly {superseded}")
    );
    for wrong in [
        "Text without a status.".to_owned(),
        "Status: good".to_owned(),
        format!("Status: partly {superseded}"),
        format!("Status: {superseded} (a part)"),
        "Status: superseded by [1](0001-one.md)".to_owned(),
        "Status: superseded by [4](0004-gone.md)".to_owned(),
        "Status: superseded by [4](0003-three.md)".to_owned(),
    ] {
        assert!(of(&wrong).is_err(), "{wrong}");
    }
    assert!(status("0002-two.md", "# 3. Two\n\nStatus: accepted\n", |_| true).is_err(), "another number");
}
