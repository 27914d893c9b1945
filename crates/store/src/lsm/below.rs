//! Where tables end: each overlaps a bounded number of bytes of the level below. The merge that brings a
//! table down later, even one of few tombstones that are far apart, must not rewrite a whole level (as in
//! LevelDB and RocksDB).

use super::levels::Run;

/// See the module.
pub(super) struct Below {
    run: Run,
    /// The first table that does not end before the last key.
    next: usize,
    /// Bytes of tables that end between the first and the last key of the table that is being written.
    bytes: u64,
    bytes_max: u64,
}

impl Below {
    /// A table overlaps at most about `bytes_max` bytes of this run.
    pub fn new(run: Run, bytes_max: u64) -> Self {
        Self { run, next: 0, bytes: 0, bytes_max }
    }

    /// The next table begins.
    pub fn begin(&mut self) {
        self.bytes = 0;
    }

    /// Whether a table that is being written should end before this key, which comes after all others.
    pub fn ends_before(&mut self, key: &[u8]) -> bool {
        while let Some(table) = self.run.get(self.next)
            && table.summary.last_key.as_slice() < key
        {
            self.bytes += table.summary.bytes;
            self.next += 1;
        }
        self.bytes > self.bytes_max
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lsm::levels::tests::sized;

    #[test]
    fn a_table_ends_when_it_overlaps_too_much() {
        let run = [(1, 2), (4, 6), (7, 9), (20, 30)].map(|(first, last)| sized(first, last, 100));
        let mut below = Below::new(run.to_vec(), 150);
        below.begin();
        assert_eq!([0, 3, 5, 6].map(|key| below.ends_before(&[key])), [false; 4]);
        assert!(below.ends_before(&[8]));
        below.begin();
        assert_eq!([8, 10, 25, 30].map(|key| below.ends_before(&[key])), [false; 4]);
        assert!(below.ends_before(&[31]));
    }
}
