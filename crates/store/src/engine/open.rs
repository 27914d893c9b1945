//! Creating and opening.

use std::sync::Arc;

use flashgrain_device::Nanos;

use super::replay::{Replay, foresee};
use super::upkeep::connect;
use super::{Engine, OverflowValues};
use crate::Error;
use crate::btree::NodeDivision;
use crate::buffered::{Room, Semaphore, TreeResources};
use crate::catalog::{CATALOG_CLASS, Trees};
use crate::checkpoint::{Base, CheckpointState, Checkpointer, Parts, Shape, Superblock, label, load, slots};
use crate::epoch::Epoch;
use crate::factory::Factory;
use crate::header::PageId;
use crate::io_context::{Devices, Role, now};
use crate::layout::{Layout, Placement};
use crate::log::{Log, LogCheckpoint, LogRecord, Lsn, Timestamp};
use crate::options::Options;
use crate::poison::Poison;
use crate::pool::Pool;
use crate::segment::{Segments, UnitSequence};
use crate::store_id::StoreId;
use crate::task::Executor;
use crate::txn::Transactions;

/// Old versions take up to this part of the cache's size, in addition to it, before they get pages.
const OLD_VERSIONS_DIVISOR: u64 = 32;

/// Input for creating or opening a store.
#[derive(Clone)]
pub(crate) struct Given {
    pub devices: Devices,
    pub executor: Executor,
    pub options: Options,
    /// The data device grows when it is full, and has this number of segments at first.
    pub growth_segments: Option<u64>,
    /// A new store cannot be opened again before it was closed.
    pub unfinished: bool,
    /// The store is only read: no background work begins by itself.
    pub read_only: bool,
}

/// Statistics of opening a store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Recovery {
    /// Whether it had been closed, so that nothing had to be replayed.
    pub closed: bool,
    /// From the superblock to the page table.
    pub map: Nanos,
    /// Replaying the log.
    pub replay: Nanos,
    /// Commits that were replayed.
    pub records: u64,
    /// Bytes of the log that were read.
    pub log_bytes: u64,
    /// Whether the log ended with a group that was never acknowledged.
    pub torn: bool,
    /// Copies of the superblock that were damaged.
    pub damaged_superblocks: u64,
}

/// Segments and pool, with the poison that stops them.
struct Storage {
    poison: Poison,
    segments: Arc<Segments>,
    pool: Arc<Pool>,
    factory: Arc<Factory>,
}

impl Given {
    fn storage(&self, layout: &Layout) -> Result<Storage, Error> {
        let poison = Poison::default();
        let told = poison.clone();
        self.executor.when_panicked(
            &(Arc::new(move |text: &str| {
                told.note(format!("a panic in the background: {text}"));
            }) as _),
        );
        let (devices, executor) = (self.devices.clone(), self.executor.clone());
        let segments = Segments::new(layout, devices, executor, poison.clone(), &NodeDivision)?;
        if let Some(first_segments) = self.growth_segments {
            let limit_bytes = self.options.size_bytes_max.unwrap_or(u64::MAX);
            segments.growth.set(limit_bytes, first_segments);
        }
        if layout.log != layout.log_at_creation {
            segments.log_room.adopt(layout.log)?;
        }
        let pool = Pool::new(self.options.cache_bytes, segments.clone(), self.executor.clone())?;
        segments.reclaim.begin_epoch(pool.epoch());
        let limit_bytes = self.options.size_bytes_max.or(self.options.room_bytes).unwrap_or(u64::MAX);
        let room = Room {
            cache_bytes: pool.pages.budget_bytes(),
            log_bytes: layout.log_bytes_max,
            segment_bytes: segments.owned.segment_bytes(),
            unit_bytes: segments.gatherer.unit_bytes(),
            device_bytes: self.growth_segments.map_or_else(|| segments.usage().bytes, |_| limit_bytes),
            device_name: match (self.growth_segments, self.options.size_bytes_max) {
                (Some(_), Some(_)) => "the store's limit",
                (Some(_), None) => "a file system",
                (None, _) if self.read_only => "the store, which is only read,",
                (None, _) => "a device",
            },
            in_flight: layout.in_flight,
            half_bandwidth_bytes: layout.half_bandwidth_bytes,
        };
        if !self.options.writes_log {
            segments.owned.await_flushes();
        }
        let factory = Factory::new(
            &pool,
            TreeResources::new(&pool, &segments, &self.executor, room),
            &poison,
            (self.options.cache_bytes / OLD_VERSIONS_DIVISOR, self.options.operators.clone()),
        );
        Ok(Storage { poison, segments, pool, factory })
    }

    fn transactions(&self, log: &Log, poison: &Poison, factory: &Arc<Factory>) -> Arc<Transactions> {
        factory.opened(log.last());
        if !self.options.writes_log {
            log.leave_unwritten();
        }
        let (log, poison, executor) = (log.clone(), poison.clone(), self.executor.clone());
        Arc::new(Transactions::new(log, poison, executor, factory.all(), self.options.log_compression))
    }

