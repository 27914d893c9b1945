//! Stores with a C interface, through the table of functions of `peers/peer.h`: a session per client, and a
//! thread or a task of the store for each.

mod tasks;

use std::any::Any;
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::os::unix::ffi::OsStrExt as _;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::ptr::{null, null_mut};
use std::time::Duration;

use anyhow::{Context as _, anyhow};
// Links RocksDB.
#[cfg(feature = "rocksdb-bundled")]
use librocksdb_sys as _;

use self::tasks::{RunTasks, run_tasks};
use super::{
    Direction, Durability, Engine, Failure, Job, Session, Settings, Setup, Table, check_clients, run_threads,
    sleep_until,
};

const OK: c_int = 0;
const NOT_FOUND: c_int = 1;
const CONFLICT: c_int = 2;

const ERROR_BYTES: usize = 512;
const SETTINGS_BYTES: usize = 4096;

#[repr(C)]
struct PeerSetup {
    dir: *const c_char,
    cache_bytes: u64,
    durability: i32,
    clients_max: u32,
    cores: u32,
    tables: u32,
    table_names: *const *const c_char,
    /// Null for the peer's default.
    settings: *const c_char,
    table_settings: *const c_char,
    /// 0 for the peer's default.
    page_bytes: u32,
}

#[derive(Clone, Copy)]
#[repr(C)]
struct Bytes {
    at: *const u8,
    length: usize,
}

impl Bytes {
    fn of(bytes: &[u8]) -> Self {
        Self { at: bytes.as_ptr(), length: bytes.len() }
    }

    /// # Safety
    /// So many bytes can be read there for as long as `'a`; with none, it may be null.
    unsafe fn as_slice<'a>(self) -> &'a [u8] {
        if self.length == 0 {
            return &[];
        }
        // SAFETY: as the caller promises.
        unsafe { std::slice::from_raw_parts(self.at, self.length) }
    }
}

type Status = c_int;
type Found = unsafe extern "C" fn(context: *mut c_void, place: usize, value: Bytes);
type Visit = unsafe extern "C" fn(context: *mut c_void, key: Bytes, value: Bytes) -> c_int;
type ErrorText = *mut c_char;

/// `struct peer`.
#[repr(C)]
pub(super) struct Peer {
    version: unsafe extern "C" fn() -> *const c_char,
    open: unsafe extern "C" fn(*const PeerSetup, *mut *mut c_void, *mut c_char, usize, ErrorText) -> Status,
    settle: unsafe extern "C" fn(*mut c_void, ErrorText) -> Status,
    close: unsafe extern "C" fn(*mut c_void, ErrorText) -> Status,
    session_open: unsafe extern "C" fn(*mut c_void, *mut *mut c_void, ErrorText) -> Status,
    session_close: unsafe extern "C" fn(*mut c_void),
    get: unsafe extern "C" fn(*mut c_void, u32, Bytes, Found, *mut c_void, ErrorText) -> Status,
    get_many: Option<
        unsafe extern "C" fn(*mut c_void, u32, *const Bytes, usize, Found, *mut c_void, ErrorText) -> Status,
    >,
    put: unsafe extern "C" fn(*mut c_void, u32, Bytes, Bytes, ErrorText) -> Status,
    remove: unsafe extern "C" fn(*mut c_void, u32, Bytes, ErrorText) -> Status,
    scan: unsafe extern "C" fn(*mut c_void, u32, Bytes, c_int, Visit, *mut c_void, ErrorText) -> Status,
    begin: unsafe extern "C" fn(*mut c_void, c_int, ErrorText) -> Status,
    commit: unsafe extern "C" fn(*mut c_void, ErrorText) -> Status,
    rollback: unsafe extern "C" fn(*mut c_void),
    run: Option<RunTasks>,
    yield_now: Option<unsafe extern "C" fn()>,
}

macro_rules! peers {
    ($($feature:literal $function:ident $symbol:ident;)*) => {
        unsafe extern "C" {
            $(#[cfg(feature = $feature)] static $symbol: Peer;)*
        }
        $(
            #[cfg(feature = $feature)]
            pub(super) fn $function() -> &'static Peer {
                // SAFETY: a constant of this layout in `peers/`, compiled into this crate.
                unsafe { &$symbol }
            }
        )*
    };
}

peers! {
    "rocksdb" rocksdb rocksdb_peer;
    "rocksdb" rocksdb_universal rocksdb_universal_peer;
    "wiredtiger" wiredtiger wiredtiger_peer;
    "lmdb" lmdb lmdb_peer;
    "sqlite" sqlite sqlite_peer;
    "berkeleydb" berkeleydb berkeleydb_peer;
    "leanstore" leanstore leanstore_peer;
}

