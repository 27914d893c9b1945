//! The interface of key-value stores that all benchmarks use.

#[cfg(feature = "c-peers")]
mod c;
#[cfg(feature = "fjall")]
mod fjall;
pub(crate) mod flashgrain;
mod name;
#[cfg(feature = "redb")]
mod redb;
mod version;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

pub(crate) use self::flashgrain::in_memory;
use clap::ValueEnum;
use flashgrain_device::{Nanos, clock};
pub use name::{Caching, EngineName};
use serde::{Deserialize, Serialize};

/// Promise of a commit when it returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Durability {
    /// It survives a power cut.
    Full,
    /// It is in a log that the operating system has, or has soon: it survives the process, and most of it a
    /// power cut.
    Buffered,
    /// Nothing: no log where the engine can do without one.
    None,
}

/// How an engine is opened.
#[derive(Clone, Debug)]
pub struct Setup {
    /// A directory of its own. Files that an earlier run left there are opened again.
    pub dir: PathBuf,
    /// Memory for cached data, write buffers included; all that the engine may take in addition to its code.
    pub cache_bytes: u64,
    /// Promise of each commit.
    pub durability: Durability,
    /// Most clients at a time.
    pub clients_max: usize,
    /// Processors that it may use.
    pub cores: usize,
    /// Tables by name; a [`Table`] is an index into this.
    pub tables: &'static [&'static str],
    /// Settings instead of those that the benchmarks choose for the engine; only WiredTiger and Berkeley DB
    /// take them.
    pub settings: Option<Settings>,
    /// Bytes of pages of tables that are made, instead of those that the benchmarks choose; only WiredTiger
    /// takes them.
    pub page_bytes: Option<u32>,
}

/// Settings in an engine's own notation; others stay at the engine's defaults.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Of the store.
    pub store: String,
    /// Of each table that is made.
    pub table: String,
}

/// One of [`Setup::tables`].
pub type Table = usize;

/// Why an operation was not done.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// Another transaction was faster: this one is rolled back, and may be tried again.
    #[error("another transaction was faster")]
    Conflict,
    /// Anything else.
    #[error(transparent)]
    Broken(#[from] anyhow::Error),
}

/// Work of a client: a function of its number and its session.
pub type Job = Arc<dyn Fn(usize, &mut dyn Session) -> anyhow::Result<()> + Send + Sync>;

/// How often it is looked whether anything is under way, and how many times in a row nothing must be: between
/// two compactions there is a gap.
const LOOK_EVERY: Duration = Duration::from_millis(20);
const QUIET_LOOKS: usize = 5;

/// Waits until nothing is under way.
fn wait_until_quiet(mut is_busy: impl FnMut() -> bool) {
    let mut quiet = 0;
    while quiet < QUIET_LOOKS {
        clock::sleep_until(clock::now() + Nanos::from(LOOK_EVERY));
        quiet = if is_busy() { 0 } else { quiet + 1 };
    }
}

/// A store that is open.
pub trait Engine: Send + Sync {
    /// Runs `clients` clients at a time, each on a thread or a task of its own, until all have ended.
    ///
    /// # Errors
    /// The first that a client has returned.
    fn run(&self, clients: usize, job: Job) -> anyhow::Result<()>;

    /// Waits until written data are where they would be after a long rest: buffers are written, compactions
    /// done, a checkpoint is made.
    ///
    /// # Errors
    /// Errors of the engine.
    fn settle(&self) -> anyhow::Result<()>;

    /// The settings that matter, so that readers can judge whether it was treated fairly.
    fn settings(&self) -> Vec<(String, String)>;

    /// Ends it in order.
    ///
    /// # Errors
    /// Errors of the engine.
    fn close(self: Box<Self>) -> anyhow::Result<()>;
}

/// A client's access to an engine. Without [`Session::begin`], every operation is a transaction of its own,
/// which is tried again inside until it is done.
///
/// Keys have 1 to 511 bytes: LMDB takes no others.
pub trait Session {
    /// Puts the value of a key into `value`. `false` if there is none; `value` is empty then.
    fn get(&mut self, table: Table, key: &[u8], value: &mut Vec<u8>) -> Result<bool, Failure>;

