//! Files and block devices, one or striped over several, as a device.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use crate::backend::file_encoding::FileEncoding;
use crate::backend::files::Files;
use crate::backend::libaio::LibaioBackend;
use crate::backend::passthrough::{self, Passthrough};
use crate::backend::submission_thread::SubmissionThread;
use crate::backend::sync::SyncBackend;
use crate::backend::uring::{Encoding, RingOptions, UringBackend};
use crate::backend::{Backend, BackendKind};
use crate::fallback::Fallback;
use crate::limits::{Limit, limited};
use crate::live_geometry::LiveGeometry;
use crate::nvme::node::generic_name;
use crate::queue::RequestQueue;
use crate::store_files::Locks;
use crate::target::{DirectAlign, Target};
use crate::{Channel, ChannelOptions, Device, Error, Geometry, Identity, StripeSet, identity};

/// The deepest queue: the most that one `io_uring` can complete, halved for linked flushes.
const DEPTH_MAX: u32 = 32_000;

/// How a target is opened.
#[derive(Clone, Debug)]
pub struct OpenOptions {
    /// The backend; `None` takes the best that works here.
    pub backend: Option<BackendKind>,
    /// Whether to bypass the page cache where possible.
    pub direct: bool,
    /// Whether writes will be made. Scratch files are always writable.
    pub write: bool,
    /// Stripe unit when several targets are given; a multiple of their alignment.
    pub stripe_unit_bytes: u64,
    /// Polls for completions on every channel, instead of sleeping until the drive interrupts, where it has
    /// poll queues.
    pub polled: bool,
    /// Processor of the kernel's thread for [`BackendKind::IoUringSqpoll`]; `None`: any.
    pub sqpoll_processor: Option<u32>,
}

impl Default for OpenOptions {
    fn default() -> Self {
        Self {
            backend: None,
            direct: true,
            write: false,
            stripe_unit_bytes: 64 << 10,
            polled: false,
            sqpoll_processor: None,
        }
    }
}

/// One file or block device, or a stripe set over several.
#[derive(Clone, Debug)]
pub struct FileDevice {
    pub(crate) targets: Arc<Vec<Target>>,
    pub(crate) stripes: StripeSet,
    fallback: Arc<Fallback>,
    geometry: Geometry,
    identity: Identity,
    /// Usable bytes now; channels look at it, too.
    capacity_bytes: Arc<AtomicU64>,
    /// Held while the members grow.
    growing: Arc<Mutex<()>>,
    /// Locks against other openings, if there are any.
    locks: Option<Arc<Locks>>,
    polled: bool,
    sqpoll_processor: Option<u32>,
}

impl FileDevice {
    /// Unnamed scratch files of `bytes` in total, one in each directory; they vanish with the process,
    /// however it ends.
    ///
    /// # Errors
    /// [`Error::Target`] or [`Error::Os`] if a directory is missing, read-only or full (kind `NoSpace`);
    /// [`Error::Backend`] if the backend asked for is not available.
    pub fn scratch(directories: &[PathBuf], bytes: u64, options: &OpenOptions) -> Result<Self, Error> {
        let members = u32::try_from(directories.len()).unwrap_or(u32::MAX).max(1);
        let unit = options.stripe_unit_bytes.max(1);
        let each =
            if members == 1 { bytes } else { bytes.div_ceil(u64::from(members)).next_multiple_of(unit) };
        let open = |directory: &PathBuf| Target::scratch(directory, each, options.direct);
        Self::assemble(directories.iter().map(open).collect::<Result<_, _>>()?, true, options)
    }

    /// An empty scratch file in the folder of the first of these, which grows as it is written, as logs of
    /// many programs do: the file system then writes its own records as well. Bytes after its end cannot be
    /// read. `None` unless this is a scratch device.
    ///
    /// # Errors
    /// As [`FileDevice::scratch`].
    pub fn growing(&self) -> Option<Result<Self, Error>> {
        let first = self.targets.first().filter(|_| self.is_scratch())?;
        let options = OpenOptions {
            backend: Some(self.backend()),
            direct: first.direct.is_some(),
            write: true,
            ..OpenOptions::default()
        };
        let target = Target::growing(&first.path, self.geometry.capacity_bytes, options.direct);
        Some(target.and_then(|target| Self::assemble(vec![target], true, &options)))
    }

