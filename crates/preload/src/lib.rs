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
//! opening   open, close, duplicate                opened    the files that are open, and their records
//! transfer  read and write                        settings  names, and the flash page
//! lengths   stat, truncate, seek                  real      the C library's functions
//! refused   what would go past the layout         failure   errors as a C program sees them
//! ```
//!
//! All of it rests on one promise, on which the safety comments call: programs call these functions as the C
//! library's, with strings that end, buffers that are as long as they say, and results that may be written
//! to.
//!
//! A process that reads such a file needs the library, too, and the same patterns.

mod failure;
mod lengths;
mod opened;
mod opening;
mod real;
mod refused;
mod settings;
mod transfer;
