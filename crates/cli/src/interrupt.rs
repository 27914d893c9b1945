//! Ctrl-C and termination requests: the first asks the running work to end cleanly, the second ends the
//! process at once.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, mpsc};
use std::time::Duration;

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;

use flashgrain_profile::Error as ProfileError;

/// Interval at which a command checks whether the user wants an end, during work that knows no interrupt.
const TICK: Duration = Duration::from_millis(20);

/// Whether the user wants the command to end, and the signal that said so.
#[derive(Debug, Default)]
pub struct Interrupt {
    wanted: Arc<AtomicBool>,
    signal: Arc<AtomicUsize>,
    /// Text on the remains of the command if it is ended now, if it leaves any.
    left: Mutex<Option<String>>,
    watching: OnceLock<()>,
}

impl Interrupt {
    /// From now on signals set the flag that is returned. Call it only from commands that look at the flag;
    /// the others keep the system's default of ending at once.
    pub fn watch(&self) -> io::Result<&AtomicBool> {
        let mut registered = Ok(());
        self.watching.get_or_init(|| registered = self.register());
        registered.map(|()| &*self.wanted)
    }

    fn register(&self) -> io::Result<()> {
        for signal in [SIGINT, SIGTERM] {
            // Order matters: the shutdown looks at the flag before this same signal sets it.
            flag::register_conditional_shutdown(signal, 128 + signal, Arc::clone(&self.wanted))?;
            flag::register_usize(signal, Arc::clone(&self.signal), signal as usize)?;
            flag::register(signal, Arc::clone(&self.wanted))?;
        }
        Ok(())
    }

    /// The flag, for work that goes on in tasks of its own.
    pub fn flag(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.wanted)
    }

    /// Sets the text on the remains of the command if it is ended from now on.
    pub fn leaves(&self, text: impl Into<String>) {
        *self.left.lock().unwrap_or_else(PoisonError::into_inner) = Some(text.into());
    }

    /// Text on the remains of a command that was ended.
    pub fn left(&self) -> String {
        let left = self.left.lock().unwrap_or_else(PoisonError::into_inner);
        left.clone().unwrap_or_else(|| "nothing was left".into())
    }

    /// Whether the user wants an end.
    pub fn is_wanted(&self) -> bool {
        self.wanted.load(Ordering::Relaxed)
    }

    /// Has `work` done that knows no interrupt, in a thread of its own, by a command that
    /// [watches](Self::watch). If the user wants an end, that thread is left alone until the process ends:
    /// nothing must depend on the end of the work.
    ///
    /// # Errors
    /// That of [`ProfileError::Interrupted`]; one of the system if it has no more threads.
    pub fn unless_wanted<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> anyhow::Result<T> {
        let (sender, results) = mpsc::sync_channel(1);
        let worker = std::thread::Builder::new().spawn(move || sender.send(work()))?;
        loop {
            if self.is_wanted() {
                return Err(ProfileError::Interrupted.into());
            }
            match results.recv_timeout(TICK) {
                Ok(result) => return Ok(result),
                Err(mpsc::RecvTimeoutError::Timeout) => {}
                Err(mpsc::RecvTimeoutError::Disconnected) => match worker.join() {
                    Err(panic) => std::panic::resume_unwind(panic),
                    Ok(_) => anyhow::bail!("the work ended without a result"),
                },
            }
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_that_knows_no_interrupt_is_left_alone_once_an_end_is_wanted() {
        let interrupt = Interrupt::default();
        assert_eq!(interrupt.unless_wanted(|| 7).unwrap(), 7);
        let (ends, ended) = mpsc::channel::<()>();
        let wanted = interrupt.flag();
        let work = move || {
            wanted.store(true, Ordering::Relaxed);
            ended.recv()
        };
        let error = interrupt.unless_wanted(work).unwrap_err();
        assert!(matches!(error.downcast_ref(), Some(ProfileError::Interrupted)), "{error}");
        drop(ends);
    }
}
