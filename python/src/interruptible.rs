//! Long computations that Ctrl-C ends.

use std::panic::resume_unwind;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::thread;
use std::time::Duration;

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

/// Time between two looks for signals.
const SIGNALS_EVERY: Duration = Duration::from_millis(50);

/// The result of `work`, which runs on a thread of its own without the interpreter lock, while this one looks
/// for signals. `work` is given a flag that becomes true at a signal that raises.
///
/// At such a signal this returns at once. The thread ends on its own: soon if it looks at the flag, otherwise
/// when its work is done, and the result is dropped.
///
/// # Errors
/// Those of the signal's handler, `KeyboardInterrupt` for Ctrl-C; `OSError` if no thread can be started.
pub fn run<R: Send + 'static>(
    py: Python<'_>,
    work: impl FnOnce(&AtomicBool) -> R + Send + 'static,
) -> PyResult<R> {
    let is_interrupted = Arc::new(AtomicBool::new(false));
    let (sender, mut receiver) = sync_channel(1);
    let flag = Arc::clone(&is_interrupted);
    let worker = thread::Builder::new().spawn(move || {
        // After a signal no one receives.
        let _dropped = sender.send(work(&flag));
    })?;
    loop {
        let received;
        (receiver, received) = py.detach(move || {
            let received = receiver.recv_timeout(SIGNALS_EVERY);
            (receiver, received)
        });
        match received {
            Ok(result) => return Ok(result),
            Err(RecvTimeoutError::Timeout) => py.check_signals().inspect_err(|_| {
                is_interrupted.store(true, Ordering::Relaxed);
            })?,
            Err(RecvTimeoutError::Disconnected) => {
                return match py.detach(|| worker.join()) {
                    Err(panic) => resume_unwind(panic),
                    Ok(()) => Err(PyRuntimeError::new_err("the computation ended without a result")),
                };
            }
        }
    }
}
