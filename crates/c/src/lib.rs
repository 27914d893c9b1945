//! The store for programs in C: the functions of `include/flashgrain.h`, and LevelDB's C API
//! (`include/leveldb/c.h`) on the same store. `docs/c.md` is the guide.
//!
//! Invariants:
//! - No panic leaves a function: it becomes an error of the status "internal" (`call`).
//! - A null pointer to a handle, to an argument or to the place of a result is an error, not a crash.
//!   Pointers that are not null are trusted: the headers say when they are freed, and by which function.
//! - Memory that a program frees with `free` comes from the C library's `malloc` (`memory`).
//! - The modules with exported functions are private: programs in Rust use the store itself.

mod abi;
mod argument;
mod call;
mod leveldb;
mod memory;
mod reading;
mod status;
mod walk;
