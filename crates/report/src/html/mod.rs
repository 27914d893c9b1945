//! The page: one file, no fetches, readable without scripts.

mod sections;

use askama::Template;
use flashgrain_profile::DeviceProfile;

use crate::Error;
use crate::facts;
use crate::table::Table;

/// One part of the page with its place in the table of contents.
struct Section {
    id: &'static str,
    title: &'static str,
    blocks: Vec<Block>,
}

/// What a section is made of.
enum Block {
    /// A sentence.
    Text(String),
    /// Why there is nothing to show.
    Absent(String),
    /// A table with its caption.
    Table { caption: &'static str, table: Table },
}

#[derive(Template)]
#[template(path = "report.html")]
struct Page<'a> {
    style: &'static str,
    script: &'static str,
    drive: String,
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
        profile,
        headlines: facts::headlines(profile),
        sections: sections::all(profile),
    };
    Ok(page.render()?)
}
