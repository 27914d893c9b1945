//! Errors as exceptions: the classes are in `flashgrain/errors.py`, one for each stable kind.

use flashgrain::{Error, ErrorKind};
use pyo3::exceptions::{PyOSError, PyRuntimeError};
use pyo3::prelude::*;

use crate::ended::Failure;

/// The class of an exception.
fn class_of(kind: ErrorKind) -> &'static str {
    match kind {
        ErrorKind::Locked => "LockedError",
        ErrorKind::NotFound => "NotFoundError",
        ErrorKind::Exists => "ExistsError",
        ErrorKind::Version => "FormatVersionError",
        ErrorKind::Argument => "ArgumentError",
        ErrorKind::OtherStore | ErrorKind::OtherOpening | ErrorKind::Dropped => "HandleError",
        ErrorKind::Conflict => "ConflictError",
        ErrorKind::Full => "FullError",
        ErrorKind::NotDurable => "NotDurableError",
        ErrorKind::TreeFailed => "TreeFailedError",
        ErrorKind::Poisoned => "PoisonedError",
        ErrorKind::Corrupt => "CorruptError",
        ErrorKind::Io | ErrorKind::Source => "DeviceError",
        ErrorKind::Operator => "OperatorError",
        ErrorKind::ReadOnly => "ReadOnlyError",
        ErrorKind::Closed => "ClosedError",
        ErrorKind::Forked => "ForkedError",
        _ => "FlashgrainError",
    }
}

/// The number of the operating system's error, if there is one among the causes.
fn errno(error: &(dyn std::error::Error + 'static)) -> Option<i32> {
    let mut cause = Some(error);
    while let Some(this) = cause {
        if let Some(number) = this.downcast_ref::<std::io::Error>().and_then(std::io::Error::raw_os_error) {
            return Some(number);
        }
        cause = this.source();
    }
    None
}

/// An exception of the package's class `name`; with `errno` if the operating system gave one.
fn raise(py: Python<'_>, name: &str, text: &str, errno: Option<i32>) -> PyErr {
    let made = py.import("flashgrain.errors").and_then(|module| {
        let class = module.getattr(name)?;
        match errno {
            Some(number) => class.call1((number, text)),
            None => class.call1((text,)),
        }
    });
    match made {
        Ok(exception) => PyErr::from_value(exception),
        // The package is not whole: the text must not be lost.
        Err(_) => PyRuntimeError::new_err(text.to_owned()),
    }
}

/// An error of the store as an exception.
pub fn of_store(py: Python<'_>, error: &Error) -> PyErr {
    let kind = error.kind();
    let number = match error {
        Error::Io(request) => errno(request.as_ref()),
        Error::Device(device) => errno(device.as_ref()),
        Error::Source(source) => source.raw_os_error(),
        _ => None,
    };
    raise(py, class_of(kind), &error.to_string(), number)
}

/// A failed operation on an object of a store as an exception.
pub fn of_failure(py: Python<'_>, failure: &Failure) -> PyErr {
    match failure {
        Failure::Store(error) => of_store(py, error),
        Failure::Ended(ended) => raise(py, "ClosedError", &ended.to_string(), None),
        Failure::WriteToSnapshot => raise(py, "ReadOnlyError", "a snapshot takes no writes", None),
    }
}

/// A file that could not be used, as the subclass of `OSError` that fits the number, with the path.
pub fn of_file(error: &std::io::Error, path: &std::path::Path) -> PyErr {
    match error.raw_os_error() {
        // Python itself has a text for the number.
        Some(number) => match Python::attach(|py| {
            let text = py.import("os")?.call_method1("strerror", (number,))?.unbind();
            Ok::<_, PyErr>((number, text, path.to_path_buf()))
        }) {
            Ok(arguments) => PyOSError::new_err(arguments),
            Err(error) => error,
        },
        None => PyOSError::new_err(format!("{}: {error}", path.display())),
    }
}

/// An argument that makes no sense, as `ArgumentError`.
pub fn argument(py: Python<'_>, text: impl std::fmt::Display) -> PyErr {
    raise(py, "ArgumentError", &text.to_string(), None)
}

/// An error of a profile or of a load on a drive as an exception.
pub fn of_profile(py: Python<'_>, error: &flashgrain_profile::Error) -> PyErr {
    use flashgrain_profile::Error as ProfileError;
    let name = match error {
        ProfileError::Device(_) | ProfileError::Io { .. } | ProfileError::Write { .. } => "DeviceError",
        ProfileError::File { .. } => "ProfileError",
        ProfileError::Model(_) | ProfileError::Argument(_) => "ArgumentError",
        _ => "FlashgrainError",
    };
    let number = if name == "DeviceError" { errno(error) } else { None };
    raise(py, name, &error.to_string(), number)
}
