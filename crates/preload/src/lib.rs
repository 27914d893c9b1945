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
//! patterns. An empty file that is opened for writing gets the layout; one that has it keeps it, whatever its
//! flash page. Any other file is opened by the call that the program made, and never seen again.
//!
//! The program never has a descriptor that could read or write a file of records. Its own is a *placeholder*,
//! opened with `O_PATH`; on it, the kernel refuses each call that this library does not know (`EBADF`). The
//! descriptor with the data is private.
//!
//! ```text
//! opening     open, create                        probe       what a path names, found out without a trace
//! descriptors close, duplicate, flags, locks      table       the program's descriptors and their files
//! transfer    read and write                      opened      an open file, its position and its records
//! lengths     stat, truncate, seek                data        private descriptors
//! handed_on   calls that the private one serves   fork        processes that a program begins
//! refused     calls that would pass the layout    settings    names, and the flash page
//! names       rename and link                     failure     errors as a C program sees them
//! direct      system calls by number              real        the C library's functions
//! process     whose memory this is                descriptor_set  which descriptors, without a lock
//! ```
//!
//! All of it rests on one promise, on which the safety comments call: programs call these functions as the C
//! library's, with strings that end, buffers that are as long as they say, and results that may be written
//! to.
//!
//! A process that reads such a file needs the library, too, and the same patterns.

mod data;
mod descriptor_set;
mod descriptors;
mod direct;
mod failure;
mod fork;
mod handed_on;
mod lengths;
mod names;
mod opened;
mod opening;
mod probe;
mod process;
mod real;
mod refused;
mod settings;
mod table;
mod transfer;
