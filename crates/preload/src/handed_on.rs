//! Calls that concern a file and not its content: the private descriptor serves them.

use std::ffi::{c_char, c_int, c_uint, c_void};

use libc::{gid_t, mode_t, off64_t, size_t, ssize_t, timespec, timeval, uid_t};

use super::real::{instead, real};
use super::table;

macro_rules! handed_on {
    (one $name:ident ($($argument:ident: $type:ty),*) -> $result:ty) => {
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name(descriptor: c_int $(, $argument: $type)*) -> $result {
            let call = |descriptor: c_int| real!($name(descriptor => c_int $(, $argument => $type)*) -> $result);
            match table::get(descriptor) {
                Some(own) => own.handed_on(call),
                None => call(descriptor),
            }
        }
    };
    ([$($name:ident),+] $arguments:tt -> $result:ty) => {
        $(handed_on!(one $name $arguments -> $result);)+
    };
}

handed_on! { [flock](operation: c_int) -> c_int }
handed_on! { [fchmod](mode: mode_t) -> c_int }
handed_on! { [fchown](user: uid_t, group: gid_t) -> c_int }
handed_on! { [futimens](times: *const timespec) -> c_int }
handed_on! { [futimes](times: *const timeval) -> c_int }
handed_on! { [fsetxattr](name: *const c_char, value: *const c_void, length: size_t, flags: c_int) -> c_int }
handed_on! { [fgetxattr](name: *const c_char, value: *mut c_void, length: size_t) -> ssize_t }
handed_on! { [flistxattr](names: *mut c_char, length: size_t) -> ssize_t }
handed_on! { [fremovexattr](name: *const c_char) -> c_int }

instead! { one fsync (descriptor: c_int) -> c_int, real => match table::get(descriptor) {
    Some(own) => own.synchronised(|data| real!(fsync(data => c_int) -> c_int)),
    None => real(),
}}

instead! { one fdatasync (descriptor: c_int) -> c_int, real => match table::get(descriptor) {
    Some(own) => own.synchronised(|data| real!(fdatasync(data => c_int) -> c_int)),
    None => real(),
}}

instead! { one syncfs (descriptor: c_int) -> c_int, real => match table::get(descriptor) {
    Some(own) => own.synchronised(|data| real!(syncfs(data => c_int) -> c_int)),
    None => real(),
}}

// Bytes of the drive are not those of the program: all of the file is synchronised.
instead! { [sync_file_range](
    descriptor: c_int, offset: off64_t, length: off64_t, flags: c_uint
) -> c_int, real => match table::get(descriptor) {
    Some(own) => own.synchronised(|data| real!(fdatasync(data => c_int) -> c_int)),
    None => real(),
}}

// Advice may be ignored.
instead! { [posix_fadvise, posix_fadvise64](
    descriptor: c_int, offset: off64_t, length: off64_t, advice: c_int
) -> c_int, real => match table::get(descriptor) {
    Some(_) => 0,
    None => real(),
}}

instead! { [readahead](descriptor: c_int, offset: off64_t, length: size_t) -> ssize_t, real => {
    match table::get(descriptor) {
        Some(_) => 0,
        None => real(),
    }
}}
