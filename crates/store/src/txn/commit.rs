//! The way of a commit.
//!
//! It is validated, which brings the leaves into memory; its keys are locked; keys whose leaf has changed meanwhile are validated again; it is logged, which gives it its timestamp; it is applied; then it
//! can be seen, its locks are given back, and it waits for the log. Of two commits with a common key the one with the smaller timestamp is applied first. Nothing fails between log and
//! application but a device; that poisons the store.

use std::cell::Cell;

use super::locks::{Held, Stripe};
use super::record::Operation;
use super::throttle::Admitted;
use super::version::{VERSION_BYTES, Version};
use super::{Transactions, Tree};
use crate::Error;
use crate::catalog::TreeId;
use crate::index::{Change, May, Near, Spot, each_brought};
use crate::log::{Durability, Logged, Timestamp};

/// What a transaction does to a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Write<'a> {
    Put(&'a [u8]),
    /// A value in overflow pages: the reference that the record keeps, and what the log has to know of them.
    PutOverflow {
        reference: &'a [u8],
        logged: &'a [u8],
    },
    Remove,
}

/// A key and what happens to it.
#[derive(Clone, Copy)]
pub(crate) struct Written<'a> {
    pub tree: &'a Tree,
    pub key: &'a [u8],
    pub write: Write<'a>,
}

/// A key, or all keys there are, that a serializable transaction has read.
#[derive(Clone, Copy)]
pub(crate) struct Read<'a> {
    pub tree: &'a Tree,
    pub key: &'a [u8],
}

/// What was there before a commit, as long as the leaf in which it was found has not changed since.
#[derive(Clone, Copy, Default)]
struct Before {
    version: Option<Version>,
    /// Where the value is among those that validation has read, with its version; it may be too long for that.
    value: Option<(usize, usize)>,
    near: Near,
}

/// The same for all keys of a commit.
struct Befores {
    reads: Vec<Before>,
    writes: Vec<Before>,
}

impl Written<'_> {
    /// Refuses what cannot be applied: afterwards it is too late.
    fn check(&self) -> Result<(), Error> {
        let index = &self.tree.index;
        let limit = index.max_key_bytes();
        if self.key.is_empty() || self.key.len() > limit {
            return Err(Error::KeyLength { got: self.key.len(), limit });
        }
        let limit = index.max_value_bytes() - VERSION_BYTES;
        match self.write {
            Write::Put(value) | Write::PutOverflow { reference: value, .. } if value.len() > limit => {
                Err(Error::ValueLength { got: value.len() as u64, limit: limit as u64 })
            }
            _ => Ok(()),
        }
    }

    fn grows(&self) -> bool {
        self.write != Write::Remove
    }

    fn encode(&self, record: &mut Vec<u8>) {
        let (tree, key) = (self.tree.id, self.key);
        let operation = match self.write {
            Write::Put(value) => Operation::Put { tree, key, value },
            Write::PutOverflow { logged, .. } => Operation::PutOverflow { tree, key, reference: logged },
            Write::Remove => Operation::Remove { tree, key },
        };
        operation.encode(record);
    }
}

/// Operations of a commit between two looks whether what is dirty finds a place.
const OPERATIONS_PER_PAUSE: usize = 32;

/// Commits with more keys are validated with their locks only: of what they look at before, much would have left memory again.
const EARLY_KEYS_MAX: usize = 256;

/// Values that validation reads are handed on as long as they take no more than this.
const OLDS_BYTES_MAX: usize = SPARE_BYTES_MAX;

/// Nodes that an operation may change: both halves of a leaf, and their parent.
const NODES_PER_OPERATION: u64 = 3;

