//! Which files are files of records, and how large a flash page is.

use std::ffi::{CStr, CString, c_char};
use std::sync::OnceLock;

use super::opened;

/// Patterns of the names of files, as a shell has them, separated by colons.
const FILES: &str = "FLASHGRAIN_RECORD_FILES";

/// Bytes of a flash page of new files.
const FLASH_PAGE: &str = "FLASHGRAIN_FLASH_PAGE";

/// A careful guess (§4.3).
const FLASH_PAGE_BYTES: u64 = 1024;

/// See the module.
pub struct Settings {
    patterns: Vec<CString>,
    /// Bytes of a flash page of new files.
    pub page_bytes: u64,
}

impl Settings {
    /// Those of the process's environment. What makes no sense is said once, and no file is laid out then.
    pub fn get() -> &'static Self {
        static SETTINGS: OnceLock<Settings> = OnceLock::new();
        SETTINGS.get_or_init(Self::of_environment)
    }

    fn of_environment() -> Self {
        let page = std::env::var(FLASH_PAGE).ok();
        let page_bytes = page.as_deref().map_or(Some(FLASH_PAGE_BYTES), |text| text.parse().ok());
        let Some(page_bytes) = page_bytes.filter(|bytes| is_flash_page(*bytes)) else {
            let page = page.unwrap_or_default();
            eprintln!(
                "flashgrain: {FLASH_PAGE} is `{page}`, but must be a power of two from 512 to 65536: files stay as they are"
            );
            return Self { patterns: Vec::new(), page_bytes: FLASH_PAGE_BYTES };
        };
        let names = std::env::var(FILES).unwrap_or_default();
        let patterns = names.split(':').filter(|name| !name.is_empty());
        Self { patterns: patterns.filter_map(|name| CString::new(name).ok()).collect(), page_bytes }
    }

    /// Whether the file with this path is one of records.
    fn has(&self, path: &CStr) -> bool {
        let name = path.to_bytes().rsplit(|byte| *byte == b'/').next().unwrap_or_default();
        let Ok(name) = CString::new(name) else { return false };
        // SAFETY: both are C strings.
        let matches = |pattern: &CString| unsafe { libc::fnmatch(pattern.as_ptr(), name.as_ptr(), 0) == 0 };
        self.patterns.iter().any(matches)
    }
}

/// The path, if it names a file of records, and this thread is not reading or writing one as it is.
///
/// # Safety
/// It is a C string, or null, and lives as long as the result.
pub unsafe fn named<'a>(path: *const c_char) -> Option<&'a CStr> {
    if path.is_null() || opened::is_inside() {
        return None;
    }
    // SAFETY: as the caller promises.
    let path = unsafe { CStr::from_ptr(path) };
    Settings::get().has(path).then_some(path)
}

fn is_flash_page(bytes: u64) -> bool {
    bytes.is_power_of_two() && (512..=64 << 10).contains(&bytes)
}
