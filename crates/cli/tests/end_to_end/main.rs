//! The real binary, run as a user runs it: one behaviour per module.
#![expect(clippy::unwrap_used, reason = "helpers of tests fail like tests")]

mod advise;
mod bench;
mod bench_figures;
mod consent;
mod db;
mod db_bad_input;
mod db_trees;
mod definitions;
mod file_systems;
mod interrupt;
mod io;
mod io_uring_forbidden;
mod learned;
mod limits;
mod outputs;
mod pipe;
mod profile_files;
mod sim;
mod sim_faults;
mod study;
mod support;
mod trace_check;
mod trace_record;
mod trace_replay;
mod tune;
mod tune_store;
mod unpack;
mod usage;
mod verify;
mod vfs;
