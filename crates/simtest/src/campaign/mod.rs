//! What is done to stores, and what must come of it.

mod base;
mod compare;
mod counts;
mod crash;
mod failure;
mod faults;
mod kind;
mod life;
mod nth;
mod rot;
mod run;
mod seen;
mod shrink;
mod trace;

pub use base::{Base, random_cut};
pub use compare::{Found, compare};
pub use counts::{CASES, Counts};
pub use crash::Crash;
pub use failure::{Failure, quietly};
pub use faults::Faults;
pub use kind::{Allowed, Kind};
pub use life::Life;
pub use nth::Nth;
pub use rot::Rot;
pub use run::{Campaign, Extent, Report, run};
pub use seen::Seen;
pub use shrink::shrink;
