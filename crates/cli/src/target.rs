//! From the targets that the user named to an opened device.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use flashgrain_device::{Device, ErrorKind, FileDevice, OpenOptions};
use flashgrain_profile::Target;
use flashgrain_ssdsim::{SimConfig, SimDevice};

use crate::arguments::{Backend, TargetOptions};
use crate::exit::Usage;
use crate::output::Context;

/// Access to the target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// It is only read.
    Read,
    /// It is written, too.
    Write,
}

/// How large the scratch files are in total.
#[derive(Clone, Copy, Debug)]
pub struct ScratchSize {
    /// Size that the user asked for.
    pub asked: Option<u64>,
    /// Size otherwise.
    pub default: u64,
}

/// Kind of the targets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Directories, which get unnamed scratch files.
    Scratch,
    /// Files and block devices.
    Existing,
    /// `sim:PRESET` or `sim:FILE.toml`.
    Simulated,
}

impl Kind {
    /// The kind of all targets together.
    pub fn of(targets: &[PathBuf]) -> Result<Self, Usage> {
        if targets.iter().any(|target| simulated_name(target).is_some()) {
            return match targets {
                [_] => Ok(Self::Simulated),
                _ => Err(Usage(
                    "a simulated drive is used alone; for a stripe set of equal ones say `drives = 8` in its file, or take a preset such as \
                     sim:8xpm1733"
                        .into(),
                )),
            };
        }
        let directories = targets.iter().filter(|target| target.is_dir()).count();
        match directories {
            0 => Ok(Self::Existing),
            all if all == targets.len() => Ok(Self::Scratch),
            _ => Err(Usage(
                "directories and existing files cannot form one stripe set: name targets of one kind".into(),
            )),
        }
    }
}

/// The name, `sim:` included, if the target is a simulated drive.
fn simulated_name(target: &Path) -> Option<&str> {
    target.to_str().filter(|name| SimConfig::is_name(name))
}

/// An opened target.
pub enum Opened {
    /// Files or block devices.
    Files(Arc<FileDevice>),
    /// A simulated drive.
    Simulated {
        device: Arc<SimDevice>,
        /// Whether it was written before the simulation began.
        holds_data: bool,
    },
}

impl Opened {
    pub fn device(&self) -> &dyn Device {
        match self {
            Self::Files(device) => &**device,
            Self::Simulated { device, .. } => &**device,
        }
    }

    /// The same device, for a store on it.
    pub fn shared(&self) -> Arc<dyn Device> {
        match self {
            Self::Files(device) => Arc::clone(device) as _,
            Self::Simulated { device, .. } => Arc::clone(device) as _,
        }
    }

    /// The device for a profile run.
    pub fn target(&self) -> Target<'_> {
        match self {
            Self::Files(device) => Target::of_files(device),
            Self::Simulated { device, .. } => Target::new(&**device),
        }
    }
}

/// Opens directories (through unnamed scratch files), existing files and block devices, or a simulated drive.
pub fn open(
    targets: &[PathBuf],
    size: ScratchSize,
    access: Access,
    seed: u64,
    options: &TargetOptions,
    context: &Context,
) -> anyhow::Result<Opened> {
    let open = OpenOptions {
        backend: options.backend.kind(),
        direct: !options.buffered,
        write: access == Access::Write,
        stripe_unit_bytes: options.stripe_unit,
        sqpoll_processor: options.sqpoll_processor,
        polled: false,
    };
    if options.sqpoll_processor.is_some() && options.backend != Backend::IoUringSqpoll {
        return Err(Usage("--sqpoll-processor goes with --backend io_uring-sqpoll".into()).into());
    }
    let device = match Kind::of(targets)? {
        Kind::Simulated => return simulated(targets, seed, options),
        Kind::Scratch => {
            FileDevice::scratch(targets, size.asked.unwrap_or(size.default), &open).map_err(|error| {
                // More than fits is a wrong argument if it was one, and a full drive otherwise.
                match (error.kind(), size.asked) {
                    (ErrorKind::NoSpace, Some(_)) => anyhow::Error::from(Usage(error.to_string())),
                    _ => error.into(),
                }
            })?
        }
        Kind::Existing => FileDevice::existing(targets, &options.destroy_contents_of, &open)?,
    };
    for note in &device.identity().notes {
        context.note(&format!("note: {note}"));
    }
    Ok(Opened::Files(Arc::new(device)))
}

/// Says which limits have shown since the device was opened. Why it has its backend was said then.
pub fn note_shortages(device: &dyn Device, context: &Context) {
    let known = &device.identity().backend_reason;
    for shortage in device.shortages().iter().filter(|shortage| !shortage.contains(known)) {
        context.note(&format!("note: {shortage}"));
    }
}

/// Tells the user of a command that was ended that its writes to existing targets stay there.
pub fn overwritten(targets: &[PathBuf]) -> String {
    let names: Vec<_> = targets.iter().map(|target| target.display().to_string()).collect();
    format!("the data written to {} stays there", names.join(", "))
}

fn simulated(targets: &[PathBuf], seed: u64, options: &TargetOptions) -> anyhow::Result<Opened> {
    let name = targets.iter().find_map(|target| simulated_name(target)).unwrap_or_default();
    if options.backend.kind().is_some() || options.buffered {
        return Err(Usage(format!(
            "{name} is simulated: no kernel interface and no page cache lies before it; leave --backend and --buffered out"
        ))
        .into());
    }
    let config = SimConfig::named(name)?;
    let holds_data = config.holds_data();
    let device = Arc::new(SimDevice::new(&config, name, seed)?);
    Ok(Opened::Simulated { device, holds_data })
}
