//! Filter policies. The tables of the store have filters of its own: a Bloom filter gives the number of their
//! bits, and a policy of the program is never asked, which changes no answer.

use std::ffi::{c_char, c_int, c_void};

use crate::call::quietly;

type Destructor = extern "C" fn(*mut c_void);
type CreateFilter =
    extern "C" fn(*mut c_void, *const *const c_char, *const usize, c_int, *mut usize) -> *mut c_char;
type KeyMayMatch = extern "C" fn(*mut c_void, *const c_char, usize, *const c_char, usize) -> u8;
type Name = extern "C" fn(*mut c_void) -> *const c_char;

/// A filter policy.
pub struct FilterPolicyHandle {
    /// Of a Bloom filter; none of a policy of the program.
    pub bits_per_key: Option<c_int>,
    state: *mut c_void,
    destructor: Option<Destructor>,
}

impl Drop for FilterPolicyHandle {
    fn drop(&mut self) {
        if let Some(destructor) = self.destructor {
            destructor(self.state);
        }
    }
}

/// A policy of the program, which has no effect.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_filterpolicy_create(
    state: *mut c_void,
    destructor: Option<Destructor>,
    _create_filter: Option<CreateFilter>,
    _key_may_match: Option<KeyMayMatch>,
    _name: Option<Name>,
) -> Box<FilterPolicyHandle> {
    Box::new(FilterPolicyHandle { bits_per_key: None, state, destructor })
}

/// Filters with this number of bits for each key, in databases that are made with it.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_filterpolicy_create_bloom(bits_per_key: c_int) -> Box<FilterPolicyHandle> {
    Box::new(FilterPolicyHandle {
        bits_per_key: Some(bits_per_key),
        state: std::ptr::null_mut(),
        destructor: None,
    })
}

/// Frees a policy, and calls its destructor.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_filterpolicy_destroy(policy: Option<Box<FilterPolicyHandle>>) {
    quietly(|| drop(policy));
}
