//! The summary for a terminal: plain tables, colour only on request.

use flashgrain_model::{Comparison, Models, OneThreadRow};
use flashgrain_profile::DeviceProfile;
use flashgrain_profile::diff::Diff;
use textwrap::core::display_width;

use crate::facts::{self, Detail};
use crate::table::{Cell, Kind, Table, Tone};
use crate::text::{printable, unbroken};

/// How to print.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Style {
    /// Columns to fit into; fewer than 60 are treated as 60.
    pub width: usize,
    /// Whether to use ANSI colours.
    pub colour: bool,
}

impl From<usize> for Style {
    /// Without colour.
    fn from(width: usize) -> Self {
        Self { width, colour: false }
    }
}

/// The summary of a profile.
pub fn profile(profile: &DeviceProfile, style: impl Into<Style>) -> String {
    let mut out = Printer::new(style.into());
    let is_trusted = profile.distrust.is_none();
    facts::distrust_sentence(profile).iter().for_each(|sentence| out.prose(sentence));
    out.title("Drive");
    out.table(&facts::drive_table(&profile.provenance));

    let headlines = facts::headlines(profile);
    if !headlines.is_empty() {
        out.title("In short");
        let mut table = Table::new(&[("", Kind::Label), ("", Kind::Number), ("", Kind::Prose)]);
        for headline in headlines {
            table.push([
                Cell::toned(headline.name, Tone::Quiet),
                Cell::toned(headline.value, Tone::Strong),
                headline.detail.into(),
            ]);
        }
        out.table(&table);
    }

    out.title("Budget and noise");
    out.prose(&facts::budget_sentence(&profile.budget));
    facts::contention_sentence(&profile.budget).iter().for_each(|sentence| out.prose(sentence));
    if !profile.budget.experiments.is_empty() {
        out.table(&facts::experiment_table(&profile.budget));
        out.prose(
            "Noise: median over the workloads of the relative half width of the 95 % interval of their mean.",
        );
    }
    for left_out in &profile.budget.left_out {
        out.prose(&format!("Left out: {left_out}"));
    }

    match &profile.comparison {
        Some(comparison) => out.comparison(comparison, is_trusted),
        None => {
            out.title("Models on held-out points");
            out.prose("Not compared: too little was measured to hold points out.");
        }
    }

    out.costs(profile.models.as_ref(), "Not fitted: `order` was not run or covers too few k.");

    out.learned(profile);

    out.title("Decisions");
    if profile.decisions.is_empty() {
        out.prose("None: nothing was learned that settings could follow from.");
    } else {
        out.table(&facts::decision_table(&profile.decisions, is_trusted));
    }

    out.title("Verification: fresh workloads, predicted by MQSSD and then measured");
    match facts::verification_sentence(&profile.verification) {
        Some(sentence) => {
            out.prose(&sentence);
            let worst = facts::worst_verifications(&profile.verification, SHOWN_VERIFICATIONS);
            if worst.len() < profile.verification.len() {
                out.prose(&format!("The {} that it missed most:", worst.len()));
            }
            out.table(&facts::verification_table(&worst));
        }
        None => out.prose("Not run."),
    }
    out.store(profile);
    out.text
}

/// The models on held-out points, without a profile, models given the costs of one thread if there are some,
/// and everything that was fitted.
pub fn comparison(
    comparison: &Comparison,
    one_thread: &[OneThreadRow],
    models: Option<&Models>,
    style: impl Into<Style>,
) -> String {
    let mut out = Printer::new(style.into());
    out.comparison(comparison, true);
    if !one_thread.is_empty() {
        out.title("Models given the costs of one thread, and fitted to all");
        out.table(&facts::one_thread_table(one_thread));
        out.prose(facts::ONE_THREAD);
    }
    let Some(models) = models else { return out.text };
    out.costs(
        Some(models),
        "Not fitted: fewer than 2 concurrencies have 3 workloads that differ in random accesses per byte.",
    );
    for why in facts::undetermined_costs(models) {
        out.prose(&why);
    }
    if let Some(table) = facts::regression_table(models) {
        out.title("R² of the regression at each k");
        out.table(&table);
    }
    if let Some(table) = facts::curve_table(models) {
        out.title("MQSSD curves through these costs");
        out.table(&table);
        out.prose(facts::CURVES);
    }
    let constants = facts::other_parameters_table(models);
    if !constants.rows.is_empty() {
        out.title("Constants that do not depend on k (95 % interval)");
        out.table(&constants);
    }
    out.text
}

