//! A ready application: keys and values.

use serde::{Deserialize, Serialize};

use crate::application::{Application, State};
use crate::config::GroupConfig;

/// The longest key of a [`Command`]. It is the same on all replicas, whatever their stores take: longer keys
/// are for none of them.
pub const KEY_BYTES_MAX: usize = 512;

/// A change of one key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Command {
    /// Gives the key this value.
    Put {
        /// The key.
        key: Vec<u8>,
        /// Its value.
        value: Vec<u8>,
    },
    /// Removes the key.
    Remove {
        /// The key.
        key: Vec<u8>,
    },
    /// Gives the key a value, or removes it, if it has the expected one.
    CompareAndSwap {
        /// The key.
        key: Vec<u8>,
        /// `None`: the key is to be missing.
        expected: Option<Vec<u8>>,
        /// `None` removes the key.
        new: Option<Vec<u8>>,
    },
}

/// The answer to a [`Command`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answer {
    /// The value that the key had before; `None` if it was missing.
    pub previous: Option<Vec<u8>>,
    /// Whether the command changed the state: false for a swap whose expectation failed, and for a key longer
    /// than [`KEY_BYTES_MAX`].
    pub is_done: bool,
}

/// Applies [`Command`]s. Reads go to the [`StateReader`](crate::StateReader).
#[derive(Clone, Copy, Debug, Default)]
pub struct KeyValue;

impl<C: GroupConfig<D = Command, R = Answer>> Application<C> for KeyValue {
    fn apply(&self, state: &mut State<'_>, request: &Command) -> Result<Answer, flashgrain::Error> {
        let (key, new, expected) = match request {
            Command::Put { key, value } => (key, Some(value), None),
            Command::Remove { key } => (key, None, None),
            Command::CompareAndSwap { key, expected, new } => (key, new.as_ref(), Some(expected)),
        };
        if key.len() > KEY_BYTES_MAX {
            return Ok(Answer::default());
        }
        let previous = state.get(key)?.map(|value| value.to_vec());
        if expected.is_some_and(|expected| *expected != previous) {
            return Ok(Answer { previous, is_done: false });
        }
        match new {
            Some(value) => state.insert(key, value)?,
            None => state.remove(key)?,
        }
        Ok(Answer { previous, is_done: true })
    }

    fn answer_to_none(&self) -> Answer {
        Answer::default()
    }
}
