//! `io_uring`: a pair of rings shared with the kernel.
//!
//! Single issuer, deferred task running (completions are processed when this thread enters the kernel anyway,
//! not by interrupting it), registered files, registered memory and a registered ring descriptor; polled
//! completions on request. The parts' form in the ring is an [`Encoding`]'s matter.

use std::io;
use std::os::fd::RawFd;
use std::sync::Arc;

use io_uring::squeue::Entry;
use io_uring::types::{Fd, SubmitArgs, Timespec};
use io_uring::{IoUring, cqueue, opcode, squeue};

use super::files::Files;
use super::submission_thread::SubmissionThread;
use super::{Backend, Part};
use crate::limits::{Limit, remedy_for};
use crate::{Arena, Nanos, Origin};

/// The kernel's limit on submission entries; completion rings may be twice as long.
const SUBMISSION_ENTRIES_MAX: u32 = 32_768;

/// A submission ring this long holds any sensible batch; deeper queues are handed over in several.
const SUBMISSION_ENTRIES: u32 = 1_024;

/// The user data of the request that ends waits; tokens are 32 bits wide.
const WATCH: u64 = u64::MAX;

/// The index under which the arena is registered.
pub(super) const ARENA_INDEX: u16 = 0;

/// The form that parts have in a ring.
pub(crate) trait Encoding {
    type Submission: squeue::EntryMarker + From<Entry>;
    type Completion: cqueue::EntryMarker + Into<cqueue::Entry>;

    /// Whether parts may have to be shorter than requests.
    const CUTS: bool = false;

    /// The largest part.
    fn part_bytes_max(&self) -> u32 {
        u32::MAX
    }

    /// The submission entry of a part. `registered`: whether its memory is. An entry may name memory of the
    /// encoding's own, which stays as it is until the token comes back.
    fn entry(&mut self, token: u32, part: &Part, registered: bool) -> Self::Submission;

    /// Adds flags and user data.
    fn marked(entry: Self::Submission, flags: squeue::Flags, user_data: u64) -> Self::Submission;

    /// Does a part at once, blocking, if a polled ring cannot carry it.
    fn run(&mut self, token: u32, part: &Part) -> Option<i32>;

    /// The result of a part in the form of a system call's.
    fn result(&self, token: u32, result: i32) -> i32;
}

/// Properties of a ring.
#[derive(Clone, Default)]
pub(crate) struct RingOptions {
    /// The most parts in flight.
    pub capacity: u32,
    /// Memory to register.
    pub arena: Option<Arc<Arena>>,
    /// Completions are polled for.
    pub polled: bool,
    /// The thread of the kernel that takes submissions; `None`: the caller hands them over.
    pub thread: Option<Arc<SubmissionThread>>,
}

/// A ring with its registered files and memory.
pub(crate) struct UringBackend<E: Encoding> {
    ring: IoUring<E::Submission, E::Completion>,
    encoding: E,
    /// Registered range of memory, empty if none is.
    registered: std::ops::Range<usize>,
    /// Whether a limit kept memory from being registered.
    unregistered: bool,
    /// Results of operations that a polled ring cannot carry.
    done: Vec<(u32, i32)>,
    polled: bool,
    /// A file descriptor that ends waits when it becomes readable, if there is one.
    watched: Option<RawFd>,
    /// Whether the ring looks at it: each request for that is answered once.
    watching: bool,
    alarmed: bool,
    /// The process whose ring it is.
    origin: Origin,
    /// Keeps the files open.
    _files: Files,
    /// Keeps the registered memory mapped, and the thread at hand for others.
    options: RingOptions,
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

/// Whether the kernel lets this process make a ring for `capacity` parts in flight.
pub(crate) fn ample(capacity: u32) -> Result<(), String> {
    available()?;
    let options = RingOptions { capacity, ..RingOptions::default() };
    build::<squeue::Entry, cqueue::Entry>(&options).map(drop).map_err(|error| match error.raw_os_error() {
        Some(libc::ENOMEM) => no_memory(),
        _ => format!("a ring for {capacity} requests: {error}"),
    })
}

fn no_memory() -> String {
    let remedy = Limit::LockedMemory.remedy().or_else(|| Limit::AddressSpace.remedy());
    remedy.unwrap_or_else(|| "the system has no memory for its rings".into())
}

impl<E: Encoding> UringBackend<E> {
    /// A ring over `files`. Memory that cannot be registered (a tight `ulimit -l`) is used unregistered.
    pub(crate) fn new(files: Files, encoding: E, options: RingOptions) -> io::Result<Self> {
        let ring = build(&options)?;
        ring.submitter().register_files(files.fds())?;
        // This saves the kernel a descriptor look-up per call, and is harmless where it is refused.
        drop(ring.submitter().register_ring_fd());
        let registered = options.arena.as_ref().map(|arena| {
            let start = arena.as_ptr();
            let vector = libc::iovec { iov_base: start.cast(), iov_len: arena.len_bytes() };
            // SAFETY: `options` keeps the mapping alive as long as the ring, which is dropped first (field
            // order).
            let result = unsafe { ring.submitter().register_buffers(&[vector]) };
            result.map(|()| start as usize..start as usize + arena.len_bytes())
        });
        let unregistered = registered.as_ref().is_some_and(|registered| {
            registered.as_ref().is_err_and(|error| error.raw_os_error() == Some(libc::ENOMEM))
        });
        Ok(Self {
            ring,
            encoding,
            registered: registered.and_then(Result::ok).unwrap_or(0..0),
            unregistered,
            done: Vec::with_capacity(options.capacity as usize),
            polled: options.polled,
            watched: None,
            watching: false,
            alarmed: false,
            origin: Origin::here(),
            _files: files,
            options,
        })
    }