/// Differences between two profiles.
pub fn diff(diff: &Diff, style: impl Into<Style>) -> String {
    let mut out = Printer::new(style.into());
    let sections = [
        ("Origin", facts::field_change_table(&diff.provenance)),
        ("Learned", facts::learned_change_table(diff)),
        ("Decisions", facts::decision_change_table(&diff.decisions)),
        ("Rates", facts::rate_change_table(diff)),
    ];
    for (title, table) in sections {
        if !table.rows.is_empty() {
            out.title(title);
            out.table(&table);
        }
    }
    if diff.decisions.iter().any(|change| change.hidden_by_noise) {
        out.prose("Noise: a profile has the default, because noise hides which alternative is better; the drive need not have changed.");
    }
    if out.text.is_empty() {
        out.prose("No difference.");
    }
    out.prose(&facts::rate_change_sentence(diff));
    out.text
}

/// More rows would push everything else off the screen; the page has them all.
const SHOWN_VERIFICATIONS: usize = 8;
const NARROWEST: usize = 60;
const GAP: usize = 2;
const NARROWEST_COLUMN: usize = 4;
const NARROWEST_PROSE: usize = 24;
const ROOM_FOR_PROSE: usize = 50;

pub(crate) struct Printer {
    style: Style,
    text: String,
}

impl Printer {
    pub(crate) fn new(style: Style) -> Self {
        Self { style: Style { width: style.width.max(NARROWEST), ..style }, text: String::new() }
    }

    pub(crate) fn into_text(self) -> String {
        self.text
    }

    pub(crate) fn title(&mut self, title: &str) {
        if !self.text.is_empty() {
            self.text.push('\n');
        }
        for line in textwrap::wrap(title, self.style.width) {
            let line = self.painted(&line, Tone::Strong);
            self.text.push_str(&line);
            self.text.push('\n');
        }
    }

    pub(crate) fn prose(&mut self, sentence: &str) {
        self.indented(sentence, "  ");
    }

    /// A line that is to be copied: it is not broken.
    pub(crate) fn verbatim(&mut self, line: &str) {
        self.text += &format!("  {}\n", printable(line));
    }

    fn indented(&mut self, sentence: &str, indent: &str) {
        if sentence.is_empty() {
            return;
        }
        let options =
            textwrap::Options::new(self.style.width).initial_indent(indent).subsequent_indent(indent);
        for line in textwrap::wrap(&unbroken(&printable(sentence)), options) {
            self.text.push_str(&line.replace('\u{a0}', " "));
            self.text.push('\n');
        }
    }

    fn learned(&mut self, profile: &DeviceProfile) {
        self.title("Learned");
        match profile.distrust {
            Some(_) => self.prose(facts::NOTHING_LEARNED),
            None => self.table(&facts::learned_table(&profile.learned, Detail::Brief)),
        }
    }

    fn store(&mut self, profile: &DeviceProfile) {
        self.title("A store on this drive");
        let Some(store) = &profile.store else { return self.prose(&facts::no_store(profile)) };
        self.prose(&facts::store_sentence(store));
        self.table(&facts::layout_table(store, profile.distrust.is_none()));
        self.text.push('\n');
        self.table(&facts::operation_table(store));
        facts::shares_left_out(store).iter().for_each(|sentence| self.prose(sentence));
        self.prose(facts::STORE_LIMITS);
    }

    fn comparison(&mut self, comparison: &Comparison, is_trusted: bool) {
        self.title("Models on held-out points");
        self.table(&facts::comparison_table(comparison));
        self.prose(&facts::ranking_sentence(comparison, is_trusted));
        for note in facts::comparison_notes(comparison) {
            self.prose(&note);
        }
    }

