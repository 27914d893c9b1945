//! A library that is preloaded into a program, so that its files of records, such as a database's binary
//! log, follow *contain-write-in-flash-page* (hidden-parameters paper §3.3 and §4.3) without a change to the
//! program:
//!
//! ```text
//! LD_PRELOAD=libflashgrain_preload.so FLASHGRAIN_FLASH_PAGE=4096 \
//!     FLASHGRAIN_RECORD_FILES='*-bin.[0-9]*' mariadbd ...
//! ```
//!
//! It stands between the program and the C library for the calls on files whose names match one of the
//! patterns. A file that is empty gets the layout; one that has it keeps it, whatever its flash page; any
//! other stays as it is. All other calls go through as they are.
//!
//! ```text
//! calls     what programs call: open, read, write, stat ...     real       the C library's functions
//! opened    the files that are open, and their records          settings   names, and the flash page
//! ```
//!
//! A process that reads such a file needs the library, too, and the same patterns, and opens the file itself:
//! a descriptor that it has inherited shows the bytes as they are on the drive.

mod calls;
mod opened;
mod real;
mod settings;
