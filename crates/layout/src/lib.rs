//! Where the bytes of a file lie, so that a program follows the grain of its drive: the three layout
//! techniques of the hidden-parameters paper (§3.3) as mappings from logical to physical offsets.
//!
//! - [`HotLocations`] (*use-hot-locations*, Figure 9): pages begin at the drive's hot locations.
//! - [`AlignedFrames`] (*write-aligned-stripes*, Figure 11): frames of a log are as large as their pages, and
//!   headers lie in a reserved part of the page.
//! - [`FlashPages`] (*contain-write-in-flash-page*, Figure 10): records touch as few flash pages as they can.
//!
//! A logical offset is a program's, a physical one is the place of the bytes in the file. A file's statement
//! of its own layout, a [`Layout`] or that of a log, is in its [`header`]; [`stripe_pieces`] splits a write
//! where stripes begin.
//!
//! This crate does no I/O and knows no drive: sizes come from its caller, which has learned them. Nothing
//! that is decoded here is trusted.

mod aligned_frames;
mod error;
mod flash_pages;
pub mod header;
mod hot_locations;
mod layout;
mod page_checksum;
mod page_head;
mod stripe_pieces;

pub use aligned_frames::{
    AlignedFrames, FRAME_HEADER_BYTES, LOG_HEADER_AT, LOG_HEADER_BYTES, Place, PlacedPiece,
};
pub use error::Error;
pub use flash_pages::{FlashPages, PAGE_COUNT_BYTES};
pub use hot_locations::HotLocations;
pub use layout::Layout;
pub use page_checksum::{PAGE_CHECKSUM_BYTES, open_page, seal_page};
pub use page_head::{PAGE_HEAD_BYTES, PageHead, sum};
pub use stripe_pieces::stripe_pieces;

/// Bytes without a gap, on either side of a mapping.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// The place where the program believes them to be.
    pub logical: u64,
    /// Their place in the file.
    pub physical: u64,
    /// How many there are; not zero.
    pub length_bytes: u64,
}
