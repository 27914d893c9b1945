//! The frame of every function: panics and errors become statuses.

use std::mem::MaybeUninit;
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::status::{Failure, Status};

/// An error, with its status and its message. Free it with `fg_error_free`.
pub struct ErrorHandle(pub Failure);

/// The place of an error: null if the program wants the status alone.
pub type ErrorPlace<'a> = Option<&'a mut MaybeUninit<*mut ErrorHandle>>;

/// Runs the body of a function. The place of the error becomes null if all went well.
pub fn call(error: ErrorPlace<'_>, body: impl FnOnce() -> Result<(), Failure>) -> Status {
    let outcome = catching(body).and_then(|outcome| outcome);
    let status = outcome.as_ref().err().map_or(Status::Ok, |failure| failure.status);
    if let Some(place) = error {
        let made = outcome.err().map(|failure| Box::into_raw(Box::new(ErrorHandle(failure))));
        place.write(made.unwrap_or(std::ptr::null_mut()));
    }
    status
}

/// Runs the body of a function without a place for an error, such as freeing a handle.
pub fn quietly(body: impl FnOnce()) {
    let _nobody_to_tell = catching(body);
}

/// The result, or the message of a panic.
///
/// A change that a panic leaves half done is the store's own: it poisons itself, and its locks.
pub fn catching<T>(body: impl FnOnce() -> T) -> Result<T, Failure> {
    catch_unwind(AssertUnwindSafe(body)).map_err(|payload| {
        let failure = Failure::panic(&*payload);
        // A payload may panic in turn when it is dropped.
        std::mem::forget(payload);
        failure
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_an_internal_error() {
        let mut place = MaybeUninit::uninit();
        let status = call(Some(&mut place), || panic!("seven {}", 7));
        assert_eq!(status, Status::Internal);
        // SAFETY: `call` has written it, and made the error.
        let error = unsafe { Box::from_raw(place.assume_init()) };
        assert!(error.0.message.to_str().is_ok_and(|text| text.ends_with(": seven 7")), "{:?}", error.0);
        assert_eq!(call(None, || panic!("unseen")), Status::Internal);
    }

    #[test]
    fn a_success_clears_the_place_of_the_error() {
        let mut place = MaybeUninit::new(std::ptr::dangling_mut());
        assert_eq!(call(Some(&mut place), || Ok(())), Status::Ok);
        // SAFETY: it was initialized.
        assert!(unsafe { place.assume_init() }.is_null());
    }
}
