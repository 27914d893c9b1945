//! A failure, and how to reproduce it.

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
