//! Input that may take its time: a pipe, a terminal.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::Duration;

use anyhow::Context as _;

/// Interval at which a wait for input looks for an interrupt.
const TICK: Duration = Duration::from_millis(20);

/// Bytes that are read at once.
const PIECE_BYTES: usize = 64 << 10;

/// Pieces that are read ahead.
const PIECES: usize = 4;

/// Opens a file, or standard input for `-`. A wait for its bytes ends with an error once `interrupt` is set.
pub fn open(path: &Path, interrupt: Arc<AtomicBool>) -> anyhow::Result<Box<dyn BufRead>> {
    if path.as_os_str() == "-" {
        return Ok(Box::new(Awaited::new(io::stdin(), interrupt)?));
    }
    let file = File::open(path).with_context(|| format!("open {}", path.display()))?;
    match file.metadata().is_ok_and(|metadata| metadata.is_file()) {
        true => Ok(Box::new(BufReader::new(file))),
        false => Ok(Box::new(Awaited::new(file, interrupt)?)),
    }
}

/// Bytes that a thread of their own reads: a read of a pipe cannot be ended, but the wait for it can.
struct Awaited {
    pieces: Receiver<io::Result<Vec<u8>>>,
    piece: Vec<u8>,
    /// Bytes of the piece that were consumed.
    used: usize,
    interrupt: Arc<AtomicBool>,
}

impl Awaited {
    fn new(source: impl Read + Send + 'static, interrupt: Arc<AtomicBool>) -> anyhow::Result<Self> {
        let (sender, pieces) = sync_channel(PIECES);
        std::thread::Builder::new()
            .spawn(move || read_ahead(source, &sender))
            .context("start the thread that reads the input")?;
        Ok(Self { pieces, piece: Vec::new(), used: 0, interrupt })
    }
}

fn read_ahead(mut source: impl Read, sender: &SyncSender<io::Result<Vec<u8>>>) {
    loop {
        let mut piece = vec![0; PIECE_BYTES];
        let read = source.read(&mut piece).map(|length| {
            piece.truncate(length);
            piece
        });
        let is_last = match &read {
            Ok(piece) => piece.is_empty(),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(_) => true,
        };
        if sender.send(read).is_err() || is_last {
            return;
        }
    }
}

impl Read for Awaited {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let read = self.fill_buf()?.read(into)?;
        self.consume(read);
        Ok(read)
    }
}

impl BufRead for Awaited {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        while self.used == self.piece.len() {
            match self.pieces.recv_timeout(TICK) {
                Ok(piece) => {
                    (self.piece, self.used) = (piece?, 0);
                    if self.piece.is_empty() {
                        break;
                    }
                }
                Err(RecvTimeoutError::Disconnected) => break,
                // Not `Interrupted`, as callers read on after that.
                Err(RecvTimeoutError::Timeout) if self.interrupt.load(Ordering::Relaxed) => {
                    return Err(io::Error::other("the wait for input was ended"));
                }
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
        Ok(self.piece.get(self.used..).unwrap_or_default())
    }

    fn consume(&mut self, bytes: usize) {
        self.used = (self.used + bytes).min(self.piece.len());
    }
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::*;

    #[test]
    fn awaited_bytes_are_those_of_the_source() {
        let bytes: Vec<u8> = (0..300_000_u32).map(|at| (at % 251) as u8).collect();
        let mut awaited = Awaited::new(Cursor::new(bytes.clone()), Arc::default()).unwrap();
        let mut read = Vec::new();
        awaited.read_to_end(&mut read).unwrap();
        assert!(read == bytes);
        assert!(awaited.fill_buf().unwrap().is_empty());
    }

    #[test]
    fn an_interrupt_ends_the_wait() {
        let (end, _open) = std::os::unix::net::UnixStream::pair().unwrap();
        let mut awaited = Awaited::new(end, Arc::new(AtomicBool::new(true))).unwrap();
        assert!(awaited.fill_buf().is_err());
    }
}