    /// Whether memory was to be registered and a limit kept it from that.
    pub(crate) fn is_unregistered(&self) -> bool {
        self.unregistered
    }

    /// Before a wait: has the ring watch the descriptor that may end it. Without room, this wait is not
    /// ended; the next one is.
    fn keep_watch(&mut self) {
        if let Some(fd) = self.watched.filter(|_| !self.watching) {
            let entry = opcode::PollAdd::new(Fd(fd), libc::POLLIN as u32).build().user_data(WATCH);
            // SAFETY: a poll uses no memory; the queue keeps the descriptor open as long as this ring.
            self.watching = unsafe { self.ring.submission().push(&entry.into()) }.is_ok();
        }
    }

    /// Polls the drive and the watched descriptor in turn until there are enough completions: a polled ring
    /// watches no descriptors, and in the kernel it would not look at this one.
    fn poll_until(&mut self, fd: RawFd, at_least: u32, until: Option<Nanos>) -> io::Result<()> {
        loop {
            self.ring.submit().map(drop).or_else(ignore_temporary)?;
            if self.ring.completion().len() >= at_least as usize {
                return Ok(());
            }
            let mut watched = libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
            // SAFETY: the kernel writes to one `pollfd`.
            if unsafe { libc::poll(&raw mut watched, 1, 0) } > 0 {
                self.alarmed = true;
                return Ok(());
            }
            if until.is_some_and(|until| crate::clock::now() >= until) {
                return Ok(());
            }
        }
    }
}

/// The ring with every feature of a current kernel, or with fewer on an older one.
fn build<S: squeue::EntryMarker, C: cqueue::EntryMarker>(options: &RingOptions) -> io::Result<IoUring<S, C>> {
    let capacity = options.capacity;
    let completions = (capacity + 1).next_power_of_two().clamp(64, 2 * SUBMISSION_ENTRIES_MAX);
    let submissions = capacity.next_power_of_two().clamp(8, SUBMISSION_ENTRIES);
    let mut modern = IoUring::builder();
    modern.setup_cqsize(completions).setup_clamp().setup_submit_all().setup_single_issuer();
    let mut old = IoUring::builder();
    old.setup_cqsize(completions).setup_clamp();
    match &options.thread {
        // Completions are processed on that thread.
        Some(thread) => [&mut modern, &mut old].into_iter().for_each(|builder| thread.attach(builder)),
        None => drop(modern.setup_defer_taskrun().setup_taskrun_flag()),
    }
    if options.polled {
        modern.setup_iopoll();
        old.setup_iopoll();
    }
    match modern.build(submissions) {
        Err(error) if error.raw_os_error() == Some(libc::EINVAL) => old.build(submissions),
        result => result,
    }
}

impl<E: Encoding> Backend for UringBackend<E> {
    const LINKS: bool = true;
    const CUTS: bool = E::CUTS;

    fn part_bytes_max(&self) -> u32 {
        self.encoding.part_bytes_max()
    }

    fn has_room(&self, parts: u32) -> bool {
        // SAFETY: this backend is the ring's only user and makes no second view of the submission queue while
        // this one lives.
        let queue = unsafe { self.ring.submission_shared() };
        queue.capacity() - queue.len() >= parts as usize
    }

    unsafe fn push(&mut self, token: u32, part: &Part) {
        if self.polled
            && let Some(result) = self.encoding.run(token, part)
        {
            self.done.push((token, result));
            return;
        }
        let start = part.memory as usize;
        let registered =
            self.registered.start <= start && start + part.length_bytes as usize <= self.registered.end;
        let flags = if part.link { squeue::Flags::IO_LINK } else { squeue::Flags::empty() };
        let entry = E::marked(self.encoding.entry(token, part, registered), flags, u64::from(token));
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
            let is_polled_here = self.polled && self.options.thread.is_none();
            let (_, queue, _) = self.ring.split();
            let idle = queue.is_empty() && !queue.taskrun() && !queue.cq_overflow() && !is_polled_here;
            drop(queue);
            return if idle { Ok(()) } else { self.ring.submit().map(drop).or_else(ignore_temporary) };
        }
        match self.watched {
            Some(fd) if self.polled => return self.poll_until(fd, at_least, until),
            _ => self.keep_watch(),
        }
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
        true
    }

    fn alarmed(&mut self) -> bool {
        std::mem::take(&mut self.alarmed)
    }

    fn reap(&mut self) -> Option<(u32, i32)> {
        while let Some(entry) = self.ring.completion().next() {
            let entry: cqueue::Entry = entry.into();
            if entry.user_data() != WATCH {
                let token = entry.user_data() as u32;
                return Some((token, self.encoding.result(token, entry.result())));
            }
            (self.watching, self.alarmed) = (false, true);
        }
        self.done.pop()
    }
}

impl<E: Encoding> Drop for UringBackend<E> {
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
