//! Settings as types: those that a drive's profile decides, and those of a store's layout.
//!
//! [`drive::Setting`] and [`layout::Setting`] declare every setting once, with the type of its value, the
//! words that people and files call it, and the range of its value in a file. A profile makes
//! [`drive::Decision`]s, a store reads these and makes [`layout::Decision`]s, and reports show both. Looking
//! up a setting that does not exist, or taking its value for another type, does not compile.
//!
//! In a file a setting is its name, its value in words and, where the value is a number, the amount for
//! programs. A setting that this version does not know is kept with its words as `Unknown`, so that it can be
//! shown and written again; nothing else can be done with it. A value out of range is an [`Error`].
//!
//! This crate knows no measurement, no model of a drive and no store, and decides nothing but the design of
//! an LSM-tree for a declared workload ([`LsmWorkload`]), on which a store and the advice about it must
//! agree, and that of a Bε-tree for a drive ([`BeTreeDesign`]).

mod amount;
mod be_tree_design;
mod declare;
pub mod drive;
mod error;
pub mod layout;
mod lsm;
mod lsm_tables;
pub mod lsm_usual;
mod lsm_workload;
mod placement;
mod stored;
mod sync_method;
mod typed;
pub mod unit;
mod value;

pub use amount::Amount;
pub use be_tree_design::{BeTreeDesign, BeTreeSurroundings};
pub use error::Error;
pub use flashgrain_cost::dictionary::PART_MEMORY_DIVISOR_MIN;
pub use flashgrain_cost::lsm::{Layout as LsmLayout, Metadata as LsmMetadata};
pub use lsm::FilterBits;
pub use lsm_workload::{LsmDesign, LsmSurroundings, LsmWorkload};
pub use placement::{PagePlacement, Placement, SegmentShape};
pub use stored::Unknown;
pub use sync_method::SyncMethod;
pub use typed::parse_bytes;
pub use value::{Bytes, Count, Fraction};
