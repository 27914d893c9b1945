//! Comparators that a program makes.

use std::cmp::Ordering;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::sync::Arc;

use crate::call::quietly;

type Destructor = extern "C" fn(*mut c_void);
type Compare = extern "C" fn(*mut c_void, *const c_char, usize, *const c_char, usize) -> c_int;
type Name = extern "C" fn(*mut c_void) -> *const c_char;

/// The order of keys that a program asks for.
pub struct Comparator {
    state: *mut c_void,
    destructor: Option<Destructor>,
    compare: Option<Compare>,
    name: Option<Name>,
}

// SAFETY: LevelDB's contract: a comparator is called from any thread, by several at a time.
unsafe impl Send for Comparator {}
// SAFETY: the same.
unsafe impl Sync for Comparator {}

impl Comparator {
    /// The order of two keys; none if the program gave no function.
    pub fn compare(&self, one: &[u8], other: &[u8]) -> Option<Ordering> {
        let (one_start, other_start) = (one.as_ptr().cast(), other.as_ptr().cast());
        let compared = self.compare?(self.state, one_start, one.len(), other_start, other.len());
        Some(compared.cmp(&0))
    }

    /// Its name, which a database keeps.
    pub fn name(&self) -> Option<String> {
        let name = self.name?(self.state);
        if name.is_null() {
            return None;
        }
        // SAFETY: LevelDB's contract: a text with its end, the comparator's.
        unsafe { CStr::from_ptr(name) }.to_str().ok().map(str::to_owned)
    }
}

impl Drop for Comparator {
    fn drop(&mut self) {
        if let Some(destructor) = self.destructor {
            destructor(self.state);
        }
    }
}

/// A program's handle of it. Databases that use it have it for as long as they are open.
pub struct ComparatorHandle(pub Arc<Comparator>);

/// A comparator of the program.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_comparator_create(
    state: *mut c_void,
    destructor: Option<Destructor>,
    compare: Option<Compare>,
    name: Option<Name>,
) -> Box<ComparatorHandle> {
    Box::new(ComparatorHandle(Arc::new(Comparator { state, destructor, compare, name })))
}

/// Frees it; its destructor is called when no database uses it any more.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_comparator_destroy(comparator: Option<Box<ComparatorHandle>>) {
    quietly(|| drop(comparator));
}
