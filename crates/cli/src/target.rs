//! From the paths that the user named to an opened device.

use std::path::PathBuf;

use flashgrain_device::{Device, ErrorKind, FileDevice, OpenOptions};

use crate::arguments::TargetOptions;
use crate::exit::Usage;
use crate::output::Context;

/// What will be done with the target.
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
    /// What the user asked for.
    pub asked: Option<u64>,
    /// What is taken otherwise.
    pub default: u64,
}

/// Opens directories (through unnamed scratch files) or existing files and block devices.
pub fn open(
    targets: &[PathBuf],
    size: ScratchSize,
    access: Access,
    options: &TargetOptions,
    context: &Context,
) -> anyhow::Result<FileDevice> {
    let open = OpenOptions {
        backend: options.backend.kind(),
        direct: !options.buffered,
        write: access == Access::Write,
        stripe_unit_bytes: options.stripe_unit,
    };
    let device = if is_scratch(targets) {
        FileDevice::scratch(targets, size.asked.unwrap_or(size.default), &open).map_err(|error| {
            // More than fits is a wrong argument if it was one, and a full drive otherwise.
            match (error.kind(), size.asked) {
                (ErrorKind::NoSpace, Some(_)) => anyhow::Error::from(Usage(error.to_string())),
                _ => error.into(),
            }
        })?
    } else if !targets.iter().any(|target| target.is_dir()) {
        FileDevice::existing(targets, &options.destroy_contents_of, &open)?
    } else {
        return Err(Usage(
            "directories and existing files cannot form one stripe set: name targets of one kind".into(),
        )
        .into());
    };
    for note in &device.identity().notes {
        context.note(&format!("note: {note}"));
    }
    Ok(device)
}

/// Whether all targets are directories, which get scratch files.
pub fn is_scratch(targets: &[PathBuf]) -> bool {
    targets.iter().all(|target| target.is_dir())
}
