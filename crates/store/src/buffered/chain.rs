//! Reading operands: the versions of a key from the newest on down to one that is not made of operands, and
//! the value that the tree's merge operator makes of them.

use crate::Error;
use crate::index::{Base, Found, Horizon, TreeOperator, Unmerged, Version, operands};
use crate::log::Timestamp;
use crate::sync::Arc;

/// See the module.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Chain {
    /// The newest version of the key, be it a removal.
    newest: Option<Version>,
    /// Lists of operands, the newest first.
    lists: Vec<Vec<u8>>,
    base: Base,
    /// The next version is looked for from here on.
    pub at: Timestamp,
}

impl Chain {
    /// The chain as of a snapshot of `at`; nothing of it is found yet.
    pub fn new(at: Timestamp) -> Self {
        Self { at, ..Self::default() }
    }

    /// Takes in the newest version that is left. Returns whether older ones are needed.
    pub fn take(&mut self, version: Version, value: &[u8]) -> bool {
        self.take_sum(version, value, version.timestamp())
    }

    /// The same for a version with the operands of several commits, down to the oldest.
    pub fn take_sum(&mut self, version: Version, value: &[u8], oldest: Timestamp) -> bool {
        self.newest.get_or_insert(version);
        if version.is_operands() {
            self.lists.push(value.to_vec());
            self.at = Timestamp(oldest.0.saturating_sub(1));
            return true;
        }
        self.base = match version {
            _ if version.is_tombstone() => Base::Nothing,
            _ if version.is_overflow() => Base::Overflow(value.to_vec()),
            _ => Base::Value(value.to_vec()),
        };
        false
    }

    /// The newest version of the key.
    pub fn newest(&self) -> Option<Version> {
        self.newest
    }

    /// Whether its value is made of an overflow value, whose pages are read for that.
    pub fn needs_overflow(&self) -> bool {
        !self.lists.is_empty() && matches!(self.base, Base::Overflow(_))
    }

    /// The record before its operands are merged.
    pub fn unmerged(self) -> Unmerged {
        let operands = self.lists.into_iter().rev().collect::<Vec<_>>().concat();
        Unmerged { base: self.base, operands }
    }

    /// The result of a look-up that read this value.
    pub fn found(&self, value: Option<&[u8]>) -> Found {
        let newest = self.newest.map(Version::timestamp);
        let version = self.newest.filter(|_| value.is_some()).map(|newest| match newest.is_operands() {
            true => Version::put(newest.timestamp()),
            false => newest,
        });
        Found { version, newest }
    }

    /// The value of the key, or its reference if it is an overflow value without operands.
    ///
    /// # Errors
    /// [`Error::NoOperator`] and those of the operator; [`Error::Corrupt`] for bytes that are no list of
    /// operands; those of reading an overflow value.
    pub fn value(
        &self,
        key: &[u8],
        operator: Option<&TreeOperator>,
        horizon: Option<Arc<dyn Horizon>>,
    ) -> Result<Option<Vec<u8>>, Error> {
        let operator = || operator.ok_or_else(|| Error::NoOperator { tree: String::new() });
        let existing = match &self.base {
            Base::Nothing => None,
            Base::Value(bytes) => Some(bytes.clone()),
            Base::Overflow(reference) if self.lists.is_empty() => return Ok(Some(reference.clone())),
            Base::Overflow(reference) => {
                operator()?.registered()?;
                let mut value = Vec::new();
                horizon.ok_or(Error::Closed)?.read_overflow(reference, &mut value)?;
                Some(value)
            }
        };
        if self.lists.is_empty() {
            return Ok(existing);
        }
        let mut all = Vec::new();
        for list in self.lists.iter().rev() {
            all.extend(operands::all(list).ok_or_else(|| no_operands(list))?);
        }
        if all.len() > 1 && planted!(OperandsMergedNewestFirst) {
            all.reverse();
        }
        operator()?.full_merge(key, existing.as_deref(), &all)
    }
}

#[cold]
fn no_operands(got: &[u8]) -> Error {
    Error::Corrupt {
        what: "a version of operands".into(),
        offset_bytes: 0,
        expected: "operands with their lengths".into(),
        got: format!("{got:02x?}"),
    }
}

/// A record that the operator fails at, as a scan has it: the version is one of operands, without a value. A
/// look-up of the key returns the error. So a scan reports it at this record, not at those before it, and
/// skips it if no value is needed.
pub(crate) fn unreadable(newest: Timestamp) -> Option<(Version, Vec<u8>)> {
    Some((Version::operands(newest), Vec::new()))
}
