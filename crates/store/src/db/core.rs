//! The core of an open store, which all its handles share.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use flashgrain_device::Origin;

use super::compacted::Compacted;
use super::content::{Content, is_overflow};
use super::stats::Stats;
use super::tree_options::{TreeOptions, of_blocks, of_nodes};
use super::value::Value;
use super::writes::{Writes, batch_limit_bytes, logged_bytes};
use crate::btree::overflow::{VALUE_BYTES_MAX, kept};
use crate::catalog::{NAME_BYTES_MAX, NamedTree};
use crate::class::class_bytes;
use crate::engine::{Engine, NewTree, OverflowValue};
use crate::factory::TreePlan;
use crate::index::{IndexKind, Prior, Version, Write, Written, each_brought, waiting};
use crate::io_context;
use crate::layout::{Layout, NodeBlocks};
use crate::log::Timestamp;
use crate::task::{Executor, JoinHandle, in_task};
use crate::txn::Snapshot;
use crate::worker::Workers;
use crate::{Decision, Durability, Error, ErrorKind};

/// See the module.
pub(crate) struct Core {
    engine: Arc<Engine>,
    /// `None` if the workers have no threads, and the store's user steps them.
    workers: Option<Workers>,
    layout: Layout,
    decisions: Vec<Decision>,
    durability: Durability,
    closed: AtomicBool,
    /// The process whose threads and queues these are.
    origin: Origin,
    /// Whether nothing may be changed.
    read_only: bool,
}

/// A commit that is under way.
pub(super) struct Writing<'a>(&'a NamedTree);