    fn log_shape(&self) -> Option<Shape> {
        self.devices.has_own_log().then(|| label::shape(&self.devices, Role::Log))
    }

    /// Whether the devices take requests as small as the store's smallest. Images are read with the bytes
    /// around them.
    fn check_alignment(&self, layout: &Layout) -> Result<(), Error> {
        let wanted = [(Role::Data, layout.unit_bytes.min(4096)), (Role::Log, layout.log_block_bytes)];
        for (role, bytes) in wanted {
            let device = self.devices.device(role);
            let align = device.geometry().offset_align_bytes.max(1);
            if !bytes.is_multiple_of(align) {
                let why = format!(
                    "this drive takes requests in multiples of {align} bytes only, and the store has blocks of {bytes} bytes: open it on the \
                     drive that it was made on, and copy it here with `flashgrain db backup` (Db::backup)"
                );
                return Err(Error::Member { path: device.identity().target.clone().into(), why });
            }
        }
        Ok(())
    }

    /// Whether the devices are those of the store.
    fn check(&self, superblock: &Superblock) -> Result<(), Error> {
        let data = self.devices.device(Role::Data);
        let member = |role: Role, why: String| {
            Err(Error::Member { path: self.devices.device(role).identity().target.clone().into(), why })
        };
        let (expected, got) = (superblock.data_shape, label::shape(&self.devices, Role::Data));
        if expected != got {
            return member(
                Role::Data,
                format!(
                    "the store is striped over {} devices in units of {} bytes; {} were given, in units of {}",
                    expected.members, expected.stripe_unit_bytes, got.members, got.stripe_unit_bytes
                ),
            );
        }
        match (superblock.log_shape, self.log_shape()) {
            (Some(_), None) => {
                return member(Role::Data, "the store's log is on a device of its own: name it".into());
            }
            (None, Some(_)) => {
                return member(
                    Role::Log,
                    "the store's log is not on a device of its own: do not name one".into(),
                );
            }
            (Some(expected), Some(got)) if expected != got => {
                return member(
                    Role::Log,
                    format!(
                        "the store's log is striped over {} devices; {} were given",
                        expected.members, got.members
                    ),
                );
            }
            _ => {}
        }
        self.check_alignment(&superblock.layout)?;
        let capacity_bytes = data.capacity_bytes();
        if capacity_bytes < superblock.data_bytes {
            return member(
                Role::Data,
                format!(
                    "it was truncated: it has {capacity_bytes} bytes, the store uses {}; restore it from a copy",
                    superblock.data_bytes
                ),
            );
        }
        label::check(&self.devices, superblock.store)
    }
}

/// The store as the log knows it.
fn log_store(store: StoreId) -> u64 {
    let StoreId([a, b, c, d, e, f, g, h, ..]) = store;
    u64::from_le_bytes([a, b, c, d, e, f, g, h])
}

impl Engine {
    /// A new store, whatever was there before.
    ///
    /// # Errors
    /// [`Error::Options`], [`Error::Io`], [`Error::Device`].
    pub fn create(given: Given, layout: Layout, store: StoreId) -> Result<Arc<Self>, Error> {
        let devices = &given.devices;
        slots::erase(devices)?;
        label::save(devices, store)?;
        let Storage { poison, segments, pool, factory } = given.storage(&layout)?;
        let log =
            Log::create(&layout, devices.clone(), given.executor.clone(), poison.clone(), log_store(store))?;
        let trees = Arc::new(Trees::create(&factory)?);
        let superblock = Superblock {
            store,
            generation: 0,
            closed: false,
            unfinished: given.unfinished,
            layout: layout.clone(),
            data_bytes: devices.device(Role::Data).capacity_bytes(),
            data_shape: label::shape(devices, Role::Data),
            log_shape: given.log_shape(),
            catalog: trees.root(),
            catalog_class: CATALOG_CLASS,
            state: CheckpointState {
                epoch: Epoch(0),
                replay_start: Lsn(0),
                log_durable: Lsn(0),
                newest: Timestamp(0),
                next_page: PageId(1),
                next_sequence: UnitSequence(1),
                map: None,
            },
        };
        let base =
            Base { superblock, priors: Vec::new(), next_serial: 1, chain_bytes: 0, openings: Vec::new() };
        let transactions = given.transactions(&log, &poison, &factory);
        let recovery_log_bytes = given.options.recovery_log_bytes;
        let parts = Parts {
            devices: given.devices.clone(),
            poison,
            segments,
            pool,
            log,
            transactions,
            recovery_log_bytes,
        };
        let recovery = Recovery { closed: true, ..Recovery::default() };
        let engine = Self::assemble(given, parts, trees, base, recovery);
        engine.checkpoint()?;
        // The target of a backup is completed when the copy is.
        if !engine.superblock().unfinished {
            slots::complete(&engine.parts.devices)?;
        }
        Ok(engine)
    }

