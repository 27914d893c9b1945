//! How much room a file system has.

use std::ffi::CString;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use crate::Error;

/// A scratch file leaves this share of its own size free, so that it does not make writes of others fail.
const MARGIN_DIVISOR: u64 = 16;

/// Bytes that an unprivileged user may still write to the file system that holds `directory`.
///
/// # Errors
/// [`Error::Os`] if there is no such directory.
pub fn free_bytes(directory: &Path) -> Result<u64, Error> {
    let answer = counts_of(directory)?;
    Ok(answer.f_bavail.saturating_mul(answer.f_frsize))
}

/// Bytes for files, used or free, of the file system that holds `directory`.
///
/// # Errors
/// As [`free_bytes`].
pub fn total_bytes(directory: &Path) -> Result<u64, Error> {
    let answer = counts_of(directory)?;
    // Blocks kept for the superuser are free, but not available to files.
    let kept_blocks = answer.f_bfree.saturating_sub(answer.f_bavail);
    Ok(answer.f_blocks.saturating_sub(kept_blocks).saturating_mul(answer.f_frsize))
}

fn counts_of(directory: &Path) -> Result<libc::statvfs, Error> {
    let os = |source| Error::Os { doing: format!("look at {}", directory.display()), source };
    let path = CString::new(directory.as_os_str().as_bytes()).map_err(|error| os(error.into()))?;
    // SAFETY: all-zero bytes are a valid `statvfs`.
    let mut answer: libc::statvfs = unsafe { std::mem::zeroed() };
    // SAFETY: the path is NUL-terminated, and the kernel writes one `statvfs`.
    if unsafe { libc::statvfs(path.as_ptr(), &raw mut answer) } != 0 {
        return Err(os(io::Error::last_os_error()));
    }
    Ok(answer)
}

/// Refuses a scratch file of `bytes` that would (nearly) fill the file system, before anything is written.
pub(crate) fn check_room(directory: &Path, bytes: u64) -> Result<(), Error> {
    let free = free_bytes(directory)?;
    let needed = bytes.saturating_add(bytes / MARGIN_DIVISOR);
    if needed <= free {
        return Ok(());
    }
    let mib = |bytes: u64| bytes.div_ceil(1 << 20);
    let doing = format!(
        "make a scratch file of {} MiB in {}: {} MiB must be free and {} MiB are; ask for less with --file-size",
        mib(bytes),
        directory.display(),
        mib(needed),
        free >> 20
    );
    Err(Error::Os { doing, source: io::Error::from_raw_os_error(libc::ENOSPC) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ErrorKind;

    #[test]
    fn a_file_system_has_room_for_a_little_and_not_for_everything() {
        let directory = tempfile::tempdir().unwrap();
        let free = free_bytes(directory.path()).unwrap();
        assert!(free > 0 && total_bytes(directory.path()).unwrap() >= free);
        assert!(check_room(directory.path(), 4096).is_ok());
        let refused = check_room(directory.path(), 1 << 60).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::NoSpace);
        assert!(refused.to_string().contains("--file-size"), "{refused}");
    }

    #[test]
    fn a_missing_directory_is_named() {
        let refused = free_bytes(Path::new("/nowhere/at/all")).unwrap_err().to_string();
        assert!(refused.contains("/nowhere/at/all"), "{refused}");
    }
}