    fn costs(&mut self, models: Option<&Models>, why_not: &str) {
        self.title("MQSSD costs by concurrency k (95 % interval)");
        match models.and_then(facts::cost_table) {
            Some(table) => self.table(&table),
            None => self.prose(why_not),
        }
    }

    pub(crate) fn table(&mut self, table: &Table) {
        let (table, asides) = with_long_prose_aside(table, self.style.width);
        let parts = parts(&table, self.style.width);
        for (index, part) in parts.iter().enumerate() {
            let is_last = index + 1 == parts.len();
            self.part(part, if is_last { &asides } else { &[] });
            if !is_last {
                self.text.push('\n');
            }
        }
    }

    fn part(&mut self, table: &Table, asides: &[Cell]) {
        let widths = widths(table, self.style.width);
        if table.has_head() {
            let head: Vec<Cell> =
                table.columns.iter().map(|column| Cell::toned(column.title.as_str(), Tone::Quiet)).collect();
            self.row(table, &head, &widths);
        }
        let mut group_above: Option<&str> = None;
        for (index, row) in table.rows.iter().enumerate() {
            // A label that repeats the one above it says nothing: its place stays empty.
            let group = row.first().map(|cell| cell.text.as_str());
            let mut shown = row.clone();
            if let Some(first) = shown.first_mut().filter(|_| group == group_above) {
                first.text.clear();
            }
            self.row(table, &shown, &widths);
            if let Some(aside) = asides.get(index) {
                self.indented(&aside.text, "      ");
            }
            group_above = group;
        }
    }

    fn row(&mut self, table: &Table, cells: &[Cell], widths: &[usize]) {
        let wrapped: Vec<Vec<String>> = cells
            .iter()
            .zip(widths)
            .map(|(cell, width)| {
                textwrap::wrap(&printable(&cell.text), *width)
                    .into_iter()
                    .map(|line| line.into_owned())
                    .collect()
            })
            .collect();
        let height = wrapped.iter().map(Vec::len).max().unwrap_or(0);
        for line in 0..height {
            let mut text = String::new();
            for (index, (cell, width)) in cells.iter().zip(widths).enumerate() {
                let part = wrapped.get(index).and_then(|lines| lines.get(line)).map_or("", String::as_str);
                let fill = " ".repeat(width.saturating_sub(display_width(part)));
                let gap = " ".repeat(GAP);
                let part = self.painted(part, cell.tone);
                let right = table.columns.get(index).is_some_and(|column| column.kind == Kind::Number);
                text += &if right { format!("{gap}{fill}{part}") } else { format!("{gap}{part}{fill}") };
            }
            self.text.push_str(text.trim_end());
            self.text.push('\n');
        }
    }

    fn painted(&self, text: &str, tone: Tone) -> String {
        let code = match tone {
            Tone::Plain => return text.into(),
            Tone::Strong => "1",
            Tone::Quiet => "2",
            Tone::Warning => "33",
        };
        if self.style.colour && !text.is_empty() { format!("\x1b[{code}m{text}\x1b[0m") } else { text.into() }
    }
}

/// Takes the last column out where it holds sentences and too little room is left next to the others; its
/// entries then go below their rows.
fn with_long_prose_aside(table: &Table, available: usize) -> (Table, Vec<Cell>) {
    let mut table = table.clone();
    let natural = natural_widths(&table, Heads::Wrapped);
    let taken: usize = natural.iter().rev().skip(1).map(|width| width + GAP).sum();
    let left = available.saturating_sub(taken + GAP);
    let prose_is_last = table.columns.last().is_some_and(|column| column.kind == Kind::Prose);
    let is_long = natural.last().is_some_and(|width| *width > left);
    if !prose_is_last || !is_long || left >= ROOM_FOR_PROSE {
        return (table, Vec::new());
    }
    let asides = table.remove_last_column();
    (table, asides)
}

