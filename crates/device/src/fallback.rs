//! Chooses the backend of a device's channels if the best one is not available to all of them.
//!
//! A limit, such as that on locked memory, shows only when a channel is opened, which may be the hundredth.
//! If the user has not named a backend, that channel and all later ones use the next best backend that is
//! available, and a note names the limit and its remedy:
//!
//! 1. `io_uring` with registered memory, then without, which only costs some processor time;
//! 2. `libaio`;
//! 3. `sync`, which takes nothing but the files themselves.
//!
//! Invariant: the backend in use only ever gets simpler, so that measurements do not alternate between
//! backends.

use std::io;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use crate::backend::BackendKind;
use crate::limits::Limit;

/// A ring that was closed gives its memory back in the kernel's own time.
const SETTLE: Duration = Duration::from_millis(20);

/// How often a queue is tried to be had again after that.
const TRIES: u32 = 3;

/// See the module.
#[derive(Debug)]
pub(crate) struct Fallback {
    /// Index in [`BackendKind::ALL`].
    kind: AtomicU8,
    /// Whether the user named no backend.
    automatic: bool,
    notes: Mutex<Vec<String>>,
}

impl Fallback {
    /// The backend `kind` for a `reason`: because it was asked for, or because it is the best.
    pub fn new(kind: BackendKind, automatic: bool, reason: &str) -> Self {
        let remedies =
            [Limit::LockedMemory, Limit::AddressSpace, Limit::Files].into_iter().filter_map(Limit::remedy);
        let is_short = automatic && remedies.into_iter().any(|remedy| reason.contains(&remedy));
        let notes = is_short.then(|| format!("I/O goes by {}, {reason}", kind.name()));
        Self { kind: AtomicU8::new(index(kind)), automatic, notes: Mutex::new(notes.into_iter().collect()) }
    }

    /// The backend of the channels that are opened next.
    pub fn kind(&self) -> BackendKind {
        let index = usize::from(self.kind.load(Ordering::Relaxed));
        BackendKind::ALL.get(index).copied().unwrap_or(BackendKind::Sync)
    }

    /// Notes on the limits that keep better backends from being used, with their remedies.
    pub fn notes(&self) -> Vec<String> {
        self.notes.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Opens a channel by the best backend that can be had.
    pub fn open<T>(&self, mut open: impl FnMut(BackendKind) -> io::Result<T>) -> io::Result<T> {
        let mut kind = self.kind();
        let mut tries = 0;
        loop {
            let error = match open(kind) {
                Err(error) if is_shortage(&error) => error,
                done => return done,
            };
            if error.raw_os_error() == Some(libc::ENOMEM) && tries < TRIES {
                tries += 1;
                thread::park_timeout(SETTLE);
                continue;
            }
            let Some(next) = kind.next().filter(|_| self.automatic) else { return Err(error) };
            let remedy = remedy(&error).map_or_else(String::new, |remedy| format!(": {remedy}"));
            self.note(format!(
                "{} could not be had for all queues ({error}{remedy}); {} took over",
                kind.name(),
                next.name()
            ));
            (kind, tries) = (next, 0);
            self.kind.fetch_max(index(kind), Ordering::Relaxed);
        }
    }

    /// Memory could not be registered.
    pub fn note_unregistered(&self) {
        let remedy = Limit::LockedMemory.remedy().unwrap_or_default();
        self.note(format!(
            "memory for I/O could not be registered with the kernel, which costs some processor time: {remedy}"
        ));
    }

    /// Completions are to be polled for, and are not.
    pub fn note_unpolled(&self, why: &str) {
        self.note(format!("completions are not polled for: {why}"));
    }

    fn note(&self, text: String) {
        let mut notes = self.notes.lock().unwrap_or_else(PoisonError::into_inner);
        if !notes.contains(&text) {
            notes.push(text);
        }
    }
}

/// Index of a backend in [`BackendKind::ALL`].
fn index(kind: BackendKind) -> u8 {
    BackendKind::ALL.iter().position(|one| *one == kind).unwrap_or(0) as u8
}

/// Remedy for a shortage.
fn remedy(error: &io::Error) -> Option<String> {
    match error.raw_os_error()? {
        libc::ENOMEM => Limit::LockedMemory.remedy().or_else(|| Limit::AddressSpace.remedy()),
        libc::EMFILE => Limit::Files.remedy(),
        // This is an error of `io_setup`.
        libc::EAGAIN => Some("raise the sysctl fs.aio-max-nr".into()),
        _ => None,
    }
}

/// Whether something is short that another backend does not need.
fn is_shortage(error: &io::Error) -> bool {
    matches!(
        error.raw_os_error(),
        Some(libc::ENOMEM | libc::EMFILE | libc::ENFILE | libc::EAGAIN | libc::EPERM | libc::ENOSYS)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn short(errno: i32) -> io::Error {
        io::Error::from_raw_os_error(errno)
    }

    #[test]
    fn the_next_best_takes_over_with_a_note_and_stays() {
        let fallback = Fallback::new(BackendKind::IoUring, true, "");
        let open = |kind| if kind == BackendKind::IoUring { Err(short(libc::EMFILE)) } else { Ok(kind) };
        assert_eq!(fallback.open(open).unwrap(), BackendKind::Libaio);
        assert_eq!(fallback.kind(), BackendKind::Libaio);
        let note = fallback.notes().join("");
        assert!(
            note.contains("io_uring") && note.contains("libaio took over") && note.contains("ulimit -n"),
            "{note}"
        );
        // Even if the better one could be had again.
        assert_eq!(fallback.open(Ok::<_, io::Error>).unwrap(), BackendKind::Libaio);
        let only_sync = |kind| if kind == BackendKind::Sync { Ok(kind) } else { Err(short(libc::EAGAIN)) };
        assert_eq!(fallback.open(only_sync).unwrap(), BackendKind::Sync);
    }

    #[test]
    fn a_shortage_that_passes_is_waited_for() {
        let fallback = Fallback::new(BackendKind::IoUring, true, "");
        let mut tries = 0;
        let open = |kind| {
            tries += 1;
            if tries < 3 { Err(short(libc::ENOMEM)) } else { Ok(kind) }
        };
        assert_eq!(fallback.open(open).unwrap(), BackendKind::IoUring);
        assert!(fallback.notes().is_empty());
    }

    #[test]
    fn what_was_asked_for_and_what_is_no_shortage_fails() {
        let asked = Fallback::new(BackendKind::IoUring, false, "");
        assert!(asked.open(|_| Err::<(), _>(short(libc::EMFILE))).is_err());
        let automatic = Fallback::new(BackendKind::IoUring, true, "");
        assert!(automatic.open(|_| Err::<(), _>(short(libc::EIO))).is_err());
        assert_eq!(automatic.kind(), BackendKind::IoUring);
    }
}
