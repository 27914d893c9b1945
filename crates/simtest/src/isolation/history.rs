//! History of transactions as their clients observed them.

use std::fmt;

/// Number of a list.
pub type Key = u32;

/// An operation of a transaction on a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Put a number at its end that is used nowhere else.
    Append(Key, u64),
    /// Found it to be this; one that does not exist is empty.
    Read(Key, Vec<u64>),
}

/// How a transaction ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It was told that it is committed.
    Committed,
    /// It was told that nothing of it was done, or never asked for its commit.
    Aborted,
    /// The store ended before it was told anything.
    Unknown,
}

/// A transaction, as it was seen from outside.
#[derive(Clone, Debug)]
pub struct Transaction {
    /// Session of the transaction; a session runs one transaction after the other.
    pub session: usize,
    /// Before it was begun, on a clock that only counts.
    pub begun: u64,
    /// Time after it was told of its end.
    pub ended: u64,
    /// Operations, in order.
    pub operations: Vec<Operation>,
    /// How it ended.
    pub outcome: Outcome,
}

/// Transactions in any order.
#[derive(Clone, Debug, Default)]
pub struct History {
    /// All of them.
    pub transactions: Vec<Transaction>,
}

impl Transaction {
    /// Its appends, as list and number, in order.
    pub fn appends(&self) -> impl Iterator<Item = (Key, u64)> {
        self.operations.iter().filter_map(|operation| match operation {
            Operation::Append(key, number) => Some((*key, *number)),
            Operation::Read(..) => None,
        })
    }

    /// Whether it only read.
    pub fn is_reader(&self) -> bool {
        self.appends().next().is_none()
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Append(key, number) => write!(formatter, "append {number} to {key}"),
            Self::Read(key, list) => write!(formatter, "read {key} = {list:?}"),
        }
    }
}

impl fmt::Display for Transaction {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "session {}, {}..{}, {:?}:", self.session, self.begun, self.ended, self.outcome)?;
        for operation in &self.operations {
            write!(formatter, " {operation};")?;
        }
        Ok(())
    }
}
