//! A file of the underlying VFS.

use std::ffi::{OsStr, c_int, c_void};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;

use flashgrain_layout::header::HEADER_BYTES;
use flashgrain_layout::{Layout, header};

use super::abi::{
    self, FCNTL_HAS_MOVED, FCNTL_IDENTITY, File, Functions, IOERR_SHORT_READ, IoMethods, NOTADB, NOTFOUND, OK,
};
use crate::names::Identity;
use crate::shape::Shape;

/// Calls a method of a [`Lower`]; a VFS without it has an I/O error.
macro_rules! call {
    ($lower:expr, $method:ident $(, $argument:expr)*) => {{
        let lower: $crate::native::lower::Lower = $lower;
        // SAFETY: a `Lower` is open, so that its methods are there.
        match unsafe { (*lower.methods()).$method } {
            // SAFETY: the arguments are those of the method, and as SQLite promises or of this function.
            Some(method) => unsafe { method(lower.file() $(, $argument)*) },
            None => $crate::native::abi::IOERR,
        }
    }};
}
pub(super) use call;

/// An open file of the underlying VFS; as a value, it borrows nothing.
#[derive(Clone, Copy)]
pub(super) struct Lower(*mut File);

impl Lower {
    /// # Safety
    /// The file is open, and stays so while the value is in use.
    pub unsafe fn new(file: *mut File) -> Self {
        Self(file)
    }

    pub fn file(self) -> *mut File {
        self.0
    }

    pub fn methods(self) -> *const IoMethods {
        // SAFETY: the file is open.
        unsafe { (*self.0).methods }
    }

    pub fn version(self) -> c_int {
        // SAFETY: all versions begin with their number.
        unsafe { (*self.methods()).version }
    }

    /// Length of the file itself.
    pub fn size(self) -> Result<i64, c_int> {
        let mut size = 0_i64;
        let size_at: *mut i64 = &mut size;
        match call!(self, file_size, size_at) {
            OK => Ok(size),
            code => Err(code),
        }
    }

    /// Which file it is that was just opened by this path.
    pub fn identity(self, path: &[u8]) -> Identity {
        let mut identity = [0_u64; 2];
        if call!(self, file_control, FCNTL_IDENTITY, identity.as_mut_ptr().cast()) == OK {
            return Some(identity);
        }
        let of_path = || {
            let metadata = std::fs::metadata(OsStr::from_bytes(path)).ok()?;
            Some([metadata.dev(), metadata.ino()])
        };
        let found = of_path()?;
        let mut has_moved: c_int = 0;
        let moved_at: *mut c_int = &mut has_moved;
        let code = call!(self, file_control, FCNTL_HAS_MOVED, moved_at.cast());
        // If another file has got the name meanwhile, this one is the only one with this identity.
        let is_found = code == NOTFOUND || code == OK && has_moved == 0 && of_path() == Some(found);
        Some(if is_found { found } else { [u64::MAX, self.0.addr() as u64] })
    }

    /// The file's length and its first bytes; those after its end are zero.
    pub fn beginning<const BYTES: usize>(self) -> Result<(u64, [u8; BYTES]), c_int> {
        let size = u64::try_from(self.size()?).unwrap_or(0);
        let mut beginning = [0_u8; BYTES];
        if size > 0 {
            let buffer: *mut c_void = beginning.as_mut_ptr().cast();
            match call!(self, read, buffer, BYTES as c_int, 0) {
                OK | IOERR_SHORT_READ => {}
                code => return Err(code),
            }
        }
        Ok((size, beginning))
    }

    /// Looks at the file's length and first bytes; why it cannot be used goes to the program's log.
    pub fn shape(self, wish: Option<Layout>, functions: &Functions) -> Result<Shape, c_int> {
        let (size, beginning) = self.beginning::<{ HEADER_BYTES as usize }>()?;
        Shape::of_file(size, &beginning, wish).map_err(|error| {
            functions.tell(NOTADB, &error.to_string());
            NOTADB
        })
    }

    /// Makes the empty file one with this layout. The header is durable before any page can be.
    pub fn lay_out(self, layout: Layout) -> c_int {
        let mut block = [0_u8; HEADER_BYTES as usize];
        block[..header::ENCODED_BYTES].copy_from_slice(&header::encode(layout));
        let buffer: *const c_void = block.as_ptr().cast();
        match call!(self, write, buffer, HEADER_BYTES as c_int, 0) {
            OK => call!(self, sync, abi::SYNC_NORMAL),
            code => code,
        }
    }
}
