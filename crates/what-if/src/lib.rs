//! The ranking of designs as a WebAssembly module, for the report's page.
//!
//! 1. The page asks [`question`] for memory and writes a [`Question`] into it, as JSON.
//! 2. [`answer`] ranks. At the place that it returns stand [`answer_bytes`] bytes of JSON: the
//!    [`Standing`](flashgrain_cost::ranking::Standing), or an object whose `error` describes the defect of
//!    the question.
//!
//! The module imports nothing. `scripts/build-what-if.sh` compiles it and puts it to the page's templates, as
//! `crates/report/templates/what_if.wasm`.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use flashgrain_cost::ranking::Question;

static QUESTION: Mutex<Vec<u8>> = Mutex::new(Vec::new());
static ANSWER: Mutex<Vec<u8>> = Mutex::new(Vec::new());

fn text(of: &Mutex<Vec<u8>>) -> MutexGuard<'_, Vec<u8>> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Memory for a question of `length` bytes, up to the next call.
#[unsafe(no_mangle)]
pub extern "C" fn question(length: usize) -> *mut u8 {
    let mut question = text(&QUESTION);
    question.clear();
    question.resize(length, 0);
    question.as_mut_ptr()
}

/// Answers the question; the answer is valid up to the next call.
#[unsafe(no_mangle)]
pub extern "C" fn answer() -> *const u8 {
    let mut answer = text(&ANSWER);
    *answer = answer_to(&text(&QUESTION));
    answer.as_ptr()
}

/// The length of the last answer.
#[unsafe(no_mangle)]
pub extern "C" fn answer_bytes() -> usize {
    text(&ANSWER).len()
}

fn answer_to(question: &[u8]) -> Vec<u8> {
    let standing = serde_json::from_slice(question).map(|question: Question| question.answer());
    let answer = standing.and_then(|standing| serde_json::to_vec(&standing));
    answer.unwrap_or_else(|error| {
        let error = BTreeMap::from([("error", error.to_string())]);
        // A map of texts is JSON.
        serde_json::to_vec(&error).unwrap_or_default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_that_is_none_is_answered_with_the_reason() {
        let answer: BTreeMap<String, String> =
            serde_json::from_slice(&answer_to(b"{\"workload\": 1}")).unwrap();
        assert!(answer["error"].contains("line 1"), "{answer:?}");
    }
}
