//! Ending a channel's wait from another thread, by an `eventfd`.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::sync::Arc;

use crate::{Nanos, clock};

/// Ends the waits of one channel. Any thread may hold a clone.
#[derive(Clone, Debug)]
pub struct ChannelWaker {
    event: Arc<OwnedFd>,
}

impl ChannelWaker {
    /// Makes the channel's current wait return, or its next one if none is under way. One system call.
    pub fn wake(&self) {
        let one = 1u64.to_ne_bytes();
        // SAFETY: the kernel reads eight bytes. It refuses only when the counter is full, and then it has
        // been rung already.
        unsafe { libc::write(self.event.as_raw_fd(), one.as_ptr().cast(), one.len()) };
    }
}

/// The channel's side.
pub(crate) struct Alarm(ChannelWaker);

impl Alarm {
    pub fn new() -> io::Result<Self> {
        // SAFETY: `eventfd` takes no memory of ours.
        let fd = unsafe { libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the descriptor was just made and has no other owner.
        let event = Arc::new(unsafe { OwnedFd::from_raw_fd(fd) });
        Ok(Self(ChannelWaker { event }))
    }

    pub fn waker(&self) -> ChannelWaker {
        self.0.clone()
    }

    /// Readable once it has been rung.
    pub fn fd(&self) -> RawFd {
        self.0.event.as_raw_fd()
    }

    /// Ready for the next time.
    pub fn reset(&self) {
        let mut count = [0u8; 8];
        // SAFETY: the kernel writes eight bytes, or refuses because it has not been rung.
        unsafe { libc::read(self.fd(), count.as_mut_ptr().cast(), count.len()) };
    }

    /// Sleeps until `until`, unless it is rung or a signal arrives.
    pub fn sleep_until(&self, until: Nanos) {
        let timeout = until.since(clock::now()).to_timespec();
        let mut poll = libc::pollfd { fd: self.fd(), events: libc::POLLIN, revents: 0 };
        // SAFETY: the kernel reads and writes one `pollfd` and reads one timespec.
        let rung = unsafe { libc::ppoll(&raw mut poll, 1, &raw const timeout, std::ptr::null()) };
        if rung > 0 {
            self.reset();
        }
    }
}

/// Lets time pass until `until`, or until the alarm rings, if there is one.
pub(crate) fn sleep(alarm: Option<&Alarm>, until: Nanos) {
    match alarm {
        Some(alarm) => alarm.sleep_until(until),
        None => clock::sleep_until(until),
    }
}
