//! `libaio`: the kernel's older asynchronous interface through its four system calls.

use std::io;
use std::os::fd::RawFd;

use super::files::Files;
use super::{Backend, Part, PartOp, discard};
use crate::Nanos;

const IOCB_CMD_PREAD: u16 = 0;
const IOCB_CMD_PWRITE: u16 = 1;
const IOCB_CMD_FDSYNC: u16 = 3;
const IOCB_CMD_POLL: u16 = 5;

/// The data of the request that ends waits; tokens are 32 bits wide.
const WATCH: u64 = u64::MAX;

/// Longest sleep in the kernel; the queue's loop comes back.
const NAP: Nanos = Nanos(1_000_000_000);

/// `struct iocb` of linux/aio_abi.h, little endian.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Iocb {
    data: u64,
    key: u32,
    rw_flags: i32,
    opcode: u16,
    priority: i16,
    fd: u32,
    memory: u64,
    length_bytes: u64,
    offset_bytes: i64,
    reserved: u64,
    flags: u32,
    event_fd: u32,
}

/// `struct io_event` of linux/aio_abi.h.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct IoEvent {
    data: u64,
    iocb: u64,
    result: i64,
    result2: i64,
}

/// The kernel's handle of a queue; destroyed, after waiting for requests in flight, when dropped.
struct Context(libc::c_ulong);

impl Context {
    fn new(events: u32) -> io::Result<Self> {
        let mut id: libc::c_ulong = 0;
        // SAFETY: the kernel writes one word to `id`.
        let result = unsafe { libc::syscall(libc::SYS_io_setup, events, &raw mut id) };
        if result < 0 { Err(io::Error::last_os_error()) } else { Ok(Self(id)) }
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        // SAFETY: `self.0` came from `io_setup` and is destroyed once; the kernel waits for requests in
        // flight.
        unsafe { libc::syscall(libc::SYS_io_destroy, self.0) };
    }
}

/// A queue of `io_submit` and `io_getevents`.
pub(crate) struct LibaioBackend {
    context: Context,
    files: Files,
    /// By token; the kernel copies an iocb at submission.
    iocbs: Box<[Iocb]>,
    /// Pointers into `iocbs`, staged and not yet taken by the kernel.
    staged: Vec<*mut Iocb>,
    events: Box<[IoEvent]>,
    events_ready: usize,
    events_next: usize,
    /// A file descriptor that ends waits when it becomes readable, if there is one; watched through the last
    /// iocb.
    watched: Option<RawFd>,
    /// Whether the kernel looks at it: each request for that is answered once.
    watching: bool,
    alarmed: bool,
    /// Results without an event: discards, which have no opcode, and refused submissions.
    done: Vec<(u32, i32)>,
}

/// Whether the kernel has the interface.
pub(crate) fn available() -> Result<(), String> {
    Context::new(1).map(drop).map_err(|error| match error.raw_os_error() {
        Some(libc::ENOSYS) => "the kernel was built without it (CONFIG_AIO)".into(),
        Some(libc::EAGAIN) => "the system's limit is used up: raise the sysctl fs.aio-max-nr".into(),
        Some(libc::EPERM) => "a security policy (seccomp) forbids io_setup".into(),
        _ => format!("io_setup: {error}"),
    })
}

impl LibaioBackend {
    pub(crate) fn new(files: Files, capacity: u32) -> io::Result<Self> {
        let size = capacity as usize + 1;
        Ok(Self {
            context: Context::new(capacity + 1)?,
            files,
            iocbs: vec![Iocb::default(); size].into(),
            staged: Vec::with_capacity(size),
            events: vec![IoEvent::default(); size].into(),
            events_ready: 0,
            events_next: 0,
            watched: None,
            watching: false,
            alarmed: false,
            done: Vec::with_capacity(size),
        })
    }

    /// Before a wait: has the kernel watch the descriptor that may end it.
    fn keep_watch(&mut self) {
        let Some(fd) = self.watched.filter(|_| !self.watching) else { return };
        if let Some(iocb) = self.iocbs.last_mut() {
            *iocb = Iocb {
                data: WATCH,
                opcode: IOCB_CMD_POLL,
                fd: fd as u32,
                memory: libc::POLLIN as u64,
                ..Iocb::default()
            };
            self.staged.push(iocb);
            self.watching = true;
        }
    }

