//! The newest commit of each group of keys, so that the first committer wins without reading any record.
//!
//! Keys fall into a fixed number of *groups* by their hash, and the table has the newest commit of each
//! group.
//!
//! - A conflict is never missed: a group's entry is replaced only by a newer commit, and all commits of
//!   earlier runs of the store are older than every snapshot.
//! - A conflict may be suspected wrongly, because the newest commit of a key's group may have been of another
//!   key. Then the index is asked. Only if the index cannot tell either is a commit refused without a real
//!   conflict; such refusals are counted.
//! - The table's memory does not depend on the numbers of commits, snapshots and keys. The longer a snapshot
//!   lives, the more groups have newer commits; when nearly all have, the index is asked about nearly every
//!   key.
//!
//! All keys of a group share one lock, and a group's entry is written and checked with that lock held. A
//! check without the lock may be outdated and has to be repeated.

use crate::hash::hash;
use crate::index::TreeId;
use crate::log::Timestamp;
use crate::sync::atomic::{AtomicU64, Ordering};

/// Groups; a power of two, and at least as many as locks of keys. They take 512 KiB.
const GROUPS_BITS: u32 = 16;

/// See the module.
pub(super) struct CommitTable {
    groups: Box<[AtomicU64]>,
    asked: AtomicU64,
    refused_unsure: AtomicU64,
}

/// The hash of a key, whose first bits say which lock and which group it has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct KeyHash(u64);

impl KeyHash {
    pub fn of(tree: TreeId, key: &[u8]) -> Self {
        Self(hash(tree.0.into(), key))
    }

    /// Its first bits, at most 32.
    pub fn first_bits(self, bits: u32) -> u32 {
        (self.0 >> (u64::BITS - bits)) as u32
    }
}

/// How commits were checked for others that were faster.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ConflictStats {
    /// How often the table could not rule out a later commit of a key, so that the index was asked.
    pub asked: u64,
    /// Commits that were refused since the index could not tell either.
    pub refused_unsure: u64,
}

impl CommitTable {
    pub fn new() -> Self {
        Self {
            groups: (0..1 << GROUPS_BITS).map(|_| AtomicU64::new(0)).collect(),
            asked: AtomicU64::new(0),
            refused_unsure: AtomicU64::new(0),
        }
    }

    #[inline]
    fn group(&self, key: KeyHash) -> &AtomicU64 {
        &self.groups[key.first_bits(GROUPS_BITS) as usize]
    }

    /// The key is committed, by a commit that is newer than all others of keys with its lock. Called with
    /// that lock.
    #[inline]
    pub fn note(&self, key: KeyHash, timestamp: Timestamp) {
        self.group(key).store(timestamp.0, Ordering::Relaxed);
    }

    /// All keys may be committed, by the newest of all commits. Called with all locks.
    pub fn note_all(&self, timestamp: Timestamp) {
        self.groups.iter().for_each(|group| group.store(timestamp.0, Ordering::Relaxed));
    }

    /// Whether the key may have been committed after `since`.
    #[inline]
    pub fn may_be_newer(&self, key: KeyHash, since: Timestamp) -> bool {
        self.group(key).load(Ordering::Relaxed) > since.0 && !planted!(RecentCommitMissed)
    }

    /// The index of a key has to be asked.
    pub fn note_asked(&self) {
        self.asked.fetch_add(1, Ordering::Relaxed);
    }

    /// A commit is refused as its index could not tell.
    pub fn note_unsure(&self) {
        self.refused_unsure.fetch_add(1, Ordering::Relaxed);
    }

    pub fn stats(&self) -> ConflictStats {
        ConflictStats {
            asked: self.asked.load(Ordering::Relaxed),
            refused_unsure: self.refused_unsure.load(Ordering::Relaxed),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Whatever was committed in whatever order of keys, no commit is missed; and nothing is newer than
        /// the last one.
        #[test]
        fn no_commit_is_missed(commits in proptest::collection::vec(0_u32..5000, 1..600)) {
            let table = CommitTable::new();
            let key = |number: u32| KeyHash::of(TreeId(number % 3), &number.to_be_bytes());
            let mut newest = HashMap::new();
            for (timestamp, number) in (1..).zip(&commits) {
                table.note(key(*number), Timestamp(timestamp));
                newest.insert(*number, timestamp);
            }
            for (number, timestamp) in &newest {
                prop_assert!(table.may_be_newer(key(*number), Timestamp(timestamp - 1)));
                prop_assert!(!table.may_be_newer(key(*number), Timestamp(commits.len() as u64)));
            }
        }
    }

    #[test]
    fn few_keys_are_blamed_for_others() {
        let table = CommitTable::new();
        let key = |number: u32| KeyHash::of(TreeId(1), &number.to_be_bytes());
        (0..1000).for_each(|number| table.note(key(number), Timestamp(2)));
        let blamed = (1000..11_000).filter(|number| table.may_be_newer(key(*number), Timestamp(1))).count();
        assert!(blamed < 300, "{blamed} of 10,000, where a 66th is to be expected");
    }
}
