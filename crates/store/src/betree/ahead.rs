//! Makes room ahead of need: a part that will soon be full flushes its messages while other parts receive
//! theirs. So a flush rarely waits for the pages below it, and many of them are read at the same time.
//!
//! Only the holder of the tree's mutex, or a task that it has started for this, may change a part and the
//! pages below it. The holder waits for the end of a part's task before it touches the part.

use std::collections::BTreeMap;
use std::panic::resume_unwind;

use super::content::Group;
use crate::Error;
use crate::header::PageId;
use crate::sync::atomic::{AtomicUsize, Ordering};
use crate::sync::{Arc, Mutex, MutexGuard, PoisonError};
use crate::task::{Executor, JoinHandle};

type Task = JoinHandle<Result<(), Error>>;

/// Tasks that make room, or have made room since the part was changed last, by level and part.
#[derive(Default)]
pub(super) struct Ahead {
    tasks: Mutex<BTreeMap<(u16, PageId), Task>>,
    /// The number of tasks that have not ended.
    at_work: Arc<AtomicUsize>,
}

/// A task that makes room. It counts until it has ended, also by a panic.
struct AtWork(Arc<AtomicUsize>);

impl Drop for AtWork {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Ahead {
    fn tasks(&self) -> MutexGuard<'_, BTreeMap<(u16, PageId), Task>> {
        self.tasks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs `make_room` in the background for a part that has no task at present. Does nothing if `most`
    /// tasks, the caller included, are making room already.
    pub fn send_out(
        &self,
        executor: &Executor,
        (level, id): (u16, PageId),
        most: usize,
        make_room: impl FnOnce() -> Result<(), Error> + Send + 'static,
    ) {
        if self.at_work.load(Ordering::Relaxed) + 1 >= most {
            return;
        }
        self.at_work.fetch_add(1, Ordering::Relaxed);
        let at_work = AtWork(Arc::clone(&self.at_work));
        let task = executor.run_for(move || {
            let _ends_with_it = at_work;
            make_room()
        });
        let before = self.tasks().insert((level, id), task);
        debug_assert!(before.is_none(), "two make room in page {}", id.0);
    }

    /// The place of the first group, from the largest one on, whose child has no task that makes room; 0 if
    /// no group with at least half of the largest one's bytes has such a child. `level` is that of the
    /// children.
    pub fn fullest_idle(&self, level: u16, groups: &[Group]) -> Option<usize> {
        let fullest = groups.first()?;
        let tasks = self.tasks();
        let is_idle = |group: &Group| tasks.get(&(level, group.child)).is_none_or(Task::is_finished);
        let mut large = groups.iter().take_while(|group| group.bytes >= fullest.bytes / 2);
        Some(large.position(is_idle).unwrap_or(0))
    }

    /// Waits for the end of the task that makes room in a part. Returns whether it had one.
    ///
    /// # Errors
    /// The task's error.
    pub fn wait_for_room(&self, id: PageId, level: u16) -> Result<bool, Error> {
        let Some(task) = self.tasks().remove(&(level, id)) else { return Ok(false) };
        if planted!(PartChangedByTwo) {
            return Ok(false);
        }
        end(task).map(|()| true)
    }

    /// Waits for the end of all tasks that make room, from the highest parts down: a task starts others for
    /// the parts below its own, and waits for them before it goes there itself.
    ///
    /// # Errors
    /// The error of one of the tasks.
    pub fn wait_for_all_room(&self) -> Result<(), Error> {
        let mut made = Ok(());
        loop {
            let highest = self.tasks().pop_last();
            let Some((_, task)) = highest else { return made };
            made = made.and(end(task));
        }
    }
}

fn end(task: Task) -> Result<(), Error> {
    task.join().unwrap_or_else(|panic| resume_unwind(panic))
}