    /// Hands staged iocbs over; iocbs that the kernel has no room for stay staged.
    fn submit(&mut self) {
        let mut taken = 0;
        while taken < self.staged.len() {
            let (count, first) = (self.staged.len() - taken, self.staged[taken..].as_mut_ptr());
            // SAFETY: `first` points at `count` pointers to iocbs that live in `self.iocbs`; the memory they
            // name is kept valid by the caller of `push`.
            let result = unsafe { libc::syscall(libc::SYS_io_submit, self.context.0, count, first) };
            if result > 0 {
                taken += result as usize;
                continue;
            }
            match io::Error::last_os_error().raw_os_error() {
                Some(libc::EINTR) => {}
                Some(libc::EAGAIN) | None => break,
                Some(errno) => {
                    // The first iocb was refused for itself: the error is its result, and the others go on.
                    // SAFETY: staged pointers point into `self.iocbs`.
                    let data = unsafe { (*self.staged[taken]).data };
                    if data == WATCH {
                        self.watched = None; // this kernel cannot: waits end by themselves only
                    } else {
                        self.done.push((data as u32, -errno));
                    }
                    taken += 1;
                }
            }
        }
        self.staged.drain(..taken);
    }
}

impl Backend for LibaioBackend {
    const LINKS: bool = false;

    fn has_room(&self, parts: u32) -> bool {
        self.staged.len() + (parts as usize) < self.iocbs.len()
    }

    unsafe fn push(&mut self, token: u32, part: &Part) {
        let fd = self.files.fd(part.member);
        let opcode = match part.op {
            PartOp::Read => IOCB_CMD_PREAD,
            PartOp::Write | PartOp::WriteDsync => IOCB_CMD_PWRITE,
            PartOp::Flush => IOCB_CMD_FDSYNC,
            PartOp::Discard => {
                self.done.push((token, discard(fd, part)));
                return;
            }
        };
        let is_flush = part.op == PartOp::Flush;
        let iocb = &mut self.iocbs[token as usize];
        *iocb = Iocb {
            data: u64::from(token),
            rw_flags: if part.op == PartOp::WriteDsync { libc::RWF_DSYNC } else { 0 },
            opcode,
            fd: fd as u32,
            memory: if is_flush { 0 } else { part.memory as u64 },
            length_bytes: if is_flush { 0 } else { u64::from(part.length_bytes) },
            offset_bytes: if is_flush { 0 } else { part.offset_bytes as i64 },
            ..Iocb::default()
        };
        self.staged.push(iocb);
    }

    fn enter(&mut self, at_least: u32, until: Option<Nanos>) -> io::Result<()> {
        if at_least > 0 {
            self.keep_watch();
        }
        self.submit();
        if self.events_next < self.events_ready || !self.done.is_empty() {
            return Ok(()); // results are waiting to be reaped
        }
        let wait_for = (at_least as usize).min(self.events.len());
        let span = match (wait_for, until) {
            (0, _) => Nanos(0),
            (_, Some(until)) => until.since(crate::clock::now()).min(NAP),
            (_, None) => NAP,
        };
        let mut timeout = span.to_timespec();
        (self.events_next, self.events_ready) = (0, 0);
        // SAFETY: the kernel writes at most `events.len()` events and reads one timespec.
        let result = unsafe {
            libc::syscall(
                libc::SYS_io_getevents,
                self.context.0,
                wait_for,
                self.events.len(),
                self.events.as_mut_ptr(),
                &raw mut timeout,
            )
        };
        if result >= 0 {
            self.events_ready = result as usize;
            return Ok(());
        }
        match io::Error::last_os_error() {
            error if error.raw_os_error() == Some(libc::EINTR) => Ok(()),
            error => Err(error),
        }
    }

    fn watch(&mut self, fd: RawFd) -> bool {
        self.watched = Some(fd);
        true
    }

    fn alarmed(&mut self) -> bool {
        std::mem::take(&mut self.alarmed)
    }

    fn reap(&mut self) -> Option<(u32, i32)> {
        while self.events_next < self.events_ready {
            let event = self.events[self.events_next];
            self.events_next += 1;
            if event.data == WATCH {
                (self.watching, self.alarmed) = (false, true);
                continue;
            }
            return Some((event.data as u32, i32::try_from(event.result).unwrap_or(-libc::EIO)));
        }
        self.done.pop()
    }
}
