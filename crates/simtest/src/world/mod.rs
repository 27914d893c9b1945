//! Small stores, tasks that work on them, and the history of their commits.

mod be_trees;
mod history;
mod look;
mod lsm_trees;
mod store;
mod work;

pub use be_trees::BeTrees;
pub use history::{Change, Content, History, Shared};
pub use look::{look, same};
pub use lsm_trees::{LsmTrees, LsmTreesOf, segment_bytes};
pub use store::{Shape, drive, segments_for, small};
pub use work::{Habits, Stop, Work, check};