/// A buffer into which C writes a text.
struct Text<const BYTES: usize>([c_char; BYTES]);

impl<const BYTES: usize> Text<BYTES> {
    fn new() -> Self {
        Self([0; BYTES])
    }

    fn take(&self) -> String {
        // SAFETY: `c_char` has the size of a byte, and all are initialised.
        let bytes = unsafe { std::slice::from_raw_parts(self.0.as_ptr().cast::<u8>(), BYTES) };
        CStr::from_bytes_until_nul(bytes).unwrap_or_default().to_string_lossy().into_owned()
    }

    fn check(&self, status: Status) -> Result<(), Failure> {
        match status {
            OK | NOT_FOUND => Ok(()),
            CONFLICT => Err(Failure::Conflict),
            _ => Err(Failure::Broken(anyhow!(self.take()))),
        }
    }
}

/// Version of the linked library.
pub(super) fn version(peer: &Peer) -> String {
    // SAFETY: takes nothing, and returns a text that stays.
    unsafe { CStr::from_ptr((peer.version)()) }.to_string_lossy().into_owned()
}

/// Opens or makes the store.
pub(super) fn open(peer: &'static Peer, setup: &Setup) -> anyhow::Result<Box<dyn Engine>> {
    let dir = CString::new(setup.dir.as_os_str().as_bytes())?;
    let names = setup.tables.iter().map(|name| CString::new(*name)).collect::<Result<Vec<_>, _>>()?;
    let names: Vec<*const c_char> = names.iter().map(|name| name.as_ptr()).collect();
    let own =
        |settings: fn(&Settings) -> &str| setup.settings.as_ref().map(settings).map(CString::new).transpose();
    let (settings, table_settings) = (own(|settings| &settings.store)?, own(|settings| &settings.table)?);
    let pointer = |text: &Option<CString>| text.as_ref().map_or(null(), |text| text.as_ptr());
    let peer_setup = PeerSetup {
        dir: dir.as_ptr(),
        cache_bytes: setup.cache_bytes,
        durability: match setup.durability {
            Durability::Full => 0,
            Durability::Buffered => 1,
            Durability::None => 2,
        },
        clients_max: u32::try_from(setup.clients_max)?,
        cores: u32::try_from(setup.cores)?,
        tables: u32::try_from(names.len())?,
        table_names: names.as_ptr(),
        settings: pointer(&settings),
        table_settings: pointer(&table_settings),
        page_bytes: setup.page_bytes.unwrap_or(0),
    };
    let (mut store, mut chosen, mut error) =
        (null_mut(), Text::<SETTINGS_BYTES>::new(), Text::<ERROR_BYTES>::new());
    // SAFETY: all pointers are valid during the call, the buffers as large as they are said to be.
    let status = unsafe {
        (peer.open)(
            &raw const peer_setup,
            &raw mut store,
            chosen.0.as_mut_ptr(),
            SETTINGS_BYTES,
            error.0.as_mut_ptr(),
        )
    };
    error.check(status)?;
    let lines = std::iter::once(format!("version: {}", version(peer)))
        .chain(chosen.take().lines().map(str::to_owned))
        .collect();
    Ok(Box::new(Store {
        peer,
        store: Pointer(store),
        lines,
        clients_max: setup.clients_max,
        tables: names.len(),
    }))
}

/// A store of a peer.
#[derive(Clone, Copy)]
struct Pointer(*mut c_void);

// SAFETY: `peer.h` asks every peer that a store may be used by several threads at a time.
unsafe impl Send for Pointer {}
// SAFETY: the same.
unsafe impl Sync for Pointer {}

struct Store {
    peer: &'static Peer,
    /// Null after it was closed.
    store: Pointer,
    /// "name: value".
    lines: Vec<String>,
    clients_max: usize,
    tables: usize,
}

impl Store {
    fn session(&self) -> anyhow::Result<Client> {
        let (mut session, mut error) = (null_mut(), Text::<ERROR_BYTES>::new());
        // SAFETY: the store is open; the pointers are valid during the call.
        let status =
            unsafe { (self.peer.session_open)(self.store.0, &raw mut session, error.0.as_mut_ptr()) };
        error.check(status)?;
        Ok(Client {
            peer: self.peer,
            session,
            tables: self.tables,
            transaction: false,
            keys: Vec::new(),
            error,
        })
    }

