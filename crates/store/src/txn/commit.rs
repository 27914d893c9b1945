//! The steps of a commit.
//!
//! 1. *Admit.* It waits while the store cannot keep up ([`throttle`](super::throttle)).
//! 2. *Validate.* Each key is prepared, which brings its leaf into memory, and checked against the snapshot.
//!    A large commit skips this step.
//! 3. *Lock* the keys' stripes. Many writes to a tree that can prepare them are [staged](Index::stage)
//!    before.
//! 4. *Validate again.* Keys whose leaves have not changed since step 2 are not read again.
//! 5. *Log.* The record gets its timestamp. From here on only a device's failure can keep the commit from
//!    being applied; such a failure poisons the store.
//! 6. *Apply* the changes, and mark the commit as applied. It becomes visible when all earlier ones are
//!    applied.
//! 7. *Unlock*, and wait until the log is as durable as the commit asks for, and until the commit is visible.
//!
//! A single write ([`Transactions::write`]) has no snapshot to check, and is prepared with its lock held.
//! Since locks are held from step 3 to 6, of two commits with a common key the one with the smaller timestamp
//! is applied first.

use std::ops::Range;
use std::task::Poll;

use super::Transactions;
use super::commit_table::KeyHash;
use super::locks::{Held, Stripe};
use super::record::Operation;
use super::throttle::Admitted;
use crate::Error;
use crate::index::{
    Commit, LeafHint, Load, LoadId, May, Newest, Prior, RemovesRanges, Staged, Tree, TreeId, Write, Written,
    each_brought,
};
use crate::log::{Durability, Logged, Timestamp};
use crate::spare::with_memory;

/// A key, or all keys, that a serializable transaction has read.
#[derive(Clone, Copy)]
pub(crate) struct Read<'a> {
    pub tree: &'a Tree,
    pub key: &'a [u8],
}

impl Written<'_> {
    /// Refuses keys and values over the tree's limits, because nothing can be refused once the commit is
    /// logged.
    fn check(&self) -> Result<(), Error> {
        let limits = self.tree.index.limits();
        let limit = limits.key_bytes;
        if self.key.is_empty() || self.key.len() > limit {
            return Err(Error::KeyLength { got: self.key.len(), limit });
        }
        if matches!(self.write, Write::Merge(_)) && !self.tree.index.takes_operands() {
            return Err(Error::Options("this kind of tree takes values, not operands".into()));
        }
        let limit = limits.value_bytes;
        match self.write {
            Write::Put(value) | Write::PutOverflow { reference: value, .. } | Write::Merge(value)
                if value.len() > limit =>
            {
                Err(Error::ValueLength { got: value.len() as u64, limit: limit as u64 })
            }
            _ => Ok(()),
        }
    }

    /// Bytes of its key and of its logged value or reference.
    fn bytes(&self) -> u64 {
        let value = match self.write {
            Write::Put(value) | Write::PutOverflow { reference: value, .. } | Write::Merge(value) => {
                value.len()
            }
            Write::Remove => 0,
        };
        (self.key.len() + value) as u64
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
            Write::Merge(operands) => Operation::Merge { tree, key, operands },
        };
        operation.encode(record);
    }
}

/// Operations of a commit between two checks for room.
const OPERATIONS_PER_PAUSE: usize = 32;

/// Commits with more keys skip the validation before the locks: many of the pages that it brings into memory
/// would have been evicted again.
const EARLY_KEYS_MAX: usize = 256;

/// Bytes of pages that the first operations of a commit may make dirty. Later ones check for room themselves.
fn dirtied_bytes(writes: &[Written<'_>]) -> u64 {
    writes.iter().take(OPERATIONS_PER_PAUSE).map(|written| written.tree.index.dirtied_bytes()).sum()
}

/// Bytes of pages that a commit makes dirty at most if no checkpoint is made in the middle of it, in a store
/// that has `live_bytes` of pages: each of them once, and the new ones at least a quarter full. 0 if pauses
/// are as good: the first operations are all.
pub(crate) fn dirtied_bytes_of_long(writes: &[Written<'_>], live_bytes: u64) -> u64 {
    if writes.len() <= OPERATIONS_PER_PAUSE {
        return 0;
    }
    let changed: u64 = writes.iter().map(|written| written.tree.index.dirtied_bytes()).sum();
    let put: u64 = writes.iter().map(Written::bytes).sum();
    changed.min(live_bytes + 4 * put)
}

/// Writes of a commit to one tree, by their numbers, that are prepared.
type StagedRun<'a> = (Range<usize>, Box<dyn Staged + 'a>);

/// Prepares the writes to those trees that take many at a time.
fn stage<'a>(writes: &[Written<'a>]) -> Vec<StagedRun<'a>> {
    let (mut staged, mut start) = (Vec::new(), 0);
    for run in writes.chunk_by(|one, other| one.tree.id == other.tree.id) {
        let of_tree: &'a Tree = run[0].tree;
        staged.extend(of_tree.index.stage(run).map(|own| (start..start + run.len(), own)));
        start += run.len();
    }
    staged
}