    /// Existing files or block devices. Writing overwrites their contents, so each path must stand in
    /// `consent` too: the same words said again by the user with a flag that names the loss.
    ///
    /// # Errors
    /// [`Error::Target`] if a path is missing, empty, in use, or not consented to; [`Error::Os`] and
    /// [`Error::Backend`] as above.
    pub fn existing(paths: &[PathBuf], consent: &[PathBuf], options: &OpenOptions) -> Result<Self, Error> {
        if options.write {
            paths.iter().filter(|path| !consent.contains(path)).try_for_each(|path| refuse(path))?;
        }
        let open = |path: &PathBuf| Target::existing(path, options.write, options.direct);
        Self::assemble(paths.iter().map(open).collect::<Result<_, _>>()?, options.write, options)
    }

    /// Whether it consists of scratch files in directories.
    pub fn is_scratch(&self) -> bool {
        self.targets.iter().all(|target| target.path.is_dir())
    }

    /// The same opened files through another backend.
    ///
    /// # Errors
    /// [`Error::Backend`] if it is not available.
    pub fn with_backend(&self, backend: BackendKind) -> Result<Self, Error> {
        choose(Some(backend), &self.targets)?;
        let mut other = self.clone();
        other.fallback = Arc::new(Fallback::new(backend, false, "asked for"));
        other.identity.backend = backend.name().into();
        other.identity.backend_reason = "asked for".into();
        Ok(other)
    }

    /// The backends by which it can be compared with itself: those that are taken without being asked for.
    pub fn backends(&self) -> &'static [BackendKind] {
        match self.backend() {
            BackendKind::NvmePassthrough => &[BackendKind::NvmePassthrough],
            _ => &BackendKind::AUTOMATIC,
        }
    }

    /// The backend in use.
    pub fn backend(&self) -> BackendKind {
        self.fallback.kind()
    }

    pub(crate) fn assemble(
        targets: Vec<Target>,
        writable: bool,
        options: &OpenOptions,
    ) -> Result<Self, Error> {
        let Some(first) = targets.first() else {
            return Err(Error::Request("no target given".into()));
        };
        let members = targets.len() as u32;
        let smallest = targets.iter().map(|target| target.size_bytes).min().unwrap_or(0);
        let buffered = targets.iter().any(|target| target.direct.is_none());
        let align = direct_align(&targets);
        let unit = options.stripe_unit_bytes;
        if members > 1 && (unit == 0 || unit > 1 << 30 || !unit.is_multiple_of(u64::from(align.offset_bytes)))
        {
            let problem = format!(
                "a stripe unit of {unit} bytes: use a multiple of {} bytes, at most 1 GiB",
                align.offset_bytes
            );
            return Err(Error::Request(problem));
        }
        let stripes = StripeSet::new(members, unit.max(1));
        let (backend, reason) = choose(options.backend, &targets)?;
        let mut identity = identity::of(first);
        if members > 1 {
            identity.kind = "stripe set".into();
            let names: Vec<String> = targets.iter().map(|target| identity::absolute(&target.path)).collect();
            identity.target = names.join(",");
        }
        identity.backend = backend.name().into();
        identity.backend_reason = reason;
        identity.notes.extend(targets.iter().flat_map(|target| target.notes.clone()));
        let capacity = stripes.capacity_bytes(smallest);
        let geometry = Geometry {
            capacity_bytes: capacity / u64::from(align.offset_bytes) * u64::from(align.offset_bytes),
            offset_align_bytes: align.offset_bytes,
            memory_align_bytes: align.memory_bytes,
            preferred_max_transfer_bytes: preferred_max_transfer(&identity),
            direct: !buffered,
            writable,
            members,
            stripe_unit_bytes: stripes.unit_bytes(),
        };
        let capacity_bytes = Arc::new(AtomicU64::new(geometry.capacity_bytes));
        let (growing, locks) = (Arc::default(), None);
        let fallback = Arc::new(Fallback::new(backend, options.backend.is_none(), &identity.backend_reason));
        let targets = Arc::new(targets);
        Ok(Self {
            targets,
            stripes,
            fallback,
            geometry,
            identity,
            capacity_bytes,
            growing,
            locks,
            polled: options.polled,
            sqpoll_processor: options.sqpoll_processor,
        })
    }

    /// A channel by this backend, or the kernel's reason to refuse it.
    fn channel_by(
        &self,
        kind: BackendKind,
        options: &ChannelOptions,
        polled: bool,
    ) -> io::Result<Box<dyn Channel>> {
        let depth = options.depth;
        let files = Files::of(&self.targets);
        let ring = RingOptions { arena: options.arena.clone(), polled, ..RingOptions::default() };
        Ok(match kind {
            BackendKind::IoUring => {
                self.ring_channel(files.clone(), FileEncoding::new(files), depth, ring)?
            }
            BackendKind::IoUringSqpoll => {
                let thread = Some(submission_thread(self.sqpoll_processor)?);
                let ring = RingOptions { thread, ..ring };
                self.ring_channel(files.clone(), FileEncoding::new(files), depth, ring)?
            }
            BackendKind::NvmePassthrough => {
                let capacity = self.parts_max::<UringBackend<Passthrough>>(depth);
                self.ring_channel(files.clone(), Passthrough::new(files, capacity), depth, ring)?
            }
            BackendKind::Libaio => {
                let backend = LibaioBackend::new(files, self.parts_max::<LibaioBackend>(depth))?;
                self.queue(backend, depth)
            }
            BackendKind::Sync => {
                self.queue(SyncBackend::new(files, self.parts_max::<SyncBackend>(depth)), depth)
            }
        })
    }

    /// Why completions are not polled for although they are to be, if they are not.
    fn why_unpolled(&self) -> Option<String> {
        let backend = self.backend();
        let kernel = self.identity.kernel.clone().unwrap_or_default();
        if !self.geometry.direct {
            Some("requests go through the page cache".into())
        } else if self.identity.poll_queues != Some(true) {
            Some("this drive has no poll queues (see its queue/io_poll under /sys/block)".into())
        } else if matches!(backend, BackendKind::Libaio | BackendKind::Sync) {
            Some(format!("{} cannot", backend.name()))
        } else if backend == BackendKind::NvmePassthrough && !passthrough::polls_safely(&kernel) {
            Some(format!(
                "Linux {kernel} may crash when a process ends that polls past the block layer; 6.6 does not"
            ))
        } else {
            None
        }
    }

    fn ring_channel<E: Encoding + 'static>(
        &self,
        files: Files,
        encoding: E,
        depth: u32,
        ring: RingOptions,
    ) -> io::Result<Box<dyn Channel>> {
        let ring = RingOptions { capacity: self.parts_max::<UringBackend<E>>(depth), ..ring };
        let backend = UringBackend::new(files, encoding, ring)?;
        if backend.is_unregistered() {
            self.fallback.note_unregistered();
        }
        Ok(self.queue(backend, depth))
    }

    fn parts_max<B: Backend>(&self, depth: u32) -> u32 {
        RequestQueue::<B>::parts_max(depth, self.stripes)
    }

    fn queue<B: Backend + 'static>(&self, backend: B, depth: u32) -> Box<dyn Channel> {
        let geometry = LiveGeometry::new(self.geometry.clone(), Arc::clone(&self.capacity_bytes));
        Box::new(RequestQueue::new(backend, depth, self.stripes, geometry))
    }

    pub(crate) fn with_locks(mut self, locks: Locks) -> Self {
        self.locks = Some(Arc::new(locks));
        self
    }

    pub(crate) fn capacity(&self) -> u64 {
        self.capacity_bytes.load(Ordering::Acquire)
    }
}

