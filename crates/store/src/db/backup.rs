//! Copying a store while it is in use.

use std::sync::Arc;

use serde::Serialize;

use super::core::Core;
use super::prepared::Prepared;
use super::scan::{TreeScan, UnmergedRecord};
use super::site::Made;
use super::{Builder, Db};
use crate::catalog::NamedTree;
use crate::checkpoint::slots;
use crate::txn::Snapshot;
use crate::worker::Workers;
use crate::{Durability, Error};

/// Counts of a backup.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Backup {
    /// Trees.
    pub trees: u64,
    /// Their records.
    pub records: u64,
    /// Bytes of keys and values.
    pub bytes: u64,
}

/// The store that a backup makes. Dropped before it is complete, it is removed, or stays as something that
/// cannot be opened.
struct BackupStore {
    /// There until the end.
    db: Option<Db>,
    made: Option<Made>,
}

impl BackupStore {
    /// On the source's workers if these have no threads of their own: stepping them passes the time of all
    /// devices.
    fn create(builder: Builder, source: &Core) -> Result<Self, Error> {
        let (prepared, options): (Prepared, _) = builder.prepare_new()?;
        let (core, made) = match source.executor_of_others() {
            Some(executor) => {
                if prepared.devices().all().iter().any(|device| device.simulation().is_none()) {
                    let why = "a store on simulated drives is backed up to simulated drives only";
                    return Err(Error::Options(why.into()));
                }
                prepared.start_unfinished(executor.clone(), None)?
            }
            None => {
                let devices = prepared.devices();
                let workers = Workers::start(devices, options.workers, options.bounds(), options.pinned)?;
                prepared.start_unfinished(workers.executor().clone(), Some(workers))?
            }
        };
        Ok(Self { db: Some(Db { core }), made })
    }

    fn complete(mut self) -> Result<(), Error> {
        let Some(db) = &self.db else { return Err(Error::Closed) };
        db.core.close()?;
        slots::complete(&db.core.engine().parts().devices)?;
        self.made.take().into_iter().for_each(Made::keep);
        Ok(())
    }
}

impl Drop for BackupStore {
    fn drop(&mut self) {
        let Some(db) = self.db.take() else { return };
        if !db.core.abandon() {
            // No thread waits for it any more.
            db.core.engine().parts().poison.note("the backup was given up".into());
        }
        // Before its files.
        drop(db);
    }
}

impl Core {
    /// Copies the records that are committed now to a new store, and closes that.
    ///
    /// # Errors
    /// As [`Db::backup_trees`](super::Db::backup_trees).
    pub(super) fn backup(
        self: &Arc<Self>,
        target: Builder,
        only: Option<&[&Arc<NamedTree>]>,
    ) -> Result<Backup, Error> {
        let (at, mut trees) = self.all_trees()?;
        if let Some(only) = only {
            let is_same = |one: &NamedTree, other: &NamedTree| one.entry.id == other.entry.id;
            if let Some(gone) = only.iter().find(|own| !trees.iter().any(|tree| is_same(tree, own))) {
                return Err(Error::TreeDropped { tree: gone.name.clone() });
            }
            trees.retain(|tree| only.iter().any(|own| is_same(tree, own)));
        }
        let target = BackupStore::create(target.node_bytes_if_none(self.layout().node_bytes), self)?;
        let mut sum = Backup::default();
        if let Some(db) = &target.db {
            for tree in &trees {
                self.copy(tree, &at, db, &mut sum)?;
            }
        }
        target.complete()?;
        Ok(sum)
    }

    /// A snapshot, and the trees in it. They stay readable while they have references, also if they are
    /// dropped.
    fn all_trees(&self) -> Result<(Arc<Snapshot>, Vec<Arc<NamedTree>>), Error> {
        loop {
            let trees = self.engine().trees().all();
            preempt!();
            let at = self.pin()?;
            let same = |now: &[Arc<NamedTree>]| {
                now.len() == trees.len() && now.iter().zip(&trees).all(|(one, other)| Arc::ptr_eq(one, other))
            };
            // A tree that is dropped and made again is another one.
            if same(&self.engine().trees().all()) || planted!(BackupMissesNewTree) {
                return Ok((at, trees));
            }
        }
    }

    fn copy(
        self: &Arc<Self>,
        tree: &Arc<NamedTree>,
        at: &Arc<Snapshot>,
        target: &Db,
        sum: &mut Backup,
    ) -> Result<(), Error> {
        let options = self.options_of(tree);
        // Whether or not its merge operator is registered: operands are copied as they are.
        let made = target.core.trees(&[&tree.name], &options)?;
        let Some(copy) = made.first() else { return Ok(()) };
        let mut scan = TreeScan::unmerged(self, tree, at);
        let mut loader = target.core.loader(copy)?;
        while let Some(UnmergedRecord { key, value, operands }) = scan.next_unmerged()? {
            self.check_open()?;
            let value_bytes = value.as_ref().map_or(0, |value| value.len());
            sum.bytes += (key.len() + value_bytes + operands.len()) as u64;
            loader.push_unmerged(&key, value, operands)?;
        }
        // All of it becomes durable when the copy is closed.
        sum.records += loader.finish(Durability::None)?;
        sum.trees += 1;
        Ok(())
    }
}
