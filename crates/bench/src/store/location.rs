//! The place of a store under test: in a directory, in memory, on a simulated drive, or on a device that is
//! open.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context as _;
use flashgrain::{Builder, Db, Placement, Simulated};
use flashgrain_device::{BackendKind, Device, FileDevice, MemoryDevice, OpenOptions};
use flashgrain_profile::{DeviceProfile, Error};
use flashgrain_ssdsim::{SimConfig, SimDevice};

use super::{Options, Store, StoreOptions};
use crate::processor::ProcessorCosts;

/// The folder of the store in the directory that the user names.
const FOLDER: &str = "flashgrain-bench";

/// Of a store in memory: address space, not memory.
const MEMORY_BYTES: u64 = 256 << 30;
const MEMORY_START_BYTES: u64 = 256 << 20;

/// The room that a store has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Room {
    /// Bytes of the device.
    pub device_bytes: u64,
    /// Bytes of the log.
    pub log_bytes: u64,
}

/// The place of a store, and how large it may be.
pub struct StoreLocation {
    kind: Kind,
    room: Option<Room>,
}

enum Kind {
    Folder { path: PathBuf, log: Option<PathBuf> },
    Memory(Arc<MemoryDevice>),
    Simulated { device: Arc<SimDevice>, costs: ProcessorCosts, name: String },
    Device(Arc<dyn Device>),
}

impl From<Kind> for StoreLocation {
    fn from(kind: Kind) -> Self {
        Self { kind, room: None }
    }
}

impl StoreLocation {
    /// The one that the target names, unless that is a simulated drive.
    ///
    /// # Errors
    /// If it is no directory.
    pub fn of(options: &Options) -> anyhow::Result<Self> {
        let target = &options.target;
        if target.as_os_str() == "mem" {
            return Ok(Kind::Memory(Arc::new(MemoryDevice::new(MEMORY_START_BYTES, MEMORY_BYTES)?)).into());
        }
        if !target.is_dir() {
            let target = target.display();
            let wanted = "name one on the drive, `mem`, or a simulated drive such as sim:990pro";
            return Err(Error::Argument(format!("{target}: not a directory: {wanted}")).into());
        }
        Ok(Self::in_directory(target, options.log.as_deref()))
    }

    /// A folder of its own in a directory; its log in one in another, if there is one.
    pub fn in_directory(directory: &Path, log: Option<&Path>) -> Self {
        let log = log.map(|log| log.join(format!("{FOLDER}-log")));
        Kind::Folder { path: directory.join(FOLDER), log }.into()
    }

    /// A simulated drive of this description, called `name`.
    ///
    /// # Errors
    /// If there is no such drive.
    pub fn simulated(
        config: &SimConfig,
        name: &str,
        seed: u64,
        costs: ProcessorCosts,
    ) -> anyhow::Result<Self> {
        let device = Arc::new(SimDevice::new(config, name, seed)?);
        let name = format!("{}, simulated", config.name);
        Ok(Kind::Simulated { device, costs, name }.into())
    }

    /// A device that is open, which the store may have for itself. If it is simulated, processors cost
    /// nothing: the results show the limits of the drive.
    pub fn on(device: Arc<dyn Device>) -> Self {
        Kind::Device(device).into()
    }

    /// With a fixed room.
    #[must_use]
    pub fn with_room(self, room: Room) -> Self {
        Self { room: Some(room), ..self }
    }

    /// The room that the store has, if that is fixed.
    pub fn bytes(&self) -> Option<u64> {
        self.room.map(|room| room.device_bytes)
    }

    /// The simulated drive, if it is one.
    pub fn drive(&self) -> Option<&SimDevice> {
        match &self.kind {
            Kind::Simulated { device, .. } => Some(device),
            _ => None,
        }
    }

    /// A new store here.
    ///
    /// # Errors
    /// Errors of the store.
    pub fn create(&self, options: &StoreOptions) -> Result<Store, flashgrain::Error> {
        self.create_as(self.builder(options))
    }

