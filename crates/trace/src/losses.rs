//! Information that a trace lacks, counted by kind.

use std::collections::BTreeMap;

/// The reason why a request is missing from a reader's output or has no known place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Loss {
    /// Bytes were appended to a file whose end the trace does not tell.
    UnknownEnd,
    /// A descriptor was used whose opening the trace does not show.
    UnknownDescriptor,
    /// A call moved bytes between descriptors inside the kernel (`sendfile`, `copy_file_range`, `splice`).
    InsideKernel,
    /// Requests went through io_uring, whose queues no system call shows.
    IoUring,
    /// A file was mapped into memory, whose reads and writes no system call shows.
    Mapped,
    /// A line could not be understood.
    Line,
    /// The recorder's buffers were full.
    Overrun,
    /// A call was still under way where the trace ends.
    Unfinished,
    /// A request was issued whose completion was not seen.
    Incomplete,
    /// The drive's own counters have more requests than the recording.
    Missing,
    /// The file was gone when its place on the drive was to be looked up.
    Unmapped,
}

impl Loss {
    /// All kinds.
    pub const ALL: [Self; 11] = [
        Self::UnknownEnd,
        Self::UnknownDescriptor,
        Self::InsideKernel,
        Self::IoUring,
        Self::Mapped,
        Self::Line,
        Self::Overrun,
        Self::Unfinished,
        Self::Incomplete,
        Self::Missing,
        Self::Unmapped,
    ];

    /// Its word in trace files and in JSON.
    pub fn word(self) -> &'static str {
        match self {
            Self::UnknownEnd => "unknown_end",
            Self::UnknownDescriptor => "unknown_descriptor",
            Self::InsideKernel => "inside_kernel",
            Self::IoUring => "io_uring",
            Self::Mapped => "mapped",
            Self::Line => "line",
            Self::Overrun => "overrun",
            Self::Unfinished => "unfinished",
            Self::Incomplete => "incomplete",
            Self::Missing => "missing",
            Self::Unmapped => "unmapped",
        }
    }

    /// The kind that a word names.
    pub fn of_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|loss| loss.word() == word)
    }

    /// Its meaning, in words that follow a count.
    pub fn meaning(self) -> &'static str {
        match self {
            Self::UnknownEnd => "appends to files whose end is unknown are left out",
            Self::UnknownDescriptor => {
                "reads and writes of descriptors whose opening was not seen are left out"
            }
            Self::InsideKernel => {
                "calls that move bytes inside the kernel (sendfile, copy_file_range, splice) are left out"
            }
            Self::IoUring => {
                "requests through io_uring show in no system call: record block requests to see them"
            }
            Self::Mapped => {
                "files were mapped into memory: record block requests to see their reads and writes"
            }
            Self::Line => "lines were not understood",
            Self::Overrun => "events were lost because the recorder's buffers were full",
            Self::Unfinished => "calls were under way when the trace ended",
            Self::Incomplete => "requests have no completion in the trace",
            Self::Missing => "requests are in the counters of drives and not in the trace",
            Self::Unmapped => {
                "requests were to files that were gone before their place on the drive was known: offsets in the file count"
            }
        }
    }
}

/// Counts by kind.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Losses(BTreeMap<Loss, u64>);

impl Losses {
    /// Counts `count` more of a kind.
    pub fn add(&mut self, loss: Loss, count: u64) {
        if count > 0 {
            let total = self.0.entry(loss).or_default();
            *total = total.saturating_add(count);
        }
    }

    /// Adds the counts of `other`.
    pub fn add_all(&mut self, other: &Self) {
        for (loss, count) in other.iter() {
            self.add(loss, count);
        }
    }

    /// The kinds that occurred, with their counts.
    pub fn iter(&self) -> impl Iterator<Item = (Loss, u64)> {
        self.0.iter().map(|(loss, count)| (*loss, *count))
    }

    /// How often a kind occurred.
    pub fn count(&self, loss: Loss) -> u64 {
        self.0.get(&loss).copied().unwrap_or(0)
    }
}