/// The table, or if its columns do not fit next to each other, several with some of them, one below the
/// other. Each has the labels that name the rows; entries are never broken.
fn parts(table: &Table, available: usize) -> Vec<Table> {
    let natural = natural_widths(table, Heads::Wrapped);
    let has_prose = table.columns.iter().any(|column| column.kind == Kind::Prose);
    if has_prose || total(&natural) <= available {
        return vec![table.clone()];
    }
    let labels = table.columns.iter().take_while(|column| column.kind == Kind::Label).count().max(1);
    let label_places: Vec<usize> = (0..labels).collect();
    let mut places: Vec<Vec<usize>> = vec![label_places.clone()];
    for place in labels..natural.len() {
        let taken = |places: &[usize]| places.iter().map(|place| natural[*place] + GAP).sum::<usize>();
        match places.last_mut() {
            Some(last) if last.len() == labels || taken(last) + natural[place] + GAP <= available => {
                last.push(place)
            }
            _ => places.push([label_places.as_slice(), &[place]].concat()),
        }
    }
    places.iter().map(|places| table.with_columns(places)).collect()
}

/// Widths that the columns need without any limit: heads in one line, or wrapped between their words. Entries
/// never wrap.
fn natural_widths(table: &Table, heads: Heads) -> Vec<usize> {
    let columns = table.columns.iter().enumerate();
    columns
        .map(|(index, column)| {
            let head = match heads {
                Heads::InOneLine => display_width(&column.title),
                Heads::Wrapped => column.title.split(' ').map(display_width).max().unwrap_or(0),
            };
            let cells = table.rows.iter().filter_map(|row| row.get(index));
            cells.map(|cell| display_width(&printable(&cell.text))).max().unwrap_or(0).max(head)
        })
        .collect()
}

#[derive(Clone, Copy)]
enum Heads {
    InOneLine,
    Wrapped,
}

fn total(widths: &[usize]) -> usize {
    widths.iter().sum::<usize>() + GAP * widths.len()
}

/// Column widths that fit together: prose gives way first, then whatever is widest.
fn widths(table: &Table, available: usize) -> Vec<usize> {
    let roomy = natural_widths(table, Heads::InOneLine);
    if total(&roomy) <= available {
        return roomy;
    }
    let mut widths = natural_widths(table, Heads::Wrapped);
    let mut excess = total(&widths).saturating_sub(available);
    while excess > 0 {
        let widest = |narrowest: usize, may_shrink: fn(Kind) -> bool| {
            let candidates = table.columns.iter().zip(&widths).enumerate();
            candidates
                .filter(|(_, (column, width))| may_shrink(column.kind) && **width > narrowest)
                .max_by_key(|(_, (_, width))| **width)
                .map(|(index, _)| index)
        };
        let Some(index) = widest(NARROWEST_PROSE, |kind| kind == Kind::Prose)
            .or_else(|| widest(NARROWEST_COLUMN, |_| true))
        else {
            break;
        };
        widths[index] -= 1;
        excess -= 1;
    }
    widths
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_that_is_too_wide_becomes_several_and_no_entry_breaks() {
        let titles = ["kind", "model", "R²", "adjusted R²", "median error", "worst error", "held-out points"];
        let kind = |place: usize| if place < 2 { Kind::Label } else { Kind::Number };
        let columns: Vec<(&str, Kind)> =
            titles.iter().enumerate().map(|(place, title)| (*title, kind(place))).collect();
        let mut table = Table::new(&columns);
        for row in 0..3 {
            table.push((0..titles.len()).map(|place| Cell::new(format!("entry {row} of {place}"))));
        }
        let mut printer = Printer::new(60.into());
        printer.table(&table);
        for row in 0..3 {
            for place in 0..titles.len() {
                assert!(printer.text.contains(&format!("entry {row} of {place}")), "{}", printer.text);
            }
        }
        assert!(printer.text.lines().all(|line| display_width(line) <= 60), "{}", printer.text);
        assert!(printer.text.matches("entry 0 of 1").count() > 1, "labels name the rows of each part");
    }
}
