//! redb: copy-on-write B-trees in one file, in Rust. A single writer; a cache of its own above the kernel's.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use ::redb::{
    Database, ReadOnlyTable, ReadTransaction, ReadableDatabase as _, ReadableTable, TableDefinition,
    WriteTransaction,
};
use anyhow::anyhow;
use flashgrain_device::clock;

use super::{Direction, Durability, Engine, Failure, Job, Session, Setup, Table, run_threads, sleep_until};

type Definition = TableDefinition<'static, &'static [u8], &'static [u8]>;
type Reading = ReadOnlyTable<&'static [u8], &'static [u8]>;

struct Redb {
    shared: Arc<Shared>,
    clients_max: usize,
    settings: Vec<(String, String)>,
}

struct Shared {
    db: Database,
    tables: Vec<Definition>,
    /// Most time between two commits that are synced; zero: all are. Freed pages are reused only after a
    /// synced commit.
    sync_every: Duration,
    /// When the newest of them was, in nanoseconds of the clock.
    synced_ns: AtomicU64,
    /// Commits so far: whether a reader still sees the newest state.
    commits: AtomicU64,
}

/// Opens or makes the store.
pub(super) fn open(setup: &Setup) -> anyhow::Result<Box<dyn Engine>> {
    let (sync_every, commits) = match setup.durability {
        Durability::Full => (Duration::ZERO, "synced each (one-phase, with checksums)"),
        Durability::Buffered => (Duration::from_secs(1), "Durability::None, synced every second"),
        Durability::None => {
            (Duration::from_secs(10), "Durability::None, synced every ten seconds to free pages")
        }
    };
    // Its own cache needs no system calls, so it gets the most; the page cache would hold the same pages
    // again.
    let cache_bytes = setup.cache_bytes / 4 * 3;
    let db =
        Database::builder().set_cache_size(usize::try_from(cache_bytes)?).create(setup.dir.join("redb"))?;
    let tables: Vec<Definition> = setup.tables.iter().map(|name| TableDefinition::new(name)).collect();
    let transaction = db.begin_write()?;
    for table in &tables {
        transaction.open_table(*table)?;
    }
    transaction.commit()?;
    let settings = [
        ("version", super::version::locked_version("redb")),
        ("memory", format!("cache {cache_bytes} bytes, the rest for the page cache")),
        ("pages", "4096 bytes".into()),
        ("commits", commits.into()),
        ("isolation", "serializable, a single writer".into()),
        ("single look-ups", "in a reader that is kept until something is committed".into()),
    ];
    Ok(Box::new(Redb {
        shared: Arc::new(Shared {
            db,
            tables,
            sync_every,
            synced_ns: AtomicU64::new(clock::now().0),
            commits: AtomicU64::new(0),
        }),
        clients_max: setup.clients_max,
        settings: settings.map(|(name, value)| (name.into(), value)).into(),
    }))
}

impl Shared {
    fn begin_write(&self) -> Result<WriteTransaction, Failure> {
        let mut transaction = self.db.begin_write()?;
        let now_ns = clock::now().0;
        let since = Duration::from_nanos(now_ns.saturating_sub(self.synced_ns.load(Ordering::Relaxed)));
        if since < self.sync_every {
            transaction.set_durability(::redb::Durability::None)?;
        } else {
            self.synced_ns.store(now_ns, Ordering::Relaxed);
        }
        Ok(transaction)
    }

    fn commit(&self, transaction: WriteTransaction) -> Result<(), Failure> {
        transaction.commit()?;
        // Only now: a reader that reads this number before it begins to read sees at least these commits.
        self.commits.fetch_add(1, Ordering::Release);
        Ok(())
    }

    fn sync(&self) -> anyhow::Result<()> {
        Ok(self.db.begin_write()?.commit()?)
    }
}

impl Engine for Redb {
    fn run(&self, clients: usize, job: Job) -> anyhow::Result<()> {
        run_threads(clients, self.clients_max, |client| {
            let shared = Arc::clone(&self.shared);
            job(client, &mut Client { shared, snapshot: None, under_way: UnderWay::Nothing })
        })
    }

    fn settle(&self) -> anyhow::Result<()> {
        self.shared.sync()
    }

    fn settings(&self) -> Vec<(String, String)> {
        self.settings.clone()
    }

    fn close(self: Box<Self>) -> anyhow::Result<()> {
        self.shared.sync()?;
        let shared = Arc::into_inner(self.shared).ok_or_else(|| anyhow!("a session is still open"))?;
        Ok(shared.db.close()?)
    }
}

/// A reader and its tables, opened when they are first asked for.
struct View {
    transaction: ReadTransaction,
    tables: Vec<Option<Reading>>,
    /// [`Shared::commits`] before it began.
    commits: u64,
}

impl View {
    fn new(shared: &Shared) -> Result<Self, Failure> {
        let commits = shared.commits.load(Ordering::Acquire);
        let transaction = shared.db.begin_read()?;
        Ok(Self { transaction, tables: shared.tables.iter().map(|_| None).collect(), commits })
    }

    fn table(&mut self, shared: &Shared, table: Table) -> Result<&Reading, Failure> {
        let slot = &mut self.tables[table];
        Ok(match slot {
            Some(open) => open,
            None => slot.insert(self.transaction.open_table(shared.tables[table])?),
        })
    }
}

