//! Values that are read piece by piece.

use std::fmt;
use std::io::{self, Read, Seek, SeekFrom};
use std::sync::Arc;

use super::content::Content;
use super::core::Core;
use super::source::View;
use super::value::Value;
use crate::btree::overflow::Stored;
use crate::catalog::NamedTree;
use crate::engine::Parked;
use crate::txn::Snapshot;
use crate::{Error, ErrorKind};

/// Reads a value piece by piece, from any place of it. Made by [`Readable::reader`](crate::Readable::reader).
///
/// It has one page of the value in memory, 64 KiB or less, and asks for the next ones ahead of a reader that
/// reads on. It owns a snapshot, so the value stays as it is for as long as the reader lives, and others'
/// writes keep old versions for it.
///
/// Every page is verified when it is read from a device, and the value as a whole where it is read from its
/// beginning to its end. An error of the store comes as an [`io::Error`] whose inner error is an [`Error`];
/// its kind is [`InvalidData`](io::ErrorKind::InvalidData) if bytes are damaged.
pub struct ValueReader {
    // Dropped before the store, which may be closed with its last handle.
    source: Source,
    /// So that no page of the value is freed.
    _at: Arc<Snapshot>,
    _tree: Arc<NamedTree>,
    core: Arc<Core>,
    position: u64,
}

enum Source {
    Memory(Value),
    Pages(Stored),
    /// A transaction's own write.
    Own {
        stored: Stored,
        _kept: Arc<Parked>,
    },
}

impl ValueReader {
    pub(super) fn of(view: View, key: &[u8]) -> Result<Option<Self>, Error> {
        let View { core, tree, at, overlay } = view;
        let overflow_values = core.engine().overflow_values();
        let own = overlay.as_ref().and_then(|writes| writes.get(key));
        let source = match own {
            Some(None) => return Ok(None),
            Some(Some(Content::Bytes(value))) => Source::Memory(value.clone()),
            Some(Some(Content::Operands(list))) => {
                let found = core.look_up_raw(&tree, key, &at)?;
                let existing = found.map(|(version, bytes)| core.value(version, &bytes)).transpose()?;
                match tree.merge(key, existing.as_deref(), list)? {
                    Some(value) => Source::Memory(value),
                    None => return Ok(None),
                }
            }
            Some(Some(Content::Parked(parked))) => {
                let stored = overflow_values.open(parked.reference())?;
                Source::Own { stored, _kept: Arc::clone(parked) }
            }
            None => match core.look_up_raw(&tree, key, &at)? {
                None => return Ok(None),
                Some((version, bytes)) if version.is_overflow() => {
                    Source::Pages(overflow_values.open(&bytes)?)
                }
                Some((_, bytes)) => Source::Memory(Value::from(bytes)),
            },
        };
        Ok(Some(Self { source, _at: at, _tree: tree, core, position: 0 }))
    }

    /// Bytes of the whole value.
    pub fn length(&self) -> u64 {
        match &self.source {
            Source::Memory(value) => value.len() as u64,
            Source::Pages(stored) | Source::Own { stored, .. } => stored.length(),
        }
    }

    /// The bytes from the position on that are at hand, or are with one read.
    fn piece(&mut self) -> Result<&[u8], Error> {
        self.core.check_open()?;
        let position = self.position;
        match &mut self.source {
            Source::Memory(value) => {
                let start = usize::try_from(position).unwrap_or(usize::MAX);
                Ok(value.as_slice().get(start..).unwrap_or_default())
            }
            Source::Pages(stored) | Source::Own { stored, .. } => {
                let read = self.core.engine().overflow_values().read_at(stored, position);
                self.core.check_open()?;
                read
            }
        }
    }
}

impl From<Error> for io::Error {
    fn from(error: Error) -> Self {
        match error.kind() {
            ErrorKind::Corrupt => Self::new(io::ErrorKind::InvalidData, error),
            _ => Self::other(error),
        }
    }
}

impl Read for ValueReader {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if into.is_empty() {
            return Ok(0);
        }
        let read = self.piece()?.read(into)?;
        self.position += read as u64;
        Ok(read)
    }
}

impl Seek for ValueReader {
    /// A position after the end is allowed; a read there returns no bytes.
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let position = match to {
            SeekFrom::Start(position) => Some(position),
            SeekFrom::End(offset) => self.length().checked_add_signed(offset),
            SeekFrom::Current(offset) => self.position.checked_add_signed(offset),
        };
        let before = || io::Error::new(io::ErrorKind::InvalidInput, "a position before the beginning");
        self.position = position.ok_or_else(before)?;
        Ok(self.position)
    }
}

impl fmt::Debug for ValueReader {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("ValueReader")
            .field("length", &self.length())
            .field("position", &self.position)
            .finish_non_exhaustive()
    }
}
