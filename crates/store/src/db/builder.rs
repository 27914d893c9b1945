//! Opening and creating stores.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use flashgrain_device::{BackendKind, Device, MemoryDevice};
use flashgrain_settings::drive;

use super::Db;
use super::core::Core;
use super::prepared::{Prepared, Wanted};
use super::site::{DeviceSource, Site};
use crate::compression::LsmCompression;
use crate::index::MergeOperator;
use crate::layout::{Overrides, Placement, SyncMethod};
use crate::options::Options;
use crate::{Durability, Error};

/// The most that a store in memory may grow to: address space, not memory.
const MEMORY_LIMIT_BYTES: u64 = 64 << 30;
const MEMORY_START_BYTES: u64 = 64 << 20;

/// The place of a store, and its options. Every option has a default: name a place, and perhaps the size of
/// the cache.
///
/// ```
/// # fn main() -> Result<(), flashgrain::Error> {
/// # let (one, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
/// # let log = tempfile::tempdir().unwrap();
/// use flashgrain::{Db, Durability};
///
/// let db = Db::builder()
///     .path(one.path()) // with a second path, the store is striped over both
///     .path(other.path())
///     .log_path(log.path())
///     .cache_bytes(32 << 20)
///     .workers(2)
///     .durability(Durability::Buffered)
///     .create()?;
/// db.close()?;
/// # Ok(())
/// # }
/// ```
#[must_use = "a builder does nothing until it opens or creates"]
#[derive(Default)]
pub struct Builder {
    site: Site,
    pub(crate) options: Options,
    pub(crate) overrides: Overrides,
    profile: Option<Vec<drive::Decision>>,
}

impl Builder {
    pub(super) fn new() -> Self {
        Self::default()
    }

    pub(super) fn in_memory() -> Result<Self, Error> {
        let device: Arc<dyn Device> = Arc::new(MemoryDevice::new(MEMORY_START_BYTES, MEMORY_LIMIT_BYTES)?);
        Ok(Self::new().device(device).growable(true))
    }

    /// The directory, or the raw block device, that the store is in. Given several times, the store is
    /// striped over all of them, in that order.
    pub fn path(mut self, path: impl AsRef<Path>) -> Self {
        self.site.data.add_path(path.as_ref());
        self
    }

    /// The directory or block device for the log, if it has one of its own. Several are striped.
    pub fn log_path(mut self, path: impl AsRef<Path>) -> Self {
        self.site.log.get_or_insert_with(DeviceSource::default).add_path(path.as_ref());
        self
    }

    /// An opened device that the store is on: a simulated drive, memory, or one of your own.
    pub fn device(mut self, device: Arc<dyn Device>) -> Self {
        self.site.data = DeviceSource::Device(device);
        self
    }

    /// An opened device for the log.
    pub fn log_device(mut self, device: Arc<dyn Device>) -> Self {
        self.site.log = Some(DeviceSource::Device(device));
        self
    }

    /// How requests to the store's places reach the drive; unless given, the best way that works for each
    /// here. NVMe namespaces past the block layer (`/dev/ngXnY`) have [`BackendKind::NvmePassthrough`] and
    /// nothing else, which no other place has, and opened devices have ways of their own: a backend that a
    /// place cannot have is an [`Error::Options`] when the store is opened. [`BackendKind::IoUringSqpoll`]
    /// has a thread of the kernel that keeps a processor busy.
    pub fn backend(mut self, backend: BackendKind) -> Self {
        self.site.backend = Some(backend);
        self
    }

    /// Whether an opened device may be grown when the store needs more room. Directories always may.
    pub fn growable(mut self, growable: bool) -> Self {
        self.site.growable = growable;
        self
    }

    /// Allows [`Builder::create`] to overwrite this block device, whatever is on it.
    pub fn destroy_contents_of(mut self, path: impl Into<PathBuf>) -> Self {
        self.site.consent.push(path.into());
        self
    }

    /// Polls the drive for completions instead of sleeping until it interrupts, where it has poll queues (the
    /// parameter `nvme.poll_queues` of the kernel's driver): lower latencies for a processor that is always
    /// busy while requests are under way. A drive without them interrupts, which [`Db::shortages`] says. With
    /// a backend that cannot poll, or on an opened device alone, it is an [`Error::Options`].
    pub fn poll_completions(mut self, polled: bool) -> Self {
        self.site.polled = polled;
        self
    }

    /// Registers a [merge operator](crate::MergeOperator), which trees name in their options. One of the same
    /// name that was registered before is replaced.
    pub fn merge_operator(mut self, operator: impl MergeOperator) -> Self {
        self.options.operators.add(Arc::new(operator));
        self
    }

