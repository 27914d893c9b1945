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
//! without all this: a program that notes positions in the file keeps them. After a crash, all synchronised
//! records are there, and a prefix of those that were appended after that.
//!
//! ```text
//! records    what programs call                      storage   what a file of records lies on
//! heads      pages with heads, and the order of      lock      locks between processes
//!            durable writes                          unpack    the way back to a plain file
//! counts     pages of earlier versions               known     what is known beyond the content
//! ```

mod counts;
mod heads;
mod known;
pub mod lock;
mod records;
mod storage;
mod unpack;

pub use heads::SyncPoint;
pub use records::{Kind, Records};
pub use storage::Storage;
pub use unpack::unpack;
