//! Pragmas of databases with a layout.

use std::ffi::{CStr, c_char, c_int};

use flashgrain_layout::Layout;

use super::file::State;
use super::lower::Lower;

/// The pragma that says which layout a database has.
const LAYOUT_PRAGMA: &CStr = c"flashgrain_layout";

/// The pragma that says whether pages are compared with their checksums, and has them be so or not.
const CHECKSUMS_PRAGMA: &CStr = c"flashgrain_checksums";

impl State {
    /// The answer to a pragma of ours; `None` to others.
    ///
    /// # Safety
    /// The arguments are those of `SQLITE_FCNTL_PRAGMA`: places for the answer, of the name, and of the
    /// value.
    pub(super) unsafe fn pragma(
        &mut self,
        lower: Lower,
        arguments: *const *const c_char,
    ) -> Option<Result<String, c_int>> {
        // SAFETY: as the caller promises; the name is a C string, and the value is one if it is there.
        let (name, value) = unsafe {
            let (name, value) = (CStr::from_ptr(*arguments.add(1)), *arguments.add(2));
            (name, (!value.is_null()).then(|| CStr::from_ptr(value).to_string_lossy()))
        };
        let is = |ours: &CStr| name.to_bytes().eq_ignore_ascii_case(ours.to_bytes());
        if !is(LAYOUT_PRAGMA) && !is(CHECKSUMS_PRAGMA) {
            return None;
        }
        let layout = match self.looked(lower) {
            Ok(shape) => shape.layout(),
            Err(code) => return Some(Err(code)),
        };
        if is(LAYOUT_PRAGMA) {
            return Some(Ok(layout.map_or("plain".into(), |layout| layout.to_string())));
        }
        match value.as_deref().map(str::to_ascii_lowercase).as_deref() {
            Some("on" | "1" | "true" | "yes") => self.sums.are_checked = true,
            Some("off" | "0" | "false" | "no") => self.sums.are_checked = false,
            _ => {}
        }
        let word = match layout.filter(Layout::has_checksums) {
            None => "none",
            Some(_) if self.sums.are_checked => "on",
            Some(_) => "off",
        };
        Some(Ok(word.into()))
    }
}
