//! What a model of a store needs to know of it.

use std::cell::RefCell;

use crate::log::Timestamp;
use crate::task::TaskId;
use crate::{Db, Snapshot};

/// Hears of a commit of the calling task: the first half of the store's id as a little-endian number, and the
/// number that the log gave the commit.
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

/// Tells the tasks of this thread apart that are under way.
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
