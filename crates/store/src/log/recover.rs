//! Reading the log at opening: which records there are, where it ends, and whether it may end there.

use super::block::{self, HEADER_BYTES, Header, NotIt, PREFIX_BYTES};
use super::ring::Ring;
use super::{Known, Lsn, Recovered, Timestamp};
use crate::Error;
use crate::lane::{Block, Devices, Role, flush};

/// Bytes of one read.
const READ_BYTES: u64 = 1 << 20;

/// What [`recover`] found.
pub(super) struct Found {
    /// Where the next group begins.
    pub end: Lsn,
    /// Checksum of the block before that.
    pub chain: u32,
    /// The last timestamp given.
    pub last: Timestamp,
    pub recovered: Recovered,
}

type Replay<'a> = &'a mut dyn FnMut(Lsn, Timestamp, &[u8]) -> Result<(), Error>;

/// Replays the log as far as it goes, and erases what a crash left behind its end.
pub(super) fn recover(
    devices: &Devices,
    ring: Ring,
    known: Known,
    replay: Replay<'_>,
) -> Result<Found, Error> {
    if known.closed {
        let end = ring.next_block(known.tail);
        return Ok(Found { end, chain: 0, last: known.timestamp, recovered: Recovered::default() });
    }
    let mut reader = Reader::new(devices, ring, known.tail)?;
    let mut records = Records::new(known, replay);
    let limit = ring.room_until(known.tail);
    let mut at = ring.block(known.tail);
    let mut chain = None;
    let mut why = None;
    while at < limit {
        let bytes = reader.block(at)?;
        match follow(bytes, known.store, at, chain) {
            Ok((header, checksum)) => {
                records.take(&header, bytes)?;
                chain = Some(checksum);
                at = Lsn(at.0 + ring.block_bytes);
            }
            Err(different) => {
                why = Some(different);
                break;
            }
        }
    }
    let stale = match why {
        Some(why) => look_behind(&mut reader, ring, known, at, limit, why)?,
        None => Vec::new(),
    };
    erase(devices, ring, &stale)?;
    let recovered = Recovered {
        records: records.count,
        bytes: at.0 - known.tail.0.min(at.0),
        torn: !stale.is_empty() || !records.partial.is_empty(),
    };
    Ok(Found { end: at, chain: chain.unwrap_or(0), last: records.last, recovered })
}

/// The block, if it is the one at `lsn` and follows the one with the checksum `chain`.
fn follow(bytes: &[u8], store: u64, lsn: Lsn, chain: Option<u32>) -> Result<(Header, u32), NotIt> {
    let (header, checksum) = block::open(bytes, store, lsn)?;
    match chain {
        Some(chain) if chain != header.previous => Err(NotIt {
            expected: format!("a block after one with checksum {chain:08x}"),
            got: format!("one after {:08x}", header.previous),
        }),
        _ => Ok((header, checksum)),
    }
}

/// Looks for who knows that what is missing at `end` was durable. Returns the blocks there that nobody may find later.
fn look_behind(
    reader: &mut Reader<'_>,
    ring: Ring,
    known: Known,
    end: Lsn,
    limit: Lsn,
    why: NotIt,
) -> Result<Vec<Lsn>, Error> {
    let corrupt = |witness: &str| Error::Corrupt {
        what: format!("the log (position {}; {witness} says that it was durable)", end.0),
        offset_bytes: ring.place(end),
        expected: why.expected.clone(),
        got: why.got.clone(),
    };
    if known.durable > end {
        return Err(corrupt("the checkpoint"));
    }
    let until = limit.min(Lsn(end.0 + ring.window_bytes() + ring.block_bytes));
    let mut stale = Vec::new();
    let mut at = end;
    while at < until {
        if let Ok((header, _)) = block::open(reader.block(at)?, known.store, at) {
            if header.durable > end {
                return Err(corrupt(&format!("the block at position {}", at.0)));
            }
            stale.push(at);
        }
        at = Lsn(at.0 + ring.block_bytes);
    }
    Ok(stale)
}

fn erase(devices: &Devices, ring: Ring, stale: &[Lsn]) -> Result<(), Error> {
    if stale.is_empty() {
        return Ok(());
    }
    let mut zeros = Block::new(ring.block_bytes as usize)?;
    for lsn in stale {
        zeros.write(devices, Role::Log, ring.place(*lsn))?;
    }
    flush(devices, Role::Log).map_err(|failed| failed.error("flush the log"))
}

