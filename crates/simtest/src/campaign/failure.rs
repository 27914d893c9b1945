//! A failure, and how to reproduce it.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Once;

/// A broken promise.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// Description of the failure.
    pub what: String,
    /// The moment of the failure: a moment, a choice, a fault.
    pub case: String,
    /// The seed that leads to it.
    pub seed: u64,
    /// Events before the failure, for people; empty if there are none.
    pub trace: String,
}

impl Failure {
    /// A failure in a case of a seed.
    pub fn new(seed: u64, case: impl Into<String>, what: impl Into<String>) -> Self {
        Self { what: what.into(), case: case.into(), seed, trace: String::new() }
    }
}

impl std::fmt::Display for Failure {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "seed {}, {}: {}", self.seed, self.case, self.what)
    }
}

thread_local! {
    static QUIET: Cell<bool> = const { Cell::new(false) };
}

/// The result of `act`, or the text of its panic, which is printed nowhere.
///
/// # Errors
/// The panic's text.
pub fn quietly<T>(act: impl FnOnce() -> T) -> Result<T, String> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let loud = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            if !QUIET.get() {
                loud(info);
            }
        }));
    });
    let before = QUIET.replace(true);
    let result = catch_unwind(AssertUnwindSafe(act));
    QUIET.set(before);
    result.map_err(|panic| {
        let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
        format!("panic: {}", text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default())
    })
}
