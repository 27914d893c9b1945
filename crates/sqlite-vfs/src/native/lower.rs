//! A file of the VFS behind.

use std::ffi::{c_int, c_void};

use flashgrain_layout::header::HEADER_BYTES;
use flashgrain_layout::{Layout, header};

use super::abi::{self, File, Functions, IOERR_SHORT_READ, IoMethods, NOTADB, OK};
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

/// An open file of the VFS behind; as a value, it borrows nothing.
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

    /// The file's length and its first bytes; what is behind its end is zero.
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
