//! Redo of operations from the log, in batches.
//!
//! 1. Operations are collected in the order of the log.
//! 2. A full batch is sorted by tree and key, and only the last operation of each key stays, with the merges
//!    after it.
//! 3. Tasks apply parts of the batch side by side, so that each leaf is visited once and page faults overlap.
//!
//! Every version names its commit, so indexes ignore operations that they contain already. So the replay may
//! start anywhere before the first missing operation, and may be repeated.

use std::ops::Range;
use std::sync::Arc;

use crate::Error;
use crate::index::{Tree, Write};
use crate::log::LogRecord;
use crate::task::{Executor, JoinHandle};

/// Operations of a batch.
const OPERATIONS_MAX: usize = 64 << 10;

/// Bytes of their keys and values.
const BYTES_MAX: usize = 16 << 20;

/// Tasks that share a batch: as many page faults may be under way.
const TASKS: usize = 128;

/// Each task needs memory for this many nodes: the way to a leaf, the leaf's two halves, and one that it
/// becomes. With less, tasks evict each other's nodes, in turn and for ever.
const NODES_PER_TASK: u64 = 4;

/// Fewer operations are not worth a task.
const OPERATIONS_PER_TASK_MIN: usize = 8;

/// Called with the reference of each overflow value that is replaced or removed.
pub(crate) type GiveBack = Arc<dyn Fn(&[u8]) -> Result<(), Error> + Send + Sync>;

/// Collects operations in the order of the log, and applies them in batches.
pub(crate) struct Replayer {
    executor: Executor,
    /// Bytes of pages that fit into memory.
    pages_bytes: u64,
    free_overflow: GiveBack,
    batch: Batch,
    under_way: Vec<JoinHandle<Result<(), Error>>>,
}

#[derive(Default)]
struct Batch {
    bytes: Vec<u8>,
    changes: Vec<Again>,
    /// Those that changes refer to by their place.
    trees: Vec<Tree>,
}

/// An operation. Its key and its value lie one after the other in the batch's bytes.
#[derive(Clone, Copy)]
struct Again {
    tree: u32,
    record: LogRecord,
    key_start: u32,
    value_start: u32,
    /// End of the value, or of the key of a removal.
    end: u32,
    kind: Kind,
}

/// The effect of an operation on its key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Put,
    Remove,
    Merge,
}

impl Batch {
    fn key(&self, change: &Again) -> &[u8] {
        self.bytes.get(change.key_start as usize..change.value_start as usize).unwrap_or_default()
    }

    fn value(&self, change: &Again) -> &[u8] {
        self.bytes.get(change.value_start as usize..change.end as usize).unwrap_or_default()
    }

    fn push(&mut self, tree: &Tree, key: &[u8], record: LogRecord, kind: Kind, value: &[u8]) {
        let known = self.trees.iter().rposition(|known| known.id == tree.id);
        let place = known.unwrap_or_else(|| {
            self.trees.push(tree.clone());
            self.trees.len() - 1
        });
        let key_start = self.bytes.len() as u32;
        self.bytes.extend_from_slice(key);
        let value_start = self.bytes.len() as u32;
        self.bytes.extend_from_slice(value);
        let end = self.bytes.len() as u32;
        self.changes.push(Again { tree: place as u32, record, key_start, value_start, end, kind });
    }

    fn is_same_key(&self, one: &Again, other: &Again) -> bool {
        (one.tree, self.key(one)) == (other.tree, self.key(other))
    }

    /// Sorts by tree, key and commit, and leaves of each key only the last operation that is no merge, and
    /// those after it.
    fn settle(&mut self) {
        let mut changes = std::mem::take(&mut self.changes);
        changes.sort_unstable_by(|one, other| {
            let (one, other) = if planted!(OlderReplayedLast) { (other, one) } else { (one, other) };
            let times = (one.record.timestamp, other.record.timestamp);
            (one.tree, self.key(one), times.1).cmp(&(other.tree, self.key(other), times.0))
        });
        // Newest first: the older of two neighbours follows.
        changes.dedup_by(|older, newer| newer.kind != Kind::Merge && self.is_same_key(older, newer));
        changes.reverse();
        self.changes = changes;
    }

    /// Number of tasks that share it, with `pages_bytes` of pages in memory.
    fn tasks(&self, pages_bytes: u64) -> usize {
        let node_bytes =
            self.trees.iter().map(|tree| tree.index.limits().node_bytes as u64).max().unwrap_or(1);
        (pages_bytes / (NODES_PER_TASK * node_bytes.max(1))).clamp(1, TASKS as u64) as usize
    }

    /// Parts of at least `each` changes, unless the rest is shorter. The changes of a key are in one part.
    fn parts(&self, each: usize) -> Vec<Range<usize>> {
        let (mut parts, mut start) = (Vec::new(), 0);
        while start < self.changes.len() {
            let mut end = (start + each).min(self.changes.len());
            while let Some([before, next]) = self.changes.get(end - 1..=end)
                && self.is_same_key(before, next)
            {
                end += 1;
            }
            parts.push(start..end);
            start = end;
        }
        parts
    }

