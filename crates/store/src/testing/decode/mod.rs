//! Everything that is decoded from a store's devices, each decoder on its own, for fuzzing: bytes in, and no
//! panic. What decodes says nothing that reaches out of its bytes, and comes back from being encoded.
//!
//! Where a checksum guards the bytes, they are decoded twice: as they are, and with the checksum made right,
//! as nearly nothing else would get past it.

mod log;
mod pages;
mod sectors;

pub use log::{catalog_entry, log_block, log_record, log_stream, reference};
pub use pages::{image, map, node, overflow};
pub use sectors::{durable_mark, label, superblock};
