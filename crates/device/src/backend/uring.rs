//! `io_uring`: a pair of rings shared with the kernel.
//!
//! Single issuer, deferred task running (completions are processed when this thread enters the kernel anyway,
//! not by interrupting it), registered files, registered memory and a registered ring descriptor; polled
//! completions on request.

use std::io;
use std::os::fd::RawFd;
use std::sync::Arc;

use io_uring::squeue::{Entry, Flags};
use io_uring::types::{Fd, Fixed, FsyncFlags, SubmitArgs, Timespec};
use io_uring::{IoUring, opcode};

use super::files::Files;
use super::{Backend, DISCARD_MODE, Part, PartOp, discard, flush};
use crate::limits::{Limit, remedy_for};
use crate::{Arena, Nanos, Origin};

/// The kernel's limit on submission entries; completion rings may be twice as long.
const SUBMISSION_ENTRIES_MAX: u32 = 32_768;

/// A submission ring this long holds any sensible batch; deeper queues are handed over in several.
const SUBMISSION_ENTRIES: u32 = 1_024;

/// The user data of the request that ends waits; tokens are 32 bits wide.
const WATCH: u64 = u64::MAX;

/// The index under which the arena is registered.
const ARENA_INDEX: u16 = 0;

/// A ring with its registered files and memory.
pub(crate) struct UringBackend {
    ring: IoUring,
    files: Files,
    /// Registered range of memory, empty if none is.
    registered: std::ops::Range<usize>,
    /// Whether a limit kept memory from being registered.
    unregistered: bool,
    /// Results of operations that a polled ring cannot carry: flushes and discards are done at once,
    /// blocking.
    done: Vec<(u32, i32)>,
    polled: bool,
    /// A file descriptor that ends waits when it becomes readable, if there is one.
    watched: Option<RawFd>,
    /// Whether the ring looks at it: each request for that is answered once.
    watching: bool,
    alarmed: bool,
    /// The process whose ring it is.
    origin: Origin,
    /// Keeps the registered memory mapped.
    _arena: Option<Arc<Arena>>,
}

/// Whether the kernel lets this process make a ring.
pub(crate) fn available() -> Result<(), String> {
    let setting = std::fs::read_to_string("/proc/sys/kernel/io_uring_disabled").unwrap_or_default();
    IoUring::new(2).map(drop).map_err(|error| match error.raw_os_error() {
        Some(libc::ENOSYS) => "the kernel has no io_uring, or a container's policy (seccomp) hides it".into(),
        Some(libc::EPERM) if matches!(setting.trim(), "1" | "2") => {
            format!("forbidden by the sysctl kernel.io_uring_disabled={}", setting.trim())
        }
        Some(libc::EPERM) => {
            "a security policy (seccomp) forbids io_uring_setup, as containers often do".into()
        }
        Some(libc::ENOMEM) => no_memory(),
        _ => match remedy_for(&error) {
            Some(remedy) => remedy,
            None => format!("io_uring_setup: {error}"),
        },
    })
}

/// Whether the kernel lets this process make a ring for so many parts in flight.
pub(crate) fn ample(capacity: u32) -> Result<(), String> {
    available()?;
    build(capacity, false).map(drop).map_err(|error| match error.raw_os_error() {
        Some(libc::ENOMEM) => no_memory(),
        _ => format!("a ring for {capacity} requests: {error}"),
    })
}

fn no_memory() -> String {
    let remedy = Limit::LockedMemory.remedy().or_else(|| Limit::AddressSpace.remedy());
    remedy.unwrap_or_else(|| "the system has no memory for its rings".into())
}

impl UringBackend {
    /// A ring for `capacity` parts in flight. Memory that cannot be registered (a tight `ulimit -l`) is used
    /// unregistered.
    pub(crate) fn new(
        files: Files,
        capacity: u32,
        arena: Option<Arc<Arena>>,
        polled: bool,
    ) -> io::Result<Self> {
        let ring = build(capacity, polled)?;
        ring.submitter().register_files(files.fds())?;
        // This saves the kernel a descriptor look-up per call, and is harmless where it is refused.
        drop(ring.submitter().register_ring_fd());
        let registered = arena.as_ref().map(|arena| {
            let start = arena.as_ptr();
            let vector = libc::iovec { iov_base: start.cast(), iov_len: arena.len_bytes() };
            // SAFETY: `_arena` keeps the mapping alive as long as the ring, which is dropped first (field
            // order).
            let result = unsafe { ring.submitter().register_buffers(&[vector]) };
            result.map(|()| start as usize..start as usize + arena.len_bytes())
        });
        let unregistered = registered.as_ref().is_some_and(|registered| {
            registered.as_ref().is_err_and(|error| error.raw_os_error() == Some(libc::ENOMEM))
        });
        Ok(Self {
            ring,
            files,
            registered: registered.and_then(Result::ok).unwrap_or(0..0),
            unregistered,
            done: Vec::with_capacity(capacity as usize),
            polled,
            watched: None,
            watching: false,
            alarmed: false,
            origin: Origin::here(),
            _arena: arena,
        })
    }

    /// Whether memory was to be registered and a limit kept it from that.
    pub(crate) fn is_unregistered(&self) -> bool {
        self.unregistered
    }

