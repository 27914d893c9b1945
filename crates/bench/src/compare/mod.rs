//! Results side by side: tables for a terminal, and a page with charts.
//!
//! Medians of rounds, with their range. Each engine is compared at the number of clients that it is fastest
//! with; ratios are to the fastest other engine, "the best peer". A question's engines all had the same
//! durability, cache and keys; those that leave caching to the kernel are marked.

mod figures;
mod legend;
mod question;
mod tables;
mod time;

use std::collections::BTreeSet;

use flashgrain_report::page::{Block, Captioned, Page, Section, Table};

use self::question::{Question, questions};
use crate::engine::Durability;
use crate::run::RunResult;

/// Rounds below which ranges say little.
const ROUNDS_MIN: usize = 3;

/// Everything in Markdown.
pub fn markdown(results: &[RunResult]) -> String {
    let questions = questions(results);
    let mut out = String::new();
    let mut table = |title: &str, table: &Table| {
        if !table.rows.is_empty() {
            out.push_str(&format!("{title}\n\n{}\n", table.markdown()));
        }
    };
    table("## In short", &tables::summary(&questions));
    for question in &questions {
        table(&format!("## {}\n\n{}", title(question), conditions(question)), &tables::rates(question));
        table("Costs:", &tables::costs(question));
        table("By kind of operation:", &tables::kinds(question));
        table("At a given rate:", &tables::open(question));
    }
    for note in notes(results) {
        out.push_str(&format!("- {note}\n"));
    }
    out
}

/// Everything as a page; `source` names the results.
///
/// # Errors
/// If it cannot be put together.
pub fn page(results: &[RunResult], source: &str) -> anyhow::Result<String> {
    let questions = questions(results);
    let machines: BTreeSet<&str> = results.iter().map(|run| run.machine.as_str()).collect();
    let summary = vec![
        Block::Text(SUMMARY.into()),
        captioned(
            "Each engine at the number of clients with which it is fastest",
            tables::summary(&questions),
        ),
    ];
    let mut sections = vec![Section::new("summary", "In short", summary)];
    let asked = questions.iter().enumerate();
    sections.extend(asked.map(|(number, question)| section(number, question)));
    sections.push(Section::new(
        "engines",
        "Engines",
        vec![captioned("As they were set", tables::engines(results))],
    ));
    let page = Page {
        kind: "benchmarks",
        title: "Flashgrain and other stores".into(),
        subtitle: machines.into_iter().collect::<Vec<_>>().join("; "),
        notes: notes(results),
        headlines: Vec::new(),
        sections,
        source: source.into(),
        source_remark: "",
        version: env!("CARGO_PKG_VERSION").into(),
    };
    Ok(page.html()?)
}

const SUMMARY: &str = "Medians of the rounds. Ratios are Flashgrain's over the best peer's, which is the fastest other engine; of costs and latencies the peer's with the lowest. Above 1 is better for rates, below 1 for costs and latencies.";

fn section(number: usize, question: &Question<'_>) -> Section {
    let id = format!("q{number}");
    let mut blocks = vec![Block::Text(conditions(question))];
    let figures = figures::all(question, &id);
    if !figures.is_empty() {
        blocks.push(Block::Row { figures, table: None });
    }
    let tables = [
        ("Each engine at the number of clients with which it is fastest", tables::rates(question)),
        ("Costs", tables::costs(question)),
        ("By kind of operation", tables::kinds(question)),
        (
            "Open loop: latencies count from the moment at which operations should have begun",
            tables::open(question),
        ),
    ];
    let tables = tables.into_iter().filter(|(_, table)| !table.rows.is_empty());
    blocks.extend(tables.map(|(caption, table)| captioned(caption, table)));
    Section::new(id, title(question), blocks)
}

fn captioned(caption: &str, table: Table) -> Block {
    Block::Table(Captioned { caption: caption.into(), table })
}

fn title(question: &Question<'_>) -> String {
    let mut title = question.workload.to_owned();
    if question.cores == 1 {
        title.push_str(", one core");
    }
    if question.cache_share() >= 1.0 {
        title.push_str(", in memory");
    }
    if question.durability != Durability::None {
        title.push_str(&format!(", {}", durability(question.durability)));
    }
    title
}

fn durability(durability: Durability) -> &'static str {
    match durability {
        Durability::Full => "synced commits",
        Durability::Buffered => "buffered commits",
        Durability::None => "durability off",
    }
}

fn conditions(question: &Question<'_>) -> String {
    let promise = match question.durability {
        Durability::Full => "a commit that has returned survives a power cut",
        Durability::Buffered => "a commit that has returned is in a log that is written soon",
        Durability::None => "commits promise nothing",
    };
    format!(
        "{}; cache {:.0} MiB, {:.0} % of keys and values; {} processor{}; {}: {promise}.",
        question.contents,
        question.cache_bytes as f64 / f64::from(1 << 20),
        question.cache_share() * 100.0,
        question.cores,
        if question.cores == 1 { "" } else { "s" },
        durability(question.durability),
    )
}

/// Remarks that a reader must know before trusting the figures.
fn notes(results: &[RunResult]) -> Vec<String> {
    let mut notes = Vec::new();
    let rounds = results.iter().map(|run| run.round).collect::<BTreeSet<_>>().len();
    if rounds < ROUNDS_MIN {
        notes.push(format!("Only {rounds} of at least {ROUNDS_MIN} rounds: for trying, not for claims."));
    }
    let unlimited = engines_of(results, |run| !run.is_memory_limited);
    if !unlimited.is_empty() {
        notes.push(format!(
            "The kernel did not limit the memory of {unlimited}: they may cache more than the others."
        ));
    }
    let violated =
        engines_of(results, |run| run.check.as_ref().is_some_and(|check| !check.violations.is_empty()));
    if !violated.is_empty() {
        notes.push(format!("Consistency conditions do not hold after runs of {violated}."));
    }
    if results.iter().map(|run| &run.machine).collect::<BTreeSet<_>>().len() > 1 {
        notes.push("The results come from different machines.".into());
    }
    notes
}

fn engines_of(results: &[RunResult], which: impl Fn(&RunResult) -> bool) -> String {
    let engines: BTreeSet<&str> =
        results.iter().filter(|run| which(run)).map(|run| run.engine.as_str()).collect();
    engines.into_iter().collect::<Vec<_>>().join(", ")
}
