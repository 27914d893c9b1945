//! A judged trace, for a terminal and as a page.

mod figures;
mod page;
mod sentences;
mod tables;
mod terminal;

pub use page::page;
pub use terminal::terminal;

use flashgrain_trace::check::{Endurance, Report};

/// A judged trace, and where it comes from.
pub struct JudgedTrace<'a> {
    /// Name of the trace.
    pub source: &'a str,
    /// Its format.
    pub format: String,
    /// The result.
    pub report: &'a Report,
    /// Wear over an endurance, if one was given.
    pub endurance: Option<Endurance>,
    /// Why the trace could not be read to its end.
    pub damage: Option<String>,
}
