//! Studies: the questions that papers have asked of B-trees and LSM-trees on new drives, put to Flashgrain's
//! own, and of SQLite's files.
//!
//! A [`Setup`] says which store is made on which drive; a [`Subject`] is that store. A study fills subjects,
//! measures them, and has a serialisable result. A [`Sheet`] is made of it: tables with the paper's figures
//! and ours, and charts, for a terminal and as a page.
//!
//! On simulated drives all times are virtual, so that a study gives the same figures wherever it is run. The
//! data are fewer than the papers'; which ratios stay as they were is in the text of each sheet.

mod about;
mod chart;
pub mod comparison;
#[cfg(feature = "hidden-parameters")]
pub mod hidden_parameters;
pub mod mqssd_lsm;
pub mod node_size;
pub mod nvme;
pub mod pdam_btree;
mod setup;
mod sheet;
mod subject;
pub mod xpoint;

pub use about::About;
use setup::lsm_tree;
pub use setup::{LogPlace, Setup};
pub(crate) use sheet::Part;
pub use sheet::Sheet;
pub use subject::{Measured, Subject, Watched};
