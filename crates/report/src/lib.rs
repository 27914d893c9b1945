//! A device profile for people: tables for a terminal, and one HTML page with charts that needs neither network nor scripts.
//!
//! It reads a [`DeviceProfile`](flashgrain_profile::DeviceProfile) and neither measures nor decides anything itself. What the
//! profile calls undetermined is shown as such with its reason; an experiment that was not run takes one line. The same profile
//! always gives the same bytes. Text from outside (drive names, paths, notes) is escaped, control characters included.

mod error;
mod facts;
mod figure;
mod html;
mod svg;
mod table;
mod terminal;
mod text;
pub mod unit;

pub use error::Error;
pub use html::page as html;
pub use terminal::{Style, comparison as terminal_comparison, diff as terminal_diff, profile as terminal};