/// Blocks one after another, read in large pieces.
struct Reader<'a> {
    devices: &'a Devices,
    ring: Ring,
    piece: Block,
    /// What of the log is in memory.
    start: Lsn,
    length_bytes: u64,
}

impl<'a> Reader<'a> {
    fn new(devices: &'a Devices, ring: Ring, tail: Lsn) -> Result<Self, Error> {
        let piece = Block::new(READ_BYTES.next_multiple_of(ring.block_bytes) as usize)?;
        Ok(Self { devices, ring, piece, start: ring.block(tail), length_bytes: 0 })
    }

    /// The block at `lsn`.
    fn block(&mut self, lsn: Lsn) -> Result<&[u8], Error> {
        let inside = self.start <= lsn && lsn.0 < self.start.0 + self.length_bytes;
        if !inside {
            let length = (self.piece.bytes().len() as u64).min(self.ring.until_wrap(lsn));
            self.piece.read_part(self.devices, Role::Log, self.ring.place(lsn), length as usize)?;
            (self.start, self.length_bytes) = (lsn, length);
        }
        let offset = (lsn.0 - self.start.0) as usize;
        let bytes = self.piece.bytes();
        Ok(bytes.get(offset..offset + self.ring.block_bytes as usize).unwrap_or_default())
    }
}

/// Puts the stream of records together.
struct Records<'a> {
    replay: Replay<'a>,
    tail: Lsn,
    /// The beginning of a record that goes on in the next block.
    partial: Vec<u8>,
    /// Where that began, and its timestamp.
    begun: (Lsn, Timestamp),
    /// Whether a first record was seen: bytes before it belong to one from before the tail.
    in_step: bool,
    last: Timestamp,
    count: u64,
}

impl<'a> Records<'a> {
    fn new(known: Known, replay: Replay<'a>) -> Self {
        let begun = (Lsn(0), Timestamp(0));
        Self {
            replay,
            tail: known.tail,
            partial: Vec::new(),
            begun,
            in_step: false,
            last: known.timestamp,
            count: 0,
        }
    }

    /// The records of a block; `header` is of it.
    fn take(&mut self, header: &Header, bytes: &[u8]) -> Result<(), Error> {
        let (from, used) = (header.records_from as usize, header.used as usize);
        if from == HEADER_BYTES {
            // Otherwise void: torn by a crash.
            self.partial.clear();
        } else if self.in_step && !self.partial.is_empty() {
            self.partial.extend_from_slice(bytes.get(HEADER_BYTES..from).unwrap_or_default());
            self.finish_partial()?;
        }
        if from == used {
            return Ok(());
        }
        self.in_step = true;
        let mut rest = bytes.get(from..used).unwrap_or_default();
        let mut timestamp = Timestamp(header.timestamp);
        while !rest.is_empty() {
            let start = Lsn(header.lsn.0 + (used - rest.len()) as u64);
            let Some((record, behind)) = split_record(rest) else {
                self.partial.extend_from_slice(rest);
                self.begun = (start, timestamp);
                break;
            };
            self.emit(start, timestamp, record)?;
            timestamp.0 += 1;
            rest = behind;
        }
        Ok(())
    }

    fn finish_partial(&mut self) -> Result<(), Error> {
        let partial = std::mem::take(&mut self.partial);
        match split_record(&partial) {
            Some((record, _)) => self.emit(self.begun.0, self.begun.1, record),
            None => {
                self.partial = partial;
                Ok(())
            }
        }
    }

    fn emit(&mut self, start: Lsn, timestamp: Timestamp, record: &[u8]) -> Result<(), Error> {
        self.last = self.last.max(timestamp);
        if start >= self.tail {
            self.count += 1;
            (self.replay)(start, timestamp, record)?;
        }
        Ok(())
    }
}

/// A whole record at the front, without its length, and what follows.
fn split_record(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let length = u32::from_le_bytes(bytes.get(..PREFIX_BYTES)?.try_into().ok()?);
    bytes.get(PREFIX_BYTES..)?.split_at_checked(length as usize)
}
