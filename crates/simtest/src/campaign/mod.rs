//! What is done to stores, and what must come of it.

mod counts;
mod crash;
mod failure;
mod life;
mod run;
mod seen;
mod shrink;
mod trace;

pub use counts::Counts;
pub use crash::Crash;
pub use failure::{Failure, quietly};
pub use life::Life;
pub use run::{Campaign, Extent, Report, run};
pub use seen::Seen;
pub use shrink::shrink;
