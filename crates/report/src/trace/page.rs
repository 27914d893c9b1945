//! The page.

use flashgrain_trace::check::FileReport;
use flashgrain_trace::{Layer, Rule};

use super::{JudgedTrace, figures, sentences, tables};
use crate::Error;
use crate::facts::Headline;
use crate::html::{Block, Captioned, Page, Section};
use crate::table::Table;
use crate::unit::{self, Unit};

/// The most files with figures of their own.
const FIGURES_MAX: usize = 12;

/// The most files in a table.
const FILES_MAX: usize = 50;

/// One self-contained HTML page.
///
/// # Errors
/// [`Error::Page`] if the page cannot be put together.
pub fn page(judged: &JudgedTrace<'_>) -> Result<String, Error> {
    let report = judged.report;
    let page = Page {
        kind: "I/O trace",
        title: figures::short(judged.source).to_owned(),
        subtitle: format!("{} · judged for {}", judged.format, report.drive),
        notes: judged.damage.iter().map(|damage| format!("Not read to its end: {damage}.")).collect(),
        headlines: headlines(judged),
        sections: sections(judged),
        source: judged.source.to_owned(),
        source_remark: "",
        version: env!("CARGO_PKG_VERSION").to_owned(),
    };
    page.html()
}

fn headlines(judged: &JudgedTrace<'_>) -> Vec<Headline> {
    let report = judged.report;
    let group = report.layers.first();
    let names = ["rule 1", "rule 2", "rule 3", "rule 4", "rule 5"];
    let mut headlines: Vec<Headline> = Rule::ALL
        .into_iter()
        .zip(names)
        .filter_map(|(rule, name)| {
            let group = group?;
            let tally = group.rules.get(rule as usize)?.as_ref()?;
            let all = if rule == Rule::HotReads { group.reads.bytes } else { group.writes.bytes };
            let of = if rule == Rule::HotReads { "read" } else { "written" };
            (all > 0).then(|| Headline {
                name,
                value: unit::share(tally.broken_bytes as f64 / all as f64),
                detail: format!("of the bytes {of} break it: {}", rule.title()),
            })
        })
        .collect();
    let amplification = report.lowest_layer().and_then(|group| group.wear.write_amplification);
    headlines.extend(amplification.map(|factor| Headline {
        name: "write amplification",
        value: format!("{} ×", Unit::Plain.show(factor)),
        detail: "whole flash pages over bytes written".to_owned(),
    }));
    headlines
}

fn captioned(caption: &str, table: Table) -> Option<Block> {
    (!table.rows.is_empty()).then(|| Block::Table(Captioned { caption: caption.to_owned(), table }))
}

fn sections(judged: &JudgedTrace<'_>) -> Vec<Section> {
    let report = judged.report;
    let files: Vec<&FileReport> = tables::told(report).take(FILES_MAX).collect();
    let mut overview: Vec<Block> = sentences::requests(judged).into_iter().map(Block::Text).collect();
    overview.push(Block::Text(sentences::drive(report)));
    overview.extend(sentences::skipped(report).into_iter().map(Block::Absent));
    for group in &report.layers {
        let caption = if group.layer == Layer::Drive { "Block requests" } else { "Requests to files" };
        overview.extend(captioned(caption, tables::rules(report, group)));
    }
    let mut by_file: Vec<Block> = Vec::new();
    by_file
        .extend(captioned("Shares of the bytes that break each rule, by kind", tables::kinds(&report.kinds)));
    by_file.extend(captioned("Requests that begin at hot locations, by kind", tables::at_hot(&report.kinds)));
    by_file.extend(captioned("Shares of the bytes that break each rule, by file", tables::files(&files)));
    by_file.extend(captioned(
        "The first requests of each file that break a rule",
        tables::examples(&files, FILES_MAX),
    ));
    let further = tables::further(report, files.len());
    if further > 0 {
        by_file.push(Block::Text(format!(
            "In the sums alone: {}, mostly only read.",
            unit::things(further, "further file")
        )));
    }
    let drawn = files.iter().filter(|file| !file.spread.is_empty()).take(FIGURES_MAX);
    let spread: Vec<_> =
        drawn.enumerate().map(|(number, file)| figures::spread(report, file, number)).collect();
    let mut sections = vec![
        Section::new("rules", "Rules", overview),
        Section::new("mending", "Remedies", mending(judged)),
        Section::new("files", "Files", or_nothing(by_file)),
    ];
    if !spread.is_empty() {
        sections.push(Section::new(
            "spread",
            "Offset within the stripe and length",
            vec![Block::Row { figures: spread, table: None }],
        ));
    }
    let mut wear: Vec<Block> = sentences::wear(judged).into_iter().map(Block::Text).collect();
    let lowest = report.lowest_layer().filter(|group| group.wear.run_bytes > 0);
    wear.extend(lowest.and_then(|group| captioned("Wear by the size of flash pages", tables::wear(group))));
    sections.push(Section::new("wear", "Wear", wear));
    let losses = sentences::losses(report);
    if !losses.is_empty() {
        sections.push(Section::new(
            "losses",
            "Limits of the trace, and notes",
            losses.into_iter().map(Block::Text).collect(),
        ));
    }
    sections
}

fn mending(judged: &JudgedTrace<'_>) -> Vec<Block> {
    let table = captioned("By kind of file", tables::mending(&judged.report.kinds));
    let Some(table) = table else {
        return vec![Block::Absent(
            "Nothing that is broken has a known remedy, or nothing is broken.".into(),
        )];
    };
    let commands: Vec<String> = judged.report.kinds.iter().flat_map(tables::commands).cloned().collect();
    let list = (!commands.is_empty()).then_some(Block::List(commands));
    std::iter::once(table).chain(list).collect()
}

fn or_nothing(blocks: Vec<Block>) -> Vec<Block> {
    if blocks.is_empty() { vec![Block::Absent("There are none.".into())] } else { blocks }
}
