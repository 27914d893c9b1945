//! An opened store, compared with its expected content.

use std::fmt;

use flashgrain::testing::last_commit;
use flashgrain::{Db, Error};

use crate::world::{Shared, same};

/// Comparison of a store's content with the history of its commits.
#[derive(Debug)]
pub enum Found {
    /// Exactly the commits up to this one.
    Right(u64),
    /// Something else.
    Wrong(String),
    /// Exactly the commits up to this one; later ones were acknowledged as durable.
    Lost(u64),
    /// It could not be read whole.
    Unreadable(u64, Error),
}

/// Looks at everything. Commits from the first to the second of `bounds` may be the last.
pub fn compare(db: &Db, shared: &Shared, bounds: (u64, u64)) -> Found {
    let last = last_commit(db);
    let (acknowledged, given) = bounds;
    if last > given {
        return Found::Wrong(format!("recovered are {last} commits of only {given}"));
    }
    // Reads may have to wait, and other threads must not wait for the history meanwhile.
    let content = shared.get().content(last);
    match same(db, &content) {
        Err(error) => Found::Unreadable(last, error),
        Ok(Some(problem)) => {
            Found::Wrong(format!("of {last} commits ({acknowledged} to {given} were possible), {problem}"))
        }
        Ok(None) if last < acknowledged => Found::Lost(last),
        Ok(None) => Found::Right(last),
    }
}

impl fmt::Display for Found {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Right(last) => write!(formatter, "right: {last} commits"),
            Self::Wrong(what) => formatter.write_str(what),
            Self::Lost(last) => {
                write!(formatter, "lost: recovered are {last} commits, more were acknowledged")
            }
            Self::Unreadable(last, error) => write!(formatter, "of {last} commits, cannot be read: {error}"),
        }
    }
}
