//! The storage of a file of records.

use std::fs::File;
use std::io::{ErrorKind, Result};
use std::os::unix::fs::FileExt;

/// A file, as far as records need one.
pub trait Storage {
    /// Reads from an offset on; fewer bytes than asked for only at the end, or if there is reason to ask
    /// again.
    ///
    /// # Errors
    /// Those of reading.
    fn read_at(&self, bytes: &mut [u8], offset: u64) -> Result<usize>;

    /// Writes from an offset on.
    ///
    /// # Errors
    /// Those of writing; some of the bytes may be written then.
    fn write_all_at(&self, bytes: &[u8], offset: u64) -> Result<()>;

    /// Makes it `length_bytes` long; missing bytes are zero.
    ///
    /// # Errors
    /// Those of writing.
    fn set_len(&self, length_bytes: u64) -> Result<()>;

    /// Returns when all that was written is durable, the length included.
    ///
    /// # Errors
    /// Those of writing.
    fn sync_data(&self) -> Result<()>;

    /// How long it is.
    ///
    /// # Errors
    /// Those of the file system.
    fn length_bytes(&self) -> Result<u64>;

    /// Reads until the bytes are full or the file ends. Returns how many there are.
    ///
    /// # Errors
    /// Those of reading.
    fn read_up_to(&self, bytes: &mut [u8], offset: u64) -> Result<usize> {
        let mut read = 0;
        while read < bytes.len() {
            match self.read_at(&mut bytes[read..], offset + read as u64) {
                Ok(0) => break,
                Ok(more) => read += more,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(read)
    }

    /// Reads all of the bytes.
    ///
    /// # Errors
    /// [`ErrorKind::UnexpectedEof`] if the file ends before; those of reading.
    fn read_all_at(&self, bytes: &mut [u8], offset: u64) -> Result<()> {
        if self.read_up_to(bytes, offset)? < bytes.len() {
            Err(ErrorKind::UnexpectedEof.into())
        } else {
            Ok(())
        }
    }
}

impl Storage for File {
    fn read_at(&self, bytes: &mut [u8], offset: u64) -> Result<usize> {
        FileExt::read_at(self, bytes, offset)
    }

    fn write_all_at(&self, bytes: &[u8], offset: u64) -> Result<()> {
        FileExt::write_all_at(self, bytes, offset)
    }

    fn set_len(&self, length_bytes: u64) -> Result<()> {
        Self::set_len(self, length_bytes)
    }

    fn sync_data(&self) -> Result<()> {
        Self::sync_data(self)
    }

    fn length_bytes(&self) -> Result<u64> {
        Ok(self.metadata()?.len())
    }
}
