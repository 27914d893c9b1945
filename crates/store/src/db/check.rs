//! Looking at everything that a store contains.

use serde::Serialize;

use super::core::Core;
use crate::Error;
use crate::catalog::Known;
use crate::log::Timestamp;
use crate::txn::Version;

/// What a check has looked at.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Check {
    /// Trees, without the catalog.
    pub trees: u64,
    /// Their nodes.
    pub nodes: u64,
    /// Their records, tombstones that a snapshot still needs included.
    pub records: u64,
    /// Values in pages of their own.
    pub large_values: u64,
    /// Bytes of these.
    pub large_value_bytes: u64,
    /// Bytes of all nodes.
    pub node_bytes: u64,
    /// Bytes of these that are in use.
    pub used_bytes: u64,
}

/// Values in pages of their own.
#[derive(Default)]
struct Large {
    count: u64,
    bytes: u64,
}

impl Core {
    /// Reads every node, record and large value.
    ///
    /// # Errors
    /// The first damage, or what the devices say.
    pub fn check(&self) -> Result<Check, Error> {
        self.check_open()?;
        let mut sum = Check::default();
        for tree in self.engine().trees().all() {
            let looked = self.check_one(&tree)?;
            sum.trees += looked.trees;
            sum.nodes += looked.nodes;
            sum.records += looked.records;
            sum.large_values += looked.large_values;
            sum.large_value_bytes += looked.large_value_bytes;
            sum.used_bytes += looked.used_bytes;
            sum.node_bytes += looked.node_bytes;
        }
        Ok(sum)
    }

    /// As [`Core::check`], of one tree.
    pub fn check_one(&self, tree: &Known) -> Result<Check, Error> {
        self.check_open()?;
        match self.check_tree(tree) {
            // It may have changed while it was looked at: once more, while commits wait.
            Err(Error::Corrupt { .. }) => self.engine().transactions().still(|| self.check_tree(tree)),
            looked => looked,
        }
    }

    /// Of one tree, which nobody changes meanwhile, or it may look damaged.
    fn check_tree(&self, tree: &Known) -> Result<Check, Error> {
        let (mut values, mut newest, mut large) = (Ok(()), Timestamp(0), Large::default());
        let census = tree.tree.index.check(&mut |_, value| {
            // The first damage counts.
            if values.is_ok() {
                values = self.check_value(value, &mut newest, &mut large);
            }
        })?;
        values?;
        Ok(Check {
            trees: 1,
            nodes: census.leaves + census.inner_nodes,
            records: census.records,
            large_values: large.count,
            large_value_bytes: large.bytes,
            used_bytes: census.used_bytes,
            node_bytes: census.page_bytes,
        })
    }

    /// A value of a record as it is in a leaf. `newest` is a commit that there was.
    fn check_value(&self, value: &[u8], newest: &mut Timestamp, large: &mut Large) -> Result<(), Error> {
        let damaged = |expected: &str, got: String| Error::Corrupt {
            what: "a record".into(),
            offset_bytes: 0,
            expected: expected.into(),
            got,
        };
        let Some((version, rest)) = Version::split(value) else {
            return Err(damaged("the commit that made it", format!("{} bytes", value.len())));
        };
        if version.timestamp() > *newest {
            *newest = self.engine().parts().log.last();
        }
        if version.timestamp() > *newest {
            let expected = format!("one of the commits up to {}", newest.0);
            return Err(damaged(&expected, format!("commit {}", version.timestamp().0)));
        }
        if version.is_overflow() {
            large.count += 1;
            large.bytes += self.value(version, rest)?.len() as u64;
        }
        Ok(())
    }
}