    /// Memory for pages: a hard budget. 256 MiB unless given. Versions that were replaced and that a snapshot
    /// may still see take up to a 32nd of that besides, before they get pages, too.
    pub fn cache_bytes(mut self, bytes: u64) -> Self {
        self.options.cache_bytes = bytes;
        self
    }

    /// Worker threads; one per core unless given.
    pub fn workers(mut self, workers: usize) -> Self {
        self.options.workers = workers;
        self
    }

    /// Whether each worker stays on a core of its own, from the first core on.
    pub fn pinned(mut self, pinned: bool) -> Self {
        self.options.pinned = pinned;
        self
    }

    /// Tasks that a worker has under way at a time; further ones queue. 512 unless given.
    pub fn tasks_per_worker(mut self, tasks: usize) -> Self {
        self.options.tasks_per_worker = tasks;
        self
    }

    /// Durability of commits that do not name one; [`Durability::Sync`] unless given.
    pub fn durability(mut self, durability: Durability) -> Self {
        self.options.durability = durability;
        self
    }

    /// How commits in the log are compressed; not at all unless given. A commit is so only where it becomes
    /// shorter by an eighth. Each opening may say another codec: a log may have commits of all kinds.
    pub fn log_compression(mut self, compression: LsmCompression) -> Self {
        self.options.log_compression = compression;
        self
    }

    /// Whether commits are written to the log, as they are unless given. Without that they are in memory
    /// alone until a checkpoint: a crash leaves the state after some commit in all trees, at least that of
    /// the last checkpoint. Commits with [`Durability::Sync`] or [`Durability::Buffered`], [`Db::sync`] and
    /// changes of the catalog wait for a checkpoint, which all waiters share. [`Durability::None`] waits for
    /// nothing.
    ///
    /// A checkpoint is made between two commits: others wait while it writes the active memtables. It begins
    /// when half of [`Builder::recovery_log_bytes`] were committed, and for the reasons that a store with a
    /// log has. None is made if a tree cannot write the versions that it has in memory: waiters get
    /// [`Error::Full`] if the device has no room for them, and any other failure poisons the store. Each
    /// opening may choose anew.
    ///
    /// Source: Jia, Chen, "From Flash to 3D XPoint", ISPASS 2020, Figure 17: RocksDB without its log.
    ///
    /// ```
    /// # fn main() -> Result<(), flashgrain::Error> {
    /// use flashgrain::{Db, Durability};
    ///
    /// let folder = tempfile::tempdir().unwrap();
    /// let store = || Db::builder().path(folder.path()).write_log(false).durability(Durability::None);
    /// let db = store().create()?;
    /// let fruit = db.tree("fruit")?;
    /// fruit.insert("apple", "red")?; // not durable yet
    /// db.sync()?; // durable, by a checkpoint
    /// # Ok(())
    /// # }
    /// ```
    pub fn write_log(mut self, written: bool) -> Self {
        self.options.writes_log = written;
        self
    }

    /// The most log that is replayed after a crash: recovery takes about a second per few hundred thousand
    /// records. Less means more checkpoints, which write more. 128 MiB unless given.
    pub fn recovery_log_bytes(mut self, bytes: u64) -> Self {
        self.options.recovery_log_bytes = bytes;
        self
    }

    /// Dirty bytes that bring a checkpoint about however short the log is; three quarters of the cache unless
    /// given.
    pub fn checkpoint_dirty_bytes(mut self, bytes: u64) -> Self {
        self.options.dirty_bytes_max = Some(bytes);
        self
    }

    /// The most that the store grows to in its directory, for as long as it is open: when that is full,
    /// writes fail with [`Error::Full`]. A new store is made as large at once. By default it grows as long as
    /// the disk has room.
    pub fn size_bytes_max(mut self, bytes: u64) -> Self {
        self.options.size_bytes_max = Some(bytes);
        self
    }

    /// The profile of the drive. The layout of a new store follows from it. With the feature `profile` of
    /// this crate.
    #[cfg(feature = "profile")]
    pub fn profile(mut self, profile: flashgrain_profile::DeviceProfile) -> Self {
        self.profile = Some(profile.decisions);
        self
    }

    /// How pages of a new store are placed.
    pub fn placement(mut self, placement: Placement) -> Self {
        self.overrides.placement = Some(placement);
        self
    }

    /// The write unit of a new store, whatever the profile says: a power of two from 64 KiB to 4 MiB.
    pub fn write_unit_bytes(mut self, bytes: u32) -> Self {
        self.overrides.unit_bytes = Some(bytes);
        self
    }