    /// A new store here, as a builder that this has given says.
    ///
    /// # Errors
    /// Errors of the store.
    pub fn create_as(&self, builder: Builder) -> Result<Store, flashgrain::Error> {
        let simulated = |builder, costs: ProcessorCosts| {
            Ok(Store::simulated(Simulated::create(builder, costs.of_workers())?, costs))
        };
        match &self.kind {
            Kind::Simulated { costs, .. } => simulated(builder, *costs),
            Kind::Device(device) if device.simulation().is_some() => simulated(builder, ProcessorCosts::NONE),
            _ => Ok(builder.create()?.into()),
        }
    }

    /// A store here, as it is to be made or opened.
    pub fn builder(&self, options: &StoreOptions) -> Builder {
        let mut builder = Db::builder()
            .cache_bytes(options.cache_bytes)
            .workers(options.workers as usize)
            .pinned(options.pin)
            .tasks_per_worker(options.tasks.div_ceil(options.workers) as usize)
            .durability(options.durability);
        builder = match &self.kind {
            Kind::Memory(device) => builder.device(Arc::clone(device) as Arc<dyn Device>).growable(true),
            Kind::Simulated { device, .. } => builder.device(Arc::clone(device) as Arc<dyn Device>),
            Kind::Device(device) => builder.device(Arc::clone(device)),
            Kind::Folder { path, log } => {
                let builder = builder.path(path).poll_completions(options.polled);
                let builder = log.iter().fold(builder, |builder, log| builder.log_path(log));
                options.backend.into_iter().fold(builder, Builder::backend)
            }
        };
        if let Some(room) = self.room {
            builder = builder.size_bytes_max(room.device_bytes);
        }
        if let Some(bytes) = options.log_bytes.or(self.room.map(|room| room.log_bytes)) {
            builder = builder.log_bytes(bytes);
        }
        if let Some(bytes) = options.recovery_log_bytes {
            builder = builder.recovery_log_bytes(bytes);
        }
        if let Some(bytes) = options.node_bytes {
            // The store refuses nodes that are too large.
            builder = builder.node_bytes(u32::try_from(bytes).unwrap_or(u32::MAX));
        }
        if let Some(profile) = &options.profile {
            builder = builder.profile(DeviceProfile::clone(profile));
        }
        if options.in_place {
            builder = builder.placement(Placement::InPlace);
        }
        builder
    }

    /// The store's own bytes as a device that is only read, next to the store; in a directory by this backend
    /// if it is said, and polled for completions or not.
    ///
    /// # Errors
    /// If the store's file cannot be opened.
    pub fn raw(&self, backend: Option<BackendKind>, polled: bool) -> anyhow::Result<Arc<dyn Device>> {
        match &self.kind {
            Kind::Memory(device) => Ok(Arc::clone(device) as Arc<dyn Device>),
            Kind::Simulated { device, .. } => Ok(Arc::clone(device) as Arc<dyn Device>),
            Kind::Device(device) => Ok(Arc::clone(device)),
            Kind::Folder { path, .. } => {
                let file = path.join(flashgrain::DATA_FILE);
                let options = OpenOptions { backend, polled, ..OpenOptions::default() };
                Ok(Arc::new(FileDevice::existing(&[file], &[], &options)?))
            }
        }
    }

    /// Removes the store's files.
    ///
    /// # Errors
    /// If the store's folders cannot be removed.
    pub fn remove(&self) -> anyhow::Result<()> {
        if let Kind::Folder { path, log } = &self.kind {
            for folder in std::iter::once(path).chain(log) {
                if folder.exists() {
                    std::fs::remove_dir_all(folder)
                        .with_context(|| format!("remove {}", folder.display()))?;
                }
            }
        }
        Ok(())
    }

    /// The options in words.
    pub fn describe(&self) -> String {
        match &self.kind {
            Kind::Memory(_) => "a device in memory".into(),
            Kind::Simulated { name, .. } => name.clone(),
            Kind::Device(device) => device.identity().kind.to_string(),
            Kind::Folder { path, .. } => path.display().to_string(),
        }
    }
}
