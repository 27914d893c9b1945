//! A setting as it stands in a file.

use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};

use crate::value::{Range, Value};
use crate::{Amount, Error};

/// A setting that this version does not know, or whose words it cannot read: as it stands in the file.
#[derive(Clone, Debug, PartialEq)]
pub struct Unknown {
    pub(crate) name: String,
    pub(crate) value: String,
    pub(crate) amount: Option<Amount>,
}

/// The keys of a setting.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Stored {
    setting: String,
    value: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    amount: Option<StoredAmount>,
}

/// A newer version may have units that this one does not know.
#[derive(Debug, Serialize, Deserialize)]
#[serde(untagged)]
enum StoredAmount {
    Known(Amount),
    #[serde(skip_serializing)]
    Foreign(IgnoredAny),
}

impl Stored {
    pub fn new(name: &str, value: String, amount: Option<Amount>) -> Self {
        Self { setting: name.to_owned(), value, amount: amount.map(StoredAmount::Known) }
    }

    pub fn name(&self) -> &str {
        &self.setting
    }

    /// The value of the setting `name`; `None` if this version does not understand the words.
    pub fn value<T: Value>(&self, name: &'static str, range: Option<Range>) -> Result<Option<T>, Error> {
        let amount = match &self.amount {
            None => None,
            Some(StoredAmount::Known(amount)) => Some(*amount),
            Some(StoredAmount::Foreign(_)) => return Err(self.wrong_amount(name)),
        };
        let Some(value) = T::read(&self.value, amount) else {
            return if amount.is_some() { Err(self.wrong_amount(name)) } else { Ok(None) };
        };
        match value.amount().zip(range) {
            Some((amount, range)) if !range.contains(&amount.number()) => Err(Error::OutOfRange {
                setting: name,
                value: amount.text_of(amount.number()),
                min: amount.text_of(*range.start()),
                max: amount.text_of(*range.end()),
            }),
            _ => Ok(Some(value)),
        }
    }

    fn wrong_amount(&self, setting: &'static str) -> Error {
        Error::Amount { setting, value: self.value.clone() }
    }
}

impl From<Stored> for Unknown {
    fn from(stored: Stored) -> Self {
        let amount = match stored.amount {
            Some(StoredAmount::Known(amount)) => Some(amount),
            Some(StoredAmount::Foreign(_)) | None => None,
        };
        Self { name: stored.setting, value: stored.value, amount }
    }
}
