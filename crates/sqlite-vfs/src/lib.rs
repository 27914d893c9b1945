//! SQLite on the grain of a drive: the future work of the hidden-parameters paper (§6), its layout techniques
//! as a layer that any application can use, without a change to SQLite or to the application.
//!
//! The VFS `flashgrain` wraps SQLite's default VFS and moves the content of a database file to the places of
//! its layout (*use-hot-locations*, §3.3); locks, shared memory, syncing and all other files stay with the
//! default VFS. `docs/sqlite.md` says how a database gets a layout and how its journals are handled.
//!
//! The VFS `flashgrain-device` is the same before a [`Volume`]: databases, journals and logs on any device,
//! without a file system.
//!
//! - As a loadable extension, this library is `libflashgrain_sqlite_vfs.so`.
//! - In a Rust program, hand [`auto_extension`] to `sqlite3_auto_extension`: the VFS is there from the next
//!   opened connection on.
//! - [`convert`] copies databases into a layout and out of it, without SQLite.
//!
//! The crate links no SQLite: it calls the functions of the table that SQLite hands to an extension.
//!
//! From the top: `native` (SQLite's C interface, and all of the `unsafe` code) asks `shape` where the bytes
//! of a file are, and `names` for the names of a database's journal and log; `page_sums` has the checksums of
//! pages, and `mounts` the volumes.

pub mod convert;
mod log_shape;
mod mounts;
mod names;
mod native;
mod page_sums;
mod shape;
mod split;
#[cfg(feature = "testing")]
pub mod testing;
mod volume;

pub use mounts::{create_files, mount, open_files, unmount};
pub use native::{auto_extension, sqlite3_flashgrainsqlitevfs_init};
pub use volume::{Error as VolumeError, Sent, Volume, VolumeOptions};

/// The name under which SQLite registers the VFS.
pub const VFS_NAME: &str = "flashgrain";

/// The same before volumes, instead of the system's files.
pub const DEVICE_VFS_NAME: &str = "flashgrain-device";

/// The program of the guide, as a test.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/sqlite.md")]
mod guides {}
