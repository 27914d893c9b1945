//! Every block of code on the pages that users read is tested: commands run here, other languages where
//! `languages` says. Whether commands that do not run here are understood is a unit test of each program
//! (`parsed`).
#![expect(clippy::unwrap_used, reason = "helpers of tests fail like tests")]

mod builds;
mod commands;
mod languages;
mod listed;
mod pages;