impl Transactions {
    /// Commits one operation on its own: the last committer wins.
    ///
    /// # Errors
    /// [`Error::KeyLength`] or [`Error::ValueLength`] over the tree's limits; the index's; [`Error::Full`];
    /// [`Error::Poisoned`].
    pub fn write(&self, written: Written<'_>, durability: Durability) -> Result<Timestamp, Error> {
        written.check()?;
        let admitted = self.throttle.admit(1, dirtied_bytes(&[written]), written.grows(), &self.poison)?;
        self.keep_pace(&[written])?;
        let logged = with_memory(|record| {
            written.encode(record);
            self.compressor.pack(record);
            let _held = self.locks.lock(Stripe::of(KeyHash::of(written.tree.id, written.key)));
            preempt!();
            let mut prior = Prior::default();
            let _it_waits = written.tree.index.prepare(written.key, May::Wait, None, &mut prior, None)?;
            preempt!();
            self.log_and_apply(record, &[written], (&[prior], &[]), Vec::new(), &admitted)
        })?;
        self.finish(logged, durability)
    }

    /// Waits as the indexes ask for, or is refused.
    fn keep_pace(&self, writes: &[Written<'_>]) -> Result<(), Error> {
        let mut of_trees = writes.chunk_by(|one, other| one.tree.id == other.tree.id);
        of_trees.try_for_each(|of_tree| {
            let Some(Written { tree, .. }) = of_tree.first() else { return Ok(()) };
            tree.index.admit()?;
            let bytes = of_tree.iter().map(Written::bytes).sum();
            self.throttle.pace(|now| tree.index.pace(bytes, now))
        })
    }

    /// Commits operations on different keys together. With a snapshot the commit fails if another one has
    /// changed a key of `writes` or `reads` since.
    ///
    /// # Errors
    /// [`Error::Conflict`]; otherwise as [`Transactions::write`], and [`Error::BatchLength`].
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
        self.keep_pace(writes)?;
        let logged = with_memory(|record| {
            writes.iter().for_each(|written| written.encode(record));
            self.compressor.pack(record);
            with_memory(|values| {
                let mut priors = vec![Prior::default(); writes.len()];
                if reads.len() + writes.len() <= EARLY_KEYS_MAX {
                    // Without the locks: reading leaves may take long, and others would wait for the locks.
                    self.validate(snapshot, reads, writes, &mut priors, values)?;
                }
                // Many writes are staged without the locks as well.
                let staged = stage(writes);
                let are_all_staged = staged.iter().map(|(run, _)| run.len()).sum::<usize>() == writes.len();
                preempt!();
                let _held = self.lock(reads, writes);
                preempt!();
                // Staged writes need no preparation, and without a snapshot no validation.
                if snapshot.is_some() || !are_all_staged {
                    self.validate(snapshot, reads, writes, &mut priors, values)?;
                }
                if writes.is_empty() {
                    return Ok(None);
                }
                self.log_and_apply(record, writes, (&priors, values), staged, &admitted).map(Some)
            })
        });
        if matches!(logged, Err(Error::Conflict)) {
            // A retry whose snapshot does not include the winner would conflict with it again.
            self.visible.wait(self.visible.given(), &self.poison)?;
        }
        logged?.map(|logged| self.finish(logged, durability)).transpose()
    }

    /// Removes the keys that `look` finds in a tree, with all other commits locked out: for callers that have
    /// lost to others repeatedly.
    ///
    /// # Errors
    /// Those of `look`, and then nothing has changed; otherwise as [`Transactions::write`], and
    /// [`Error::BatchLength`].
    pub fn remove_alone<T>(
        &self,
        tree: &Tree,
        look: impl FnOnce() -> Result<T, Error>,
        keys: impl Fn(&T) -> &[Vec<u8>],
        durability: Durability,
    ) -> Result<T, Error> {
        tree.index.admit()?;
        // Before the locks, as it may take long.
        let dirtied_bytes = OPERATIONS_PER_PAUSE as u64 * tree.index.dirtied_bytes();
        let admitted = self.throttle.admit(OPERATIONS_PER_PAUSE, dirtied_bytes, false, &self.poison)?;
        let held = self.locks.lock_all();
        let found = look()?;
        let written = |key| Written { tree, key, write: Write::Remove };
        let writes: Vec<_> = keys(&found).iter().map(|key| written(key.as_slice())).collect();
        if writes.is_empty() {
            return Ok(found);
        }
        let logged = with_memory(|values| {
            let mut priors = vec![Prior::default(); writes.len()];
            self.validate(None, &[], &writes, &mut priors, values)?;
            with_memory(|record| {
                writes.iter().for_each(|written| written.encode(record));
                self.log_and_apply(record, &writes, (&priors, values), Vec::new(), &admitted)
            })
        })?;
        drop((writes, held));
        self.finish(logged, durability)?;
        Ok(found)
    }

