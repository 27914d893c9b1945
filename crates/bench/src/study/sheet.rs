//! The output of a study: tables for a terminal, and the same with charts as a page.

use flashgrain_report::page::{Block, Captioned, Figure, Page, Section, Table};

use super::about::About;
use super::comparison::{self, Comparison};

/// All of a study's answers.
pub struct Sheet {
    /// The subject of the study.
    pub title: String,
    /// The drive, the data and how much smaller they are than the paper's.
    pub conditions: Vec<String>,
    /// The answers.
    pub(crate) parts: Vec<Part>,
    /// The paper's numbers and ours.
    pub comparisons: Vec<Comparison>,
}

/// The answer to one question.
pub(crate) struct Part {
    /// Its anchor on the page.
    pub id: &'static str,
    /// The question.
    pub title: String,
    /// The findings, in sentences.
    pub text: Vec<String>,
    /// Tables with their captions.
    pub tables: Vec<(String, Table)>,
    /// Charts.
    pub figures: Vec<Figure>,
}

impl Sheet {
    /// The numbers of several studies, each with those of its paper.
    pub fn of_studies(studies: &[(&About, Vec<Comparison>)]) -> Self {
        let part = |(about, numbers): &(&About, Vec<Comparison>)| Part {
            id: about.name,
            title: format!("{}: {}", about.name, about.parts),
            text: vec![about.paper.to_owned(), comparison::in_short(numbers)],
            tables: vec![("Ours over the paper's".into(), comparison::table(numbers))],
            figures: Vec::new(),
        };
        let all: Vec<Comparison> = studies.iter().flat_map(|(_, numbers)| numbers.clone()).collect();
        Self {
            title: "Studies of papers, numbers side by side".into(),
            conditions: vec![comparison::in_short(&all)],
            parts: studies.iter().map(part).collect(),
            comparisons: Vec::new(),
        }
    }

    /// The part with the paper's numbers that ours were measured for, if there are some.
    fn numbers(&self) -> Option<Part> {
        let is_run = |one: &&Comparison| one.ours.is_some();
        let run: Vec<Comparison> = self.comparisons.iter().filter(is_run).cloned().collect();
        (!run.is_empty()).then(|| Part {
            id: "numbers",
            title: "The paper's numbers".into(),
            text: vec![comparison::in_short(&self.comparisons)],
            tables: vec![("Ours over the paper's".into(), comparison::table(&run))],
            figures: Vec::new(),
        })
    }

    /// As Markdown, without the charts.
    pub fn markdown(&self) -> String {
        let mut out = format!("# {}\n\n", self.title);
        self.conditions.iter().for_each(|line| out += &format!("- {line}\n"));
        for part in self.parts.iter().chain(&self.numbers()) {
            out += &format!("\n## {}\n", part.title);
            part.text.iter().for_each(|sentence| out += &format!("\n{sentence}\n"));
            for (caption, table) in &part.tables {
                out += &format!("\n{caption}\n\n{}", table.markdown());
            }
        }
        out
    }

    /// As a page; `source` is the command that has made it.
    ///
    /// # Errors
    /// If it cannot be put together.
    pub fn html(self, source: &str) -> anyhow::Result<String> {
        let numbers = self.numbers();
        let conditions = Section::new("conditions", "Conditions", vec![Block::List(self.conditions)]);
        let parts = self.parts.into_iter().chain(numbers).map(Part::section);
        let sections = std::iter::once(conditions).chain(parts).collect();
        let page = Page {
            kind: "study",
            title: self.title,
            subtitle: String::new(),
            notes: Vec::new(),
            headlines: Vec::new(),
            sections,
            source: source.into(),
            source_remark: "",
            version: env!("CARGO_PKG_VERSION").into(),
        };
        Ok(page.html()?)
    }
}

impl Part {
    fn section(self) -> Section {
        let mut blocks: Vec<Block> = self.text.into_iter().map(Block::Text).collect();
        if !self.figures.is_empty() {
            blocks.push(Block::Row { figures: self.figures, table: None });
        }
        let table = |(caption, table)| Block::Table(Captioned { caption, table });
        blocks.extend(self.tables.into_iter().map(table));
        Section::new(self.id, self.title, blocks)
    }
}
