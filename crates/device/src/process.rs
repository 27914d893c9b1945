//! Signals to other processes.

use crate::Error;

/// Asks a process to end, as Ctrl-C does (`SIGINT`).
///
/// # Errors
/// [`Error::Os`] if there is no such process, or if it is not ours.
pub fn interrupt_process(process: u32) -> Result<(), Error> {
    let process = libc::pid_t::try_from(process).unwrap_or(0);
    // Zero and negative numbers would mean groups of processes.
    // SAFETY: the call takes numbers and touches no memory.
    if process <= 0 || unsafe { libc::kill(process, libc::SIGINT) } != 0 {
        return Err(Error::last_os("ask a process to end"));
    }
    Ok(())
}
