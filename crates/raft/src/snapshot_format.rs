//! A snapshot as a sequence of bytes: in a file, and on its way to another node.
//!
//! ```text
//! magic, 8 bytes │ length of the header, u32 │ header: SnapshotMeta, by postcard
//! length of the key, u32 │ of the value, u32 │ key │ value      once for each record, in key order
//! END, u32 │ number of records, u64 │ CRC-32C of all bytes before, u32
//! ```
//!
//! Numbers have their least significant byte first. A record at a time is in memory.

use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::path::{Path, PathBuf};

use crc_fast::{CrcAlgorithm, Digest};
use flashgrain::Iter;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::encoding::encode;
use crate::error::Error;

const MAGIC: &[u8; 8] = b"FGRAFT\x00\x01";

/// A key and its value.
type Record = (Vec<u8>, Vec<u8>);

/// In place of a key's length.
const END: u32 = u32::MAX;

/// Writes `header` and `records`, and waits until they are durable.
///
/// # Errors
/// [`Error::File`], [`Error::Store`] if a record cannot be read, [`Error::Unencodable`].
pub fn write<H: Serialize>(path: &Path, file: File, header: &H, records: Iter) -> Result<File, Error> {
    let failed = |source| Error::File { action: "write", path: path.to_owned(), source };
    let header = encode(header)?;
    let mut out = Summed { inner: BufWriter::new(file), sum: Digest::new(CrcAlgorithm::Crc32Iscsi) };
    out.write_all(MAGIC).map_err(failed)?;
    out.write_all(&length(&header).map_err(failed)?).map_err(failed)?;
    out.write_all(&header).map_err(failed)?;
    let mut count = 0_u64;
    for record in records {
        let (key, value) = record?;
        let lengths = length(&key).and_then(|key| Ok([key, length(&value)?].concat())).map_err(failed)?;
        for bytes in [&lengths[..], &key[..], &value[..]] {
            out.write_all(bytes).map_err(failed)?;
        }
        count += 1;
    }
    out.write_all(&END.to_le_bytes()).map_err(failed)?;
    out.write_all(&count.to_le_bytes()).map_err(failed)?;
    let sum = out.sum();
    out.write_all(&sum.to_le_bytes()).map_err(failed)?;
    let file = out.inner.into_inner().map_err(|error| failed(error.into_error()))?;
    file.sync_all().map_err(failed)?;
    Ok(file)
}

fn length(bytes: &[u8]) -> Result<[u8; 4], io::Error> {
    let length = u32::try_from(bytes.len()).ok().filter(|length| *length < END);
    Ok(length.ok_or_else(|| io::Error::other("a record of 4 GiB"))?.to_le_bytes())
}

/// Reads a snapshot from the beginning of its file. Its records are those of a whole snapshot only once
/// [`SnapshotReader::verify`] has said so.
pub struct SnapshotReader {
    path: PathBuf,
    input: Summed<BufReader<File>>,
    /// No length within the file is more than this.
    file_bytes: u64,
    count: u64,
    /// The reason why there are no more records, unless it is their end.
    failure: Option<Error>,
    is_at_end: bool,
}

impl SnapshotReader {
    /// A reader of the records, and the header. `file` is read from where it stands.
    ///
    /// # Errors
    /// [`Error::File`]; [`Error::DamagedSnapshot`]; [`Error::Undecodable`].
    pub fn open<H: DeserializeOwned>(path: &Path, file: File) -> Result<(Self, H), Error> {
        let metadata = file.metadata();
        let failed = |source| Error::File { action: "read", path: path.to_owned(), source };
        let mut reader = Self {
            path: path.to_owned(),
            input: Summed { inner: BufReader::new(file), sum: Digest::new(CrcAlgorithm::Crc32Iscsi) },
            file_bytes: metadata.map_err(failed)?.len(),
            count: 0,
            failure: None,
            is_at_end: false,
        };
        let magic: [u8; 8] = reader.array()?;
        if magic != *MAGIC {
            return Err(reader.damaged(format!("{MAGIC:?} at its beginning"), format!("{magic:?}")));
        }
        let header_bytes = u32::from_le_bytes(reader.array()?);
        let header = reader.bytes(header_bytes)?;
        let header = crate::encoding::decode(&path.display().to_string(), &header)?;
        Ok((reader, header))
    }

    /// Reads what is left, if anything is, and says whether the snapshot is whole.
    ///
    /// # Errors
    /// [`Error::File`]; [`Error::DamagedSnapshot`].
    pub fn verify(mut self) -> Result<(), Error> {
        while self.next().is_some() {}
        if let Some(failure) = self.failure {
            return Err(failure);
        }
        let count = u64::from_le_bytes(self.array()?);
        if count != self.count {
            return Err(self.damaged(format!("{count} records"), self.count.to_string()));
        }
        let sum = self.input.sum();
        let stored = u32::from_le_bytes(self.array()?);
        if sum != stored {
            return Err(self.damaged(format!("checksum {stored:08x}"), format!("{sum:08x}")));
        }
        match self.input.inner.read(&mut [0]) {
            Ok(0) => Ok(()),
            Ok(_) => Err(self.damaged("its end".into(), "more bytes".into())),
            Err(source) => Err(Error::File { action: "read", path: self.path, source }),
        }
    }

