//! One module per command: its arguments, and what connects them to the crate that does the work.

pub mod backends;
pub mod completions;
pub mod io;
pub mod man;
