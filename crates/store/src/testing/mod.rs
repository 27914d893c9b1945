//! For tests of the store only: what no user needs and no release contains (feature `testing`).

mod bugs;
mod small;

pub use bugs::{Bug, Finder, Planted};
pub use small::Small;
