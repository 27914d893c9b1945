//! Looking at everything that a store contains.

use std::sync::Arc;

use serde::Serialize;

use super::core::Core;
use super::scan::TreeScan;
use crate::Error;
use crate::catalog::NamedTree;
use crate::index::{Version, operands};
use crate::log::Timestamp;

/// Counts of a check.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Check {
    /// Trees, without the catalog.
    pub trees: u64,
    /// Their nodes.
    pub nodes: u64,
    /// Those of them that have records.
    pub leaves: u64,
    /// Their records: the keys that a scan finds.
    pub records: u64,
    /// Everything that is kept of records: their values, older ones and tombstones that a snapshot or a merge
    /// still needs, and messages on their way to leaves.
    pub versions: u64,
    /// Values in pages of their own.
    pub overflow_values: u64,
    /// Bytes of these.
    pub overflow_value_bytes: u64,
    /// Bytes of all nodes.
    pub node_bytes: u64,
    /// Bytes of these that are in use.
    pub used_bytes: u64,
}

/// Values in pages of their own.
#[derive(Default)]
struct OverflowCount {
    count: u64,
    bytes: u64,
}

impl Core {
    /// Reads every node, record and overflow value.
    ///
    /// # Errors
    /// The first damage, or the devices' error.
    pub fn check(self: &Arc<Self>) -> Result<Check, Error> {
        self.check_open()?;
        let mut sum = Check::default();
        for tree in self.engine().trees().all() {
            let looked = self.check_one(&tree)?;
            sum.trees += looked.trees;
            sum.nodes += looked.nodes;
            sum.leaves += looked.leaves;
            sum.records += looked.records;
            sum.versions += looked.versions;
            sum.overflow_values += looked.overflow_values;
            sum.overflow_value_bytes += looked.overflow_value_bytes;
            sum.used_bytes += looked.used_bytes;
            sum.node_bytes += looked.node_bytes;
        }
        Ok(sum)
    }

    /// As [`Core::check`], of one tree.
    pub fn check_one(self: &Arc<Self>, tree: &Arc<NamedTree>) -> Result<Check, Error> {
        self.check_open()?;
        let looked = match self.check_tree(tree) {
            // It may have changed while it was looked at: once more, while commits wait.
            Err(Error::Corrupt { .. }) => self.engine().transactions().still(|| self.check_tree(tree)),
            looked => looked,
        }?;
        Ok(Check { records: self.count_records(tree)?, ..looked })
    }

    /// Records that a scan finds now. Operands need no operator for that.
    fn count_records(self: &Arc<Self>, tree: &Arc<NamedTree>) -> Result<u64, Error> {
        let mut scan = TreeScan::unmerged(self, tree, &self.pin()?);
        let mut count = 0;
        while scan.next_key()?.is_some() {
            count += 1;
        }
        Ok(count)
    }

    /// Checks one tree, without counting its records. A tree that is changed meanwhile may look damaged.
    fn check_tree(&self, tree: &NamedTree) -> Result<Check, Error> {
        let (mut values, mut newest, mut overflow) = (Ok(()), Timestamp(0), OverflowCount::default());
        let census = tree.tree.index.walk(&mut |_| (), &mut |_, version, value| {
            // The first damage counts.
            if values.is_ok() {
                values = self.check_value(version, value, &mut newest, &mut overflow);
            }
        })?;
        values?;
        Ok(Check {
            trees: 1,
            nodes: census.leaves + census.inner_nodes,
            leaves: census.leaves,
            records: 0,
            versions: census.records,
            overflow_values: overflow.count,
            overflow_value_bytes: overflow.bytes,
            used_bytes: census.used_bytes,
            node_bytes: census.page_bytes,
        })
    }

    /// Checks a version of a record. `newest` is the last commit that is known to have happened.
    fn check_value(
        &self,
        version: Version,
        value: &[u8],
        newest: &mut Timestamp,
        overflow: &mut OverflowCount,
    ) -> Result<(), Error> {
        if version.timestamp() > *newest {
            *newest = self.engine().parts().log.last();
        }
        if version.timestamp() > *newest {
            return Err(Error::Corrupt {
                what: "a record".into(),
                offset_bytes: 0,
                expected: format!("one of the commits up to {}", newest.0),
                got: format!("commit {}", version.timestamp().0),
            });
        }
        if version.is_operands() && operands::all(value).is_none() {
            return Err(Error::Corrupt {
                what: "a version of operands".into(),
                offset_bytes: 0,
                expected: "operands with their lengths".into(),
                got: format!("{value:02x?}"),
            });
        }
        if version.is_overflow() {
            overflow.count += 1;
            overflow.bytes += self.value(version, value)?.len() as u64;
        }
        Ok(())
    }
}
