//! For tests of the store only: what no user needs and no release contains (feature `testing`).

mod small;

pub use small::Small;
