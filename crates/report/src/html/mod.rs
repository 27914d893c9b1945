//! The page: one file, no fetches, readable without scripts.

mod sections;

use askama::Template;
use flashgrain_profile::DeviceProfile;

use crate::Error;
use crate::facts;
use crate::figure::Figure;
use crate::table::{Kind, Table};
use crate::text::printable;

/// One part of the page with its place in the table of contents.
struct Section {
    id: &'static str,
    title: &'static str,
    blocks: Vec<Block>,
}

impl Section {
    fn new(id: &'static str, title: &'static str, blocks: Vec<Block>) -> Self {
        Self { id, title, blocks }
    }
}

/// What a section is made of.
enum Block {
    /// A sentence.
    Text(String),
    /// Short sentences.
    List(Vec<String>),
    /// Why there is nothing to show.
    Absent(String),
    /// Figures side by side, with a table in the room that they leave.
    Row { figures: Vec<Figure>, table: Option<Captioned> },
    /// A table of its own.
    Table(Captioned),
}

/// A table with its caption.
#[derive(Template)]
#[template(path = "table.html")]
struct Captioned {
    caption: String,
    table: Table,
}

#[derive(Template)]
#[template(path = "report.html")]
struct Page<'a> {
    style: &'static str,
    script: &'static str,
    drive: String,
    subtitle: String,
    profile: &'a DeviceProfile,
    headlines: Vec<facts::Headline>,
    sections: Vec<Section>,
}

/// The report as one self-contained HTML page.
///
/// # Errors
/// [`Error::Page`] if the page cannot be put together.
pub fn page(profile: &DeviceProfile) -> Result<String, Error> {
    let identity = &profile.provenance.identity;
    let page = Page {
        style: include_str!("../../templates/style.css"),
        script: include_str!("../../templates/script.js"),
        drive: identity.model.clone().unwrap_or_else(|| identity.target.clone()),
        subtitle: subtitle(profile),
        profile,
        headlines: facts::headlines(profile),
        sections: sections::all(profile),
    };
    // No line of the page holds a control character of ours, so whatever there is came from outside.
    Ok(page.render()?.split('\n').map(printable).collect::<Vec<_>>().join("\n"))
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