/// Bytes of pages that the beginning of a commit may make dirty; as it goes on it looks for itself.
fn dirtied_bytes(writes: &[Written<'_>]) -> u64 {
    writes.iter().take(OPERATIONS_PER_PAUSE).map(|written| dirtied_by_one(written.tree)).sum()
}

fn dirtied_by_one(tree: &Tree) -> u64 {
    // A key takes a quarter of a node at most.
    NODES_PER_OPERATION * 4 * tree.index.max_key_bytes() as u64
}

thread_local! {
    /// Memory that commits of this thread use one after another: for what was there before, for the record, and for the value that is applied. Those that come meanwhile take new memory.
    static SPARE: Cell<[Vec<u8>; 3]> = const { Cell::new([Vec::new(), Vec::new(), Vec::new()]) };
}

/// The most memory that is kept for the next commit.
const SPARE_BYTES_MAX: usize = 64 << 10;

fn with_memory<T>(act: impl FnOnce(&mut Vec<u8>) -> T) -> T {
    let [mut memory, second, third] = SPARE.take();
    SPARE.set([second, third, Vec::new()]);
    memory.clear();
    let result = act(&mut memory);
    if memory.capacity() <= SPARE_BYTES_MAX {
        let [first, second, _] = SPARE.take();
        SPARE.set([memory, first, second]);
    }
    result
}

impl Befores {
    /// Nothing is known yet.
    fn of(reads: &[Read<'_>], writes: &[Written<'_>]) -> Self {
        Self { reads: vec![Before::default(); reads.len()], writes: vec![Before::default(); writes.len()] }
    }

    /// Looks at all keys but those that were looked at already and whose leaf has not changed since; values are appended to `olds`, as far as they are not too long together.
    ///
    /// # Errors
    /// [`Error::Conflict`] if somebody was faster than who has this snapshot; the index's.
    fn validate(
        &mut self,
        snapshot: Option<Timestamp>,
        reads: &[Read<'_>],
        writes: &[Written<'_>],
        olds: &mut Vec<u8>,
    ) -> Result<(), Error> {
        // Where the last key was found, and of which tree it was: the next one may be its neighbour.
        let mut beside: Option<(TreeId, Near)> = None;
        let mut look = |before: &mut Before, tree: &Tree, key: &[u8], may: May| -> Result<bool, Error> {
            let is_still = tree.index.is_still(before.near);
            if is_still || before.near.is_some() && planted!(ChangedLeafTrusted) {
                return Ok(true);
            }
            let (start, mut near) =
                (olds.len(), beside.and_then(|(id, near)| near.filter(|_| id == tree.id)));
            if may.get(&*tree.index, key, olds, &mut near)?.is_pending() {
                return Ok(false);
            }
            let version = olds.get(start..).and_then(Version::split).map(|(version, _)| version);
            let is_newer = |snapshot| {
                version.is_some_and(|version| {
                    version.timestamp() > snapshot
                        && !(version.is_tombstone() && planted!(RemovalNotValidated))
                })
            };
            if snapshot.is_some_and(is_newer) && !planted!(CommitSkipsValidation) {
                return Err(Error::Conflict);
            }
            let value =
                version.is_some().then_some((start, olds.len())).filter(|(_, end)| *end <= OLDS_BYTES_MAX);
            if value.is_none() {
                olds.truncate(start);
            }
            *before = Before { version, value, near };
            beside = Some((tree.id, near));
            Ok(true)
        };
        each_brought(reads, |place, read, may| look(&mut self.reads[place], read.tree, read.key, may))?;
        each_brought(writes, |place, written, may| {
            look(&mut self.writes[place], written.tree, written.key, may)
        })
    }
}

impl Transactions {
    /// Commits one operation on its own: the last committer wins.
    ///
    /// # Errors
    /// [`Error::KeyLength`] or [`Error::ValueLength`] for what the tree does not take; what validation finds; [`Error::Full`]; [`Error::Poisoned`].
    pub fn write(&self, written: Written<'_>, durability: Durability) -> Result<Timestamp, Error> {
        written.check()?;
        let admitted = self.throttle.admit(1, dirtied_bytes(&[written]), written.grows(), &self.poison)?;
        let logged = {
            let _held = self.locks.lock(Stripe::of(written.tree.id, written.key));
            preempt!();
            let mut near = None;
            let version = written.tree.index.head(written.key, &mut near)?.map(Version::from_bits);
            let before = Before { version, value: None, near };
            preempt!();
            with_memory(|record| {
                written.encode(record);
                self.log_and_apply(record, &[written], (&[before], &[]), &admitted)
            })?
        };
        self.finish(logged, durability)
    }

    /// Commits operations on different keys together. With a snapshot, as the transaction that has it: only if nobody has changed the keys it wrote, or those in `reads`, since.
    ///
    /// # Errors
    /// [`Error::Conflict`] if somebody has; otherwise as [`Transactions::write`], and [`Error::BatchLength`].
    pub fn commit(
        &self,
        snapshot: Option<Timestamp>,
        reads: &[Read<'_>],
        writes: &[Written<'_>],
        durability: Durability,
    ) -> Result<Option<Timestamp>, Error> {
        if writes.is_empty() && reads.is_empty() {
            return Ok(None);
        }
        writes.iter().try_for_each(Written::check)?;
        let grows = writes.iter().any(Written::grows);
        let admitted = self.throttle.admit(writes.len(), dirtied_bytes(writes), grows, &self.poison)?;
        let logged = with_memory(|olds| {
            let mut before = Befores::of(reads, writes);
            if reads.len() + writes.len() <= EARLY_KEYS_MAX {
                // Without the locks, which others may wait for: it may have to wait itself for leaves to be read.
                before.validate(snapshot, reads, writes, olds)?;
            }
            preempt!();
            let _held = self.lock(reads, writes);
            preempt!();
            before.validate(snapshot, reads, writes, olds)?;
            if writes.is_empty() {
                return Ok(None);
            }
            with_memory(|record| {
                writes.iter().for_each(|written| written.encode(record));
                self.log_and_apply(record, writes, (&before.writes, olds), &admitted).map(Some)
            })
        });
        if matches!(logged, Err(Error::Conflict)) {
            // Who began again before the winner can be seen would lose to it once more.
            self.visible.wait(self.visible.given(), &self.poison)?;
        }
        logged?.map(|logged| self.finish(logged, durability)).transpose()
    }

    /// Removes the keys that `look` finds in a tree, while nobody else commits anything: for those who would lose to others time and again.
    ///
    /// # Errors
    /// Those of `look`, and then nothing has changed; otherwise as [`Transactions::write`], and [`Error::BatchLength`].
    pub fn remove_alone<T>(
        &self,
        tree: &Tree,
        look: impl FnOnce() -> Result<T, Error>,
        keys: impl Fn(&T) -> &[Vec<u8>],
        durability: Durability,
    ) -> Result<T, Error> {
        // Before the locks, as it may take long.
        let dirtied_bytes = OPERATIONS_PER_PAUSE as u64 * dirtied_by_one(tree);
        let admitted = self.throttle.admit(OPERATIONS_PER_PAUSE, dirtied_bytes, false, &self.poison)?;
        let held = self.locks.lock_all();
        let found = look()?;
        let written = |key| Written { tree, key, write: Write::Remove };
        let writes: Vec<_> = keys(&found).iter().map(|key| written(key.as_slice())).collect();
        if writes.is_empty() {
            return Ok(found);
        }
        let logged = with_memory(|olds| {
            let mut before = Befores::of(&[], &writes);
            before.validate(None, &[], &writes, olds)?;
            with_memory(|record| {
                writes.iter().for_each(|written| written.encode(record));
                self.log_and_apply(record, &writes, (&before.writes, olds), &admitted)
            })
        })?;
        drop((writes, held));
        self.finish(logged, durability)?;
        Ok(found)
    }

    /// Commits a change of the catalog: `prepare` gives the operation's record, `apply` does it. One at a time, and with no commit under way.
    ///
    /// # Errors
    /// Those of `prepare`, and then nothing has changed; those of `apply`, which poison; [`Error::Poisoned`].
    pub fn define<T>(
        &self,
        prepare: impl FnOnce() -> Result<(Vec<u8>, T), Error>,
        apply: impl FnOnce(T) -> Result<(), Error>,
    ) -> Result<Timestamp, Error> {
        let logged = {
            let _held = self.locks.lock_all();
            let (record, prepared) = prepare()?;
            // There is room among those under way: with all locks it is the only one.
            let _all_wait_for_it = self.poison.guard("the catalog was changed");
            let logged = self.log.append_noting(&record, |logged| self.begin(logged))?;
            apply(prepared).map_err(|error| self.poison.by(error))?;
            self.visible.applied(logged.timestamp);
            logged
        };
        self.finish(logged, Durability::Sync)
    }

    fn lock(&self, reads: &[Read<'_>], writes: &[Written<'_>]) -> Held<'_> {
        let written = writes.iter().map(|written| Stripe::of(written.tree.id, written.key));
        let read = reads.iter().map(|read| Stripe::of(read.tree.id, read.key));
        self.locks.lock_many(written.chain(read).collect())
    }

    /// What follows when nothing can be refused any more. Called with the keys' locks.
    fn log_and_apply(
        &self,
        record: &[u8],
        writes: &[Written<'_>],
        (before, olds): (&[Before], &[u8]),
        admitted: &Admitted<'_>,
    ) -> Result<Logged, Error> {
        self.visible.admit(&self.poison)?;
        let _all_later_ones_wait_for_it = self.poison.guard("a commit was applied");
        let logged = self.log.append_noting(record, |logged| self.begin(logged))?;
        if planted!(VisibleBeforeApplied) {
            self.visible.applied(logged.timestamp);
        }
        preempt!();
        // Where the last key was found, and where it is after its change.
        let (mut found, mut left): (Near, Near) = (None, None);
        for (number, (written, before)) in writes.iter().zip(before).enumerate() {
            if number % OPERATIONS_PER_PAUSE == OPERATIONS_PER_PAUSE - 1 {
                admitted.pause()?;
            }
            let value = before.value.and_then(|(start, end)| olds.get(start..end));
            let is_beside = before.near.zip(found).is_some_and(|(one, other)| one.is_beside(other));
            let mut near = if is_beside { left.map(Spot::of_another_key) } else { before.near };
            self.apply(logged.timestamp, written, (before.version, value), &mut near, admitted)?;
            (found, left) = (before.near, near);
            preempt!();
        }
        self.visible.applied(logged.timestamp);
        Ok(logged)
    }

    /// It has a number.
    fn begin(&self, logged: Logged) {
        self.visible.begin(logged);
        #[cfg(feature = "testing")]
        crate::testing::tell_committed(self.log.store(), logged.timestamp);
    }

    /// What a logged commit does to a key, which has the version `before`; `old` is its value, with the version, if that was read already.
    fn apply(
        &self,
        timestamp: Timestamp,
        written: &Written<'_>,
        (before, old): (Option<Version>, Option<&[u8]>),
        near: &mut Near,
        admitted: &Admitted<'_>,
    ) -> Result<(), Error> {
        let before = before.filter(|before| !before.is_tombstone());
        let is_kept = before.is_some_and(|before| self.snapshots.keeps(before.timestamp(), timestamp));
        let mut put = || self.replace(timestamp, written, before, is_kept, near);
        if !is_kept && !before.is_some_and(Version::is_overflow) {
            return self.with_room(admitted, put);
        }
        let mut replace = |old: &[u8]| {
            preempt!();
            if is_kept {
                let (tree, key) = (written.tree.id, written.key);
                let keep = || self.history.keep(&self.snapshots, tree, key, old, timestamp);
                // Once: of what is kept twice, the large value would be given back twice.
                self.with_room(admitted, keep)?;
            }
            self.with_room(admitted, &mut put)?;
            if (!is_kept || planted!(LargeFreedUnderSnapshot))
                && let Some((version, reference)) = Version::split(old)
                && version.is_overflow()
                && !planted!(ReplacedLargeLeaks)
            {
                self.give_back_large(reference);
            }
            Ok(())
        };
        match old {
            Some(old) => replace(old),
            None => with_memory(|old| {
                let index = &written.tree.index;
                index.get(written.key, old, &mut None).map_err(|error| self.poison.by(error))?;
                replace(old)
            }),
        }
    }

    /// Does what nothing but a device may keep from being done. There was room when the commit was let in, and there will be when others' pages are written.
    fn with_room(
        &self,
        admitted: &Admitted<'_>,
        mut act: impl FnMut() -> Result<(), Error>,
    ) -> Result<(), Error> {
        loop {
            match act() {
                Err(Error::Full { .. }) => admitted.wait()?,
                result => return result.map_err(|error| self.poison.by(error)),
            }
        }
    }

    /// The newest version of a key is the written one from now on.
    fn replace(
        &self,
        timestamp: Timestamp,
        written: &Written<'_>,
        before: Option<Version>,
        is_kept: bool,
        near: &mut Near,
    ) -> Result<(), Error> {
        let (tree, key) = (written.tree, written.key);
        let (version, rest) = match written.write {
            Write::Put(value) => (Version::put(timestamp), value),
            Write::PutOverflow { reference, .. } => (Version::overflow(timestamp), reference),
            // It leads those to older versions who may have one.
            Write::Remove
                if (is_kept || before.is_some() && self.snapshots.any())
                    && !planted!(RemovalLeavesNoTombstone) =>
            {
                self.history.bury(tree, key, timestamp)?;
                (Version::tombstone(timestamp), &[][..])
            }
            Write::Remove if before.is_some() => {
                return tree.index.change_near(key, near, Change::Remove);
            }
            Write::Remove => return Ok(()),
        };
        with_memory(|value| {
            value.extend_from_slice(&version.bits().to_le_bytes());
            value.extend_from_slice(rest);
            tree.index.change_near(key, near, Change::Put(value))
        })
    }

    fn finish(&self, logged: Logged, durability: Durability) -> Result<Timestamp, Error> {
        let is_enough = durability == Durability::Sync && planted!(LogAcknowledgesWritten);
        self.log.wait(logged.end, if is_enough { Durability::Buffered } else { durability })?;
        self.visible.wait(logged.timestamp, &self.poison)?;
        Ok(logged.timestamp)
    }
}