enum UnderWay {
    Nothing,
    Reading,
    Writing(Box<WriteTransaction>),
}

struct Client {
    shared: Arc<Shared>,
    /// Of the transaction that reads, or kept from the last single operation.
    snapshot: Option<View>,
    under_way: UnderWay,
}

macro_rules! failures {
    ($($error:ident)*) => {
        $(impl From<::redb::$error> for Failure {
            fn from(error: ::redb::$error) -> Self {
                Self::Broken(error.into())
            }
        })*
    };
}

failures! { TransactionError TableError StorageError CommitError SetDurabilityError }

impl Client {
    /// The view for reads outside of writing transactions.
    fn view(&mut self) -> Result<(&mut View, &Shared), Failure> {
        let fresh = match (&self.snapshot, &self.under_way) {
            (Some(_), UnderWay::Reading) => true,
            (Some(view), _) => view.commits == self.shared.commits.load(Ordering::Acquire),
            (None, _) => false,
        };
        if !fresh {
            self.snapshot = None;
        }
        let view = match &mut self.snapshot {
            Some(view) => view,
            none => none.insert(View::new(&self.shared)?),
        };
        Ok((view, &self.shared))
    }

    fn write(
        &mut self,
        table: Table,
        change: impl FnOnce(&mut ::redb::Table<'_, &'static [u8], &'static [u8]>) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let definition = self.shared.tables[table];
        match &self.under_way {
            UnderWay::Writing(transaction) => change(&mut transaction.open_table(definition)?),
            UnderWay::Reading => Err(anyhow!("this transaction was begun for reading").into()),
            UnderWay::Nothing => {
                // Else its pages could not be freed.
                self.snapshot = None;
                let transaction = self.shared.begin_write()?;
                change(&mut transaction.open_table(definition)?)?;
                self.shared.commit(transaction)
            }
        }
    }
}

fn look_up(
    table: &impl ReadableTable<&'static [u8], &'static [u8]>,
    key: &[u8],
    value: &mut Vec<u8>,
) -> Result<bool, Failure> {
    value.clear();
    let found = table.get(key)?;
    if let Some(found) = &found {
        value.extend_from_slice(found.value());
    }
    Ok(found.is_some())
}

fn walk(
    table: &impl ReadableTable<&'static [u8], &'static [u8]>,
    from: &[u8],
    direction: Direction,
    visit: &mut dyn FnMut(&[u8], &[u8]) -> bool,
) -> Result<(), Failure> {
    let mut records = match direction {
        Direction::Forward => table.range::<&[u8]>(from..)?,
        Direction::Backward => table.range::<&[u8]>(..=from)?,
    };
    loop {
        let record = match direction {
            Direction::Forward => records.next(),
            Direction::Backward => records.next_back(),
        };
        let Some(record) = record else { return Ok(()) };
        let (key, value) = record?;
        if !visit(key.value(), value.value()) {
            return Ok(());
        }
    }
}

impl Session for Client {
    fn get(&mut self, table: Table, key: &[u8], value: &mut Vec<u8>) -> Result<bool, Failure> {
        if let UnderWay::Writing(transaction) = &self.under_way {
            return look_up(&transaction.open_table(self.shared.tables[table])?, key, value);
        }
        let (view, shared) = self.view()?;
        look_up(view.table(shared, table)?, key, value)
    }

    fn put(&mut self, table: Table, key: &[u8], value: &[u8]) -> Result<(), Failure> {
        self.write(table, |table| Ok(table.insert(key, value).map(drop)?))
    }

    fn remove(&mut self, table: Table, key: &[u8]) -> Result<(), Failure> {
        self.write(table, |table| Ok(table.remove(key).map(drop)?))
    }

    fn scan(
        &mut self,
        table: Table,
        from: &[u8],
        direction: Direction,
        visit: &mut dyn FnMut(&[u8], &[u8]) -> bool,
    ) -> Result<(), Failure> {
        if let UnderWay::Writing(transaction) = &self.under_way {
            return walk(&transaction.open_table(self.shared.tables[table])?, from, direction, visit);
        }
        let (view, shared) = self.view()?;
        walk(view.table(shared, table)?, from, direction, visit)
    }

    fn begin(&mut self) -> Result<(), Failure> {
        self.snapshot = None;
        self.under_way = UnderWay::Writing(Box::new(self.shared.begin_write()?));
        Ok(())
    }

    fn begin_reading(&mut self) -> Result<(), Failure> {
        self.view()?;
        self.under_way = UnderWay::Reading;
        Ok(())
    }

    fn commit(&mut self) -> Result<(), Failure> {
        match std::mem::replace(&mut self.under_way, UnderWay::Nothing) {
            UnderWay::Nothing => Err(anyhow!("no transaction is under way").into()),
            UnderWay::Reading => Ok(()),
            UnderWay::Writing(transaction) => self.shared.commit(*transaction),
        }
    }

    fn rollback(&mut self) {
        // Dropped, a transaction that writes rolls back.
        self.under_way = UnderWay::Nothing;
    }

    fn wait_until(&mut self, until: Duration) -> Result<(), Failure> {
        if matches!(self.under_way, UnderWay::Nothing) {
            // A client that waits must not keep pages from being freed.
            self.snapshot = None;
        }
        sleep_until(until);
        Ok(())
    }
}
