//! Memory of the C library for results that a program frees.

use std::ffi::{c_char, c_void};
use std::mem::MaybeUninit;

use crate::status::{Failure, Status};

/// The place of a result, which the program need not have initialized.
pub type Place<'a, T> = Option<&'a mut MaybeUninit<T>>;

/// A result that is not there: null, zero, or false.
pub trait Absent {
    const ABSENT: Self;
}

impl<T> Absent for *mut T {
    const ABSENT: Self = std::ptr::null_mut();
}

impl<T> Absent for *const T {
    const ABSENT: Self = std::ptr::null();
}

impl Absent for usize {
    const ABSENT: Self = 0;
}

impl Absent for u64 {
    const ABSENT: Self = 0;
}

impl Absent for i32 {
    const ABSENT: Self = 0;
}

impl Absent for bool {
    const ABSENT: Self = false;
}

/// The place, with no result in it yet. Functions do so before they look at any argument, so that a program
/// may read its places after each error.
pub fn cleared<T: Absent>(place: Place<'_, T>) -> Place<'_, T> {
    let place = place?;
    place.write(T::ABSENT);
    Some(place)
}

/// Writes a result to its place, if there is one.
///
/// # Errors
/// [`Status::Argument`] for a null pointer.
pub fn put<T>(place: Place<'_, T>, name: &str, value: T) -> Result<(), Failure> {
    place.ok_or_else(|| Failure::null(name))?.write(value);
    Ok(())
}

/// The bytes in memory of `malloc`, which is never null: none are one byte that does not count.
///
/// # Errors
/// [`Status::OutOfMemory`].
pub fn copy(bytes: &[u8]) -> Result<*mut c_void, Failure> {
    // SAFETY: `malloc` takes any length.
    let memory = unsafe { libc::malloc(bytes.len().max(1)) };
    if memory.is_null() {
        let message = format!("no memory for a result of {} bytes", bytes.len());
        return Err(Failure::new(Status::OutOfMemory, message));
    }
    // SAFETY: the memory is new and as long as the bytes.
    unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), memory.cast::<u8>(), bytes.len()) };
    Ok(memory)
}

/// The text with a null byte at its end, in memory of `malloc`.
///
/// # Errors
/// [`Status::OutOfMemory`].
pub fn copy_text(text: &[u8]) -> Result<*mut c_char, Failure> {
    let mut bytes = text.to_vec();
    bytes.push(0);
    copy(&bytes).map(<*mut c_void>::cast)
}

/// Frees memory that one of these functions made; nothing at a null pointer.
pub fn free(memory: *mut c_void) {
    // SAFETY: the header's contract: the memory is null or from `malloc`, and freed once.
    unsafe { libc::free(memory) };
}

/// A list of texts in one piece of memory: the pointers first, then the texts that they lead to.
///
/// # Errors
/// [`Status::OutOfMemory`].
pub fn copy_list(texts: &[String]) -> Result<*mut *mut c_char, Failure> {
    let pointers_bytes = std::mem::size_of::<*mut c_char>() * texts.len();
    let mut bytes = vec![0; pointers_bytes];
    for text in texts {
        bytes.extend_from_slice(text.as_bytes());
        bytes.push(0);
    }
    let memory = copy(&bytes)?;
    let mut at = pointers_bytes;
    for (place, text) in texts.iter().enumerate() {
        // SAFETY: the texts lie one after the other in the memory, and `malloc` aligns it for pointers.
        unsafe { memory.cast::<*mut c_char>().add(place).write(memory.cast::<c_char>().add(at)) };
        at += text.len() + 1;
    }
    Ok(memory.cast())
}
