//! Integration tests, one file per behaviour, in one binary that shares the test drive.

mod common;
mod diff_and_export;
mod profile_file;
mod run;
