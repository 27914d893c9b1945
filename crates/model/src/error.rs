//! Errors of reading samples and of fitting.

/// An error of the model crate.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The samples cannot support any fit; the text names the missing samples.
    #[error("{0}")]
    Samples(String),
    /// A samples file is malformed.
    #[error("samples, line {line}: {problem}")]
    Csv {
        /// Line, counted from 1.
        line: u64,
        /// The problem, and the expected value.
        problem: String,
    },
}
