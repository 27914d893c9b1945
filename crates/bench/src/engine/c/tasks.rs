//! Clients in tasks of a store that is written in C.

use std::ffi::c_void;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Mutex, PoisonError};

/// `peer_job`.
type RunJob = unsafe extern "C" fn(context: *mut c_void, client: usize);

/// `run` of `struct peer`.
pub(super) type RunTasks =
    unsafe extern "C" fn(store: *mut c_void, clients: usize, job: RunJob, context: *mut c_void);

type Work<'a> = &'a (dyn Fn(usize) -> anyhow::Result<()> + Sync);

struct Context<'a> {
    work: Work<'a>,
    /// Clients that have ended, with their results.
    ended: Mutex<Vec<(usize, std::thread::Result<anyhow::Result<()>>)>>,
}

/// # Safety
/// `context` is a [`Context`] that stays during the call.
unsafe extern "C" fn run_job(context: *mut c_void, client: usize) {
    // SAFETY: as the caller promises.
    let context = unsafe { &*context.cast_const().cast::<Context<'_>>() };
    // A panic must not go through C.
    let result = catch_unwind(AssertUnwindSafe(|| (context.work)(client)));
    context.ended.lock().unwrap_or_else(PoisonError::into_inner).push((client, result));
}

/// Runs `work` for each client in a task of the store until all have ended. A panic of a client is resumed
/// here.
///
/// # Errors
/// The first, by number of the client, that `work` has returned; or that a client was not run.
///
/// # Safety
/// `run` may be called with this store.
pub(super) unsafe fn run_tasks(
    run: RunTasks,
    store: *mut c_void,
    clients: usize,
    work: Work<'_>,
) -> anyhow::Result<()> {
    let context = Context { work, ended: Mutex::default() };
    // SAFETY: `run` gets its store, and calls the job only while it runs, so that the context stays.
    unsafe { run(store, clients, run_job, (&raw const context).cast_mut().cast()) };
    let mut ended = context.ended.into_inner().unwrap_or_else(PoisonError::into_inner);
    anyhow::ensure!(ended.len() == clients, "the store has run {} of {clients} clients", ended.len());
    ended.sort_unstable_by_key(|(client, _)| *client);
    ended.into_iter().try_for_each(|(_, result)| result.unwrap_or_else(|panic| resume_unwind(panic)))
}

#[cfg(test)]
mod tests {
    use std::ptr::null_mut;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    /// The last client first, as a store may.
    unsafe extern "C" fn backwards(_: *mut c_void, clients: usize, job: RunJob, context: *mut c_void) {
        for client in (0..clients).rev() {
            // SAFETY: the context is the one of this job.
            unsafe { job(context, client) }
        }
    }

    unsafe extern "C" fn all_but_one(store: *mut c_void, clients: usize, job: RunJob, context: *mut c_void) {
        // SAFETY: as `backwards` asks.
        unsafe { backwards(store, clients - 1, job, context) }
    }

    fn run(run: RunTasks, work: Work<'_>) -> anyhow::Result<()> {
        // SAFETY: these functions use no store.
        unsafe { run_tasks(run, null_mut(), 4, work) }
    }

    #[test]
    fn every_client_runs_and_the_first_error_is_returned() {
        let calls = AtomicUsize::new(0);
        let fail = |client| {
            calls.fetch_add(1_usize << (8 * client), Ordering::Relaxed);
            anyhow::ensure!(client % 2 == 0, "client {client}");
            Ok(())
        };
        assert_eq!(run(backwards, &fail).unwrap_err().to_string(), "client 1");
        assert_eq!(calls.into_inner(), 0x0101_0101);
    }

    #[test]
    fn a_panic_is_resumed_after_all_clients_have_ended() {
        let calls = AtomicUsize::new(0);
        let panics = |client| {
            calls.fetch_add(1, Ordering::Relaxed);
            assert!(client != 2, "client {client}");
            Ok(())
        };
        let panic = catch_unwind(AssertUnwindSafe(|| run(backwards, &panics))).unwrap_err();
        assert_eq!(panic.downcast_ref::<String>().unwrap(), "client 2");
        assert_eq!(calls.into_inner(), 4);
    }

    #[test]
    fn a_client_that_was_not_run_is_an_error() {
        let error = run(all_but_one, &|_| Ok(())).unwrap_err();
        assert_eq!(error.to_string(), "the store has run 3 of 4 clients");
    }
}
