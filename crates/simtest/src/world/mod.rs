//! Small stores, tasks that work on them, and the history of their commits.

mod be_trees;
mod counts;
mod history;
mod look;
mod lsm_trees;
mod operands;
mod quietly;
mod store;
mod work;

pub use be_trees::BeTrees;
pub use counts::{CASES, Counts};
pub use history::{Change, Content, History, KeyRange, Shared};
pub use look::{look, same};
pub use lsm_trees::{LsmTrees, LsmTreesOf, segment_bytes};
pub use operands::{APPENDS, GROWS, MixedOperator, REMOVES, applied};
pub use quietly::quietly;
pub use store::{Shape, drive, segments_for, small};
pub use work::{Habits, Stop, Work, check};