    fn apply(&self, range: Range<usize>, free_overflow: &GiveBack) -> Result<(), Error> {
        for change in self.changes.get(range).unwrap_or_default() {
            let Some(tree) = self.trees.get(change.tree as usize) else { continue };
            let write = match change.kind {
                Kind::Put => Write::Put(self.value(change)),
                Kind::Remove => Write::Remove,
                Kind::Merge => Write::Merge(self.value(change)),
            };
            let done = tree.index.reapply(self.key(change), write, change.record)?;
            if let Some(reference) = done.replaced {
                free_overflow(&reference)?;
            }
        }
        Ok(())
    }
}

impl Replayer {
    /// Tasks of this executor do the work, as many as memory allows.
    pub fn new(executor: Executor, pages_bytes: u64, free_overflow: GiveBack) -> Self {
        Self { executor, pages_bytes, free_overflow, batch: Batch::default(), under_way: Vec::new() }
    }

    /// Gives a key a value again.
    ///
    /// # Errors
    /// Errors of earlier operations.
    pub fn put(&mut self, tree: &Tree, key: &[u8], record: LogRecord, value: &[u8]) -> Result<(), Error> {
        self.batch.push(tree, key, record, Kind::Put, value);
        self.apply_if_long()
    }

    /// Takes a key out again.
    ///
    /// # Errors
    /// Errors of earlier operations.
    pub fn remove(&mut self, tree: &Tree, key: &[u8], record: LogRecord) -> Result<(), Error> {
        self.batch.push(tree, key, record, Kind::Remove, &[]);
        self.apply_if_long()
    }

    /// Writes operands over the value of a key again.
    ///
    /// # Errors
    /// Errors of earlier operations.
    pub fn merge(
        &mut self,
        tree: &Tree,
        key: &[u8],
        record: LogRecord,
        operands: &[u8],
    ) -> Result<(), Error> {
        let mut operands = operands.to_vec();
        if planted!(OperandsReplayedTwice) {
            operands.extend_from_within(..);
        }
        self.batch.push(tree, key, record, Kind::Merge, &operands);
        self.apply_if_long()
    }

    fn apply_if_long(&mut self) -> Result<(), Error> {
        if self.batch.changes.len() < OPERATIONS_MAX && self.batch.bytes.len() < BYTES_MAX {
            return Ok(());
        }
        self.begin()
    }

    /// Begins to apply the batch once the one before it is applied.
    fn begin(&mut self) -> Result<(), Error> {
        self.wait()?;
        let mut batch = std::mem::take(&mut self.batch);
        batch.settle();
        let each = batch.changes.len().div_ceil(batch.tasks(self.pages_bytes)).max(OPERATIONS_PER_TASK_MIN);
        let batch = Arc::new(batch);
        for part in batch.parts(each) {
            let (batch, give_back) = (Arc::clone(&batch), Arc::clone(&self.free_overflow));
            self.under_way.push(self.executor.run(move || batch.apply(part, &give_back)));
        }
        Ok(())
    }

    fn wait(&mut self) -> Result<(), Error> {
        let mut result = Ok(());
        for task in self.under_way.drain(..) {
            // A task that panicked has left something undone.
            let ended = task.join().unwrap_or(Err(Error::Closed));
            result = result.and(ended);
        }
        result
    }

