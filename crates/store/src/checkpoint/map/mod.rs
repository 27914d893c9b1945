//! The persistent page table: a chain of pages with changes, the oldest first.
//!
//! A checkpoint appends the changes since the one before. A chain begins with the whole table; when the
//! changes have become longer than that, a checkpoint begins a new chain and the old one is garbage. So a
//! checkpoint writes in proportion to the number of changes, and opening a store reads at most about twice
//! the size of the table.
//!
//! Map pages have serial numbers, which never repeat. Each names the locations of up to [`PRIORS`] pages
//! before it in the chain, so that a long chain is found with few reads that depend on each other.

mod chain;
mod codec;

pub(crate) use chain::places;
pub(crate) use codec::{Change, MapPage, MapPageLocation, PRIORS, Writer, page_id};
#[cfg(test)]
mod tests;
