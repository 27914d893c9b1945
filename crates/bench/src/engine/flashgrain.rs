//! Flashgrain: clients are tasks of its workers. Their sessions are those of benchmarks of Flashgrain alone,
//! too.

use std::ops::Bound;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use flashgrain::{Batch, Db, Error, ErrorKind, IndexKind, Readable as _, Transaction, Tree, TreeOptions};
use flashgrain_device::{MemoryDevice, Nanos};

use super::{Direction, Durability, Engine, Failure, Job, Session, Setup, Table};
use crate::processor::ProcessorCosts;

struct Flashgrain {
    db: Db,
    trees: Vec<Tree>,
    settings: Vec<(String, String)>,
    clients_max: usize,
}

/// The store of an engine's directory.
pub(crate) fn store_in(directory: &Path) -> PathBuf {
    directory.join("flashgrain")
}

/// Opens or makes the store, with trees of a kind.
pub(super) fn open(setup: &Setup, kind: IndexKind) -> anyhow::Result<Box<dyn Engine>> {
    let durability = match setup.durability {
        Durability::Full => flashgrain::Durability::Sync,
        Durability::Buffered => flashgrain::Durability::Buffered,
        Durability::None => flashgrain::Durability::None,
    };
    let db = Db::builder()
        .path(store_in(&setup.dir))
        .cache_bytes(setup.cache_bytes)
        .workers(setup.cores)
        .tasks_per_worker(setup.clients_max.div_ceil(setup.cores).max(1))
        .durability(durability)
        .open_or_create()?;
    let trees = db.trees_with(setup.tables, &TreeOptions::new().kind(kind))?;
    let settings = [
        ("version", super::version::locked_version("flashgrain")),
        ("trees", format!("{kind:?}")),
        ("clients", "tasks".into()),
        ("workers", setup.cores.to_string()),
        ("cache", format!("{} bytes", setup.cache_bytes)),
        ("commits", format!("{durability:?}")),
        ("I/O", "io_uring, O_DIRECT".into()),
        ("isolation", "snapshot, optimistic".into()),
    ];
    let settings = settings.map(|(name, value)| (name.into(), value)).into();
    Ok(Box::new(Flashgrain { db, trees, settings, clients_max: setup.clients_max }))
}

/// A store in memory with B+-trees of these names, on one worker. No write waits for the log.
pub(crate) fn in_memory(
    tables: &[&str],
    cache_bytes: u64,
    clients_max: usize,
) -> anyhow::Result<Box<dyn Engine>> {
    const START_BYTES: u64 = 64 << 20;
    const LIMIT_BYTES: u64 = 64 << 30;
    let device = MemoryDevice::new(START_BYTES, LIMIT_BYTES)?;
    let db = Db::builder()
        .device(Arc::new(device))
        .growable(true)
        .cache_bytes(cache_bytes)
        .workers(1)
        .tasks_per_worker(clients_max)
        .durability(flashgrain::Durability::None)
        .create()?;
    let trees = db.trees_with(tables, &TreeOptions::new())?;
    Ok(Box::new(Flashgrain { db, trees, settings: Vec::new(), clients_max }))
}

impl Engine for Flashgrain {
    fn run(&self, clients: usize, job: Job) -> anyhow::Result<()> {
        super::check_clients(clients, self.clients_max)?;
        let tasks: Vec<_> = (0..clients)
            .map(|client| {
                let (db, trees, job) = (self.db.clone(), self.trees.clone(), job.clone());
                self.db.spawn(move || job(client, &mut Client::new(db, trees)))
            })
            .collect();
        let join = |task: flashgrain::JoinHandle<_>| {
            task.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        };
        // All of them end before any error is returned.
        let results: Vec<anyhow::Result<()>> = tasks.into_iter().map(join).collect();
        results.into_iter().collect()
    }

    fn settle(&self) -> anyhow::Result<()> {
        self.db.checkpoint()?;
        if self.trees.iter().any(|tree| tree.lsm_stats().is_some()) {
            let stats = || self.trees.iter().filter_map(Tree::lsm_stats);
            super::wait_until_quiet(|| stats().any(|stats| stats.debt_bytes > 0));
        }
        Ok(self.db.checkpoint()?)
    }

    fn settings(&self) -> Vec<(String, String)> {
        self.settings.clone()
    }

    fn close(self: Box<Self>) -> anyhow::Result<()> {
        let Self { db, trees, .. } = *self;
        drop(trees);
        Ok(db.close()?)
    }
}

/// A session of a store that is open.
pub(crate) struct Client {
    db: Db,
    trees: Vec<Tree>,
    /// Of each write; as the store was opened if there is none.
    durability: Option<flashgrain::Durability>,
    /// Processor time that operations spend where processors are simulated.
    costs: Option<ProcessorCosts>,
    transaction: Option<Transaction>,
    batch: Option<Batch>,
}

