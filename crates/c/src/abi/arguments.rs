//! Arguments of the exported functions, with the contract of the header as the reason why reading them is
//! sound.

/// The bytes of a pointer and a length.
macro_rules! bytes {
    ($start:ident, $length:ident) => {
        // SAFETY: the header: the bytes are there, and do not change, until the function returns.
        unsafe { $crate::argument::bytes($start, $length, stringify!($start)) }?
    };
}

/// A bound of a range: `None` if the pointer is null.
macro_rules! bound {
    ($start:ident, $length:ident) => {
        // SAFETY: the header: the bytes are there, and do not change, until the function returns.
        unsafe { $crate::argument::bound($start, $length, stringify!($start)) }?
    };
}

/// A text in UTF-8 that ends with a null byte.
macro_rules! utf8 {
    ($start:ident) => {
        // SAFETY: the header: the text is there, with its end, and does not change until the function
        // returns.
        unsafe { $crate::argument::utf8($start, stringify!($start)) }?
    };
}

/// A path: any text that ends with a null byte.
macro_rules! path {
    ($start:ident) => {
        // SAFETY: the header: the text is there, with its end, and does not change until the function
        // returns.
        $crate::argument::path(unsafe { $crate::argument::text($start, stringify!($start)) }?)
    };
}

/// Options, or a place, that must not be null.
macro_rules! given {
    ($handle:ident) => {
        $crate::argument::given($handle, stringify!($handle))?
    };
}

/// A handle that must not be null, of a store that this process has open.
macro_rules! used {
    ($handle:ident) => {{
        let handle = $crate::argument::given($handle, stringify!($handle))?;
        handle.opening.check()?;
        handle
    }};
}

/// The places of results, which are empty from here on: the first statement of each function that has some.
macro_rules! places {
    ($($place:ident),+) => {
        $(let $place = $crate::memory::cleared($place);)+
    };
}

/// Memory of the program for a value.
macro_rules! room {
    ($start:ident, $length:ident) => {
        // SAFETY: the header: the memory is there, and nothing else uses it, until the function returns.
        unsafe { $crate::argument::room($start, $length, stringify!($start)) }?
    };
}
