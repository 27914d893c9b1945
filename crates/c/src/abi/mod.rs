//! The functions of `include/flashgrain.h`, one file for each type.
//!
//! Handles come as `Option<&T>`, `Option<&mut T>` and `Option<Box<T>>`, which are the pointers of C with null
//! as `None`. A pointer that is not null is trusted to be of a handle that was not freed, as the header
//! demands; `&mut` stands where it demands that no other thread uses the handle meanwhile.

#[macro_use]
mod arguments;

mod batch;
mod durability;
mod error;
mod fork;
mod handles;
mod iterator;
mod options;
mod range;
mod snapshot;
mod store;
#[cfg(test)]
mod tests;
mod transaction;
mod tree;
mod version;