    fn record(&mut self) -> Result<Option<Record>, Error> {
        let key_bytes = u32::from_le_bytes(self.array()?);
        if key_bytes == END {
            return Ok(None);
        }
        let value_bytes = u32::from_le_bytes(self.array()?);
        let record = (self.bytes(key_bytes)?, self.bytes(value_bytes)?);
        self.count += 1;
        Ok(Some(record))
    }

    fn array<const LENGTH: usize>(&mut self) -> Result<[u8; LENGTH], Error> {
        let mut bytes = [0; LENGTH];
        let read = self.input.read_exact(&mut bytes);
        read.map(|()| bytes).map_err(|error| self.unread(LENGTH as u64, error))
    }

    fn bytes(&mut self, length: u32) -> Result<Vec<u8>, Error> {
        if u64::from(length) > self.file_bytes {
            return Err(self.damaged(format!("at most {} bytes", self.file_bytes), length.to_string()));
        }
        let mut bytes = vec![0; length as usize];
        let read = self.input.read_exact(&mut bytes);
        read.map(|()| bytes).map_err(|error| self.unread(length.into(), error))
    }

    fn unread(&self, length: u64, source: io::Error) -> Error {
        match source.kind() {
            io::ErrorKind::UnexpectedEof => self.damaged(format!("{length} more bytes"), "its end".into()),
            _ => Error::File { action: "read", path: self.path.clone(), source },
        }
    }

    fn damaged(&self, expected: String, got: String) -> Error {
        Error::DamagedSnapshot { path: self.path.clone(), expected, got }
    }
}

impl Iterator for SnapshotReader {
    type Item = Record;

    fn next(&mut self) -> Option<Self::Item> {
        if self.is_at_end {
            return None;
        }
        let record = self.record();
        self.is_at_end = !matches!(record, Ok(Some(_)));
        record.unwrap_or_else(|error| {
            self.failure = Some(error);
            None
        })
    }
}

/// A reader or writer, and the checksum of all that passed.
struct Summed<T> {
    inner: T,
    sum: Digest,
}

impl<T> Summed<T> {
    fn sum(&self) -> u32 {
        // CRC-32C has 32 bits.
        self.sum.finalize() as u32
    }
}

impl<W: Write> Summed<W> {
    fn write_all(&mut self, bytes: &[u8]) -> Result<(), io::Error> {
        self.sum.update(bytes);
        self.inner.write_all(bytes)
    }
}

impl<R: Read> Summed<R> {
    fn read_exact(&mut self, bytes: &mut [u8]) -> Result<(), io::Error> {
        self.inner.read_exact(bytes)?;
        self.sum.update(bytes);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use flashgrain::{Db, Readable};
    use tempfile::TempDir;

    use super::*;

    fn records() -> Vec<Record> {
        (0..20_u8).map(|number| (vec![number], vec![number; number.into()])).collect()
    }

    fn written() -> (TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("snapshot");
        let db = Db::in_memory(16 << 20).unwrap();
        let tree = db.tree("t").unwrap();
        tree.load(records()).unwrap();
        write(&path, File::create(&path).unwrap(), &"header", db.iter(&tree).unwrap()).unwrap();
        (folder, path)
    }

    fn read(path: &Path) -> Result<(String, Vec<Record>), Error> {
        let (mut reader, header) = SnapshotReader::open(path, File::open(path).unwrap())?;
        let records = reader.by_ref().collect();
        reader.verify()?;
        Ok((header, records))
    }

    #[test]
    fn what_was_written_is_read() {
        let (_folder, path) = written();
        assert_eq!(read(&path).unwrap(), ("header".to_owned(), records()));
    }

    /// As a new file: file systems flush one that is written over.
    fn rewrite(path: &Path, bytes: &[u8]) {
        fs::remove_file(path).unwrap();
        fs::write(path, bytes).unwrap();
    }

    #[test]
    fn any_change_is_found() {
        let (_folder, path) = written();
        let whole = fs::read(&path).unwrap();
        for place in 0..whole.len() {
            let mut changed = whole.clone();
            changed[place] ^= 1 << (place % 8);
            rewrite(&path, &changed);
            read(&path).unwrap_err();
        }
        for length in 0..whole.len() {
            rewrite(&path, &whole[..length]);
            read(&path).unwrap_err();
        }
        rewrite(&path, &[&whole[..], b"x"].concat());
        read(&path).unwrap_err();
    }
}
