//! Where the store of a benchmark is.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Context as _;
use flashgrain::{Builder, Db, Placement, Simulated};
use flashgrain_device::{Device, FileDevice, MemoryDevice, OpenOptions};
use flashgrain_profile::file;
use flashgrain_ssdsim::{SimConfig, SimDevice};

use super::costs::Costs;
use super::options::BenchOptions;
use super::size::Size;
use super::store::Store;
use crate::exit::Usage;

/// The folder of the store in the directory that the user names.
const FOLDER: &str = "flashgrain-bench";

/// Of a store in memory: address space, not memory.
const MEMORY_BYTES: u64 = 256 << 30;
const MEMORY_START_BYTES: u64 = 256 << 20;

/// Where the store is, and how large it may be.
pub struct Place {
    kind: Kind,
    size: Option<Size>,
}

enum Kind {
    Folder { path: PathBuf, log: Option<PathBuf> },
    Memory(Arc<MemoryDevice>),
    Simulated { device: Arc<SimDevice>, costs: Costs, name: String },
}

impl From<Kind> for Place {
    fn from(kind: Kind) -> Self {
        Self { kind, size: None }
    }
}

impl Place {
    pub fn of(options: &BenchOptions) -> anyhow::Result<Self> {
        let target = &options.target;
        if target.as_os_str() == "mem" {
            return Ok(Kind::Memory(Arc::new(MemoryDevice::new(MEMORY_START_BYTES, MEMORY_BYTES)?)).into());
        }
        if !target.is_dir() {
            let target = target.display();
            let wanted = "name one on the drive, `mem`, or a simulated drive such as sim:990pro";
            return Err(Usage(format!("{target}: not a directory: {wanted}")).into());
        }
        let log = options.log.as_ref().map(|log| log.join(format!("{FOLDER}-log")));
        Ok(Kind::Folder { path: target.join(FOLDER), log }.into())
    }

    /// A simulated drive of this description, called `name`.
    pub fn simulated(config: &SimConfig, name: &str, seed: u64, costs: Costs) -> anyhow::Result<Self> {
        let device = Arc::new(SimDevice::new(config, name, seed)?);
        let name = format!("{}, simulated", config.name);
        Ok(Kind::Simulated { device, costs, name }.into())
    }

    /// With room for just so much.
    pub fn sized(self, size: Size) -> Self {
        Self { size: Some(size), ..self }
    }

    /// The room that the store has, if that is fixed.
    pub fn bytes(&self) -> Option<u64> {
        self.size.map(|size| size.device_bytes)
    }

    /// The simulated drive, if it is one.
    pub fn drive(&self) -> Option<&SimDevice> {
        match &self.kind {
            Kind::Simulated { device, .. } => Some(device),
            _ => None,
        }
    }

    /// A new store here.
    pub fn create(&self, options: &BenchOptions) -> anyhow::Result<Store> {
        let builder = self.builder(options)?;
        match &self.kind {
            Kind::Simulated { costs, .. } => {
                let simulated = Simulated::create(builder, costs.of_workers())?;
                Ok(Store::Simulated(Box::new(simulated), *costs))
            }
            _ => Ok(Store::Threads(builder.create()?)),
        }
    }

    /// A store here, with the options that the user gave.
    pub fn builder(&self, options: &BenchOptions) -> anyhow::Result<Builder> {
        let mut builder = Db::builder()
            .cache_bytes(options.cache_bytes())
            .workers(options.workers() as usize)
            .pinned(options.pin)
            .tasks_per_worker(options.tasks.div_ceil(options.workers()) as usize)
            .durability(options.durability.durability());
        builder = match &self.kind {
            Kind::Memory(device) => builder.device(Arc::clone(device) as Arc<dyn Device>).growable(true),
            Kind::Simulated { device, .. } => builder.device(Arc::clone(device) as Arc<dyn Device>),
            Kind::Folder { path, log } => {
                let builder = builder.path(path);
                log.iter().fold(builder, |builder, log| builder.log_path(log))
            }
        };
        if let Some(size) = self.size {
            builder = builder.size_bytes_max(size.device_bytes);
        }
        if let Some(bytes) = options.log_size.or(self.size.map(|size| size.log_bytes)) {
            builder = builder.log_bytes(bytes);
        }
        if let Some(bytes) = options.recovery_log {
            builder = builder.recovery_log_bytes(bytes);
        }
        if let Some(bytes) = options.node_size {
            let bytes = u32::try_from(bytes).map_err(|_| Usage("a node of 4 GiB or more".into()))?;
            builder = builder.node_bytes(bytes);
        }
        if let Some(path) = &options.profile {
            builder = builder.profile(file::read(path)?);
        }
        if options.in_place {
            builder = builder.placement(Placement::InPlace);
        }
        Ok(builder)
    }

    /// The store's own bytes as a device that is only read, beside the store.
    pub fn raw(&self) -> anyhow::Result<Arc<dyn Device>> {
        match &self.kind {
            Kind::Memory(device) => Ok(Arc::clone(device) as Arc<dyn Device>),
            Kind::Simulated { device, .. } => Ok(Arc::clone(device) as Arc<dyn Device>),
            Kind::Folder { path, .. } => {
                let file = path.join(flashgrain::DATA_FILE);
                Ok(Arc::new(FileDevice::existing(&[file], &[], &OpenOptions::default())?))
            }
        }
    }

    /// Leaves nothing behind.
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

    /// In words.
    pub fn describe(&self) -> String {
        match &self.kind {
            Kind::Memory(_) => "a device in memory".into(),
            Kind::Simulated { name, .. } => name.clone(),
            Kind::Folder { path, .. } => path.display().to_string(),
        }
    }
}