    /// The values of several keys that need not be seen at the same moment; `visit` is called for each that
    /// is there, with its place in `keys`.
    fn get_many(
        &mut self,
        table: Table,
        keys: &[&[u8]],
        visit: &mut dyn FnMut(usize, &[u8]),
    ) -> Result<(), Failure> {
        let mut value = Vec::new();
        for (place, key) in keys.iter().enumerate() {
            if self.get(table, key, &mut value)? {
                visit(place, &value);
            }
        }
        Ok(())
    }

    /// Has the engine load the pages into memory that a transaction on these keys needs, which is going to
    /// read and change them.
    fn prefetch(&mut self, table: Table, keys: &[&[u8]]) -> Result<(), Failure> {
        self.get_many(table, keys, &mut |_, _| ())
    }

    /// Inserts a record or replaces its value, without looking whether it is there.
    fn put(&mut self, table: Table, key: &[u8], value: &[u8]) -> Result<(), Failure>;

    /// Removes a record if it is there.
    fn remove(&mut self, table: Table, key: &[u8]) -> Result<(), Failure>;

    /// Visits records in key order, or backwards, beginning with the first whose key is not below (backwards:
    /// above) `from`, as long as `visit` says `true`.
    fn scan(
        &mut self,
        table: Table,
        from: &[u8],
        direction: Direction,
        visit: &mut dyn FnMut(&[u8], &[u8]) -> bool,
    ) -> Result<(), Failure>;

    /// Begins a transaction that sees one state of the store, and its own writes. No other one of this
    /// session may be under way.
    ///
    /// Engines with a single writer wait for it here; transactions that only read should say so with
    /// [`Session::begin_reading`].
    fn begin(&mut self) -> Result<(), Failure>;

    /// Like [`Session::begin`], for a transaction that will not write.
    fn begin_reading(&mut self) -> Result<(), Failure> {
        self.begin()
    }

    /// Like [`Session::begin`], for a transaction that will not read.
    fn begin_writing(&mut self) -> Result<(), Failure> {
        self.begin()
    }

    /// Ends it: all of its writes are done, as durable as [`Setup::durability`] says, or none.
    fn commit(&mut self) -> Result<(), Failure>;

    /// Ends it without its writes. After a [`Failure::Conflict`] it has ended already, and this does nothing.
    fn rollback(&mut self);

    /// The client's time: the system's, unless the store is simulated.
    fn now(&self) -> Nanos {
        clock::now()
    }

    /// Lets the client wait until this moment of [`Session::now`], without keeping a processor busy.
    fn wait_until(&mut self, until: Duration) -> Result<(), Failure>;
}

/// Direction of a scan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// Towards larger keys.
    Forward,
    /// Towards smaller keys.
    Backward,
}

fn check_clients(clients: usize, clients_max: usize) -> anyhow::Result<()> {
    anyhow::ensure!(
        clients <= clients_max,
        "{clients} clients are more than the {clients_max} that it was opened for"
    );
    Ok(())
}

/// [`Engine::run`] with a thread per client.
#[cfg(feature = "clients-are-threads")]
fn run_threads(
    clients: usize,
    clients_max: usize,
    run: impl Fn(usize) -> anyhow::Result<()> + Sync,
) -> anyhow::Result<()> {
    check_clients(clients, clients_max)?;
    let run = &run;
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..clients)
            .map(|client| {
                std::thread::Builder::new()
                    .name(format!("client {client}"))
                    .spawn_scoped(scope, move || run(client))
            })
            .collect();
        let join = |thread: std::io::Result<std::thread::ScopedJoinHandle<'_, anyhow::Result<()>>>| {
            thread?.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        };
        // All of them end before any error is returned.
        let results: Vec<anyhow::Result<()>> = threads.into_iter().map(join).collect();
        results.into_iter().collect()
    })
}

/// [`Session::wait_until`] of a client that is a thread.
#[cfg(feature = "clients-are-threads")]
fn sleep_until(until: Duration) {
    while Duration::from(clock::now()) < until {
        // A signal may end it early.
        clock::sleep_until(until.into());
    }
}
