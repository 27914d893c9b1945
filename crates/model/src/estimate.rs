//! A fitted number with its confidence interval, or the reason why there is none.

use serde::{Deserialize, Serialize};

/// A number as far as the data determine it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum Estimate {
    /// The data support a value.
    Determined {
        /// The fitted value, in the unit that the owner's name states.
        value: f64,
        /// Lower end of the 95 % bootstrap confidence interval.
        low: f64,
        /// Upper end of the 95 % bootstrap confidence interval.
        high: f64,
    },
    /// The data do not support a value; nothing is guessed.
    Undetermined {
        /// Why, in words for the user, such as "throughput still rises at the deepest queue measured (128)".
        why: String,
    },
}

impl Estimate {
    /// The value, if determined.
    pub fn value(&self) -> Option<f64> {
        match self {
            Self::Determined { value, .. } => Some(*value),
            Self::Undetermined { .. } => None,
        }
    }
}
