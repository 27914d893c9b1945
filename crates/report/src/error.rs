//! Errors of reporting.

/// An error of the report.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The page could not be put together.
    #[error("the report's page could not be written: {0}")]
    Page(#[from] askama::Error),
}
