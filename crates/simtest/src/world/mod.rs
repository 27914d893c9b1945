//! Small stores, what works on them, and what is known about them.

mod history;
mod look;
mod store;
mod work;

pub use history::{Change, Content, History, Shared};
pub use look::{look, same};
pub use store::{Shape, drive, small};
pub use work::{Habits, Stop, Work, check};
