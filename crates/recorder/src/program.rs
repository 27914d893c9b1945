//! The program whose system calls are recorded.

use std::ffi::OsString;
use std::fmt;

/// A program whose system calls are recorded.
#[derive(Clone, Debug)]
pub enum Program {
    /// A command and its arguments.
    Start(Vec<OsString>),
    /// The number of a process that runs.
    Attach(u32),
}

impl fmt::Display for Program {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Start(words) => {
                let words: Vec<_> = words.iter().map(|word| word.to_string_lossy()).collect();
                write!(formatter, "recorded: {}", words.join(" "))
            }
            Self::Attach(process) => write!(formatter, "recorded: process {process}"),
        }
    }
}
