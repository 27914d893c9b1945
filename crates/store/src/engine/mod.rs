//! The engine assembles the store's core: devices, workers, segments, pool, log, transactions, trees and
//! checkpoints.
//!
//! It starts no thread: the executor that it is given does its background work, be it worker threads or a
//! harness that steps them over simulated drives. Dropping it without [`Engine::close`] loses nothing that
//! was acknowledged as durable; opening it again then replays the log.
//!
//! Each part changes its own state, and the engine connects them. The engine itself owns the pages of
//! overflow values, which only [`OverflowValues`] makes and frees, and the sweep of dropped trees, one at a
//! time.

mod compact;
mod freeing;
mod open;
mod overflow_values;
mod reclaim;
mod replay;
mod single_flight;
mod stats;
#[cfg(test)]
mod tests;
mod upkeep;

use crate::sync::Arc;
use crate::sync::atomic::{AtomicBool, Ordering};
use std::collections::HashSet;

use crate::Error;
use crate::buffered::{Permits, Semaphore};
use crate::catalog::{Entry, Trees};
use crate::checkpoint::{Checkpointer, Parts, Superblock};
use crate::factory::TreePlan;
use crate::index::{Clearing, Operators, Tree, TreeId, Written};
use crate::segment::Wanted;
use crate::task::{Executor, yield_now};
use crate::txn::{Operation, Transactions, dirtied_bytes_of_long};
pub(crate) use open::{Given, Recovery};
pub(crate) use overflow_values::{OverflowValue, OverflowValues, Parked};
use single_flight::SingleFlight;
use upkeep::Pages;

/// Attempts at the last checkpoint on a device that is nearly full.
const CLOSING_TRIES: u32 = 20;

/// Attempts at writing overflow values that were admitted.
const OVERFLOW_TRIES: u32 = 3;

/// A tree that is to be made.
pub(crate) struct NewTree<'a> {
    pub name: &'a str,
    pub plan: TreePlan,
    /// The name of its merge operator.
    pub operator: Option<&'a str>,
}

/// Room on the device that is kept for a writer.
pub(crate) struct Reserved<'a> {
    _wanted: Wanted,
    _permits: Option<Permits<'a>>,
}

/// See the module.
pub(crate) struct Engine {
    parts: Parts,
    executor: Executor,
    trees: Arc<Trees>,
    checkpointer: Checkpointer,
    recovery: Recovery,
    overflow_values: Arc<OverflowValues>,
    /// Writers of overflow values that have no room yet: one at a time waits for it.
    overflow_writes: Semaphore,
    /// Whether dropped trees are being freed.
    sweeping: Arc<SingleFlight>,
    /// Whether the store is being closed, so that the next opening frees the rest of dropped trees.
    is_closing: Arc<AtomicBool>,
    /// Kept so that upkeep goes on.
    _pages: Arc<Pages>,
}

impl Engine {
    /// Transactions on its trees.
    pub fn transactions(&self) -> &Arc<Transactions> {
        &self.parts.transactions
    }

    /// Its trees.
    pub fn trees(&self) -> &Trees {
        &self.trees
    }

    /// The merge operators that are registered.
    pub fn operators(&self) -> &Operators {
        self.trees.operators()
    }

    /// Its workers.
    pub fn executor(&self) -> &Executor {
        &self.executor
    }

    /// The parts that the engine is assembled from.
    pub fn parts(&self) -> &Parts {
        &self.parts
    }

    /// Overflow values.
    pub fn overflow_values(&self) -> &Arc<OverflowValues> {
        &self.overflow_values
    }

    /// Writes values durably before their commit. It waits for room first: the room reserved for removes and
    /// checkpoints must stay. See [`OverflowValues::write`].
    ///
    /// # Errors
    /// As [`OverflowValues::write`].
    pub fn write_overflow(&self, values: &[OverflowValue<'_>]) -> Result<Vec<Vec<u8>>, Error> {
        let bytes = |value: &OverflowValue<'_>| match value {
            OverflowValue::Bytes(bytes) => bytes.len() as u64,
            OverflowValue::Parked(_) => 0,
        };
        let bytes = values.iter().map(bytes).sum();
        self.with_room_for_overflow(bytes, || self.overflow_values.write(values))
    }

