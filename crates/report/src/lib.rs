//! A device profile for people: tables for a terminal, and one HTML page with charts that needs neither
//! network nor scripts.
//!
//! It reads a [`DeviceProfile`](flashgrain_profile::DeviceProfile), or a [`trace`] that was judged for one,
//! and neither measures nor decides anything itself. Undetermined values are shown as such with their reason;
//! an experiment that was not run takes one line. The same profile always gives the same bytes. Text from
//! outside (drive names, paths, notes) is escaped, control characters included.

mod advice;
pub mod budget;
mod error;
mod facts;
mod figure;
mod html;
mod svg;
mod table;
mod terminal;
mod text;
pub mod trace;
pub mod unit;

pub use advice::{advice as terminal_advice, brief as terminal_brief_advice, engine as terminal_engine};
pub use error::Error;
pub use html::page as html;
/// Parts of pages, for reports of other things than drives.
pub mod page {
    pub use crate::facts::Headline;
    pub use crate::figure::{Figure, Key};
    pub use crate::html::{Block, Captioned, Page, Section};
    pub use crate::svg::{Axis, Bar, Growth, Mark, Plot, Series, bars};
    pub use crate::table::{Cell, Kind, Table, Tone};
    pub use crate::unit::Unit;
}
pub use terminal::{Style, comparison as terminal_comparison, diff as terminal_diff, profile as terminal};
