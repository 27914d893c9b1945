//! Reading operands: the versions of a key in memtables and runs, down to one that is not made of operands.

use super::table::FoundRecord;
use super::tree::Lsm;
use crate::Error;
use crate::buffered::{Chain, hidden_by};
use crate::index::Found;
use crate::log::Timestamp;

impl Lsm {
    /// The versions of a key that a snapshot of `at` sees, down to one that is not made of operands.
    fn chain(&self, key: &[u8], at: Timestamp) -> Result<Chain, Error> {
        // All of it from the same tables: merges may have moved a part of it to others.
        let parts = self.current();
        let mut chain = Chain::new(at);
        for memtable in parts.memtables.iter() {
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
            match self.value_of(key, &chain) {
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
        let found = chain.found(value.as_deref());
        into.extend_from_slice(&value.unwrap_or_default());
        Ok(found)
    }

    /// As [`Chain::value`].
    pub(super) fn value_of(&self, key: &[u8], chain: &Chain) -> Result<Option<Vec<u8>>, Error> {
        chain.value(key, self.operator.as_deref(), self.shared.horizon())
    }
}
