//! Pages of a database with checksums, on their way between SQLite and the file.

use std::ffi::{c_int, c_void};

use flashgrain_layout::Layout;

use super::abi::{IOERR, IOERR_DATA, IOERR_SHORT_READ, IOERR_WRITE, LOCK_EXCLUSIVE, OK};
use super::file::{State, overlay, physical};
use super::lower::{Lower, call};
use crate::page_sums::{HEADER_OF_DATABASE_BYTES, is_for_locks};

impl State {
    /// The layout, if pages have checksums.
    pub(super) fn with_checksums(&self) -> Option<Layout> {
        self.shape.layout().filter(Layout::has_checksums)
    }

    /// Takes the checksum off a page that was read.
    ///
    /// # Safety
    /// The buffer has `bytes` bytes, which were read.
    pub(super) unsafe fn open_page(
        &mut self,
        lower: Lower,
        buffer: *mut c_void,
        bytes: c_int,
        offset: i64,
    ) -> Result<(), c_int> {
        let (length, offset) =
            (usize::try_from(bytes).map_err(|_| IOERR)?, u64::try_from(offset).map_err(|_| IOERR)?);
        self.learn_page_size(lower, offset, length)?;
        // SAFETY: as the caller promises.
        let page = unsafe { std::slice::from_raw_parts_mut(buffer.cast(), length) };
        self.sums.opened(page, offset).map_err(|why| {
            self.functions.tell(IOERR_DATA, &why);
            IOERR_DATA
        })
    }

    /// A page with its checksum, as it is to be written; it is as long.
    ///
    /// # Safety
    /// The buffer has `bytes` bytes.
    pub(super) unsafe fn seal_page(
        &mut self,
        lower: Lower,
        buffer: *const c_void,
        bytes: c_int,
        offset: i64,
    ) -> Result<*const c_void, c_int> {
        let Some(layout) = self.with_checksums() else { return Ok(buffer) };
        let (length, offset) =
            (usize::try_from(bytes).map_err(|_| IOERR)?, u64::try_from(offset).map_err(|_| IOERR)?);
        self.learn_page_size(lower, offset, length)?;
        // SAFETY: as the caller promises.
        let page = unsafe { std::slice::from_raw_parts(buffer.cast::<u8>(), length) };
        match self.sums.sealed(page, offset, layout, self.level >= LOCK_EXCLUSIVE) {
            Ok(sealed) => Ok(sealed.as_ptr().cast()),
            Err(why) => {
                self.functions.tell(IOERR_WRITE, why);
                Err(IOERR_WRITE)
            }
        }
    }

    /// Looks at the database's header if a range is no page of the size that is known: another connection may
    /// have changed it.
    fn learn_page_size(&mut self, lower: Lower, offset: u64, length: usize) -> Result<(), c_int> {
        if self.sums.is_expected(offset, length) {
            return Ok(());
        }
        let mut header = [0; HEADER_OF_DATABASE_BYTES];
        self.read_file(lower, &mut header, 0)?;
        self.sums.note(&header);
        Ok(())
    }

    /// Bytes of the file at a logical offset, pieces that wait included; zeros after its end.
    fn read_file(&self, lower: Lower, bytes: &mut [u8], offset: i64) -> Result<(), c_int> {
        let at = physical(self.shape, offset)?;
        let (buffer, length): (*mut c_void, _) = (bytes.as_mut_ptr().cast(), bytes.len() as c_int);
        let code = call!(lower, read, buffer, length, at);
        let code = match &self.split {
            // SAFETY: the buffer has `length` bytes.
            Some(split) => unsafe { overlay(split, buffer, length, at, code) },
            None => code,
        };
        match code {
            OK | IOERR_SHORT_READ => Ok(()),
            code => Err(code),
        }
    }

    /// Gives all pages their checksums that were written in pieces. The transaction has written everything,
    /// and has not ended yet.
    pub(super) fn settle_pages(&mut self, lower: Lower) -> Result<(), c_int> {
        if self.sums.is_settled() {
            return Ok(());
        }
        let size = u64::try_from(self.size(lower)?).map_err(|_| IOERR)?;
        let (ranges, page_bytes) = self.sums.unsettled(size).map_err(|why| {
            self.functions.tell(IOERR_WRITE, why);
            IOERR_WRITE
        })?;
        let mut page = vec![0; page_bytes];
        for offset in ranges.into_iter().flat_map(|range| range.step_by(page_bytes)) {
            if is_for_locks(offset, page_bytes as u64) {
                continue;
            }
            let at = i64::try_from(offset).map_err(|_| IOERR)?;
            self.read_file(lower, &mut page, at)?;
            self.sums.settle_page(&mut page, offset);
            // SAFETY: the buffer has these bytes.
            match unsafe {
                self.write_at(lower, page.as_ptr().cast(), page_bytes as c_int, physical(self.shape, at)?)
            } {
                OK => {}
                code => return Err(code),
            }
        }
        self.sums.settled();
        Ok(())
    }
}
