//! The library's version.

use std::ffi::{CStr, c_char};

/// The version with its end, as C has it.
const VERSION: &CStr = match CStr::from_bytes_with_nul(concat!(env!("CARGO_PKG_VERSION"), "\0").as_bytes()) {
    Ok(version) => version,
    Err(_) => c"",
};

/// The version of the library, such as "0.1.0". The text is the library's own: do not free it.
#[unsafe(no_mangle)]
pub extern "C" fn fg_version() -> *const c_char {
    VERSION.as_ptr()
}
