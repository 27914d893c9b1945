//! Flashgrain: clients are tasks of its workers.

use std::ops::Bound;
use std::time::Duration;

use anyhow::Context as _;
use flashgrain::{Db, Error, ErrorKind, Readable as _, Transaction, Tree};

use super::{Direction, Durability, Engine, Failure, Job, Session, Setup, Table};

struct Flashgrain {
    db: Db,
    trees: Vec<Tree>,
    settings: Vec<(String, String)>,
    clients_max: usize,
}

/// Opens or makes the store.
pub(super) fn open(setup: &Setup) -> anyhow::Result<Box<dyn Engine>> {
    let durability = match setup.durability {
        Durability::Full => flashgrain::Durability::Sync,
        Durability::Buffered => flashgrain::Durability::Buffered,
        Durability::None => flashgrain::Durability::None,
    };
    let path = setup.dir.join("flashgrain");
    let db = Db::builder()
        .path(&path)
        .cache_bytes(setup.cache_bytes)
        .workers(setup.cores)
        .tasks_per_worker(setup.clients_max.div_ceil(setup.cores).max(1))
        .durability(durability)
        .open_or_create()?;
    let trees = setup.tables.iter().map(|name| db.tree(name)).collect::<Result<_, _>>()?;
    let settings = [
        ("version", super::name::locked_version("flashgrain")),
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

impl Engine for Flashgrain {
    fn run(&self, clients: usize, job: Job) -> anyhow::Result<()> {
        super::check_clients(clients, self.clients_max)?;
        let tasks: Vec<_> = (0..clients)
            .map(|client| {
                let (db, trees, job) = (self.db.clone(), self.trees.clone(), job.clone());
                self.db.spawn(move || job(client, &mut Client { db, trees, transaction: None }))
            })
            .collect();
        let join = |task: flashgrain::JoinHandle<_>| {
            task.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        };
        // All of them end before any error is told.
        let results: Vec<anyhow::Result<()>> = tasks.into_iter().map(join).collect();
        results.into_iter().collect()
    }

    fn settle(&self) -> anyhow::Result<()> {
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

struct Client {
    db: Db,
    trees: Vec<Tree>,
    transaction: Option<Transaction>,
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
        Ok(match &self.transaction {
            Some(transaction) => transaction.get_into(tree, key, value)?,
            None => tree.get_into(key, value)?,
        })
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
        match &mut self.transaction {
            Some(transaction) => transaction.insert(tree, key, value)?,
            None => tree.insert(key, value)?,
        }
        Ok(())
    }

    fn remove(&mut self, table: Table, key: &[u8]) -> Result<(), Failure> {
        let tree = &self.trees[table];
        match &mut self.transaction {
            Some(transaction) => transaction.remove(tree, key)?,
            None => tree.remove(key)?,
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

    fn commit(&mut self) -> Result<(), Failure> {
        let transaction = self.transaction.take().context("no transaction is under way")?;
        Ok(transaction.commit()?)
    }

    fn rollback(&mut self) {
        self.transaction = None;
    }

    fn wait_until(&mut self, until: Duration) -> Result<(), Failure> {
        Ok(self.db.sleep_until(until)?)
    }
}
