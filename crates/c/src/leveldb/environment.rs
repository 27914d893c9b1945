//! The environment: there is the default one alone.

use std::ffi::{OsString, c_char};
use std::os::unix::ffi::OsStrExt;

use crate::call::{catching, quietly};
use crate::memory;

/// The system.
pub struct EnvironmentHandle(());

/// The environment that there is.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_create_default_env() -> Box<EnvironmentHandle> {
    Box::new(EnvironmentHandle(()))
}

/// Frees the handle.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_env_destroy(environment: Option<Box<EnvironmentHandle>>) {
    quietly(|| drop(environment));
}

/// A directory for tests, as a text of `malloc`: that of the variable `TEST_TMPDIR`, or one of the user's in
/// the system's directory for temporary files, which is made. Null if there can be none.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_env_get_test_directory(_environment: Option<&EnvironmentHandle>) -> *mut c_char {
    let directory = catching(|| {
        let path = std::env::var_os("TEST_TMPDIR").filter(|path| !path.is_empty());
        let path = path.unwrap_or_else(|| {
            // SAFETY: it only returns a number.
            let user = unsafe { libc::geteuid() };
            let path = std::env::temp_dir().join(format!("leveldbtest-{user}"));
            OsString::from(path)
        });
        let _exists_or_is_made_later = std::fs::create_dir(&path);
        memory::copy_text(path.as_bytes())
    });
    directory.and_then(|directory| directory).unwrap_or(std::ptr::null_mut())
}