    /// The store that is on the devices.
    ///
    /// # Errors
    /// [`Error::NotAStore`], [`Error::FormatVersion`], [`Error::Member`], [`Error::Corrupt`],
    /// [`Error::Options`], [`Error::Io`], [`Error::Device`].
    pub fn open(given: Given) -> Result<Arc<Self>, Error> {
        let devices = &given.devices;
        let began = now(devices);
        let superblock = slots::load(devices)?;
        // Before any is written anew.
        let damaged_superblocks = slots::damaged_copies(devices)?;
        if superblock.unfinished {
            let path = devices.device(Role::Data).identity().target.clone().into();
            let why = "a backup that was not completed; remove it, and back up again".into();
            return Err(Error::NotAStore { path, why });
        }
        given.check(&superblock)?;
        // Its making may have been interrupted just before that.
        slots::complete(devices)?;
        let layout = superblock.layout.clone();
        if layout.placement == Placement::InPlace && !superblock.closed {
            return Err(Error::Corrupt {
                what: "the store, which keeps its pages in place and was not closed,".into(),
                offset_bytes: 0,
                expected: "a store that was closed".into(),
                got: "pages of different times; create it again, or place pages out of place".into(),
            });
        }
        let checkpoint = LogCheckpoint {
            store: log_store(superblock.store),
            tail: superblock.state.replay_start,
            durable: superblock.state.log_durable,
            timestamp: superblock.state.newest,
            closed: superblock.closed,
        };
        let Storage { poison, segments, pool, factory } = given.storage(&layout)?;
        pool.opening().expect(superblock.state.next_page)?;
        let mut base = load(superblock, &segments, &pool, &given.executor)?;
        let trees = Arc::new(Trees::open(&factory, base.superblock.catalog, base.superblock.catalog_class)?);
        let loaded = now(devices);
        let overflow_values =
            Arc::new(OverflowValues::new(devices, &segments, &pool, &poison, &given.executor));
        let (mut next_page, mut epoch) = (base.superblock.state.next_page, base.superblock.state.epoch);
        let page_limit = base.superblock.page_limit(devices.device(Role::Data).capacity_bytes());
        Log::scan(&layout, devices, checkpoint, &mut |_, _, record| {
            let (page, made_in) = foresee(record, &segments, page_limit)?;
            next_page = next_page.max(PageId(page.0 + 1));
            epoch = epoch.max(made_in);
            Ok(())
        })?;
        base.superblock = base.superblock.opened(segments.sequences().0);
        slots::save(devices, &base.superblock)?;
        // Page numbers and epochs given out from now on are above all that the log mentions.
        pool.opening().expect(next_page)?;
        pool.opening().restored(epoch, next_page);
        segments.reclaim.begin_epoch(pool.epoch());
        let cut = base.superblock.state.epoch;
        let works = (given.executor.clone(), pool.budget_of_pages_bytes());
        let mut replay = Replay::new(Arc::clone(&trees), Arc::clone(&overflow_values), cut, works);
        // Nothing is cleaned and no checkpoint made before everything is replayed. The store has room for it,
        // as it had when it was committed.
        segments.reclaim.set_checkpointing(true);
        let log = Log::open(
            &layout,
            devices.clone(),
            given.executor.clone(),
            poison.clone(),
            checkpoint,
            &mut |start, timestamp, record| replay.record(LogRecord { start, timestamp }, record),
        )?;
        replay.finish()?;
        segments.reclaim.set_checkpointing(false);
        pool.opening().reuse_gaps();
        segments.opening.let_go();
        let recovered = log.recovered();
        let recovery = Recovery {
            closed: checkpoint.closed,
            map: loaded.since(began),
            replay: now(devices).since(loaded),
            records: recovered.records,
            log_bytes: recovered.bytes,
            torn: recovered.torn,
            damaged_superblocks,
        };
        let transactions = given.transactions(&log, &poison, &factory);
        let recovery_log_bytes = given.options.recovery_log_bytes;
        let parts = Parts {
            devices: given.devices.clone(),
            poison,
            segments,
            pool,
            log,
            transactions,
            recovery_log_bytes,
        };
        let read_only = given.read_only;
        let engine = Self::assemble(given, parts, trees, base, recovery);
        if read_only {
            return Ok(engine);
        }
        if recovery.records > 0 {
            engine.checkpointer.want();
        }
        engine.sweep_soon();
        Ok(engine)
    }

    fn assemble(given: Given, parts: Parts, trees: Arc<Trees>, base: Base, recovery: Recovery) -> Arc<Self> {
        let checkpointer = Checkpointer::new(parts.clone(), base, given.executor.clone());
        let pages = connect(&parts, &checkpointer, &given.executor, &given.options);
        let Parts { devices, segments, pool, poison, transactions, .. } = &parts;
        let overflow_values = Arc::new(OverflowValues::new(devices, segments, pool, poison, &given.executor));
        overflow_values.attend(transactions);
        // Merges leave overflow values out from now on: they can be freed.
        trees.set_horizon(&(Arc::<Transactions>::clone(transactions) as _));
        let (sweeping, is_closing) = (Arc::default(), Arc::default());
        Arc::new(Self {
            parts,
            executor: given.executor,
            trees,
            checkpointer,
            recovery,
            overflow_values,
            overflow_writes: Semaphore::default(),
            sweeping,
            is_closing,
            _pages: pages,
        })
    }
}
