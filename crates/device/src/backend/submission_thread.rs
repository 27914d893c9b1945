//! A thread of the kernel that takes submissions from the rings of this process (`IORING_SETUP_SQPOLL`), so
//! that programs hand requests over without a system call.
//!
//! All rings share one thread (`IORING_SETUP_ATTACH_WQ`), which runs on a processor of its own if one is
//! named (`IORING_SETUP_SQ_AFF`). It looks for submissions without a pause until there have been none for
//! [`IDLE_MS`]; then it sleeps, and the next submission wakes it by a system call.

use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use io_uring::{Builder, IoUring, cqueue, squeue};

use crate::Origin;

/// Time without submissions after which the thread sleeps. Longer spans cost a processor while a program
/// works on something else.
const IDLE_MS: u32 = 10;

/// The processors that a thread can be bound to, as far as this program counts them.
const PROCESSORS_MAX: u32 = 4096;

/// See the module. Lives as long as a ring of its, or its next user, holds it.
#[derive(Debug)]
pub(crate) struct SubmissionThread {
    fd: RawFd,
    processor: Option<u32>,
    origin: Origin,
    _ring: HeldRing,
}

/// The ring that the thread was made for. It carries nothing; others are attached to it.
struct HeldRing(#[expect(dead_code, reason = "held so that others can be attached to it")] IoUring);

impl std::fmt::Debug for HeldRing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("HeldRing")
    }
}

/// The threads of this process, one for each processor that was named, and one for none.
static THREADS: Mutex<Vec<Weak<SubmissionThread>>> = Mutex::new(Vec::new());

impl SubmissionThread {
    /// This process's thread on `processor`, started unless it runs already.
    ///
    /// # Errors
    /// That of the kernel, as for any ring; `EINVAL` for a processor that is not there.
    pub fn shared(processor: Option<u32>) -> io::Result<Arc<Self>> {
        let mut threads = THREADS.lock().unwrap_or_else(PoisonError::into_inner);
        threads.retain(|thread| thread.strong_count() > 0);
        let is_it = |thread: &Arc<Self>| thread.processor == processor && thread.origin.is_here();
        if let Some(thread) = threads.iter().filter_map(Weak::upgrade).find(is_it) {
            return Ok(thread);
        }
        let mut builder = IoUring::<squeue::Entry, cqueue::Entry>::builder();
        Self::set_up(&mut builder, processor)?;
        let ring = builder.build(1)?;
        let (fd, origin) = (ring.as_raw_fd(), Origin::here());
        let thread = Arc::new(Self { fd, processor, origin, _ring: HeldRing(ring) });
        threads.push(Arc::downgrade(&thread));
        Ok(thread)
    }

    /// Has a ring that is built next served by this thread.
    pub fn attach<S: squeue::EntryMarker, C: cqueue::EntryMarker>(&self, builder: &mut Builder<S, C>) {
        builder.setup_sqpoll(IDLE_MS).setup_attach_wq(self.fd);
    }

    fn set_up<S: squeue::EntryMarker, C: cqueue::EntryMarker>(
        builder: &mut Builder<S, C>,
        processor: Option<u32>,
    ) -> io::Result<()> {
        builder.setup_sqpoll(IDLE_MS);
        if let Some(processor) = processor {
            if processor >= PROCESSORS_MAX {
                return Err(io::Error::from_raw_os_error(libc::EINVAL));
            }
            builder.setup_sqpoll_cpu(processor);
        }
        Ok(())
    }
}

/// Whether the kernel lets this process have such a thread, and it can be of use here.
pub(crate) fn available() -> Result<(), String> {
    SubmissionThread::shared(None).map(drop).map_err(|error| match error.raw_os_error() {
        Some(libc::EPERM) => "needs root (CAP_SYS_ADMIN or CAP_SYS_NICE) before Linux 5.13".into(),
        _ => format!("a ring with a thread of the kernel: {error}"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_of_a_process_share_one_thread() {
        let Ok(first) = SubmissionThread::shared(None) else { return };
        let second = SubmissionThread::shared(None).unwrap();
        assert!(Arc::ptr_eq(&first, &second));
        let bound = SubmissionThread::shared(Some(0)).unwrap();
        assert!(!Arc::ptr_eq(&first, &bound));
    }

    #[test]
    fn a_processor_that_is_not_there_is_refused() {
        let refused = SubmissionThread::shared(Some(u32::MAX)).unwrap_err();
        assert_eq!(refused.raw_os_error(), Some(libc::EINVAL));
    }
}