impl Client {
    pub(crate) fn new(db: Db, trees: Vec<Tree>) -> Self {
        Self { db, trees, durability: None, costs: None, transaction: None, batch: None }
    }

    pub(crate) fn with_durability(self, durability: Option<flashgrain::Durability>) -> Self {
        Self { durability, ..self }
    }

    pub(crate) fn with_costs(self, costs: Option<ProcessorCosts>) -> Self {
        Self { costs, ..self }
    }

    fn new_batch(&self) -> Batch {
        let batch = self.db.batch();
        match self.durability {
            Some(durability) => batch.durability(durability),
            None => batch,
        }
    }

    fn spend_writes(&self, count: u64) {
        if let Some(costs) = &self.costs {
            costs.spend_writes(count);
        }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        match error.kind() {
            ErrorKind::Conflict => Self::Conflict,
            _ => Self::Broken(error.into()),
        }
    }
}

impl Session for Client {
    fn get(&mut self, table: Table, key: &[u8], value: &mut Vec<u8>) -> Result<bool, Failure> {
        let tree = &self.trees[table];
        let is_there = match &self.transaction {
            Some(transaction) => transaction.get_into(tree, key, value)?,
            None => tree.get_into(key, value)?,
        };
        if let Some(costs) = &self.costs {
            costs.spend_look_up();
        }
        Ok(is_there)
    }

    fn get_many(
        &mut self,
        table: Table,
        keys: &[&[u8]],
        visit: &mut dyn FnMut(usize, &[u8]),
    ) -> Result<(), Failure> {
        let tree = &self.trees[table];
        let found = match &self.transaction {
            Some(transaction) => transaction.get_many(tree, keys)?,
            None => tree.get_many(keys)?,
        };
        for (place, value) in found.iter().enumerate() {
            value.iter().for_each(|value| visit(place, value));
        }
        Ok(())
    }

    fn prefetch(&mut self, table: Table, keys: &[&[u8]]) -> Result<(), Failure> {
        Ok(self.trees[table].prefetch(keys)?)
    }

    fn put(&mut self, table: Table, key: &[u8], value: &[u8]) -> Result<(), Failure> {
        let tree = &self.trees[table];
        if let Some(transaction) = &mut self.transaction {
            return Ok(transaction.insert(tree, key, value)?);
        }
        if let Some(batch) = &mut self.batch {
            return Ok(batch.insert(tree, key, value)?);
        }
        if self.durability.is_some() {
            let mut batch = self.new_batch();
            batch.insert(tree, key, value)?;
            batch.commit()?;
        } else {
            tree.insert(key, value)?;
        }
        self.spend_writes(1);
        Ok(())
    }

    fn remove(&mut self, table: Table, key: &[u8]) -> Result<(), Failure> {
        let tree = &self.trees[table];
        match &mut self.transaction {
            Some(transaction) => transaction.remove(tree, key)?,
            None => match &mut self.batch {
                Some(batch) => batch.remove(tree, key)?,
                None => tree.remove(key)?,
            },
        }
        Ok(())
    }

    fn scan(
        &mut self,
        table: Table,
        from: &[u8],
        direction: Direction,
        visit: &mut dyn FnMut(&[u8], &[u8]) -> bool,
    ) -> Result<(), Failure> {
        let tree = &self.trees[table];
        let range: (Bound<&[u8]>, Bound<&[u8]>) = match direction {
            Direction::Forward => (Bound::Included(from), Bound::Unbounded),
            Direction::Backward => (Bound::Unbounded, Bound::Included(from)),
        };
        let mut records = match &self.transaction {
            Some(transaction) => transaction.range::<&[u8]>(tree, range)?,
            None => tree.range::<&[u8]>(range)?,
        };
        loop {
            let record = match direction {
                Direction::Forward => records.next(),
                Direction::Backward => records.next_back(),
            };
            match record.transpose()? {
                Some((key, value)) if visit(&key, &value) => {}
                _ => return Ok(()),
            }
        }
    }

    fn begin(&mut self) -> Result<(), Failure> {
        self.transaction = Some(self.db.begin()?);
        Ok(())
    }

    fn begin_writing(&mut self) -> Result<(), Failure> {
        self.batch = Some(self.new_batch());
        Ok(())
    }

    fn commit(&mut self) -> Result<(), Failure> {
        if let Some(batch) = self.batch.take() {
            let writes = batch.len() as u64;
            batch.commit()?;
            self.spend_writes(writes);
            return Ok(());
        }
        let transaction = self.transaction.take().context("no transaction is under way")?;
        Ok(transaction.commit()?)
    }

    fn rollback(&mut self) {
        self.transaction = None;
        self.batch = None;
    }

    fn now(&self) -> Nanos {
        self.db.now().into()
    }

    fn wait_until(&mut self, until: Duration) -> Result<(), Failure> {
        Ok(self.db.sleep_until(until)?)
    }
}
