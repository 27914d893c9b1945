//! Which files are files of records, and how large a flash page is.

use std::ffi::{CStr, CString, c_char};
use std::sync::OnceLock;

use super::fork;

/// Patterns of the names of files, as a shell has them, separated by colons.
const FILES: &str = "FLASHGRAIN_RECORD_FILES";

/// Bytes of a flash page of new files.
const FLASH_PAGE: &str = "FLASHGRAIN_FLASH_PAGE";

/// A careful guess (§4.3).
const FLASH_PAGE_BYTES: u64 = 1024;

/// The end of the path of a file without a name, as the kernel tells it.
const DELETED: &[u8] = b" (deleted)";

/// See the module.
struct Settings {
    patterns: Vec<CString>,
    /// Bytes of a flash page of new files.
    page_bytes: u64,
}

/// Those of the process's environment. Until they are read, all calls go through.
static SETTINGS: OnceLock<Settings> = OnceLock::new();

/// Runs when the library is loaded: an allocator may open files before it can serve this library.
#[used]
#[unsafe(link_section = ".init_array")]
static BEGIN: extern "C" fn() = begin;

extern "C" fn begin() {
    fork::begin();
    SETTINGS.get_or_init(Settings::of_environment);
}

/// Whether no file is a file of records.
pub fn is_unused() -> bool {
    SETTINGS.get().is_none_or(|settings| settings.patterns.is_empty())
}

/// Bytes of a flash page of new files.
pub fn page_bytes() -> u64 {
    SETTINGS.get().map_or(FLASH_PAGE_BYTES, |settings| settings.page_bytes)
}

/// Whether the file with this path is one of records, by its name.
///
/// # Safety
/// The path is a C string.
pub unsafe fn is_named(path: *const c_char) -> bool {
    // SAFETY: as the caller promises.
    let path = unsafe { CStr::from_ptr(path) };
    SETTINGS.get().is_some_and(|settings| settings.has(path))
}

impl Settings {
    /// Invalid values are reported once, and no file is laid out then.
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

    fn has(&self, path: &CStr) -> bool {
        let name = path.to_bytes().rsplit(|byte| *byte == b'/').next().unwrap_or_default();
        let name = name.strip_suffix(DELETED).unwrap_or(name);
        let Ok(name) = CString::new(name) else { return false };
        // SAFETY: both are C strings.
        let matches = |pattern: &CString| unsafe { libc::fnmatch(pattern.as_ptr(), name.as_ptr(), 0) == 0 };
        self.patterns.iter().any(matches)
    }
}

fn is_flash_page(bytes: u64) -> bool {
    bytes.is_power_of_two() && (512..=64 << 10).contains(&bytes)
}
