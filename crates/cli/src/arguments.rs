//! Options that several commands share.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use flashgrain_device::BackendKind;

use crate::exit::Usage;
use crate::units::{parse_bytes, parse_positive_bytes, parse_seconds};

/// Prices of servers in the NVMe paper, as they are typed.
pub const PRICES: &str = "15000,7500,3.75,200";

/// How the target is opened: the same for every command that measures.
#[derive(Debug, Args)]
pub struct TargetOptions {
    /// How requests reach the kernel.
    #[arg(long, value_enum, default_value_t = Backend::Auto)]
    pub backend: Backend,
    /// Processor of the kernel's thread that takes submissions, with `--backend io_uring-sqpoll`; any unless
    /// given.
    #[arg(long, value_name = "NUMBER")]
    pub sqpoll_processor: Option<u32>,
    /// Go through the page cache. By default it is bypassed (`O_DIRECT`) wherever the file system can.
    #[arg(long)]
    pub buffered: bool,
    /// Stripe unit when several targets are given, which are then used as one RAID 0.
    #[arg(long, value_name = "SIZE", value_parser = parse_positive_bytes, default_value = "64KiB")]
    pub stripe_unit: u64,
    /// Allow writing to this existing file or block device. Its contents are lost. Repeat it for each target.
    #[arg(long, value_name = "PATH")]
    pub destroy_contents_of: Vec<PathBuf>,
}

/// Limits of measuring, and the folder for its results: the same for `tune` and `profile`.
#[derive(Clone, Debug, Args)]
pub struct MeasuringOptions {
    /// Time for everything, from the first byte written to the report; virtual time on a simulated drive.
    #[arg(long, value_name = "TIME", value_parser = parse_seconds, default_value = "60")]
    pub seconds: f64,
    /// Most bytes written to the drive, the scratch file included.
    #[arg(long, value_name = "SIZE", value_parser = parse_bytes, default_value = "4GiB")]
    pub write_bytes: u64,
    /// Size of the scratch file: by default 1 GiB, or less if the budget or the free space is small. Of a
    /// simulated drive, the part that is used: by default all of it, or if its state is fresh as much as of a
    /// scratch file.
    #[arg(long, value_name = "SIZE", value_parser = parse_positive_bytes)]
    pub file_size: Option<u64>,
    /// Seed of all randomness: the same seed on the same drive runs the same trials.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// When it is ended early (Ctrl-C), keep the measurements until then and the conclusions that they allow.
    /// Otherwise nothing is kept.
    #[arg(long)]
    pub keep_interrupted: bool,
    /// Folder for the results; it is made if it is missing.
    #[arg(long, value_name = "DIR", default_value = "flashgrain-out")]
    pub out: PathBuf,
}

/// The backends as the user names them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Backend {
    /// The best that works here.
    Auto,
    /// Submission and completion rings shared with the kernel.
    #[value(name = "io_uring", alias = "io-uring", alias = "uring")]
    IoUring,
    /// The same with a thread of the kernel that takes submissions without a system call, and keeps a
    /// processor busy.
    #[value(name = "io_uring-sqpoll", alias = "sqpoll")]
    IoUringSqpoll,
    /// Linux native asynchronous I/O.
    #[value(alias = "aio")]
    Libaio,
    /// One `pread` or `pwrite` at a time per worker.
    #[value(alias = "psync")]
    Sync,
    /// NVMe commands past the kernel's block layer: for the character device of a namespace, /dev/ngXnY.
    #[value(name = "nvme-passthrough", alias = "passthrough")]
    NvmePassthrough,
}

impl Backend {
    pub fn kind(self) -> Option<BackendKind> {
        match self {
            Self::Auto => None,
            Self::IoUring => Some(BackendKind::IoUring),
            Self::IoUringSqpoll => Some(BackendKind::IoUringSqpoll),
            Self::Libaio => Some(BackendKind::Libaio),
            Self::Sync => Some(BackendKind::Sync),
            Self::NvmePassthrough => Some(BackendKind::NvmePassthrough),
        }
    }

    /// Refuses `--polled` with a backend that cannot poll.
    pub fn check_polled(self, polled: bool) -> Result<(), Usage> {
        if polled && matches!(self, Self::Libaio | Self::Sync) {
            return Err(Usage("--polled needs the io_uring backend, or nvme-passthrough".into()));
        }
        Ok(())
    }
}
