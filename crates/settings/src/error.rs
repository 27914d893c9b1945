//! Settings in a file that cannot be taken.

/// A setting that cannot be taken from a file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A number that no drive and no store could have.
    #[error("the setting `{setting}` is {value}, but must be between {min} and {max}")]
    OutOfRange {
        /// The setting's name.
        setting: &'static str,
        /// The number with its unit.
        value: String,
        /// The smallest that is possible.
        min: String,
        /// The largest that is possible.
        max: String,
    },
    /// An amount whose unit is not the setting's.
    #[error("the setting `{setting}` has an amount that does not belong to it next to the value `{value}`")]
    Amount {
        /// The setting's name.
        setting: &'static str,
        /// Its value in words.
        value: String,
    },
}

impl Error {
    /// A stable word for the kind of error.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::OutOfRange { .. } => "out of range",
            Self::Amount { .. } => "amount",
        }
    }
}