    fn end(&mut self) -> anyhow::Result<()> {
        let store = std::mem::replace(&mut self.store.0, null_mut());
        if store.is_null() {
            return Ok(());
        }
        let mut error = Text::<ERROR_BYTES>::new();
        // SAFETY: the store is open; sessions live within `run`, so that all are closed.
        let status = unsafe { (self.peer.close)(store, error.0.as_mut_ptr()) };
        Ok(error.check(status)?)
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        if let Err(error) = self.end() {
            eprintln!("{error:#}");
        }
    }
}

impl Engine for Store {
    fn run(&self, clients: usize, job: Job) -> anyhow::Result<()> {
        let work = |client| job(client, &mut self.session()?);
        let Some(run) = self.peer.run else { return run_threads(clients, self.clients_max, work) };
        check_clients(clients, self.clients_max)?;
        // SAFETY: the store is open, and `run` is its own.
        unsafe { run_tasks(run, self.store.0, clients, &work) }
    }

    fn settle(&self) -> anyhow::Result<()> {
        let mut error = Text::<ERROR_BYTES>::new();
        // SAFETY: the store is open.
        let status = unsafe { (self.peer.settle)(self.store.0, error.0.as_mut_ptr()) };
        Ok(error.check(status)?)
    }

    fn settings(&self) -> Vec<(String, String)> {
        let pair = |line: &String| {
            let (name, value) = line.split_once(": ")?;
            Some((name.to_owned(), value.to_owned()))
        };
        self.lines.iter().filter_map(pair).collect()
    }

    fn close(mut self: Box<Self>) -> anyhow::Result<()> {
        self.end()
    }
}

struct Client {
    peer: &'static Peer,
    session: *mut c_void,
    tables: usize,
    transaction: bool,
    /// Keys of a look-up of several.
    keys: Vec<Bytes>,
    error: Text<ERROR_BYTES>,
}

impl Drop for Client {
    fn drop(&mut self) {
        // SAFETY: the session was opened, and has no other owner.
        unsafe { (self.peer.session_close)(self.session) }
    }
}

/// The closure of a callback, and its panic, which must not unwind through C.
struct Calling<'a, F: ?Sized> {
    visit: &'a mut F,
    panic: Option<Box<dyn Any + Send>>,
}

impl<'a, F: ?Sized> Calling<'a, F> {
    fn new(visit: &'a mut F) -> Self {
        Self { visit, panic: None }
    }

    fn call<R>(&mut self, after_panic: R, call: impl FnOnce(&mut F) -> R) -> R {
        catch_unwind(AssertUnwindSafe(|| call(self.visit))).unwrap_or_else(|panic| {
            self.panic = Some(panic);
            after_panic
        })
    }

    fn end(self) {
        if let Some(panic) = self.panic {
            resume_unwind(panic);
        }
    }
}

type FoundMany<'v> = dyn FnMut(usize, &[u8]) + 'v;
type VisitRecord<'v> = dyn FnMut(&[u8], &[u8]) -> bool + 'v;

/// # Safety
/// `context` is a `Calling<FoundMany>` that no other code uses, and the value can be read.
unsafe extern "C" fn found(context: *mut c_void, place: usize, value: Bytes) {
    // SAFETY: as the caller promises.
    let (calling, value) = unsafe { (&mut *context.cast::<Calling<'_, FoundMany<'_>>>(), value.as_slice()) };
    calling.call((), |visit| visit(place, value));
}

/// # Safety
/// `context` is a `Calling<VisitRecord>` that no other code uses; key and value can be read.
unsafe extern "C" fn visited(context: *mut c_void, key: Bytes, value: Bytes) -> c_int {
    // SAFETY: as the caller promises.
    let (calling, key, value) =
        unsafe { (&mut *context.cast::<Calling<'_, VisitRecord<'_>>>(), key.as_slice(), value.as_slice()) };
    calling.call(0, |visit| visit(key, value).into())
}

impl Client {
    fn table(&self, table: Table) -> Result<u32, Failure> {
        let known = u32::try_from(table).ok().filter(|_| table < self.tables);
        Ok(known.with_context(|| format!("there are {} tables, no number {table}", self.tables))?)
    }

    /// A conflict ends the transaction.
    fn check(&mut self, status: Status) -> Result<(), Failure> {
        self.transaction &= status != CONFLICT;
        self.error.check(status)
    }

    fn begin_transaction(&mut self, reading: c_int) -> Result<(), Failure> {
        if self.transaction {
            return Err(anyhow!("a transaction is under way already").into());
        }
        // SAFETY: the session is open, and ours; no transaction is under way.
        let status = unsafe { (self.peer.begin)(self.session, reading, self.error.0.as_mut_ptr()) };
        self.check(status)?;
        self.transaction = true;
        Ok(())
    }
}