    /// Removes the keys of a tree from `lower` on up to, and without, `upper`, as one, without looking at
    /// them. All other commits are locked out for a moment.
    ///
    /// # Errors
    /// As [`Transactions::write`].
    pub fn remove_range(
        &self,
        (tree, index): (TreeId, &dyn RemovesRanges),
        (lower, upper): (&[u8], &[u8]),
        durability: Durability,
    ) -> Result<Timestamp, Error> {
        let _admitted = self.throttle.admit(1, 0, false, &self.poison)?;
        let mut record = Vec::new();
        Operation::RemoveRange { tree, lower, upper }.encode(&mut record);
        let logged = {
            let _held = self.locks.lock_all();
            let _all_wait_for_it = self.poison.guard("a range was removed");
            let logged = self.log.append_noting(&record, |logged| self.begin(logged))?;
            index.remove_range(lower, upper, logged.record());
            self.table.note_all(logged.timestamp);
            self.visible.applied(logged.timestamp);
            logged
        };
        self.finish(logged, durability)
    }

    /// Commits records of a tree that are prepared, as one. All other commits are locked out for a moment.
    ///
    /// # Errors
    /// As [`Transactions::write`].
    pub fn load(
        &self,
        tree: TreeId,
        (load, id): (&mut dyn Load, LoadId),
        durability: Durability,
    ) -> Result<Timestamp, Error> {
        let _admitted = self.throttle.admit(1, 0, false, &self.poison)?;
        let mut record = Vec::new();
        Operation::Load { tree, number: &id.0.to_le_bytes() }.encode(&mut record);
        // Most of it before the locks, as it may take long.
        load.make_way()?;
        let logged = {
            let _held = self.locks.lock_all();
            load.make_way()?;
            let _all_wait_for_it = self.poison.guard("records were loaded");
            let logged = self.log.append_noting(&record, |logged| self.begin(logged))?;
            load.commit(logged.record()).map_err(|error| self.poison.by(error))?;
            self.table.note_all(logged.timestamp);
            self.visible.applied(logged.timestamp);
            logged
        };
        self.finish(logged, durability)
    }

    /// Commits a change of the catalog: `prepare` gives the operation's record, `apply` does it, told which
    /// commit it is. One at a time, and with no commit under way.
    ///
    /// # Errors
    /// Those of `prepare`, and then nothing has changed; those of `apply`, which poison; [`Error::Poisoned`].
    pub fn define<T>(
        &self,
        prepare: impl FnOnce() -> Result<(Vec<u8>, T), Error>,
        apply: impl FnOnce(T, Timestamp) -> Result<(), Error>,
    ) -> Result<Timestamp, Error> {
        let logged = {
            let _held = self.locks.lock_all();
            let (record, prepared) = prepare()?;
            // `visible.admit` is not needed: with all locks this is the only commit under way.
            let _all_wait_for_it = self.poison.guard("the catalog was changed");
            let logged = self.log.append_noting(&record, |logged| self.begin(logged))?;
            apply(prepared, logged.timestamp).map_err(|error| self.poison.by(error))?;
            self.visible.applied(logged.timestamp);
            logged
        };
        self.finish(logged, Durability::Sync)
    }

