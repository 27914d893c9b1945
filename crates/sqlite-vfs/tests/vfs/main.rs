//! The VFS below a real SQLite: one behaviour per module.
#![expect(clippy::unwrap_used, reason = "helpers of tests fail like tests")]

mod aligned_logs;
mod backup;
mod checksums;
mod conversions;
mod corpus;
mod crashes;
mod empty_files;
mod foreign;
mod journal_modes;
mod kills;
mod model;
mod page_sizes;
mod power_cuts;
mod processes;
mod removed_files;
mod resizing;
mod several;
mod sql_scripts;
mod support;
mod volumes;
