//! Room is made ahead: a part that will soon be full flushes its messages while others get theirs. So a flush
//! hardly waits for the pages below it, and reads of many of them are under way at a time.
//!
//! Who may change a part and all below it is the holder of the tree's turn, or a task that it has sent out
//! for this. Before anybody else touches a part for which a task is under way, it waits for that one's end.

use std::collections::BTreeMap;
use std::panic::resume_unwind;

use super::content::Group;
use super::levels::LEVEL_MIN;
use super::tree::BeTree;
use crate::Error;
use crate::header::PageId;
use crate::index::is_eager;
use crate::sync::atomic::{AtomicUsize, Ordering};
use crate::sync::{Arc, Mutex, MutexGuard, PoisonError};
use crate::task::JoinHandle;

/// A part is to have room for this part of itself.
const ROOM_DIVISOR: u64 = 4;
/// Tests of little data have room made for this part.
const EAGER_ROOM_DIVISOR: u64 = 2;

type Task = JoinHandle<Result<(), Error>>;

/// The parts in which room is being made, or was since they were changed last, by level, and who makes it.
#[derive(Default)]
pub(super) struct Ahead {
    tasks: Mutex<BTreeMap<(u16, PageId), Task>>,
    /// How many of the tasks have not ended.
    at_work: AtomicUsize,
}

impl Ahead {
    fn tasks(&self) -> MutexGuard<'_, BTreeMap<(u16, PageId), Task>> {
        self.tasks.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A task that makes room. It counts until it has ended, also by a panic.
struct AtWork(Arc<BeTree>);

impl AtWork {
    fn begin(tree: &Arc<BeTree>) -> Self {
        tree.ahead.at_work.fetch_add(1, Ordering::Relaxed);
        Self(Arc::clone(tree))
    }
}

impl Drop for AtWork {
    fn drop(&mut self) {
        self.0.ahead.at_work.fetch_sub(1, Ordering::Relaxed);
    }
}

impl BeTree {
    /// Has room made in a part of which so many bytes are in use, if there will soon be none, and memory for
    /// it. The caller may change it.
    pub(super) fn make_room_ahead(&self, id: PageId, level: u16, page_bytes: u64) {
        let divisor = if is_eager() { EAGER_ROOM_DIVISOR } else { ROOM_DIVISOR };
        let wanted_bytes = self.shape.part_bytes() / divisor;
        if level < LEVEL_MIN || page_bytes + wanted_bytes <= self.filled_bytes() {
            return;
        }
        let Some(own) = self.this.upgrade() else { return };
        if self.ahead.at_work.load(Ordering::Relaxed) + 1 >= self.children_with_room() {
            return;
        }
        let at_work = AtWork::begin(&own);
        let task = self.shared.executor.run_for(move || at_work.0.make_room(id, level, wanted_bytes));
        let before = self.ahead.tasks().insert((level, id), task);
        debug_assert!(before.is_none(), "two make room in page {}", id.0);
    }

    /// The place of the first group, from the largest one on, that is on its way to a child, of this level,
    /// in which nobody makes room at present, unless it is much smaller than the largest.
    pub(super) fn fullest_idle(&self, level: u16, groups: &[Group]) -> Option<usize> {
        let fullest = groups.first()?;
        let tasks = self.ahead.tasks();
        let is_idle = |group: &Group| tasks.get(&(level, group.child)).is_none_or(Task::is_finished);
        let mut large = groups.iter().take_while(|group| group.bytes >= fullest.bytes / 2);
        Some(large.position(is_idle).unwrap_or(0))
    }

    /// Waits until nobody makes room in a part any more; whether somebody did.
    ///
    /// # Errors
    /// The errors of who made it.
    pub(super) fn wait_for_room(&self, id: PageId, level: u16) -> Result<bool, Error> {
        let Some(task) = self.ahead.tasks().remove(&(level, id)) else { return Ok(false) };
        if planted!(PartChangedByTwo) {
            return Ok(false);
        }
        end(task).map(|()| true)
    }

    /// Waits until nobody makes room in any part any more, from the highest parts down: who makes room in one
    /// sends out others for what is below it, and looks for them before it goes there itself.
    ///
    /// # Errors
    /// The error of one of those who made it.
    pub(super) fn wait_for_all_room(&self) -> Result<(), Error> {
        let mut made = Ok(());
        loop {
            let highest = self.ahead.tasks().pop_last();
            let Some((_, task)) = highest else { return made };
            made = made.and(end(task));
        }
    }
}

fn end(task: Task) -> Result<(), Error> {
    task.join().unwrap_or_else(|panic| resume_unwind(panic))
}
