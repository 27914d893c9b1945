//! How a write is made durable.

use crate::Amount;
use crate::value::Value;

/// How a write of the log is made durable. The cheapest method depends on the drive, and costs differ by
/// factors; the profile measures all three.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SyncMethod {
    /// A write that completes when it is durable (`RWF_DSYNC`).
    Dsync,
    /// A write linked to a flush in one submission.
    LinkedFlush,
    /// A write, and `fdatasync` when it is done.
    Fdatasync,
}

impl SyncMethod {
    /// All, those that work everywhere first.
    pub const ALL: [Self; 3] = [Self::Fdatasync, Self::Dsync, Self::LinkedFlush];

    /// As profiles and `flashgrain io` call it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Dsync => "RWF_DSYNC",
            Self::LinkedFlush => "linked flush",
            Self::Fdatasync => "fdatasync",
        }
    }

    /// The method of this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|method| method.name() == name)
    }
}

impl Value for SyncMethod {
    fn text(&self) -> String {
        self.name().to_owned()
    }

    fn amount(&self) -> Option<Amount> {
        None
    }

    fn read(text: &str, amount: Option<Amount>) -> Option<Self> {
        amount.is_none().then(|| Self::named(text))?
    }
}