/// The strictest alignment among the targets; 1 where the page cache takes anything.
fn direct_align(targets: &[Target]) -> DirectAlign {
    targets.iter().filter_map(|target| target.direct).fold(
        DirectAlign { offset_bytes: 1, memory_bytes: 1 },
        |strictest, align| DirectAlign {
            offset_bytes: strictest.offset_bytes.max(align.offset_bytes),
            memory_bytes: strictest.memory_bytes.max(align.memory_bytes),
        },
    )
}

fn submission_thread(processor: Option<u32>) -> io::Result<Arc<SubmissionThread>> {
    SubmissionThread::shared(processor).map_err(|source| match processor {
        Some(processor) if source.raw_os_error() == Some(libc::EINVAL) => io::Error::new(
            source.kind(),
            format!("the kernel cannot run its submission thread on processor {processor}: is it online?"),
        ),
        _ => source,
    })
}

fn preferred_max_transfer(identity: &Identity) -> u32 {
    let bytes = identity.max_transfer_bytes.unwrap_or(1 << 20);
    u32::try_from(bytes).unwrap_or(u32::MAX).clamp(128 << 10, 16 << 20)
}

fn refuse(path: &Path) -> Result<(), Error> {
    // A missing target cannot lose data: the error says that it is missing.
    let metadata = std::fs::metadata(path)
        .map_err(|source| Error::Os { doing: format!("open {}", path.display()), source })?;
    Target::check_kind(path, metadata.file_type())?;
    let loss = "writing here destroys its data. If that is meant, say so with \
                --destroy-contents-of and the same path; a directory instead gets a scratch file of its own";
    Err(Error::Target { path: path.into(), problem: loss.into() })
}

