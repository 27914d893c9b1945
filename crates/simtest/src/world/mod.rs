//! Small stores, tasks that work on them, and the history of their commits.

mod history;
mod look;
mod store;
mod work;

pub use history::{Change, Content, History, Shared};
pub use look::{look, same};
pub use store::{Shape, drive, segments_for, small};
pub use work::{Habits, Stop, Work, check};