impl Drop for Writing<'_> {
    fn drop(&mut self) {
        self.0.writers.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Bytes of the nodes of this size class.
fn node_bytes(class: u16) -> u32 {
    u32::try_from(class_bytes(usize::from(class))).unwrap_or(u32::MAX)
}

/// Refuses names that no tree has.
fn check_name(name: &str) -> Result<(), Error> {
    match name.len() {
        1..=NAME_BYTES_MAX => Ok(()),
        got => Err(Error::Options(format!("a tree's name of {got} bytes: use 1 to {NAME_BYTES_MAX}"))),
    }
}

/// The size class of nodes of `bytes` bytes, a power of two.
fn class_of(bytes: u32) -> u16 {
    (0..u16::MAX).find(|class| node_bytes(*class) >= bytes).unwrap_or(0)
}

impl Core {
    /// Over an engine that runs. `decisions`: those made for a new store.
    pub(super) fn new(
        engine: Arc<Engine>,
        workers: Option<Workers>,
        decisions: Vec<Decision>,
        durability: Durability,
        read_only: bool,
    ) -> Arc<Self> {
        let layout = engine.superblock().layout;
        Arc::new(Self {
            engine,
            workers,
            layout,
            decisions,
            durability,
            closed: AtomicBool::new(false),
            origin: Origin::here(),
            read_only,
        })
    }

    /// The executor whose workers others step, if the store has no worker threads.
    pub(super) fn executor_of_others(&self) -> Option<&Executor> {
        self.workers.is_none().then(|| self.engine.executor())
    }

    /// Refuses calls after [`Core::close`], and those of a forked child to its parent's store. Reads as of a
    /// snapshot check it once more when they have read: closing frees versions that only snapshots see.
    #[inline]
    pub(super) fn check_open(&self) -> Result<(), Error> {
        if self.closed.load(Ordering::Relaxed) {
            return Err(Error::Closed);
        }
        self.check_process()
    }

    /// Refuses forked children: workers are no threads of theirs, the queues of the kernel are their
    /// parent's, and a lock may be held by a thread that they do not have.
    #[inline]
    pub(super) fn check_process(&self) -> Result<(), Error> {
        if self.origin.is_here() { Ok(()) } else { Err(Error::Forked) }
    }

    /// Refuses changes of a store that is closed, or opened to be read only.
    fn check_writable(&self) -> Result<(), Error> {
        if self.read_only { Err(Error::ReadOnly) } else { self.check_open() }
    }

    /// Brings the pages that a change of these keys needs into memory.
    pub fn prefetch<K: AsRef<[u8]>>(&self, tree: &NamedTree, keys: &[K]) -> Result<(), Error> {
        self.check_open()?;
        let index = &*tree.tree.index;
        index.find_together(&mut keys.iter().map(AsRef::as_ref));
        let mut value = Vec::new();
        each_brought(keys, |_, key, may| {
            value.clear();
            let prepared = index.prepare(key.as_ref(), may, None, &mut Prior::default(), Some(&mut value))?;
            Ok(prepared.is_ready())
        })
    }

    /// The version and stored bytes that a snapshot sees under `key`. For an overflow value these are the
    /// reference; the caller reads the value.
    pub(super) fn look_up_raw(
        &self,
        tree: &NamedTree,
        key: &[u8],
        at: &Snapshot,
    ) -> Result<Option<(Version, Vec<u8>)>, Error> {
        self.check_open()?;
        let (transactions, mut bytes) = (self.engine.transactions(), Vec::new());
        let version = waiting(|may| {
            bytes.clear();
            transactions.look_up(&tree.tree, key, Some(at.timestamp()), may, &mut bytes)
        })?;
        self.check_open()?;
        Ok(version.map(|version| (version, bytes)))
    }

    /// As [`logged_bytes`].
    pub(super) fn logged_bytes(&self, tree: &NamedTree, key: &[u8], value_bytes: Option<u64>) -> u64 {
        logged_bytes(&self.engine, tree, key, value_bytes)
    }

    /// The longest batch, as the log has it.
    pub(super) fn batch_limit_bytes(&self) -> u64 {
        batch_limit_bytes(&self.engine)
    }

    /// The user's value of a record.
    pub fn value(&self, version: Version, bytes: &[u8]) -> Result<Value, Error> {
        if !version.is_overflow() {
            return Ok(Value::from(bytes));
        }
        let mut value = Vec::new();
        let read = self.engine.overflow_values().read(bytes, &mut value);
        self.check_open()?;
        read.map(|()| Value::from(value))
    }

    /// Keeps the records that are visible now.
    pub fn pin(&self) -> Result<Arc<Snapshot>, Error> {
        self.check_open()?;
        Ok(Arc::new(self.engine.transactions().snapshot()?))
    }

    /// All writes or none. With `since`, only if none of the keys has changed since then.
    pub fn commit(
        &self,
        writes: &Writes,
        since: Option<Timestamp>,
        durability: Durability,
    ) -> Result<(), Error> {
        let _writing = writes.trees().map(|tree| self.announce(tree)).collect::<Result<Vec<_>, _>>()?;
        let contents = writes.iter().filter_map(|(tree, _, content)| Some((tree, content?)));
        let overflow = contents.filter(|(tree, content)| is_overflow(tree, content.length()));
        let logged =
            self.write_overflow(&overflow.map(|(_, content)| content.as_overflow()).collect::<Vec<_>>())?;
        let mut rest = logged.iter();
        let written: Vec<_> = writes
            .iter()
            .map(|(tree, key, content)| Written {
                tree: &tree.tree,
                key,
                write: write_of(tree, content, &mut rest),
            })
            .collect();
        let commit = || {
            let _room = self.engine.reserve_for(&written)?;
            self.engine.transactions().commit(since, &[], &written, durability)
        };
        self.free_uncommitted(commit().map(drop), &logged)
    }

    /// Writes overflow values, and returns the reference that the log is to have of each.
    fn write_overflow(&self, values: &[OverflowValue<'_>]) -> Result<Vec<Vec<u8>>, Error> {
        if values.is_empty() { Ok(Vec::new()) } else { self.engine.write_overflow(values) }
    }

    /// Frees overflow values that were written for a commit that was refused. After any other failure the log
    /// may have it.
    fn free_uncommitted(&self, result: Result<(), Error>, logged: &[Vec<u8>]) -> Result<(), Error> {
        if let Err(error) = &result
            && matches!(
                error.kind(),
                ErrorKind::Conflict | ErrorKind::Full | ErrorKind::Argument | ErrorKind::TreeFailed
            )
        {
            self.engine.overflow_values().free_all(logged);
        }
        result
    }

    /// One write on its own.
    pub fn write(
        &self,
        tree: &NamedTree,
        key: &[u8],
        value: Option<&[u8]>,
        durability: Durability,
    ) -> Result<(), Error> {
        self.check_write(tree, key, value)?;
        let _writing = self.announce(tree)?;
        let overflow = value.filter(|value| is_overflow(tree, value.len() as u64)).map(OverflowValue::Bytes);
        let logged = self.write_overflow(overflow.as_slice())?;
        let write = match (value, logged.first()) {
            (_, Some(logged)) => Write::PutOverflow { reference: kept(logged), logged },
            (Some(value), None) => Write::Put(value),
            (None, None) => Write::Remove,
        };
        let result = self.engine.transactions().write(Written { tree: &tree.tree, key, write }, durability);
        self.free_uncommitted(result.map(drop), &logged)
    }

    /// So that the tree is not freed, nor the store closed, in the middle of a commit.
    pub(super) fn announce<'a>(&self, tree: &'a NamedTree) -> Result<Writing<'a>, Error> {
        self.check_process()?;
        tree.writers.fetch_add(1, Ordering::SeqCst);
        let writing = Writing(tree);
        if self.read_only {
            return Err(Error::ReadOnly);
        }
        if self.closed.load(Ordering::SeqCst) {
            return Err(Error::Closed);
        }
        if tree.dropped.load(Ordering::SeqCst) {
            return Err(Error::TreeDropped { tree: tree.name.clone() });
        }
        Ok(writing)
    }

    /// Refuses keys and values that a tree does not take.
    pub fn check_write(&self, tree: &NamedTree, key: &[u8], value: Option<&[u8]>) -> Result<(), Error> {
        if let Some(got) = value.map(|value| value.len() as u64).filter(|got| *got > VALUE_BYTES_MAX) {
            return Err(Error::ValueLength { got, limit: VALUE_BYTES_MAX });
        }
        let limit = self.key_bytes_max(tree);
        match key.len() {
            length if length > 0 && length <= limit => Ok(()),
            got => Err(Error::KeyLength { got, limit }),
        }
    }

    pub fn key_bytes_max(&self, tree: &NamedTree) -> usize {
        tree.tree.index.limits().key_bytes
    }

    /// How a tree is kept.
    pub fn options_of(&self, tree: &NamedTree) -> TreeOptions {
        let plan = self.engine.trees().plan(&tree.entry).unwrap_or_default();
        TreeOptions {
            kind: tree.entry.kind,
            node_bytes: Some(self.node_bytes(tree) >> plan.blocks_log2),
            blocks: (plan.blocks_log2 > 0).then(|| NodeBlocks::Of(1 << plan.blocks_log2)),
            lsm: plan.lsm,
            be_tree: plan.be_tree,
            operator: tree.entry.operator.clone(),
        }
    }

    pub fn node_bytes(&self, tree: &NamedTree) -> u32 {
        tree.tree.index.limits().node_bytes as u32
    }

    /// Leaves that a scan of the tree reads ahead at most.
    pub fn read_ahead(&self, tree: &NamedTree) -> u32 {
        self.layout.read_ahead_bytes / self.node_bytes(tree)
    }

    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    pub fn engine(&self) -> &Arc<Engine> {
        &self.engine
    }

    /// Of commits that do not name one.
    pub fn durability(&self) -> Durability {
        self.durability
    }

    /// The trees of these names; missing ones are made as one.
    pub fn trees(&self, names: &[&str], options: &TreeOptions) -> Result<Vec<Arc<NamedTree>>, Error> {
        self.check_open()?;
        names.iter().try_for_each(|name| check_name(name))?;
        let trees = self.engine.trees();
        let plan = self.plan(options)?;
        loop {
            let found: Vec<_> = names.iter().map(|name| trees.named(name)).collect();
            let missing: BTreeSet<&str> = names
                .iter()
                .zip(&found)
                .filter(|(_, found)| found.is_none())
                .map(|(name, _)| *name)
                .collect();
            if missing.is_empty() {
                return Ok(found.into_iter().flatten().collect());
            }
            if self.read_only {
                return Err(Error::ReadOnly);
            }
            let operator = options.operator.as_deref();
            let new: Vec<_> = missing.into_iter().map(|name| NewTree { name, plan, operator }).collect();
            match self.engine.create_trees(&new) {
                // Another thread was faster.
                Err(Error::Exists { .. }) => {}
                made => made?,
            }
        }
    }

    /// The settings that a new tree would have of its own, and why they are so.
    ///
    /// # Errors
    /// [`Error::Options`] for options that cannot be.
    pub fn layout_of(&self, options: &TreeOptions) -> Result<Vec<Decision>, Error> {
        let plan = self.plan(options)?;
        let own = self.engine.trees().decisions(plan)?;
        let bytes = options.node_bytes.unwrap_or(self.layout.node_bytes);
        let blocks = options.blocks.filter(|_| plan.blocks_log2 > 0);
        let blocks = blocks.map(|blocks| of_blocks(1 << plan.blocks_log2, blocks, &self.layout));
        Ok(if own.is_empty() { std::iter::once(of_nodes(bytes)).chain(blocks).collect() } else { own })
    }

    /// How a new tree with these options is kept.
    fn plan(&self, options: &TreeOptions) -> Result<TreePlan, Error> {
        let node_bytes = options.node_bytes.unwrap_or(self.layout.node_bytes);
        let blocks = match options.blocks.filter(|_| options.kind == IndexKind::BTree) {
            None => 1,
            Some(blocks) => blocks.count(node_bytes, &self.layout)?,
        };
        let (class, blocks_log2) = (class_of(node_bytes), blocks.ilog2() as u8);
        Ok(TreePlan { kind: options.kind, class, blocks_log2, lsm: options.lsm, be_tree: options.be_tree })
    }

    pub fn existing_tree(&self, name: &str) -> Option<Arc<NamedTree>> {
        self.engine.trees().named(name)
    }

    pub fn tree_names(&self) -> Vec<String> {
        self.engine.trees().all().iter().map(|tree| tree.name.clone()).collect()
    }

    pub fn rename_tree(&self, name: &str, new_name: &str) -> Result<(), Error> {
        self.check_writable()?;
        check_name(new_name)?;
        self.engine.rename_tree(name, new_name)
    }

    pub fn replace_tree(&self, name: &str, by: &str) -> Result<(), Error> {
        self.check_writable()?;
        self.engine.replace_tree(name, by)
    }

    pub fn drop_trees(&self, names: &[&str]) -> Result<(), Error> {
        self.check_writable()?;
        if names.is_empty() { Ok(()) } else { self.engine.drop_trees(names) }
    }

    pub fn spawn<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> JoinHandle<T> {
        if self.check_process().is_err() {
            return JoinHandle::given_up(work);
        }
        self.engine.executor().run(work)
    }

    pub fn shortages(&self) -> Vec<String> {
        let mut all: Vec<String> =
            self.engine.parts().devices.all().iter().flat_map(|device| device.shortages()).collect();
        all.dedup();
        all
    }

    /// The time on the store's devices.
    pub fn now(&self) -> Duration {
        io_context::now(&self.engine.parts().devices).into()
    }

    pub fn sleep_until(&self, until: Duration) -> Result<(), Error> {
        io_context::sleep_until(&self.engine.parts().devices, until.into())
    }

    pub fn sync(&self) -> Result<(), Error> {
        self.check_open()?;
        self.wait(Durability::Sync)
    }

    /// Returns when everything that was committed is as durable as asked.
    pub(super) fn wait(&self, durability: Durability) -> Result<(), Error> {
        let log = &self.engine.parts().log;
        log.wait(log.end(), durability)
    }

    pub fn checkpoint(&self) -> Result<(), Error> {
        self.check_writable()?;
        self.engine.checkpoint()
    }

    pub fn stats(&self) -> Stats {
        Stats::of(&self.engine, &self.layout)
    }

    pub fn reclaim(&self) -> Result<Option<u64>, Error> {
        self.check_writable()?;
        self.engine.reclaim()
    }

    pub fn compact(&self, mut goes_on: impl FnMut(Compacted) -> bool) -> Result<Compacted, Error> {
        self.check_writable()?;
        let before_bytes = self.engine.device_bytes();
        let so_far = |after_bytes| Compacted { before_bytes, after_bytes };
        self.engine.compact(|bytes| goes_on(so_far(bytes)))?;
        Ok(so_far(self.engine.device_bytes()))
    }

    pub fn decisions(&self) -> &[Decision] {
        &self.decisions
    }

    /// Stops all work, so that the store opens as after a crash. Returns whether it was stopped already.
    pub fn abandon(&self) -> bool {
        self.closed.swap(true, Ordering::SeqCst)
    }

    /// Closes the store, once; afterwards nothing more is done.
    pub fn close(&self) -> Result<(), Error> {
        self.check_process()?;
        if self.abandon() {
            return Err(Error::Closed);
        }
        if self.read_only {
            // There is nothing to be kept.
            return Ok(());
        }
        while self.engine.trees().any_has_writers() {
            crate::task::yield_now();
        }
        self.engine.close()
    }
}

