//! Reading operands: the versions of a key from the newest on down to one that is not made of operands, and
//! the value that the tree's merge operator makes of them.

use super::ranges::hidden_by;
use super::table::FoundRecord;
use super::tree::Lsm;
use crate::Error;
use crate::index::{Base, Found, TreeOperator, Unmerged, Version, operands};
use crate::log::Timestamp;

/// See the module.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Chain {
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

    /// Takes the newest version that is left in. Whether older ones are needed.
    pub fn take(&mut self, version: Version, value: &[u8]) -> bool {
        self.newest.get_or_insert(version);
        if version.is_operands() {
            self.lists.push(value.to_vec());
            self.at = Timestamp(version.timestamp().0.saturating_sub(1));
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

    /// The record as it is kept while it is not merged.
    pub fn unmerged(self) -> Unmerged {
        let operands = self.lists.into_iter().rev().collect::<Vec<_>>().concat();
        Unmerged { base: self.base, operands }
    }
}

impl Lsm {
    /// The versions of a key that a snapshot of `at` sees, down to one that is not made of operands.
    fn chain(&self, key: &[u8], at: Timestamp) -> Result<Chain, Error> {
        // All of it of the same tables: of others, merges may have put a part of it elsewhere.
        let parts = self.parts().clone();
        let mut chain = Chain::new(at);
        for memtable in parts.memtables() {
            if !memtable.take_chain(key, &mut chain) {
                return Ok(chain);
            }
        }
        for run in parts.levels.runs() {
            let table = run.get(run.partition_point(|table| table.summary.last_key.as_slice() < key));
            let Some(table) = table.filter(|table| table.covers(key)) else { continue };
            loop {
                let removed_at = table.removed_at(key, chain.at)?;
                let found = table.find(&self.shared.pool, &self.counters, key, chain.at)?;
                let version = hidden_by(removed_at, found.as_ref().map(|found| found.version));
                let Some(version) = version else { break };
                if !chain.take(version, found.as_ref().map_or(&[], FoundRecord::value)) {
                    return Ok(chain);
                }
            }
        }
        Ok(chain)
    }

    /// As [`Index::read`](crate::index::Index::read), of a key whose newest version is made of operands.
    pub(super) fn read_merged(&self, key: &[u8], at: Timestamp, into: &mut Vec<u8>) -> Result<Found, Error> {
        let mut chain = self.chain(key, at)?;
        let value = loop {
            match self.merged(key, &chain) {
                Ok(value) => break value,
                Err(error) => {
                    // An overflow value that operands are over may have gone when a merge put their result
                    // into its place.
                    let again = self.chain(key, at)?;
                    if again == chain {
                        return Err(error);
                    }
                    chain = again;
                }
            }
        };
        let newest = chain.newest.map(Version::timestamp);
        let version = chain.newest.filter(|_| value.is_some()).map(|newest| match newest.is_operands() {
            true => Version::put(newest.timestamp()),
            false => newest,
        });
        into.extend_from_slice(&value.unwrap_or_default());
        Ok(Found { version, newest })
    }

    /// The tree's operator.
    fn operator(&self) -> Result<&TreeOperator, Error> {
        self.operator.as_deref().ok_or_else(|| Error::NoOperator { tree: String::new() })
    }

    /// The value of a key, or its reference if there are no operands over an overflow value.
    pub(super) fn merged(&self, key: &[u8], chain: &Chain) -> Result<Option<Vec<u8>>, Error> {
        let existing = match &chain.base {
            Base::Nothing => None,
            Base::Value(bytes) => Some(bytes.clone()),
            Base::Overflow(reference) if chain.lists.is_empty() => return Ok(Some(reference.clone())),
            Base::Overflow(reference) => {
                self.operator()?.registered()?;
                let mut value = Vec::new();
                self.shared.horizon().ok_or(Error::Closed)?.read_overflow(reference, &mut value)?;
                Some(value)
            }
        };
        if chain.lists.is_empty() {
            return Ok(existing);
        }
        let mut all = Vec::new();
        for list in chain.lists.iter().rev() {
            all.extend(operands::all(list).ok_or_else(|| self.no_operands(list))?);
        }
        if all.len() > 1 && planted!(OperandsMergedNewestFirst) {
            all.reverse();
        }
        self.operator()?.full_merge(key, existing.as_deref(), &all)
    }

    #[cold]
    pub(super) fn no_operands(&self, got: &[u8]) -> Error {
        Error::Corrupt {
            what: "a version of operands".into(),
            offset_bytes: 0,
            expected: "operands with their lengths".into(),
            got: format!("{got:02x?}"),
        }
    }
}
