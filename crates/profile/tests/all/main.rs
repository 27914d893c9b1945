//! Integration tests, one file per behaviour, in one binary that shares the test drive.

#![expect(clippy::unwrap_used, reason = "helpers of tests may panic as tests do")]

mod common;
mod diff_and_export;
mod profile_file;
mod run;
