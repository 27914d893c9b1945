//! The VFS whose files are those of volumes. It has no name in SQLite: a [shim](super::vfs) stands before it.

mod file;
mod vfs;

pub(super) use vfs::make;
