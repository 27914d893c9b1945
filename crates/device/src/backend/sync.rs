//! `pread` and `pwrite`: the fallback that works everywhere, and the interface that most programs still use.

use std::collections::VecDeque;
use std::io;
use std::os::fd::RawFd;

use super::files::Files;
use super::{Backend, Part, PartOp, discard, flush, or_errno};
use crate::Nanos;

/// Runs staged parts one after another on the calling thread.
pub(crate) struct SyncBackend {
    files: Files,
    staged: VecDeque<(u32, Part)>,
    done: VecDeque<(u32, i32)>,
    capacity: usize,
}

impl SyncBackend {
    pub(crate) fn new(files: Files, capacity: u32) -> Self {
        let capacity = capacity as usize;
        Self {
            files,
            staged: VecDeque::with_capacity(capacity),
            done: VecDeque::with_capacity(capacity),
            capacity,
        }
    }

    fn run(&self, part: &Part) -> i32 {
        let fd = self.files.fd(part.member);
        let (offset, length) = (part.offset_bytes as libc::off_t, part.length_bytes as usize);
        match part.op {
            // SAFETY: the caller of `push` keeps `memory` valid for `length` bytes and unaliased until the
            // part is reaped.
            PartOp::Read => or_errno(unsafe { libc::pread(fd, part.memory.cast(), length, offset) }),
            // SAFETY: as above.
            PartOp::Write => or_errno(unsafe { libc::pwrite(fd, part.memory.cast(), length, offset) }),
            PartOp::WriteDsync => {
                let vector = libc::iovec { iov_base: part.memory.cast(), iov_len: length };
                // SAFETY: as above; the vector lives through the call.
                or_errno(unsafe { libc::pwritev2(fd, &raw const vector, 1, offset, libc::RWF_DSYNC) })
            }
            PartOp::Flush => flush(fd),
            PartOp::Discard => discard(fd, part),
        }
    }
}

impl Backend for SyncBackend {
    const LINKS: bool = false;

    fn has_room(&self, parts: u32) -> bool {
        self.staged.len() + parts as usize <= self.capacity
    }

    unsafe fn push(&mut self, token: u32, part: &Part) {
        self.staged.push_back((token, *part));
    }

    fn enter(&mut self, _at_least: u32, _until: Option<Nanos>) -> io::Result<()> {
        // One at a time, so that each result is returned as soon as it is there, and a caller that only polls
        // makes progress.
        if let Some((token, part)) = self.staged.pop_front() {
            let result = self.run(&part);
            self.done.push_back((token, result));
        }
        Ok(())
    }

    fn watch(&mut self, _fd: RawFd) -> bool {
        true // it never waits
    }

    fn alarmed(&mut self) -> bool {
        false
    }

    fn reap(&mut self) -> Option<(u32, i32)> {
        self.done.pop_front()
    }
}
