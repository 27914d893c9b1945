//! Why a volume does not do something.

use flashgrain_device::bytes_text;

/// Why a volume does not do something.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The device refused or failed.
    #[error(transparent)]
    Device(#[from] flashgrain_device::Error),
    /// A request failed.
    #[error("the device failed at a {op}: {source}")]
    Request {
        /// The operation.
        op: &'static str,
        /// The system's answer.
        source: std::io::Error,
    },
    /// Neither slot holds a directory.
    #[error(
        "{0} holds no volume that consists of just these files or drives, in this order: name all of them as they were when it was made, or make a new one, which loses their contents"
    )]
    NoVolume(String),
    /// The device is made of other files or drives than the volume, or in another order.
    #[error(
        "{path} {problem}: name all files or drives of one volume, in the order in which they were named when it was made"
    )]
    Member {
        /// The file or drive.
        path: String,
        /// The defect.
        problem: String,
    },
    /// A file or drive was named twice.
    #[error("{0} is named twice: each file or drive of a volume is another one")]
    Twice(String),
    /// Stripes that do not consist of whole blocks.
    #[error("{0} is striped in units that are no multiple of 4 KiB; take another stripe unit")]
    StripeUnit(String),
    /// There is no room for anything.
    #[error("{target} is too small for a volume: it takes {} at least", bytes_text(*.bytes_min))]
    Small {
        /// The device.
        target: String,
        /// Bytes that are enough.
        bytes_min: u64,
    },
    /// The device was opened for reading.
    #[error("{0} was opened for reading only; open it for writing")]
    ReadOnly(String),
    /// All extents are in use.
    #[error("the volume is full; remove files from it, or make a larger one")]
    Full,
    /// The directory does not fit into its slot.
    #[error("the volume's directory is full, as its files are in too many pieces; copy them to a new volume")]
    Fragmented,
    /// A name that a file cannot have.
    #[error("`{0}` is no name for a file: use 1 to 200 bytes without a slash")]
    Name(String),
    /// An offset that no file reaches.
    #[error("no file can be so long")]
    TooLong,
    /// The file was removed while it was open.
    #[error("the file was removed while it was open")]
    Removed,
    /// An earlier write failed.
    #[error("an earlier write failed ({0}), so nothing is written any more; open the volume again")]
    Failed(String),
    /// A connection was used while its thread ended.
    #[error("a database on a volume was used while its thread was ending; close it before")]
    ThreadEnds,
    /// There is a volume of this name.
    #[error("a volume is mounted as `{0}` already; take another name")]
    Mounted(String),
}

impl Error {
    /// A stable word for the kind of error.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Device(_) => "device",
            Self::Request { .. } => "request",
            Self::NoVolume(_) => "no volume",
            Self::Member { .. } => "member",
            Self::Twice(_) => "twice",
            Self::StripeUnit(_) => "stripe unit",
            Self::Small { .. } => "small",
            Self::ReadOnly(_) => "read only",
            Self::Full => "full",
            Self::Fragmented => "fragmented",
            Self::Name(_) => "name",
            Self::TooLong => "too long",
            Self::Removed => "removed",
            Self::Failed(_) => "failed",
            Self::ThreadEnds => "thread ends",
            Self::Mounted(_) => "mounted",
        }
    }
}