    fn entry(&self, part: &Part) -> Entry {
        let file = Fixed(part.member);
        let (memory, length, offset) = (part.memory, part.length_bytes, part.offset_bytes);
        let start = memory as usize;
        let registered = self.registered.start <= start && start + length as usize <= self.registered.end;
        let sync = if part.op == PartOp::WriteDsync { libc::RWF_DSYNC } else { 0 };
        match part.op {
            PartOp::Read if registered => {
                opcode::ReadFixed::new(file, memory, length, ARENA_INDEX).offset(offset).build()
            }
            PartOp::Read => opcode::Read::new(file, memory, length).offset(offset).build(),
            PartOp::Write | PartOp::WriteDsync if registered => {
                opcode::WriteFixed::new(file, memory, length, ARENA_INDEX)
                    .offset(offset)
                    .rw_flags(sync)
                    .build()
            }
            PartOp::Write | PartOp::WriteDsync => {
                opcode::Write::new(file, memory, length).offset(offset).rw_flags(sync).build()
            }
            PartOp::Flush => opcode::Fsync::new(file).flags(FsyncFlags::DATASYNC).build(),
            PartOp::Discard => {
                opcode::Fallocate::new(file, u64::from(length)).offset(offset).mode(DISCARD_MODE).build()
            }
        }
    }
}

impl UringBackend {
    /// Before a wait: has the ring watch the descriptor that may end it. Without room, this wait is not
    /// ended; the next one is.
    fn keep_watch(&mut self) {
        if let Some(fd) = self.watched.filter(|_| !self.watching) {
            let entry = opcode::PollAdd::new(Fd(fd), libc::POLLIN as u32).build().user_data(WATCH);
            // SAFETY: a poll uses no memory; the queue keeps the descriptor open as long as this ring.
            self.watching = unsafe { self.ring.submission().push(&entry) }.is_ok();
        }
    }
}

/// The ring with every feature of a current kernel, or with fewer on an older one.
fn build(capacity: u32, polled: bool) -> io::Result<IoUring> {
    let completions = (capacity + 1).next_power_of_two().clamp(64, 2 * SUBMISSION_ENTRIES_MAX);
    let submissions = capacity.next_power_of_two().clamp(8, SUBMISSION_ENTRIES);
    let mut modern = IoUring::builder();
    modern.setup_cqsize(completions).setup_clamp().setup_submit_all();
    modern.setup_single_issuer().setup_defer_taskrun().setup_taskrun_flag();
    let mut old = IoUring::builder();
    old.setup_cqsize(completions).setup_clamp();
    if polled {
        modern.setup_iopoll();
        old.setup_iopoll();
    }
    match modern.build(submissions) {
        Err(error) if error.raw_os_error() == Some(libc::EINVAL) => old.build(submissions),
        result => result,
    }
}

impl Backend for UringBackend {
    const LINKS: bool = true;

    fn has_room(&self, parts: u32) -> bool {
        // SAFETY: this backend is the ring's only user and makes no second view of the submission queue while
        // this one lives.
        let queue = unsafe { self.ring.submission_shared() };
        queue.capacity() - queue.len() >= parts as usize
    }

    unsafe fn push(&mut self, token: u32, part: &Part) {
        if self.polled && matches!(part.op, PartOp::Flush | PartOp::Discard) {
            let fd = self.files.fd(part.member);
            let result = if part.op == PartOp::Flush { flush(fd) } else { discard(fd, part) };
            self.done.push((token, result));
            return;
        }
        let flags = if part.link { Flags::IO_LINK } else { Flags::empty() };
        let entry = self.entry(part).user_data(u64::from(token)).flags(flags);
        // SAFETY: the caller keeps the memory valid until the token is reaped; files are registered as long
        // as the ring lives.
        let pushed = unsafe { self.ring.submission().push(&entry) };
        debug_assert!(pushed.is_ok(), "push needs room");
    }

    fn enter(&mut self, at_least: u32, until: Option<Nanos>) -> io::Result<()> {
        if !self.done.is_empty() {
            return self.ring.submitter().submit().map(drop).or_else(ignore_temporary);
        }
        if at_least == 0 {
            let (_, queue, _) = self.ring.split();
            let idle = queue.is_empty() && !queue.taskrun() && !queue.cq_overflow() && !self.polled;
            drop(queue);
            return if idle { Ok(()) } else { self.ring.submit().map(drop).or_else(ignore_temporary) };
        }
        self.keep_watch();
        let result = match until {
            None => self.ring.submit_and_wait(at_least as usize),
            Some(until) => {
                let span = until.since(crate::clock::now());
                let timeout = Timespec::from(std::time::Duration::from(span));
                self.ring
                    .submitter()
                    .submit_with_args(at_least as usize, &SubmitArgs::new().timespec(&timeout))
            }
        };
        result.map(drop).or_else(ignore_temporary)
    }

    fn watch(&mut self, fd: RawFd) -> bool {
        self.watched = Some(fd);
        !self.polled // such a ring takes nothing but reads and writes
    }

    fn alarmed(&mut self) -> bool {
        std::mem::take(&mut self.alarmed)
    }

    fn reap(&mut self) -> Option<(u32, i32)> {
        while let Some(entry) = self.ring.completion().next() {
            if entry.user_data() != WATCH {
                return Some((entry.user_data() as u32, entry.result()));
            }
            (self.watching, self.alarmed) = (false, true);
        }
        self.done.pop()
    }
}

impl Drop for UringBackend {
    /// The kernel takes a closed ring apart in its own time; given back explicitly, a device that was opened
    /// exclusively is free at once.
    fn drop(&mut self) {
        if !self.origin.is_here() {
            // It would be the parent's, which goes on with it.
            return;
        }
        drop(self.ring.submitter().unregister_files());
        drop(self.ring.submitter().unregister_buffers());
    }
}

/// Interrupted, timed out, short of memory or with a full completion ring: the queue's loop comes back.
fn ignore_temporary(error: io::Error) -> io::Result<()> {
    match error.raw_os_error() {
        Some(libc::EINTR | libc::ETIME | libc::EAGAIN | libc::EBUSY) => Ok(()),
        _ => Err(error),
    }
}
