//! fjall: a log-structured merge tree in Rust, with its optimistic transactions. Reads go through the
//! kernel's page cache.

use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use ::fjall::{
    Keyspace, KeyspaceCreateOptions, OptimisticTxDatabase, OptimisticTxKeyspace, OptimisticWriteTx,
    PersistMode, Readable, Snapshot, UserValue,
};
use anyhow::anyhow;

use super::{Direction, Durability, Engine, Failure, Job, Session, Setup, Table, run_threads, sleep_until};

struct Fjall {
    shared: Arc<Shared>,
    clients_max: usize,
    settings: Vec<(String, String)>,
}

struct Shared {
    db: OptimisticTxDatabase,
    tables: Vec<OptimisticTxKeyspace>,
    /// How far a commit's journal entry gets; `None` leaves it in fjall's buffer.
    persist: Option<PersistMode>,
    /// Whether a transaction that writes was ever begun. Until then single writes go around fjall's detection
    /// of conflicts, which costs four times as much as the writes.
    uses_transactions: RwLock<bool>,
}

/// Opens or makes the store.
pub(super) fn open(setup: &Setup) -> anyhow::Result<Box<dyn Engine>> {
    let (persist, commits) = match setup.durability {
        Durability::Full => (Some(PersistMode::SyncData), "journal synced at each commit (no group commit)"),
        Durability::Buffered => {
            (Some(PersistMode::Buffer), "journal written to the page cache at each commit")
        }
        Durability::None => (None, "journal in a buffer of fjall's"),
    };
    // Its documentation asks for 20-25 % for the block cache, and leaves the rest to the page cache.
    let block_cache_bytes = setup.cache_bytes / 4;
    // Another quarter for memtables: of each keyspace one that is written to, and one that is flushed. All of
    // them together cannot be limited.
    let memtable_bytes = (setup.cache_bytes / 8 / setup.tables.len() as u64).clamp(1 << 20, 64 << 20);
    let workers = setup.cores.clamp(2, 16);
    let db = OptimisticTxDatabase::builder(&setup.dir)
        .cache_size(block_cache_bytes)
        .worker_threads(workers)
        .manual_journal_persist(persist.is_none())
        .open()?;
    // Blocks of 4 KiB, bloom filters of 10 bits (0.01 % on the first level), no compression: all its
    // defaults.
    let options = || {
        KeyspaceCreateOptions::default()
            .max_memtable_size(memtable_bytes)
            .manual_journal_persist(persist.is_none())
    };
    let tables = setup.tables.iter().map(|name| db.keyspace(name, options)).collect::<Result<_, _>>()?;
    let settings = [
        ("version", super::version::locked_version("fjall")),
        (
            "memory",
            format!(
                "block cache {block_cache_bytes} bytes, memtables {memtable_bytes} bytes for each keyspace, the rest for the page cache"
            ),
        ),
        ("tables", "a keyspace each, blocks of 4096 bytes, bloom filters of 10 bits, no compression".into()),
        ("compaction", format!("leveled, {workers} worker threads")),
        ("commits", commits.into()),
        (
            "isolation",
            "serializable, optimistic; a scan reads its whole range for the detection of conflicts".into(),
        ),
    ];
    Ok(Box::new(Fjall {
        shared: Arc::new(Shared { db, tables, persist, uses_transactions: RwLock::new(false) }),
        clients_max: setup.clients_max,
        settings: settings.map(|(name, value)| (name.into(), value)).into(),
    }))
}

impl Engine for Fjall {
    fn run(&self, clients: usize, job: Job) -> anyhow::Result<()> {
        run_threads(clients, self.clients_max, |client| {
            job(client, &mut Client { shared: Arc::clone(&self.shared), under_way: UnderWay::Nothing })
        })
    }

    fn settle(&self) -> anyhow::Result<()> {
        let Shared { db, tables, .. } = &*self.shared;
        for table in tables {
            table.inner().rotate_memtable_and_wait()?;
        }
        super::wait_until_quiet(|| {
            db.inner().outstanding_flushes() > 0 || db.inner().active_compactions() > 0
        });
        Ok(())
    }

    fn settings(&self) -> Vec<(String, String)> {
        self.settings.clone()
    }

    fn close(self: Box<Self>) -> anyhow::Result<()> {
        Ok(self.shared.db.persist(PersistMode::SyncAll)?)
    }
}

enum UnderWay {
    Nothing,
    Reading(Snapshot),
    Writing(Box<OptimisticWriteTx>),
}

struct Client {
    shared: Arc<Shared>,
    under_way: UnderWay,
}

impl From<::fjall::Error> for Failure {
    fn from(error: ::fjall::Error) -> Self {
        Self::Broken(error.into())
    }
}

impl Client {
    fn transaction(&self) -> Result<OptimisticWriteTx, Failure> {
        Ok(self.shared.db.write_tx()?.durability(self.shared.persist))
    }

