//! Ctrl-C and termination requests: the first asks the running work to end cleanly, the second ends the
//! process at once.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;

/// Whether the user wants the command to end, and by which signal it was said.
#[derive(Debug, Default)]
pub struct Interrupt {
    wanted: Arc<AtomicBool>,
    signal: Arc<AtomicUsize>,
    /// Text on what the command leaves behind if it is ended now, if it leaves anything.
    left: Mutex<Option<String>>,
}

impl Interrupt {
    /// From now on signals set the flag that is returned. Call it only from commands that look at the flag;
    /// the others keep the system's default of ending at once.
    pub fn watch(&self) -> io::Result<&AtomicBool> {
        for signal in [SIGINT, SIGTERM] {
            // Order matters: the shutdown looks at the flag before this same signal sets it.
            flag::register_conditional_shutdown(signal, 128 + signal, Arc::clone(&self.wanted))?;
            flag::register_usize(signal, Arc::clone(&self.signal), signal as usize)?;
            flag::register(signal, Arc::clone(&self.wanted))?;
        }
        Ok(&self.wanted)
    }

    /// The flag, for work that goes on in tasks of its own.
    pub fn flag(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.wanted)
    }

    /// Sets the text on what is left behind if the command is ended from now on.
    pub fn leaves(&self, text: impl Into<String>) {
        *self.left.lock().unwrap_or_else(PoisonError::into_inner) = Some(text.into());
    }

    /// Text on what is left behind, for a command that was ended.
    pub fn left(&self) -> String {
        let left = self.left.lock().unwrap_or_else(PoisonError::into_inner);
        left.clone().unwrap_or_else(|| "nothing was left behind".into())
    }

    /// Whether the user wants an end.
    pub fn is_wanted(&self) -> bool {
        self.wanted.load(Ordering::Relaxed)
    }

    /// The exit code that a shell expects of a command that a signal ended.
    pub fn exit_code(&self) -> u8 {
        let signal = match self.signal.load(Ordering::Relaxed) {
            0 => SIGINT,
            signal => signal as i32,
        };
        (128 + signal) as u8
    }
}
