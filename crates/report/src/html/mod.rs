//! The page: one file, no fetches, readable without scripts.

mod sections;
mod what_if;

use std::borrow::Cow;

use askama::Template;
use flashgrain_profile::DeviceProfile;

use crate::Error;
use crate::facts::{self, Headline};
use crate::figure::Figure;
use crate::table::{Kind, Table};
use crate::text::printable;
pub use what_if::WhatIf;

/// One part of the page with its place in the table of contents.
pub struct Section {
    id: Cow<'static, str>,
    title: String,
    blocks: Vec<Block>,
}

impl Section {
    /// `id` is its anchor.
    pub fn new(id: impl Into<Cow<'static, str>>, title: impl Into<String>, blocks: Vec<Block>) -> Self {
        Self { id: id.into(), title: title.into(), blocks }
    }
}

/// Content of a section.
pub enum Block {
    /// A sentence.
    Text(String),
    /// Short sentences.
    List(Vec<String>),
    /// Why there is nothing to show.
    Absent(String),
    /// Figures side by side, with a table in the room that they leave.
    #[expect(missing_docs, reason = "said above")]
    Row { figures: Vec<Figure>, table: Option<Captioned> },
    /// A table of its own.
    Table(Captioned),
    /// Designs for a workload that the reader varies.
    WhatIf(Box<WhatIf>),
}

/// A table with its caption.
#[derive(Template)]
#[template(path = "table.html")]
pub struct Captioned {
    /// Text above it.
    pub caption: String,
    /// The table.
    pub table: Table,
}

/// A page: the parts around its sections.
pub struct Page {
    /// Kind of the report.
    pub kind: &'static str,
    /// Subject of the report.
    pub title: String,
    /// Place and time of the measurements.
    pub subtitle: String,
    /// Remarks that the reader should know first.
    pub notes: Vec<String>,
    /// The most important numbers.
    pub headlines: Vec<Headline>,
    /// Sections, in order.
    pub sections: Vec<Section>,
    /// The file that it is made from.
    pub source: String,
    /// A remark on that file.
    pub source_remark: &'static str,
    /// Flashgrain's, of the one that has measured.
    pub version: String,
}

#[derive(Template)]
#[template(path = "report.html")]
struct Rendered<'a> {
    style: &'static str,
    script: &'static str,
    page: &'a Page,
}

impl Page {
    /// One self-contained HTML page.
    ///
    /// # Errors
    /// [`Error::Page`] if the page cannot be put together.
    pub fn html(&self) -> Result<String, Error> {
        let page = Rendered {
            style: include_str!("../../templates/style.css"),
            script: include_str!("../../templates/script.js"),
            page: self,
        };
        // No line of the page holds a control character of ours, so whatever there is came from outside.
        Ok(page.render()?.split('\n').map(printable).collect::<Vec<_>>().join("\n"))
    }
}

/// The report as one self-contained HTML page.
///
/// # Errors
/// [`Error::Page`] if the page cannot be put together.
pub fn page(profile: &DeviceProfile) -> Result<String, Error> {
    let identity = &profile.provenance.identity;
    let page = Page {
        kind: "device profile",
        title: identity.model.clone().unwrap_or_else(|| identity.target.clone()),
        subtitle: subtitle(profile),
        notes: facts::distrust_sentence(profile)
            .into_iter()
            .chain(identity.notes.iter().cloned())
            .chain(facts::contention_sentence(&profile.budget))
            .collect(),
        headlines: facts::headlines(profile),
        sections: sections::all(profile),
        source: "profile.json".into(),
        source_remark: "; the samples lie next to it",
        version: profile.provenance.flashgrain_version.clone(),
    };
    page.html()
}

/// Target, file system, kernel, backend and date in one line.
fn subtitle(profile: &DeviceProfile) -> String {
    let identity = &profile.provenance.identity;
    let parts = [
        Some(identity.target.clone()),
        identity.file_system.clone(),
        identity.kernel.as_ref().map(|kernel| format!("Linux {kernel}")),
        Some(identity.backend.clone()),
        Some(profile.provenance.date_utc.clone()),
    ];
    let known: Vec<String> = parts.into_iter().flatten().filter(|part| !part.is_empty()).collect();
    known.join(" · ")
}