impl Session for Client {
    fn get(&mut self, table: Table, key: &[u8], value: &mut Vec<u8>) -> Result<bool, Failure> {
        let table = self.table(table)?;
        value.clear();
        let mut take = |_: usize, found: &[u8]| value.extend_from_slice(found);
        let mut calling = Calling::<FoundMany<'_>>::new(&mut take);
        let context = (&raw mut calling).cast();
        // SAFETY: the session is open, and ours; `found` gets the context that it asks for, which outlives
        // the call.
        let status = unsafe {
            (self.peer.get)(self.session, table, Bytes::of(key), found, context, self.error.0.as_mut_ptr())
        };
        calling.end();
        self.check(status)?;
        Ok(status == OK)
    }

    fn get_many(
        &mut self,
        table: Table,
        keys: &[&[u8]],
        visit: &mut dyn FnMut(usize, &[u8]),
    ) -> Result<(), Failure> {
        let number = self.table(table)?;
        let Some(get_many) = self.peer.get_many else {
            let mut value = Vec::new();
            for (place, key) in keys.iter().enumerate() {
                if self.get(table, key, &mut value)? {
                    visit(place, &value);
                }
            }
            return Ok(());
        };
        self.keys.clear();
        self.keys.extend(keys.iter().map(|key| Bytes::of(key)));
        let mut calling = Calling::<FoundMany<'_>>::new(visit);
        let context = (&raw mut calling).cast();
        let at = if self.keys.is_empty() { null() } else { self.keys.as_ptr() };
        // SAFETY: as in `get`; `at` points to as many keys as `self.keys` has.
        let status = unsafe {
            get_many(self.session, number, at, self.keys.len(), found, context, self.error.0.as_mut_ptr())
        };
        calling.end();
        self.check(status)
    }

    fn put(&mut self, table: Table, key: &[u8], value: &[u8]) -> Result<(), Failure> {
        let table = self.table(table)?;
        // SAFETY: the session is open, and ours; key and value can be read during the call.
        let status = unsafe {
            (self.peer.put)(self.session, table, Bytes::of(key), Bytes::of(value), self.error.0.as_mut_ptr())
        };
        self.check(status)
    }

    fn remove(&mut self, table: Table, key: &[u8]) -> Result<(), Failure> {
        let table = self.table(table)?;
        // SAFETY: the session is open, and ours; the key can be read during the call.
        let status =
            unsafe { (self.peer.remove)(self.session, table, Bytes::of(key), self.error.0.as_mut_ptr()) };
        self.check(status)
    }

    fn scan(
        &mut self,
        table: Table,
        from: &[u8],
        direction: Direction,
        visit: &mut dyn FnMut(&[u8], &[u8]) -> bool,
    ) -> Result<(), Failure> {
        let table = self.table(table)?;
        let backward = c_int::from(direction == Direction::Backward);
        let mut calling = Calling::<VisitRecord<'_>>::new(visit);
        let context = (&raw mut calling).cast();
        // SAFETY: the session is open, and ours; `visited` gets the context that it asks for, which outlives
        // the call.
        let status = unsafe {
            (self.peer.scan)(
                self.session,
                table,
                Bytes::of(from),
                backward,
                visited,
                context,
                self.error.0.as_mut_ptr(),
            )
        };
        calling.end();
        self.check(status)
    }

    fn begin(&mut self) -> Result<(), Failure> {
        self.begin_transaction(0)
    }

    fn begin_reading(&mut self) -> Result<(), Failure> {
        self.begin_transaction(1)
    }

    fn commit(&mut self) -> Result<(), Failure> {
        if !std::mem::take(&mut self.transaction) {
            return Err(anyhow!("no transaction is under way").into());
        }
        // SAFETY: the session is open, and ours; a transaction is under way.
        let status = unsafe { (self.peer.commit)(self.session, self.error.0.as_mut_ptr()) };
        self.check(status)
    }

    fn rollback(&mut self) {
        if std::mem::take(&mut self.transaction) {
            // SAFETY: the session is open, and ours; a transaction is under way.
            unsafe { (self.peer.rollback)(self.session) }
        }
    }

    fn wait_until(&mut self, until: Duration) -> Result<(), Failure> {
        let Some(yield_now) = self.peer.yield_now else {
            sleep_until(until);
            return Ok(());
        };
        while Duration::from(self.now()) < until {
            // SAFETY: sessions of such a store are used within its tasks.
            unsafe { yield_now() }
        }
        Ok(())
    }
}
