//! Entry points for fuzzing: each decoder of bytes from a store's devices on its own. Two properties are
//! checked besides the absence of panics: a decoded value refers to nothing outside of its bytes, and
//! encoding it gives the same bytes again.
//!
//! Bytes that are guarded by a checksum are decoded twice: as they are, and with the right checksum put in,
//! as hardly any input would pass otherwise.

mod blocks;
mod log;
mod pages;
mod parts;
mod sectors;

pub use blocks::image_in_blocks;
pub use log::{catalog_entry, log_block, log_record, log_stream, reference};
pub use pages::{image, map, node, overflow};
pub use parts::part;
pub use sectors::{durable_mark, label, superblock};
