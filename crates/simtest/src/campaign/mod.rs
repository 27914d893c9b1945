//! What is done to stores, and what must come of it.

mod crash;
mod failure;
mod seen;

pub use crash::{Crash, Life, Tally, live};
pub use failure::{Failure, quietly};
pub use seen::Seen;
