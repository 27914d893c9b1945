//! What a study shows: tables for a terminal, and the same with charts as a page.

use flashgrain_report::page::{Block, Captioned, Figure, Page, Section, Table};

/// All of a study's answers.
pub struct Sheet {
    /// The subject of the study.
    pub title: String,
    /// The drive, the data and how much smaller they are than the paper's.
    pub conditions: Vec<String>,
    /// The answers.
    pub(super) parts: Vec<Part>,
}

/// The answer to one question.
pub(super) struct Part {
    /// Its anchor on the page.
    pub id: &'static str,
    /// The question.
    pub title: String,
    /// What was found, in sentences.
    pub text: Vec<String>,
    /// Tables with their captions.
    pub tables: Vec<(String, Table)>,
    /// Charts.
    pub figures: Vec<Figure>,
}

impl Sheet {
    /// As Markdown, without the charts.
    pub fn markdown(&self) -> String {
        let mut out = format!("# {}\n\n", self.title);
        self.conditions.iter().for_each(|line| out += &format!("- {line}\n"));
        for part in &self.parts {
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
        let conditions = Section::new("conditions", "Conditions", vec![Block::List(self.conditions)]);
        let parts = self.parts.into_iter().map(Part::section);
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
