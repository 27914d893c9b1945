//! Errors in a simulated drive's description.

/// An error of this crate.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A field of the configuration has a value that makes no drive.
    #[error("{field} is {value}: allowed is {allowed}")]
    Config {
        /// The field's path, such as `medium.nand.channels`.
        field: String,
        /// The given value.
        value: String,
        /// The allowed values.
        allowed: String,
    },
    /// The text is no configuration.
    #[error("{origin}: {problem}")]
    Syntax {
        /// File or preset.
        origin: String,
        /// The parser's message, with the line.
        problem: String,
    },
    /// There is no preset of that name.
    #[error(
        "there is no simulated drive '{name}'{hint}; there are {known} (8xNAME is a stripe set of eight), or give a file: sim:FILE.toml"
    )]
    UnknownPreset {
        /// The name that was asked for.
        name: String,
        /// Empty, or the nearest name in parentheses.
        hint: String,
        /// The names of all presets.
        known: String,
    },
    /// The system refused to read or write a file.
    #[error("{path}: {source}")]
    File {
        /// The file's path.
        path: std::path::PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// The device layer refused.
    #[error(transparent)]
    Device(#[from] flashgrain_device::Error),
}
