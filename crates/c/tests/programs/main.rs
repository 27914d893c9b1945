//! Programs in C that are compiled against the headers, linked with the library, and run.
#![expect(clippy::unwrap_used, reason = "helpers of tests fail like tests")]

mod compile;
mod guide;
mod headers;

use compile::{Linked, run};

fn source(name: &str) -> String {
    std::fs::read_to_string(compile::root().join("tests/c").join(name)).unwrap()
}

#[test]
fn a_first_program_reads_its_record_again() {
    for linked in [Linked::Shared, Linked::Static] {
        assert_eq!(run(&source("first.c"), linked), "red\n");
    }
}

#[test]
fn each_function_does_as_the_header_says() {
    assert_eq!(run(&source("flashgrain_functions.c"), Linked::Shared), "PASS\n");
}

#[test]
fn refusals_say_why_and_leave_no_results() {
    assert_eq!(run(&source("flashgrain_refusals.c"), Linked::Shared), "PASS\n");
}

#[test]
fn each_function_of_leveldb_does_as_its_header_says() {
    assert_eq!(run(&source("leveldb_functions.c"), Linked::Shared), "PASS\n");
}
