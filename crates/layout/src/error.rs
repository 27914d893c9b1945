//! Why a layout cannot be made or read.

/// A layout that cannot be made or read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A size outside the range of the technique.
    #[error("{what} is {bytes} bytes, but must be {allowed}")]
    Size {
        /// The object that has the size.
        what: &'static str,
        /// The size.
        bytes: u64,
        /// Sizes that are possible.
        allowed: &'static str,
    },
    /// A flash page of a file of records whose head is none that was ever written.
    #[error(
        "the flash page at byte {offset_bytes} is damaged: {problem}; restore the file from a backup, or keep the bytes before it with `truncate --size {offset_bytes}`"
    )]
    Page {
        /// Where the page begins, in bytes of the file.
        offset_bytes: u64,
        /// The defect.
        problem: &'static str,
    },
    /// A text that describes no layout.
    #[error(
        "`{text}` is no layout; write one as hot:CHUNK:OFFSET in bytes, such as hot:65536:32768, followed by +log:STRIPE for an aligned log, and +checksums for checksums of pages"
    )]
    Text {
        /// The text.
        text: String,
    },
    /// A header of ours that does not have the checksum that it says.
    #[error(
        "the layout header is damaged: its checksum is {expected:08x}, its bytes have {got:08x}; restore the file from a backup"
    )]
    Checksum {
        /// The checksum in the header.
        expected: u32,
        /// The checksum of its bytes.
        got: u32,
    },
    /// A whole header that says something that this version does not know.
    #[error("the layout was written by a newer version of Flashgrain; use that one")]
    Newer,
}

impl Error {
    /// A stable word for the kind of error.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Size { .. } => "size",
            Self::Page { .. } => "page",
            Self::Text { .. } => "text",
            Self::Checksum { .. } => "checksum",
            Self::Newer => "newer",
        }
    }
}
