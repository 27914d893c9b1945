//! Which of the program's descriptors are files of records.
//!
//! The table may be out of date: a descriptor can be closed and replaced by calls that do not come by here.
//! So an entry counts only as long as its descriptor is a placeholder of the same file.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::c_int;
use std::io::Result;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockWriteGuard, Weak};

use super::data::{Identity, PRIVATE};
use super::descriptor_set::DescriptorSet;
use super::opened::{Opened, Shared};
use super::process;

/// Descriptors in the table.
static LISTED: DescriptorSet = DescriptorSet::new();

pub type Table = BTreeMap<c_int, Arc<Opened>>;

/// Of each placeholder; those that were duplicated share one.
static OPENED: RwLock<Table> = RwLock::new(BTreeMap::new());

/// Files that this process has opened.
pub struct Files {
    /// Those with placeholders.
    pub open: BTreeMap<Identity, Weak<Shared>>,
    /// Those without a layout that the program may have open for writing. They get none, even if they become
    /// empty: a descriptor of the program would write over it.
    plain: BTreeSet<Identity>,
}

static FILES: Mutex<Files> = Mutex::new(Files { open: BTreeMap::new(), plain: BTreeSet::new() });

pub fn write_table() -> RwLockWriteGuard<'static, Table> {
    OPENED.write().unwrap_or_else(PoisonError::into_inner)
}

pub fn lock_files() -> MutexGuard<'static, Files> {
    FILES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The open file of this descriptor, if it is a placeholder.
pub fn get(descriptor: c_int) -> Option<Arc<Opened>> {
    if !LISTED.has(descriptor) {
        return None;
    }
    let opened = OPENED.read().unwrap_or_else(PoisonError::into_inner).get(&descriptor).cloned()?;
    if opened.has_placeholder(descriptor) {
        return Some(opened);
    }
    remove_if(descriptor, |listed| Arc::ptr_eq(listed, &opened));
    None
}

/// An open file with this identity.
pub fn find(identity: Identity) -> Option<Arc<Opened>> {
    let all = OPENED.read().unwrap_or_else(PoisonError::into_inner);
    all.values().find(|opened| opened.identity() == identity).cloned()
}

/// Whether a file is open.
pub fn is_open(identity: Identity) -> bool {
    lock_files().open.get(&identity).is_some_and(|shared| shared.strong_count() > 0)
}

/// Whether the program may write to a file without a layout by a descriptor of its own.
pub fn is_plain(identity: Identity) -> bool {
    lock_files().plain.contains(&identity)
}

/// The program opens a file without a layout by a call of its own.
pub fn note_plain(identity: Identity) {
    lock_files().plain.insert(identity);
}

/// The file is new: one with the same number is gone.
pub fn note_new(identity: Identity) {
    lock_files().plain.remove(&identity);
}

/// The state that all open file descriptions of a file share.
pub fn shared(identity: Identity) -> Arc<Shared> {
    let mut files = lock_files();
    files.open.retain(|_, shared| shared.strong_count() > 0);
    if let Some(shared) = files.open.get(&identity).and_then(Weak::upgrade) {
        return shared;
    }
    let shared = Arc::new(Shared::default());
    files.open.insert(identity, Arc::downgrade(&shared));
    shared
}

/// Lists a placeholder.
pub fn insert(descriptor: c_int, opened: Arc<Opened>) {
    let before = write_table().insert(descriptor, opened);
    LISTED.insert(descriptor);
    // A private descriptor is closed outside the lock.
    drop(before);
}

/// The descriptor is no placeholder any more.
pub fn remove(descriptor: c_int) {
    remove_if(descriptor, |_| true);
}

fn remove_if(descriptor: c_int, condition: impl FnOnce(&Arc<Opened>) -> bool) {
    // A process begun by `vfork` has its parent's memory, but descriptors of its own.
    if !LISTED.has(descriptor) || !process::is_own_memory() {
        return;
    }
    let mut all = write_table();
    if all.get(&descriptor).is_some_and(condition) {
        LISTED.remove(descriptor);
        let removed = all.remove(&descriptor);
        drop(all);
        drop(removed);
    }
}

/// The placeholders in a range of descriptors.
pub fn listed(first: c_int, last: c_int) -> Vec<c_int> {
    OPENED.read().unwrap_or_else(PoisonError::into_inner).range(first..=last).map(|(&at, _)| at).collect()
}

/// The private descriptors in a range.
pub fn private(first: c_int, last: c_int) -> Vec<c_int> {
    let all = OPENED.read().unwrap_or_else(PoisonError::into_inner);
    let mut numbers: Vec<_> = all.values().map(|opened| opened.private_number()).collect();
    numbers.retain(|number| (first..=last).contains(number));
    numbers.sort_unstable();
    numbers.dedup();
    numbers
}

/// Makes a number that a private descriptor has free for the program.
///
/// # Errors
/// If there is no other number.
pub fn make_free(number: c_int) -> Result<()> {
    if !PRIVATE.has(number) || !process::is_own_memory() {
        return Ok(());
    }
    let all: Vec<_> = OPENED.read().unwrap_or_else(PoisonError::into_inner).values().cloned().collect();
    all.iter().try_for_each(|opened| opened.give_way(number))
}