    /// Returns when everything so far is done.
    ///
    /// # Errors
    /// The indexes'.
    pub fn finish(&mut self) -> Result<(), Error> {
        self.begin()?;
        self.wait()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;
    use crate::btree::Change;
    use crate::index::Version;
    use crate::io_context::Devices;
    use crate::log::tests::device;
    use crate::log::{Lsn, Timestamp};
    use crate::poison::Poison;
    use crate::versioned::OrderedMap;
    use crate::versioned::map::{fail_at, history, tree};
    use crate::worker::Harness;

    fn record(timestamp: u64) -> LogRecord {
        LogRecord { start: Lsn(timestamp * 100), timestamp: Timestamp(timestamp) }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(30))]
        /// Whatever was in the trees already of the same history, and from wherever it is replayed.
        #[test]
        fn a_history_can_be_replayed_over_any_part_of_itself(
            history in proptest::collection::vec((0_u32..2, 0_u8..20, any::<Option<u16>>(), any::<bool>()), 1..400),
            applied in 0_usize..400,
            cut in 1_usize..5,
        ) {
            let history_of_trees = crate::versioned::map::history(&Poison::default(), 0);
            let (trees, maps): (Vec<_>, Vec<_>) = (0..2).map(|id| tree(id, &history_of_trees)).unzip();
            let mut model = BTreeMap::new();
            let value = |at: usize, value: u16| [&Version::put(Timestamp(at as u64 + 1)).bits().to_le_bytes()[..], &value.to_le_bytes()].concat();
            for (at, (id, key, put, _)) in history.iter().enumerate() {
                let value = put.map(|put| value(at, put));
                if at < applied {
                    maps[*id as usize].update(&[*key], &mut |_| value.as_ref().map_or(Change::Remove, |value| Change::Put(value))).unwrap();
                }
                match value {
                    Some(value) => drop(model.insert((*id, vec![*key]), value)),
                    None => drop(model.remove(&(*id, vec![*key]))),
                }
            }
            let mut harness = Harness::new(&Devices::new(device(1) as _, None), 2);
            let executor = harness.executor().clone();
            let from = applied.min(history.len()) / cut;
            let own = history.clone();
            harness.run(move || {
                let mut replayer = Replayer::new(executor, u64::MAX, Arc::new(|_| Ok(())));
                for (at, (id, key, put, begins)) in own.iter().enumerate().skip(from) {
                    let record = record(at as u64 + 1);
                    match put {
                        Some(put) => replayer.put(&trees[*id as usize], &[*key], record, &put.to_le_bytes()).unwrap(),
                        None => replayer.remove(&trees[*id as usize], &[*key], record).unwrap(),
                    }
                    if *begins && at % 16 == 0 {
                        replayer.begin().unwrap();
                    }
                }
                replayer.finish().unwrap();
            });
            for (id, map) in (0_u32..).zip(&maps) {
                let expected: Vec<_> = model.iter().filter(|((tree, _), _)| *tree == id).map(|((_, key), value)| (key.clone(), value.clone())).collect();
                prop_assert_eq!(map.all(), expected);
            }
        }
    }

    /// The log begins before the checkpoint: its trees may have a value that a later commit has put in the
    /// place of the one removed here, and an overflow value of that commit must not be freed.
    #[test]
    fn what_later_commits_have_put_is_not_given_back_by_an_earlier_removal() {
        let (tree, map) = tree(1, &history(&Poison::default(), 0));
        let late = [&Version::overflow(Timestamp(6)).bits().to_le_bytes()[..], b"late"].concat();
        map.update(b"k", &mut |_| Change::Put(&late)).unwrap();
        let mut harness = Harness::new(&Devices::new(device(1) as _, None), 1);
        let executor = harness.executor().clone();
        let given_back = Arc::new(std::sync::Mutex::new(Vec::new()));
        let told = Arc::clone(&given_back);
        harness.run(move || {
            let mut replayer = Replayer::new(
                executor,
                u64::MAX,
                Arc::new(move |reference| {
                    told.lock().unwrap().push(reference.to_vec());
                    Ok(())
                }),
            );
            replayer.remove(&tree, b"k", record(5)).unwrap();
            replayer.finish().unwrap();
        });
        assert_eq!(map.all(), [(b"k".to_vec(), late)]);
        assert!(given_back.lock().unwrap().is_empty());
    }

    #[test]
    fn no_more_tasks_share_a_batch_than_there_is_memory_for() {
        let (tree, _) = tree(1, &history(&Poison::default(), 0));
        let node_bytes = tree.index.limits().node_bytes as u64;
        let batch = Batch { trees: vec![tree], ..Batch::default() };
        let tasks_of = |nodes: u64| batch.tasks(nodes * node_bytes);
        assert_eq!([0, 4, 7, 8, 40, 4000].map(tasks_of), [1, 1, 1, 2, 10, TASKS]);
    }

    #[test]
    fn what_is_there_already_is_left_alone() {
        let (tree, map) = tree(1, &history(&Poison::default(), 0));
        let mut harness = Harness::new(&Devices::new(device(1) as _, None), 2);
        let executor = harness.executor().clone();
        let replay = move || {
            let mut replayer = Replayer::new(executor.clone(), u64::MAX, Arc::new(|_| Ok(())));
            for number in 0..1000_u64 {
                replayer.put(&tree, &number.to_be_bytes(), record(number + 1), b"value").unwrap();
            }
            replayer.finish().unwrap();
        };
        harness.run(replay.clone());
        assert_eq!(map.changes(), 1000);
        harness.run(replay);
        assert_eq!(map.changes(), 1000);
    }

    /// The call that waits for the end of all batches returns its error at the latest.
    #[test]
    fn a_batch_that_failed_is_not_forgotten() {
        for (count, gives_back) in [(OPERATIONS_MAX, true), (1, false)] {
            let (tree, map) = tree(1, &history(&Poison::default(), 0));
            let overflow = [&Version::overflow(Timestamp(1)).bits().to_le_bytes()[..], b"reference"].concat();
            map.update(&0_u64.to_be_bytes(), &mut |_| Change::Put(&overflow)).unwrap();
            let mut harness = Harness::new(&Devices::new(device(1) as _, None), 2);
            let executor = harness.executor().clone();
            let refused = harness.run(move || {
                let give_back: GiveBack = Arc::new(move |_| match gives_back {
                    true => Ok(()),
                    false => Err(Error::io("free a page", libc::EIO)),
                });
                let mut replayer = Replayer::new(executor, u64::MAX, give_back);
                for number in 0..count as u64 {
                    replayer.put(&tree, &number.to_be_bytes(), record(number + 2), b"value").unwrap();
                }
                fail_at(if gives_back { 7 } else { 0 });
                replayer.finish()
            });
            assert_eq!(refused.unwrap_err().kind(), crate::ErrorKind::Io);
        }
    }
}
