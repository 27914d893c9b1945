//! Tables of a judged trace.

use flashgrain_trace::check::{AT_DRIVE, FileKind, FileReport, Group, KindReport, Report, RuleTally};
use flashgrain_trace::{Layer, Rule};

use crate::table::{Cell, Kind, Table, Tone};
use crate::unit::{self, Unit};

/// The longest name in a table, in characters.
const NAME_CHARACTERS_MAX: usize = 28;

/// The findings of each rule in some files.
pub(super) fn rules(report: &Report, group: &Group) -> Table {
    let mut table = Table::new(&[
        ("rule", Kind::Label),
        ("asks that", Kind::Prose),
        ("broken by", Kind::Number),
        ("of requests", Kind::Number),
        ("bytes", Kind::Number),
        ("costs", Kind::Number),
        ("of the time", Kind::Number),
        ("flash pages", Kind::Number),
    ]);
    for (rule, found) in report.rules.iter().zip(&group.rules) {
        let mut row: Vec<Cell> = vec![rule.number.to_string().into(), rule.title.into()];
        match found {
            Some(tally) => row.extend(found_cells(tally, group)),
            None => {
                row.push(Cell::toned("skipped", Tone::Warning));
                row.extend([(); 5].map(|()| Cell::new("")));
            }
        }
        table.push(row);
    }
    table
}

fn found_cells(tally: &RuleTally, group: &Group) -> [Cell; 6] {
    let share = if tally.judged == 0 { 0.0 } else { tally.broken as f64 / tally.judged as f64 };
    let tone = if tally.broken == 0 { Tone::Quiet } else { Tone::Strong };
    let predicted = group.predicted_seconds.filter(|_| tally.broken > 0);
    let pages = if tally.cost_flash_pages > 0.0 {
        unit::count(tally.cost_flash_pages.round())
    } else {
        String::new()
    };
    [
        Cell::toned(unit::count(tally.broken as f64), tone),
        if tally.judged == 0 { "none judged".into() } else { unit::share(share).into() },
        unit::bytes(tally.broken_bytes as f64).into(),
        predicted.map_or(String::new(), |_| unit::seconds(tally.cost_seconds)).into(),
        predicted
            .filter(|seconds| *seconds > 0.0)
            .map_or(String::new(), |seconds| unit::share(tally.cost_seconds / seconds))
            .into(),
        pages.into(),
    ]
}

/// A file's name, and where its requests were seen.
fn shown(file: &FileReport) -> String {
    shortened(&file.name) + where_seen(file)
}

/// Where a file's requests were seen, if that needs saying.
pub(super) fn where_seen(file: &FileReport) -> &'static str {
    let is_at_drive = file.group.layer == Layer::Drive && file.kind != FileKind::Device;
    if is_at_drive { AT_DRIVE } else { "" }
}

/// The end of a name, where all of it is too long for a table.
fn shortened(name: &str) -> String {
    let characters = name.chars().count();
    if characters <= NAME_CHARACTERS_MAX {
        return name.to_owned();
    }
    let end: String = name.chars().skip(characters - NAME_CHARACTERS_MAX + 1).collect();
    format!("…{end}")
}

/// The shares of bytes that break each rule, of kinds of files.
pub(super) fn kinds(kinds: &[KindReport]) -> Table {
    let mut table = table_of_shares("kind of file");
    for kind in kinds {
        let files = if kind.group.files == 1 { String::new() } else { format!(" ({})", kind.group.files) };
        table.push(shares(format!("{}{files}", kind.label), &kind.group));
    }
    table
}

/// The shares of bytes that break each rule, of files.
pub(super) fn files(files: &[&FileReport]) -> Table {
    let mut table = table_of_shares("file");
    for file in files {
        table.push(shares(shown(file), &file.group));
    }
    table
}

fn table_of_shares(first: &str) -> Table {
    let mut columns = vec![(first, Kind::Label), ("read", Kind::Number), ("written", Kind::Number)];
    columns.extend(["rule 1", "rule 2", "rule 3", "rule 4", "rule 5"].map(|title| (title, Kind::Number)));
    columns.push(("amplified", Kind::Number));
    Table::new(&columns)
}

