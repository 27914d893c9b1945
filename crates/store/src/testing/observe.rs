//! Observation of a store by a model: its commits, their numbers and the tasks that made them.

use std::cell::RefCell;

use crate::log::Timestamp;
use crate::task::TaskId;
use crate::{Db, Snapshot};

/// Called for a commit of the calling task with the first half of the store's id as a little-endian number,
/// and the commit's number in the log.
pub type Observer = Box<dyn FnMut(u64, u64)>;

thread_local! {
    static OBSERVER: RefCell<Option<Observer>> = const { RefCell::new(None) };
}

/// From now on, `observer` is called at every commit of this thread's stores when it gets its number, in the
/// order of the numbers and by the task that commits. It must not use the store.
pub fn observe(observer: Option<Observer>) {
    OBSERVER.set(observer);
}

pub(crate) fn tell_committed(store: u64, timestamp: Timestamp) {
    OBSERVER.with_borrow_mut(|observer| {
        if let Some(observer) = observer {
            observer(store, timestamp.0);
        }
    });
}

/// Identifies a task among those of this thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TaskKey(Option<(usize, TaskId)>);

/// The calling task.
pub fn task_key() -> TaskKey {
    TaskKey(crate::task::task_key())
}

/// The number of the last commit that a store has.
pub fn last_commit(db: &Db) -> u64 {
    db.core.engine().parts().log.last().0
}

/// The number of the last commit that a snapshot sees.
pub fn commit_of(snapshot: &Snapshot) -> u64 {
    snapshot.at.timestamp().0
}