    /// In the transaction under way, or alone.
    fn write(
        &mut self,
        table: Table,
        plain: impl FnOnce(&Keyspace) -> ::fjall::Result<()>,
        change: impl FnOnce(&mut OptimisticWriteTx, &OptimisticTxKeyspace),
    ) -> Result<(), Failure> {
        let keyspace = &self.shared.tables[table];
        match &mut self.under_way {
            UnderWay::Writing(transaction) => change(transaction, keyspace),
            UnderWay::Reading(_) => return Err(anyhow!("this transaction was begun for reading").into()),
            UnderWay::Nothing => {
                // Held until it is done: the first transaction waits for it.
                let uses_transactions =
                    self.shared.uses_transactions.read().unwrap_or_else(PoisonError::into_inner);
                if !*uses_transactions {
                    plain(keyspace.inner())?;
                    drop(uses_transactions);
                    if self.shared.persist == Some(PersistMode::SyncData) {
                        self.shared.db.persist(PersistMode::SyncData)?;
                    }
                    return Ok(());
                }
                drop(uses_transactions);
                let mut transaction = self.transaction()?;
                change(&mut transaction, keyspace);
                // It has read nothing, so that nothing can conflict.
                transaction.commit()?.map_err(|_| Failure::Conflict)?;
            }
        }
        Ok(())
    }
}

fn take(found: Option<UserValue>, value: &mut Vec<u8>) -> bool {
    value.clear();
    if let Some(found) = &found {
        value.extend_from_slice(found);
    }
    found.is_some()
}

impl Session for Client {
    fn get(&mut self, table: Table, key: &[u8], value: &mut Vec<u8>) -> Result<bool, Failure> {
        let keyspace = &self.shared.tables[table];
        let found = match &self.under_way {
            UnderWay::Nothing => keyspace.get(key)?,
            UnderWay::Reading(snapshot) => snapshot.get(keyspace, key)?,
            UnderWay::Writing(transaction) => transaction.get(keyspace, key)?,
        };
        Ok(take(found, value))
    }

    fn put(&mut self, table: Table, key: &[u8], value: &[u8]) -> Result<(), Failure> {
        self.write(
            table,
            |keyspace| keyspace.insert(key, value),
            |transaction, keyspace| transaction.insert(keyspace, key, value),
        )
    }

    fn remove(&mut self, table: Table, key: &[u8]) -> Result<(), Failure> {
        self.write(
            table,
            |keyspace| keyspace.remove(key),
            |transaction, keyspace| transaction.remove(keyspace, key),
        )
    }

    fn scan(
        &mut self,
        table: Table,
        from: &[u8],
        direction: Direction,
        visit: &mut dyn FnMut(&[u8], &[u8]) -> bool,
    ) -> Result<(), Failure> {
        let keyspace = &self.shared.tables[table];
        let range = match direction {
            Direction::Forward => (std::ops::Bound::Included(from), std::ops::Bound::Unbounded),
            Direction::Backward => (std::ops::Bound::Unbounded, std::ops::Bound::Included(from)),
        };
        let mut records = match &self.under_way {
            UnderWay::Nothing => self.shared.db.read_tx().range::<&[u8], _>(keyspace, range),
            UnderWay::Reading(snapshot) => snapshot.range::<&[u8], _>(keyspace, range),
            UnderWay::Writing(transaction) => transaction.range::<&[u8], _>(keyspace, range),
        };
        loop {
            let record = match direction {
                Direction::Forward => records.next(),
                Direction::Backward => records.next_back(),
            };
            let Some(record) = record else { return Ok(()) };
            let (key, value) = record.into_inner()?;
            if !visit(&key, &value) {
                return Ok(());
            }
        }
    }

    fn begin(&mut self) -> Result<(), Failure> {
        let uses_transactions = *self.shared.uses_transactions.read().unwrap_or_else(PoisonError::into_inner);
        if !uses_transactions {
            *self.shared.uses_transactions.write().unwrap_or_else(PoisonError::into_inner) = true;
        }
        self.under_way = UnderWay::Writing(Box::new(self.transaction()?));
        Ok(())
    }

    fn begin_reading(&mut self) -> Result<(), Failure> {
        self.under_way = UnderWay::Reading(self.shared.db.read_tx());
        Ok(())
    }

    fn commit(&mut self) -> Result<(), Failure> {
        match std::mem::replace(&mut self.under_way, UnderWay::Nothing) {
            UnderWay::Nothing => Err(anyhow!("no transaction is under way").into()),
            UnderWay::Reading(_) => Ok(()),
            UnderWay::Writing(transaction) => transaction.commit()?.map_err(|_| Failure::Conflict),
        }
    }

    fn rollback(&mut self) {
        self.under_way = UnderWay::Nothing;
    }

    fn wait_until(&mut self, until: Duration) -> Result<(), Failure> {
        sleep_until(until);
        Ok(())
    }
}
