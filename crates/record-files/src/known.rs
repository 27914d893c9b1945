//! Facts about a file beyond its content.

use std::ops::Range;

/// See the module. All are logical offsets.
#[derive(Clone, Debug, Default)]
pub(crate) struct Known {
    /// All before is durable.
    pub(crate) durable: u64,
    /// The largest durable offset that heads have.
    pub(crate) written: u64,
    /// The same of heads that are durable themselves.
    pub(crate) noted: u64,
    /// Pages whose heads durably say that all of them is durable.
    pub(crate) noted_pages: Range<usize>,
    /// How often the file has become shorter.
    pub(crate) shortened: u32,
    /// The last change was made by another process, or before this one had opened the file.
    pub(crate) is_by_others: bool,
    /// How often this process has written heads, or shortened the file.
    pub(crate) heads: u64,
}

impl Known {
    /// Heads that were not written, or not all, say nothing, but may be on the drive.
    pub(crate) fn after_failure(self) -> Self {
        Self { heads: self.heads + 1, noted_pages: 0..0, ..self }
    }
}
