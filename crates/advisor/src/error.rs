//! Errors of workloads and observations.

/// An error of this crate.
#[derive(Debug, thiserror::Error, PartialEq)]
#[non_exhaustive]
pub enum Error {
    /// A field of a workload has a value that it cannot have.
    #[error("workload: `{field}` is {got}; allowed: {allowed}")]
    Field {
        /// Its path in the file, such as `operations.updates`.
        field: String,
        /// The value that it has.
        got: String,
        /// The range of its values, in words.
        allowed: String,
    },
    /// The text is no TOML, or has a field that no workload has.
    #[error("workload: {0}")]
    Syntax(String),
    /// There is no preset of this name.
    #[error("there is no preset workload {got:?}; allowed: {allowed}")]
    Preset {
        /// The name.
        got: String,
        /// All names.
        allowed: String,
    },
    /// The settings of this version of an engine are not known.
    #[error("no settings are known for {engine} {got:?}; versions that are known: {allowed}")]
    EngineVersion {
        /// The engine, as people write it.
        engine: &'static str,
        /// The version that was asked for.
        got: String,
        /// All that are known.
        allowed: String,
    },
    /// No workload can be taken from an observation.
    #[error("observed {kind}: {problem}")]
    Observation {
        /// The kind of the text.
        kind: &'static str,
        /// The part that is missing, and a remedy.
        problem: String,
    },
}

impl Error {
    pub(crate) fn field(field: &str, got: impl ToString, allowed: impl Into<String>) -> Self {
        Self::Field { field: field.to_owned(), got: got.to_string(), allowed: allowed.into() }
    }
}
