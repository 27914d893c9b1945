//! Processes that the program begins.
//!
//! After a `fork` the child has the table, and positions of its own from there on; it opens each file anew
//! when it uses it first. A process begun by `vfork`, or by a system call of its own, changes nothing.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::mem;
use std::sync::{Arc, MutexGuard, RwLockWriteGuard};

use super::opened::{Opened, Shared};
use super::process;
use super::table::{self, Files, Table};

type Held = (RwLockWriteGuard<'static, Table>, MutexGuard<'static, Files>);

thread_local! {
    /// The locks of the thread that forks, so that the child finds the tables whole.
    static HELD: RefCell<Option<Held>> = const { RefCell::new(None) };
}

/// The library is loaded.
pub fn begin() {
    process::note_own_memory();
    // SAFETY: the functions live as long as the process.
    unsafe { libc::pthread_atfork(Some(before), Some(in_parent), Some(in_child)) };
}

unsafe extern "C" fn before() {
    let held = (table::write_table(), table::lock_files());
    HELD.with(|place| *place.borrow_mut() = Some(held));
}

unsafe extern "C" fn in_parent() {
    HELD.with(|place| drop(place.borrow_mut().take()));
}

unsafe extern "C" fn in_child() {
    process::note_own_memory();
    let Some((mut opened, mut files)) = HELD.with(|place| place.borrow_mut().take()) else { return };
    // Threads that are not here may have left any of these locked.
    let mut shared: BTreeMap<_, Arc<Shared>> = BTreeMap::new();
    let mut own: BTreeMap<*const Opened, Arc<Opened>> = BTreeMap::new();
    for before in opened.values_mut() {
        let shared = shared.entry(before.identity()).or_default();
        let anew =
            own.entry(Arc::as_ptr(before)).or_insert_with(|| Arc::new(before.inherited(shared.clone())));
        mem::forget(mem::replace(before, anew.clone()));
    }
    mem::forget(mem::take(&mut files.open));
    files.open = shared.iter().map(|(&identity, shared)| (identity, Arc::downgrade(shared))).collect();
}
