//! One module per command: its arguments, and the wiring to the crate that does the work.

pub mod advise;
pub mod backends;
pub mod bench;
pub mod compare;
pub mod completions;
pub mod db;
pub mod io;
pub mod man;
pub mod profile;
pub mod report;
pub mod sim;
pub mod study;
pub mod trace;
pub mod tune;
pub mod unpack;
pub mod vfs;