    fn lock(&self, reads: &[Read<'_>], writes: &[Written<'_>]) -> Held<'_> {
        let written = writes.iter().map(|written| KeyHash::of(written.tree.id, written.key));
        let read = reads.iter().map(|read| KeyHash::of(read.tree.id, read.key));
        self.locks.lock_many(written.chain(read).map(Stripe::of).collect())
    }

    /// Prepares all writes, except those that were prepared before and whose leaves have not changed, and
    /// makes sure that no other commit has changed a key since the snapshot. Values of records that it reads
    /// are appended to `values`.
    ///
    /// # Errors
    /// [`Error::Conflict`] if one has; the indexes'.
    fn validate(
        &self,
        snapshot: Option<Timestamp>,
        reads: &[Read<'_>],
        writes: &[Written<'_>],
        priors: &mut [Prior],
        values: &mut Vec<u8>,
    ) -> Result<(), Error> {
        each_brought(reads, |_, read, may| self.is_newest(snapshot, read.tree, read.key, None, may))?;
        // Tree and leaf hint of the previous key: the next key may be its neighbour.
        let mut neighbour: Option<(TreeId, LeafHint)> = None;
        each_brought(writes, |place, Written { tree, key, .. }, may| {
            let beside = neighbour.filter(|(id, _)| *id == tree.id).map(|(_, hint)| hint);
            let prior = &mut priors[place];
            if tree.index.prepare(key, may, beside, prior, Some(&mut *values))?.is_pending() {
                return Ok(false);
            }
            neighbour = prior.hint.map(|hint| (tree.id, hint)).or(neighbour);
            self.is_newest(snapshot, tree, key, Some(prior), may)
        })
    }

    /// Makes sure that no other commit has changed a key since the snapshot; `prior` is the key's state
    /// according to its index. `false` if the answer takes waiting.
    ///
    /// # Errors
    /// [`Error::Conflict`] if one has, or if the index cannot tell; the index's.
    fn is_newest(
        &self,
        snapshot: Option<Timestamp>,
        tree: &Tree,
        key: &[u8],
        prior: Option<&Prior>,
        may: May,
    ) -> Result<bool, Error> {
        let Some(since) = snapshot.filter(|_| !planted!(CommitSkipsValidation)) else { return Ok(true) };
        if !self.table.may_be_newer(KeyHash::of(tree.id, key), since) {
            return Ok(true);
        }
        self.table.note_asked();
        let newest = match prior.and_then(|prior| prior.newest_since(since)) {
            Some(newest) => newest,
            None => match tree.index.newest_since(key, since, may)? {
                Poll::Ready(newest) => newest,
                Poll::Pending => return Ok(false),
            },
        };
        match newest {
            Newest::Older => Ok(true),
            Newest::Newer => Err(Error::Conflict),
            Newest::CannotTell => {
                self.table.note_unsure();
                Err(Error::Conflict)
            }
        }
    }

    /// The part of a commit that cannot be refused any more: log, apply, mark as applied. Called with the
    /// keys' locks.
    fn log_and_apply(
        &self,
        record: &[u8],
        writes: &[Written<'_>],
        (priors, values): (&[Prior], &[u8]),
        staged: Vec<StagedRun<'_>>,
        admitted: &Admitted<'_>,
    ) -> Result<Logged, Error> {
        self.visible.admit(&self.poison)?;
        let _all_later_ones_wait_for_it = self.poison.guard("a commit was applied");
        let logged = self.log.append_noting(record, |logged| self.begin(logged))?;
        if planted!(VisibleBeforeApplied) {
            self.visible.applied(logged.timestamp);
        }
        preempt!();
        let commit = Commit {
            record: logged.record(),
            snapshots: &self.snapshots,
            wait_for_room: &|| admitted.wait(),
            overflow_is_gone: &|reference| self.free_overflow(reference),
        };
        let applied = self.apply(writes, (priors, values), staged, &commit, admitted);
        applied.map_err(|error| self.poison.by(error))?;
        self.visible.applied(logged.timestamp);
        Ok(logged)
    }

    /// Applies a logged commit, run by run of keys of the same tree.
    fn apply(
        &self,
        writes: &[Written<'_>],
        (priors, values): (&[Prior], &[u8]),
        staged: Vec<StagedRun<'_>>,
        commit: &Commit<'_>,
        admitted: &Admitted<'_>,
    ) -> Result<(), Error> {
        let mut done = 0;
        let mut staged = staged.into_iter().peekable();
        while let Some(Written { tree, .. }) = writes.get(done) {
            if let Some((run, own)) = staged.next_if(|(run, _)| run.start == done) {
                for written in &writes[run.clone()] {
                    self.table.note(KeyHash::of(tree.id, written.key), commit.record.timestamp);
                }
                own.apply(commit.record);
                done = run.end;
                continue;
            }
            let until_pause = OPERATIONS_PER_PAUSE - done % OPERATIONS_PER_PAUSE;
            if done > 0 && until_pause == OPERATIONS_PER_PAUSE {
                admitted.pause()?;
            }
            let run = writes[done..].iter().take(until_pause).take_while(|next| next.tree.id == tree.id);
            let run = done..done + run.count();
            for written in &writes[run.clone()] {
                self.table.note(KeyHash::of(tree.id, written.key), commit.record.timestamp);
            }
            tree.index.apply(&writes[run.clone()], &priors[run.clone()], values, commit)?;
            done = run.end;
        }
        Ok(())
    }

    /// Called by the log when the commit gets its timestamp.
    fn begin(&self, logged: Logged) {
        self.visible.begin(logged);
        #[cfg(feature = "testing")]
        crate::testing::tell_committed(self.log.store(), logged.timestamp);
    }

    fn finish(&self, logged: Logged, durability: Durability) -> Result<Timestamp, Error> {
        let is_enough = durability == Durability::Sync && planted!(LogAcknowledgesWritten);
        self.log.wait(logged.end, if is_enough { Durability::Buffered } else { durability })?;
        self.visible.wait(logged.timestamp, &self.poison)?;
        Ok(logged.timestamp)
    }
}