    /// The segments of a new store: a multiple of the write unit.
    pub fn segment_bytes(mut self, bytes: u64) -> Self {
        self.overrides.segment_bytes = Some(bytes);
        self
    }

    /// The flash page of a new store, whose borders page images do not cross. Without one, given or found by
    /// the profile, images lie back to back: less is written, and about one read in six takes two flash
    /// pages.
    pub fn flash_page_bytes(mut self, bytes: u32) -> Self {
        self.overrides.pack_bytes = Some(bytes);
        self
    }

    /// The log's ring of a new store.
    pub fn log_bytes(mut self, bytes: u64) -> Self {
        self.overrides.log_bytes = Some(bytes);
        self
    }

    /// The log's blocks of a new store.
    pub fn log_block_bytes(mut self, bytes: u32) -> Self {
        self.overrides.log_block_bytes = Some(bytes);
        self
    }

    /// The node size of trees whose creator names none, in a new store.
    pub fn node_bytes(mut self, bytes: u32) -> Self {
        self.overrides.node_bytes = Some(bytes);
        self
    }

    pub(super) fn node_bytes_if_none(mut self, bytes: u32) -> Self {
        self.overrides.node_bytes.get_or_insert(bytes);
        self
    }

    /// How the log of a new store is made durable.
    pub fn sync_method(mut self, method: SyncMethod) -> Self {
        self.overrides.sync_method = Some(method);
        self
    }

    /// Opens an existing store.
    ///
    /// # Errors
    /// [`Error::NotAStore`], [`Error::FormatVersion`], [`Error::Locked`], [`Error::Member`],
    /// [`Error::Corrupt`], [`Error::Options`], [`Error::Device`].
    pub fn open(self) -> Result<Db, Error> {
        Ok(Db { core: Core::start(&self.site, &Wanted::Open, &self.options)? })
    }

    /// Opens an existing store for reading, and changes nothing on its devices. This works on a file system
    /// that is mounted read-only, and several processes may do so at a time. After a crash the log is
    /// replayed in memory. Calls that would change the store fail with [`Error::ReadOnly`].
    ///
    /// # Errors
    /// As [`Builder::open`]; [`Error::Locked`] if it is open for writing.
    ///
    /// ```
    /// # fn main() -> Result<(), flashgrain::Error> {
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let path = folder.path().join("store");
    /// # use flashgrain::{Db, ErrorKind};
    /// Db::create(&path)?.tree("fruit")?.insert("apple", "red")?;
    /// let one = Db::builder().path(&path).open_read_only()?;
    /// let other = Db::builder().path(&path).open_read_only()?;
    /// assert_eq!(one.existing_tree("fruit")?.get("apple")?, other.existing_tree("fruit")?.get("apple")?);
    /// assert_eq!(one.tree("fruit")?.remove("apple").unwrap_err().kind(), ErrorKind::ReadOnly);
    /// # Ok(())
    /// # }
    /// ```
    pub fn open_read_only(self) -> Result<Db, Error> {
        Ok(Db { core: Core::start(&self.site, &Wanted::OpenToRead, &self.options)? })
    }

    /// Makes a new store.
    ///
    /// # Errors
    /// [`Error::Exists`] if something is there that would be lost; [`Error::Options`]; [`Error::Device`].
    pub fn create(self) -> Result<Db, Error> {
        let wanted = Wanted::Create { profile: self.profile.as_deref(), overrides: &self.overrides };
        Ok(Db { core: Core::start(&self.site, &wanted, &self.options)? })
    }

    /// Everything for an existing store before its engine starts.
    pub(super) fn prepare(self) -> Result<(Prepared, Options), Error> {
        Ok((Prepared::new(&self.site, &Wanted::Open, &self.options)?, self.options))
    }

    /// Everything for a new store before its engine starts.
    pub(super) fn prepare_new(self) -> Result<(Prepared, Options), Error> {
        let wanted = Wanted::Create { profile: self.profile.as_deref(), overrides: &self.overrides };
        Ok((Prepared::new(&self.site, &wanted, &self.options)?, self.options))
    }

    /// Opens the store if it exists, else makes one.
    ///
    /// # Errors
    /// As [`Builder::open`] and [`Builder::create`].
    pub fn open_or_create(self) -> Result<Db, Error> {
        let create = Wanted::Create { profile: self.profile.as_deref(), overrides: &self.overrides };
        Ok(Db { core: Core::start_or_create(&self.site, &create, &self.options)? })
    }
}

impl std::fmt::Debug for Builder {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Builder")
            .field("site", &self.site)
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}