impl Drop for Core {
    /// The caller that dropped the last handle has no use for an error; without a proper end, the store opens
    /// as after a crash.
    fn drop(&mut self) {
        if self.check_process().is_err() {
            // Its threads cannot be joined, and its files and queues are the parent's: all of it stays as it
            // is until this process ends.
            std::mem::forget((self.workers.take(), Arc::clone(&self.engine)));
            return;
        }
        let _opens_as_after_a_crash = self.close();
        if in_task() {
            // A worker cannot wait for its own end.
            let workers = self.workers.take();
            drop(std::thread::spawn(move || drop(workers)));
        }
    }
}

/// The index's operation for a written value; `logged` yields the log's references of the commit's overflow
/// values, in order.
fn write_of<'a>(
    tree: &NamedTree,
    content: Option<&'a Content>,
    logged: &mut impl Iterator<Item = &'a Vec<u8>>,
) -> Write<'a> {
    let Some(content) = content else { return Write::Remove };
    let logged = is_overflow(tree, content.length()).then(|| logged.next()).flatten();
    match (logged, content) {
        (Some(logged), _) => Write::PutOverflow { reference: kept(logged), logged },
        (None, Content::Bytes(value)) => Write::Put(value),
        // All that is parked is large.
        (None, Content::Parked(parked)) => Write::Put(parked.reference()),
        (None, Content::Operands(list)) => Write::Merge(list),
    }
}
