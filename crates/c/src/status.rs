//! Results of functions: a status, and an error with a message.

use std::any::Any;
use std::ffi::CString;

use flashgrain::{Error, ErrorKind};

/// How a call ended. The numbers are stable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub enum Status {
    /// It is done.
    Ok = 0,
    /// An argument is null, out of its range, or too long.
    Argument = 1,
    /// There is no such store or tree. A key that is not there is no error.
    NotFound = 2,
    /// There is such a store or tree already.
    Exists = 3,
    /// The store is open already, in this process or another one.
    Locked = 4,
    /// The store was written in a format of another version.
    Version = 5,
    /// The tree belongs to another store.
    OtherStore = 6,
    /// The tree's handle is of another opening of the store.
    OtherOpening = 7,
    /// The tree was dropped or renamed.
    Dropped = 8,
    /// Another commit has changed a key that the transaction writes: nothing was done, begin again.
    Conflict = 9,
    /// The device is full. Reads go on; removing records makes room.
    Full = 10,
    /// The commit is made, but not durable yet.
    NotDurable = 11,
    /// Background work of the tree failed, so that it takes no writes. The next write tries again.
    TreeFailed = 12,
    /// An earlier write failed, so that the store takes no more writes. Open it again.
    Poisoned = 13,
    /// The device returned other bytes than were written.
    Corrupt = 14,
    /// The device refused a request.
    Io = 15,
    /// A merge operator is missing or failed.
    Operator = 16,
    /// The store was opened to be read only.
    ReadOnly = 17,
    /// The store is closed.
    Closed = 18,
    /// The store was opened by the process that this one was forked from.
    Forked = 19,
    /// The transaction or batch has been committed already.
    Finished = 20,
    /// The C library has no memory for a result.
    OutOfMemory = 21,
    /// A mistake in the library. The call may have had its effect or not; close the store.
    Internal = 22,
}

impl Status {
    /// All of them, in the order of their numbers.
    pub const ALL: [Self; 23] = [
        Self::Ok,
        Self::Argument,
        Self::NotFound,
        Self::Exists,
        Self::Locked,
        Self::Version,
        Self::OtherStore,
        Self::OtherOpening,
        Self::Dropped,
        Self::Conflict,
        Self::Full,
        Self::NotDurable,
        Self::TreeFailed,
        Self::Poisoned,
        Self::Corrupt,
        Self::Io,
        Self::Operator,
        Self::ReadOnly,
        Self::Closed,
        Self::Forked,
        Self::Finished,
        Self::OutOfMemory,
        Self::Internal,
    ];
}

impl From<ErrorKind> for Status {
    fn from(kind: ErrorKind) -> Self {
        match kind {
            ErrorKind::Argument => Self::Argument,
            ErrorKind::NotFound => Self::NotFound,
            ErrorKind::Exists => Self::Exists,
            ErrorKind::Locked => Self::Locked,
            ErrorKind::Version => Self::Version,
            ErrorKind::OtherStore => Self::OtherStore,
            ErrorKind::OtherOpening => Self::OtherOpening,
            ErrorKind::Dropped => Self::Dropped,
            ErrorKind::Conflict => Self::Conflict,
            ErrorKind::Full => Self::Full,
            ErrorKind::NotDurable => Self::NotDurable,
            ErrorKind::TreeFailed => Self::TreeFailed,
            ErrorKind::Poisoned => Self::Poisoned,
            ErrorKind::Corrupt => Self::Corrupt,
            ErrorKind::Source | ErrorKind::Io => Self::Io,
            ErrorKind::Operator => Self::Operator,
            ErrorKind::ReadOnly => Self::ReadOnly,
            ErrorKind::Closed => Self::Closed,
            ErrorKind::Forked => Self::Forked,
            // A kind that the store has and this library does not know.
            _ => Self::Internal,
        }
    }
}

/// Why a call failed.
#[derive(Debug)]
pub struct Failure {
    pub status: Status,
    pub message: CString,
}

impl Failure {
    pub fn new(status: Status, message: impl Into<String>) -> Self {
        let message = message.into().replace('\0', "\u{fffd}");
        Self { status, message: CString::new(message).unwrap_or_default() }
    }

    /// An argument that must not be null.
    pub fn null(name: &str) -> Self {
        Self::new(Status::Argument, format!("`{name}` is null"))
    }

    /// After a panic, with its text.
    pub fn panic(payload: &(dyn Any + Send)) -> Self {
        let text = payload.downcast_ref::<&str>().copied();
        let text = text.or_else(|| payload.downcast_ref::<String>().map(String::as_str));
        let text = text.unwrap_or("no message");
        let advice = "a mistake in the library; close the store, open it again, and report this";
        Self::new(Status::Internal, format!("{advice}: {text}"))
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::new(error.kind().into(), error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statuses_are_listed_by_their_numbers() {
        for (number, status) in Status::ALL.into_iter().enumerate() {
            assert_eq!(status as usize, number);
        }
    }

    #[test]
    fn a_message_with_a_null_byte_is_kept() {
        let failure = Failure::new(Status::Io, "one\0two");
        assert_eq!(failure.message.to_str(), Ok("one\u{fffd}two"));
    }
}