fn unavailable(backend: BackendKind, why: &str) -> Error {
    let others: Vec<&str> = BackendKind::FOR_FILES
        .into_iter()
        .filter(|other| *other != backend && other.available().is_ok())
        .map(BackendKind::name)
        .collect();
    Error::Backend { backend: backend.name(), why: format!("{why}. Available: {}", others.join(", ")) }
}

/// The backend to use and, in one line, why.
fn choose(asked: Option<BackendKind>, targets: &[Target]) -> Result<(BackendKind, String), Error> {
    let passthrough = BackendKind::NvmePassthrough;
    let refused = |backend: BackendKind, why| Err(Error::Backend { backend: backend.name(), why });
    let namespaces = targets.iter().filter(|target| target.namespace.is_some()).count();
    match asked {
        _ if namespaces > 0 && namespaces < targets.len() => {
            let problem = "block devices and NVMe namespaces past the block layer (/dev/ng...) form no stripe set together";
            Err(Error::Request(problem.into()))
        }
        None if namespaces > 0 => match passthrough::supported() {
            Ok(()) => Ok((passthrough, "the only one for a namespace's character device".into())),
            Err(why) => refused(passthrough, format!("{why}; name the block device, /dev/nvme..., instead")),
        },
        Some(backend) if namespaces > 0 && backend != passthrough => {
            let why = "this is the character device of an NVMe namespace: name its block device, /dev/nvme..., for it".into();
            refused(backend, why)
        }
        Some(backend) if namespaces == 0 && backend == passthrough => {
            let name = |target: &Target| generic_name(target.path.file_name()?.to_str()?);
            let name = targets.first().and_then(name).unwrap_or_else(|| "ngXnY".into());
            refused(backend, format!("it wants the character device of an NVMe namespace: name /dev/{name}"))
        }
        None => Ok(BackendKind::automatic()),
        Some(backend) => {
            let available =
                if backend == passthrough { passthrough::supported() } else { backend.available() };
            available.map_err(|why| unavailable(backend, &why))?;
            Ok((backend, "asked for".into()))
        }
    }
}

impl Device for FileDevice {
    fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    fn identity(&self) -> &Identity {
        &self.identity
    }

    fn open_channel(&self, options: &ChannelOptions) -> Result<Box<dyn Channel>, Error> {
        let depth = options.depth;
        if depth == 0 || depth > DEPTH_MAX {
            return Err(Error::Request(format!("a queue depth of {depth}: use 1 to {DEPTH_MAX}")));
        }
        let asked = options.polled || self.polled;
        let polled = asked && self.why_unpolled().is_none();
        let channel = self.fallback.open(|kind| self.channel_by(kind, options, polled));
        if asked && let Some(why) = self.why_unpolled() {
            self.fallback.note_unpolled(&why);
        }
        channel.map_err(|source| {
            let doing = format!("open an {} queue of depth {depth}", self.backend().name());
            limited(doing, source, &[Limit::LockedMemory, Limit::AddressSpace, Limit::Files])
        })
    }

    fn shortages(&self) -> Vec<String> {
        let failures = self.targets.iter().filter_map(|target| target.namespace.as_ref());
        let failures = failures.flat_map(|namespace| namespace.failures());
        self.fallback.notes().into_iter().chain(failures).collect()
    }

    fn capacity_bytes(&self) -> u64 {
        self.capacity()
    }

    fn grow(&self, capacity_bytes: u64) -> Result<(), Error> {
        if !self.geometry.writable || self.locks.is_none() {
            let problem = "only the files of a store grow".into();
            return Err(Error::Target { path: self.identity.target.clone().into(), problem });
        }
        let _alone = self.growing.lock().unwrap_or_else(PoisonError::into_inner);
        if capacity_bytes > self.capacity() {
            let grown = self.grow_members(capacity_bytes)?;
            self.capacity_bytes.fetch_max(grown, Ordering::AcqRel);
        }
        Ok(())
    }

    fn shrinks(&self) -> bool {
        self.geometry.writable
            && self.locks.is_some()
            && !self.targets.iter().any(|target| target.is_block_device)
    }

    fn shrink(&self, capacity_bytes: u64) -> Result<(), Error> {
        if !self.shrinks() {
            return Ok(());
        }
        let _alone = self.growing.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(shrunk) = self.shrink_members(capacity_bytes)? {
            self.capacity_bytes.store(shrunk, Ordering::Release);
        }
        Ok(())
    }
}