fn shares(name: String, group: &Group) -> Vec<Cell> {
    let mut row = vec![
        Cell::new(name),
        unit::bytes(group.reads.bytes as f64).into(),
        unit::bytes(group.writes.bytes as f64).into(),
    ];
    for rule in Rule::ALL {
        let all = if rule == Rule::HotReads { group.reads.bytes } else { group.writes.bytes };
        row.push(match group.rules.get(rule as usize).and_then(Option::as_ref) {
            None => Cell::toned("skipped", Tone::Quiet),
            Some(_) if all == 0 => Cell::toned("–", Tone::Quiet),
            Some(tally) if tally.broken == 0 => Cell::toned("0", Tone::Quiet),
            Some(tally) => Cell::toned(unit::share(tally.broken_bytes as f64 / all as f64), Tone::Strong),
        });
    }
    row.push(group.wear.write_amplification.map_or("–".to_owned(), |factor| Unit::Plain.show(factor)).into());
    row
}

/// Files that are worth a row: those that are written, or break a rule.
pub(super) fn told(report: &Report) -> impl Iterator<Item = &FileReport> {
    let breaks_any = |group: &Group| Rule::ALL.into_iter().any(|rule| group.broken(rule).is_some());
    report.files.iter().filter(move |file| file.group.writes.requests > 0 || breaks_any(&file.group))
}

/// Requests of kinds of files that begin at hot locations, of any length; no row where these are unknown.
pub(super) fn at_hot(kinds: &[KindReport]) -> Table {
    let mut table = Table::new(&[
        ("kind of file", Kind::Label),
        ("reads", Kind::Number),
        ("at hot locations", Kind::Number),
        ("writes", Kind::Number),
        ("at hot locations", Kind::Number),
    ]);
    let share = |part: u64, all: u64| match all {
        0 => "–".to_owned(),
        all => unit::share(part as f64 / all as f64),
    };
    for kind in kinds {
        let Group { reads, writes, at_hot: Some(at_hot), .. } = &kind.group else { continue };
        table.push([
            kind.label.clone().into(),
            unit::count(reads.requests as f64).into(),
            share(at_hot.reads, reads.requests).into(),
            unit::count(writes.requests as f64).into(),
            Cell::new(share(at_hot.writes, writes.requests)),
        ]);
    }
    table
}

/// Number of files in addition to those that are shown.
pub(super) fn further(report: &Report, shown: usize) -> u64 {
    (report.files.len() - shown) as u64 + report.unnamed_files
}

/// Examples of requests that break rules, a row for each file and rule.
pub(super) fn examples(files: &[&FileReport], rows_max: usize) -> Table {
    let mut table = Table::new(&[
        ("file", Kind::Label),
        ("rule", Kind::Number),
        ("offset + length in bytes", Kind::Prose),
    ]);
    let found = files.iter().flat_map(|file| {
        Rule::ALL.into_iter().filter_map(|rule| Some((shown(file), rule, file.group.broken(rule)?)))
    });
    for (name, rule, tally) in found.take(rows_max) {
        let examples: Vec<_> = tally
            .examples
            .iter()
            .map(|example| format!("{} + {}", example.offset_bytes, example.length_bytes))
            .collect();
        table.push([name.into(), rule.number().to_string().into(), examples.join(", ").into()]);
    }
    table
}

/// Remedies for the broken rules.
pub(super) fn mending(kinds: &[KindReport]) -> Table {
    let mut table =
        Table::new(&[("kind of file", Kind::Label), ("rules", Kind::Label), ("remedy", Kind::Prose)]);
    for kind in kinds {
        for mending in &kind.mending {
            let rules: Vec<_> = mending.rules.iter().map(usize::to_string).collect();
            table.push([kind.label.clone().into(), rules.join(", ").into(), mending.advice.clone().into()]);
        }
    }
    table
}

/// The commands to paste of a kind's remedies.
pub(super) fn commands(kind: &KindReport) -> impl Iterator<Item = &String> {
    kind.mending.iter().flat_map(|mending| &mending.commands)
}

/// Wear for each size of flash pages (the paper's Figure 14).
pub(super) fn wear(group: &Group) -> Table {
    let mut table = Table::new(&[
        ("flash page", Kind::Number),
        ("pages", Kind::Number),
        ("in part", Kind::Number),
        ("if runs began at pages", Kind::Number),
        ("wear", Kind::Number),
        ("lifetime without amplification", Kind::Number),
    ]);
    for (bytes, pages, amplification) in &group.wear.by_flash_page_bytes {
        let gain = amplification.map_or(0.0, |amplification| amplification - 1.0);
        table.push([
            unit::bytes(*bytes as f64).into(),
            unit::count(pages.modified as f64).into(),
            unit::count(pages.partial as f64).into(),
            unit::count(pages.least as f64).into(),
            unit::bytes(pages.modified as f64 * *bytes as f64).into(),
            Cell::new(format!("+{}", unit::share(gain.max(0.0)))),
        ]);
    }
    table
}
