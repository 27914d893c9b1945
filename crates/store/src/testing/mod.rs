//! Parts for tests of the store only, which no user needs and no release contains (feature `testing`).
//!
//! A thread changes its own planted bug, trouble, limits and preemptions, and no other thread's.

mod bugs;
pub mod decode;
mod early;
mod kind;
mod observe;
mod preempt;
mod small;
mod steps;
mod superblock;
mod trouble;

pub use bugs::{Bug, Finder, Planted};
pub use early::{Early, EarlyLimits, early};
pub(crate) use early::{is_full_early, staged_writes};
pub use kind::{
    TreesOf, be_trees_of, blocks_of_trees, kind_of_trees, lsm_trees_of, trees_in_blocks, trees_of,
};
pub(crate) use kind::{are_jobs_eager, options_of_trees};
pub(crate) use observe::tell_committed;
pub use observe::{Observer, TaskKey, commit_of, last_commit, observe, task_key};
pub(crate) use preempt::point;
pub use preempt::{Preempted, preempt};
pub use small::Small;
pub(crate) use steps::count_step;
pub use steps::steps;
pub use superblock::{DeviceUse, device_use};
pub use trouble::{Listener, Trouble, Troubled};