    /// Writes the next bytes of an overflow value, once there is room for them: a multiple of
    /// [`OverflowValues::part_bytes`], but for the last ones.
    ///
    /// # Errors
    /// [`Error::ValueLength`], [`Error::Full`], [`Error::Poisoned`]; the bytes before these stay.
    pub fn append_overflow(&self, parked: &mut Parked, bytes: &[u8]) -> Result<(), Error> {
        bytes.chunks(self.overflow_values.part_bytes()).try_for_each(|part| {
            self.with_room_for_overflow(part.len() as u64, || self.overflow_values.append(parked, part))
        })
    }

    /// Ends an overflow value: writes the numbers of its pages.
    ///
    /// # Errors
    /// As [`Engine::append_overflow`].
    pub fn seal_overflow(&self, parked: &mut Parked) -> Result<(), Error> {
        self.with_room_for_overflow(0, || self.overflow_values.seal(parked))
    }

    /// Waits for room for all that a long commit changes, and keeps it until the result is dropped, if the
    /// log is not written: no checkpoint makes room in the middle of the commit then.
    ///
    /// # Errors
    /// [`Error::Full`] if there is too little, and no more is to be expected; [`Error::Poisoned`].
    pub fn reserve_for(&self, writes: &[Written<'_>]) -> Result<Option<Reserved<'_>>, Error> {
        if self.parts.log.is_written() {
            return Ok(None);
        }
        let live_bytes = self.parts.segments.usage().live_bytes + self.parts.pool.images.dirty_bytes();
        let bytes = dirtied_bytes_of_long(writes, live_bytes);
        if bytes == 0 {
            return Ok(None);
        }
        let reserved = self.reserve(bytes);
        self.transactions().admit_overflow()?;
        Ok(Some(reserved))
    }

    fn reserve(&self, bytes: u64) -> Reserved<'_> {
        let upkeep = &self.parts.segments.upkeep;
        let wanted = upkeep.want(bytes);
        if self.transactions().has_room_for_overflow() {
            return Reserved { _wanted: wanted, _permits: None };
        }
        // Writers that together reserve more than the device has would all keep each other from beginning.
        drop(wanted);
        let permits = self.overflow_writes.acquire_all();
        Reserved { _wanted: upkeep.want(bytes), _permits: Some(permits) }
    }

    fn with_room_for_overflow<T>(
        &self,
        bytes: u64,
        mut act: impl FnMut() -> Result<T, Error>,
    ) -> Result<T, Error> {
        let _reserved = self.reserve(bytes);
        let mut tries = 1;
        loop {
            self.transactions().admit_overflow()?;
            match act() {
                // The cleaner was faster.
                Err(Error::Full { .. }) if tries < OVERFLOW_TRIES => tries += 1,
                ended => return ended,
            }
        }
    }

    /// Statistics of the recovery at opening.
    pub fn recovery(&self) -> Recovery {
        self.recovery
    }

    /// The current superblock.
    pub fn superblock(&self) -> Superblock {
        self.checkpointer.superblock()
    }

    /// Makes trees, durably, all of them or none.
    ///
    /// # Errors
    /// [`Error::Exists`] if one of the names is a tree's already; [`Error::Full`]; [`Error::Poisoned`].
    pub fn create_trees(&self, wanted: &[NewTree<'_>]) -> Result<(), Error> {
        let trees = &self.trees;
        let prepare = || {
            let mut names = HashSet::new();
            if wanted.iter().any(|new| trees.named(new.name).is_some() || !names.insert(new.name)) {
                let path = wanted.first().map_or("", |new| new.name).into();
                return Err(Error::Exists { path, why: "there is a tree of this name".into() });
            }
            let (mut record, mut entries) = (Vec::new(), Vec::new());
            for (id, new) in (trees.next_id().0..).zip(wanted) {
                let parameters = trees.make(new.plan).inspect_err(|_| {
                    entries.iter().for_each(|(_, entry)| trees.give_up(entry));
                })?;
                let operator = new.operator.map(str::to_owned);
                let entry = Entry { id: TreeId(id), kind: new.plan.kind, parameters, operator };
                let (tree, name, bytes) = (entry.id, new.name.as_bytes(), entry.encode());
                Operation::CreateTree { tree, name, entry: &bytes }.encode(&mut record);
                entries.push((new.name, entry));
            }
            Ok((record, entries))
        };
        let add = |entries: Vec<(&str, Entry)>, at| {
            entries.into_iter().try_for_each(|(name, entry)| trees.add(name, entry))?;
            trees.note_change(at)
        };
        self.parts.transactions.define(prepare, add).map(drop)
    }

    /// Takes trees out of the catalog, durably, all of them or none.
    ///
    /// # Errors
    /// [`Error::NoTree`] if one of the names is no tree's, or is given twice; [`Error::Poisoned`].
    pub fn drop_trees(&self, names: &[&str]) -> Result<(), Error> {
        let trees = &self.trees;
        let prepare = || {
            let (mut record, mut ids) = (Vec::new(), Vec::new());
            for name in names {
                let known = trees.named(name).filter(|known| !ids.contains(&(*name, known.entry.id)));
                let known = known.ok_or_else(|| Error::NoTree { name: (*name).into() })?;
                Operation::DropTree { tree: known.entry.id, name: name.as_bytes() }.encode(&mut record);
                ids.push((*name, known.entry.id));
            }
            Ok((record, ids))
        };
        let drop_all = |ids: Vec<(&str, TreeId)>, at| {
            ids.into_iter().try_for_each(|(name, id)| {
                self.parts.transactions.forget(id);
                trees.remove(name, id)
            })?;
            trees.note_change(at)
        };
        self.parts.transactions.define(prepare, drop_all)?;
        self.sweep_soon();
        Ok(())
    }

    /// Gives a tree another name, durably.
    ///
    /// # Errors
    /// [`Error::NoTree`]; [`Error::Exists`] if a tree has the new name; [`Error::Full`]; [`Error::Poisoned`].
    pub fn rename_tree(&self, name: &str, new_name: &str) -> Result<(), Error> {
        let trees = &self.trees;
        let prepare = || {
            let known = trees.named(name).ok_or_else(|| Error::NoTree { name: name.into() })?;
            if trees.named(new_name).is_some() {
                return Err(Error::Exists {
                    path: new_name.into(),
                    why: "there is a tree of this name".into(),
                });
            }
            let mut record = Vec::new();
            Operation::RenameTree { tree: known.entry.id, name: new_name.as_bytes() }.encode(&mut record);
            Ok((record, known.entry.id))
        };
        let rename = |id, at| {
            trees.rename(id, new_name)?;
            trees.note_change(at)
        };
        self.parts.transactions.define(prepare, rename).map(drop)
    }

    /// Drops a tree and gives another one its name, durably, both or neither.
    ///
    /// # Errors
    /// [`Error::NoTree`]; [`Error::Exists`] if they are the same; [`Error::Full`]; [`Error::Poisoned`].
    pub fn replace_tree(&self, name: &str, by: &str) -> Result<(), Error> {
        let trees = &self.trees;
        let prepare = || {
            let id_of = |name: &str| {
                let known = trees.named(name).map(|known| known.entry.id);
                known.ok_or_else(|| Error::NoTree { name: name.into() })
            };
            let (old, new) = (id_of(name)?, id_of(by)?);
            if old == new {
                return Err(Error::Exists { path: name.into(), why: "the tree has this name".into() });
            }
            let mut record = Vec::new();
            Operation::DropTree { tree: old, name: name.as_bytes() }.encode(&mut record);
            Operation::RenameTree { tree: new, name: name.as_bytes() }.encode(&mut record);
            Ok((record, (old, new)))
        };
        let replace = |(old, new), at| {
            self.parts.transactions.forget(old);
            trees.remove(name, old)?;
            trees.rename(new, name)?;
            trees.note_change(at)
        };
        self.parts.transactions.define(prepare, replace)?;
        self.sweep_soon();
        Ok(())
    }

    /// Frees the rest of dropped trees, in the background. Trees that are still in use are left for another
    /// time.
    pub(super) fn sweep_soon(&self) {
        if self.is_closing.load(Ordering::SeqCst) || !self.trees.has_dropped() || !self.sweeping.begin() {
            return;
        }
        let (trees, overflow_values, sweeping) =
            (Arc::clone(&self.trees), Arc::clone(&self.overflow_values), Arc::clone(&self.sweeping));
        let (transactions, is_closing) = (Arc::clone(&self.parts.transactions), Arc::clone(&self.is_closing));
        self.executor.spawn(move || {
            let free_overflow = |reference: &[u8]| overflow_values.free(reference);
            let go_on = || if is_closing.load(Ordering::SeqCst) { Err(Error::Closed) } else { Ok(()) };
            let clearing = Clearing { free_overflow: &free_overflow, go_on: &go_on };
            // A tree that could not be freed is freed at the next opening.
            let free = |tree: Tree| {
                transactions.forget_unused(tree.id);
                trees.free(&tree, &clearing)
            };
            sweeping.finish(|| trees.abandoned().pop(), free);
        });
    }

    /// Makes a checkpoint of everything done before.
    ///
    /// # Errors
    /// [`Error::Full`] if the device has no room for one; [`Error::Poisoned`].
    pub fn checkpoint(&self) -> Result<(), Error> {
        if !planted!(LateDropNotSwept) {
            self.sweep_soon();
        }
        self.checkpointer.checkpoint()
    }

    /// Makes everything durable and leaves a store that opens without looking at its log. Nothing else may be
    /// under way, and nothing may follow.
    ///
    /// # Errors
    /// As [`Engine::checkpoint`]; the store is then as if it had not been closed.
    pub fn close(&self) -> Result<(), Error> {
        let closed = self.last_checkpoint();
        self.checkpointer.end();
        closed
    }

    fn last_checkpoint(&self) -> Result<(), Error> {
        // Values that are given up now are freed before the last checkpoint; after the next start nothing
        // would refer to them. An error only leaks pages, as a crash would. A dropped tree that is being
        // freed stays in the catalog with the rest of its pages.
        self.is_closing.store(true, Ordering::SeqCst);
        while self.sweeping.is_under_way() {
            yield_now();
        }
        let _tried = self.transactions().stop();
        // Dropped trees that are still in use merge tables until now; the next opening frees them.
        for tree in self.trees.dropped() {
            let _tried = tree.index.stop();
        }
        // Overflow values that only snapshots saw, and those that some still hold.
        let _tried = self.transactions().settle_for_good();
        self.overflow_values.stop();
        while self.overflow_values.is_freeing() {
            yield_now();
        }
        if self.superblock().unfinished {
            // The target of a backup is made as small as possible.
            match self.checkpointer.checkpoint().and_then(|()| self.checkpointer.move_log_back()) {
                Ok(()) | Err(Error::Full { .. }) => {}
                failed => return failed,
            }
        }
        for _ in 0..CLOSING_TRIES {
            self.parts.segments.upkeep.stop();
            match self.checkpointer.close() {
                // Segments have to be made free first.
                Err(Error::Full { .. }) => self.parts.segments.upkeep.resume(),
                ended => return ended,
            }
            match self.checkpointer.checkpoint() {
                Ok(()) | Err(Error::Full { .. }) => {}
                failed => return failed,
            }
        }
        self.parts.segments.upkeep.stop();
        self.checkpointer.close()
    }
}
