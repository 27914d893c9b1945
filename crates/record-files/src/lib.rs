//! Files of records that only grow, such as a database's binary log, by the technique
//! *contain-write-in-flash-page* (hidden-parameters paper §3.3, Figure 10): a record that would touch one
//! flash page more than it must begins at the next page instead.
//!
//! ```text
//! 0        ├ header: magic, technique, bytes of a flash page, checksum
//! first    ├ flash pages: see `flashgrain_layout::FlashPages`
//! ```
//!
//! `first` is 4096, or a flash page if that is larger. [`Records`] has the offsets that a program would have
//! without all this: whatever notes positions in the file keeps them. What it promises is what a plain file
//! promises: after a crash, what was synchronised is there, and of what was written behind it a prefix.
//!
//! Pages at the end that never reached the drive are zero, and end the records there. A page whose count of
//! its bytes is damaged is an error with its offset, and so is one that is empty with something behind it:
//! it was damaged, or, in a crash before all was synchronised, the drive kept a later page and lost this one.

pub mod lock;
mod records;
mod unpack;

pub use records::{Kind, Records};
pub use unpack::unpack;
