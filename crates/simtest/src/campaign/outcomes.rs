//! How tasks on a store have ended.

use flashgrain::{Error, ErrorKind, JoinHandle};

use crate::world::Stop;

/// How tasks have ended; how many with an error that they may end with.
pub(super) fn outcomes(
    tasks: Vec<JoinHandle<Result<(), Stop>>>,
    may: impl Fn(&Error) -> bool,
) -> Result<u64, String> {
    let mut errors = 0;
    for task in tasks {
        if !task.is_finished() {
            return Err("tasks wait for each other".into());
        }
        match task.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)) {
            Ok(()) | Err(Stop::Error(Error::Full { .. })) => {}
            Err(Stop::Error(error)) if may(&error) => errors += 1,
            Err(Stop::Error(error)) => return Err(format!("while it was used: {error}")),
            Err(Stop::Wrong(what)) => return Err(what),
        }
    }
    Ok(errors)
}

/// Whether an error has a kind that tells the cause.
pub(super) fn is_typed(error: &Error) -> bool {
    use ErrorKind::{Closed, Corrupt, Dropped, Full, Io, NotDurable, NotFound, Poisoned, TreeFailed};
    matches!(
        error.kind(),
        Io | Poisoned | Corrupt | Full | Closed | NotDurable | NotFound | Dropped | TreeFailed
    )
}
