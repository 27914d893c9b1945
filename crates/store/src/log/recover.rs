//! Reading the log at opening: its records, its end, and whether that end is a torn tail or corruption.

use std::ops::ControlFlow;

use super::block::{self, HEADER_BYTES, Header, NotIt, PREFIX_BYTES};
use super::ring::Ring;
use super::{LogCheckpoint, Lsn, Recovered, Replay, Timestamp, durable_mark};
use crate::Error;
use crate::io_context::{Block, Devices, Role, flush, read_pieces};

/// Bytes of one read.
const READ_BYTES: u64 = 1 << 20;

/// The number of parts of the window, which a torn tail lies within. Beyond the window, one block for each
/// such part is read. Damage is taken for the log's end only if it is longer than the window and leaves less
/// than one such part after it.
const WINDOW_PARTS: u64 = 64;

/// Result of [`recover`].
pub(super) struct Found {
    /// Position of the next group.
    pub end: Lsn,
    /// Checksum of the block before that.
    pub chain: u32,
    /// The last timestamp given.
    pub last: Timestamp,
    pub recovered: Recovered,
}

/// Replays the log up to its end, and erases blocks that a crash left after the end.
pub(super) fn recover(
    devices: &Devices,
    ring: Ring,
    checkpoint: LogCheckpoint,
    replay: Replay<'_>,
) -> Result<Found, Error> {
    if checkpoint.closed {
        let end = ring.next_block(checkpoint.tail);
        let chain = last_checksum(devices, ring, checkpoint)?;
        return Ok(Found { end, chain, last: checkpoint.timestamp, recovered: Recovered::default() });
    }
    let search = search(devices, ring, checkpoint, replay)?;
    let limit = ring.room_until(checkpoint.tail);
    let (end, stale) = match &search.beyond {
        Some(beyond) => {
            look_far(devices, &search, beyond, limit)?;
            (beyond.end, beyond.stale.as_slice())
        }
        None => (search.at, &[][..]),
    };
    let end = match ring.block(checkpoint.tail) < end && planted!(LastBlockOverwritten) {
        true => Lsn(end.0 - ring.block_bytes),
        false => end,
    };
    erase(devices, ring, stale)?;
    let recovered = Recovered {
        records: search.records.count,
        bytes: end.0 - checkpoint.tail.0.min(end.0),
        torn: !stale.is_empty() || !search.records.partial.is_empty(),
    };
    let last = search.records.last;
    let last =
        if last > checkpoint.timestamp && planted!(TimestampsRepeat) { checkpoint.timestamp } else { last };
    Ok(Found { end, chain: search.chain.unwrap_or(0), last, recovered })
}

/// Calls `see` with the records that [`recover`] will replay, and writes the durable mark for them.
pub(super) fn scan(
    devices: &Devices,
    ring: Ring,
    checkpoint: LogCheckpoint,
    see: Replay<'_>,
) -> Result<(), Error> {
    if checkpoint.closed {
        return Ok(());
    }
    let search = search(devices, ring, checkpoint, see)?;
    let end = search.beyond.as_ref().map_or(search.at, |beyond| beyond.end);
    if end > search.checkpoint.durable {
        flush(devices, Role::Log).map_err(|failed| failed.error("flush the log"))?;
        durable_mark::write(devices, ring, checkpoint.store, end)?;
    }
    Ok(())
}

fn search<'a>(
    devices: &Devices,
    ring: Ring,
    checkpoint: LogCheckpoint,
    replay: Replay<'a>,
) -> Result<Search<'a>, Error> {
    let checkpoint = LogCheckpoint {
        durable: checkpoint.durable.max(durable_mark::read(devices, ring, checkpoint.store)?),
        ..checkpoint
    };
    let limit = ring.room_until(checkpoint.tail);
    let mut search = Search {
        ring,
        checkpoint,
        records: Records::new(ring, checkpoint, replay),
        at: ring.block(checkpoint.tail),
        chain: None,
        beyond: None,
    };
    let pieces = pieces(ring, search.at, limit).map(|(lsn, bytes)| (ring.place(lsn), bytes));
    read_pieces(devices, Role::Log, pieces, |_, bytes| {
        for block in bytes.chunks_exact(ring.block_bytes as usize) {
            if search.look(block)?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    })?;
    search.confirm_end(devices)?;
    Ok(search)
}

/// The checksum of the last block of a closed log. The next block is chained to it, as a replay begins in
/// this block. No record of it is needed, so damage to it is not reported.
fn last_checksum(devices: &Devices, ring: Ring, checkpoint: LogCheckpoint) -> Result<u32, Error> {
    let at = ring.block(checkpoint.tail);
    if at == checkpoint.tail {
        return Ok(0);
    }
    let mut block = Block::new(ring.block_bytes as usize)?;
    block.read(devices, Role::Log, ring.place(at))?;
    Ok(block::open(block.bytes(), checkpoint.store, at).map_or(0, |(_, checksum)| checksum))
}

/// The ring from `at` to `limit` in pieces of consecutive bytes.
fn pieces(ring: Ring, mut at: Lsn, limit: Lsn) -> impl Iterator<Item = (Lsn, u32)> {
    let most = READ_BYTES.next_multiple_of(ring.block_bytes);
    std::iter::from_fn(move || {
        let start = at;
        let length = (limit.0 - start.0).min(most).min(ring.until_wrap(start));
        at = Lsn(start.0 + length);
        (length > 0).then_some((start, length as u32))
    })
}

/// State of reading block after block from the tail on: first records, then, after the end, blocks that may
/// record that it was durable.
struct Search<'a> {
    ring: Ring,
    checkpoint: LogCheckpoint,
    records: Records<'a>,
    /// The block that comes next.
    at: Lsn,
    /// Checksum of the last block of the log so far.
    chain: Option<u32>,
    beyond: Option<Beyond>,
}

/// State of the search after the log's end.
struct Beyond {
    end: Lsn,
    why: NotIt,
    /// Valid blocks, which have to be erased.
    stale: Vec<Lsn>,
}

impl Search<'_> {
    fn look(&mut self, bytes: &[u8]) -> Result<ControlFlow<()>, Error> {
        let at = self.at;
        self.at = Lsn(at.0 + self.ring.block_bytes);
        if self.beyond.is_none() {
            match follow(bytes, self.checkpoint.store, at, self.chain) {
                Ok((header, checksum)) => {
                    self.records.take(&header, bytes)?;
                    self.chain = Some(checksum);
                    return Ok(ControlFlow::Continue(()));
                }
                Err(why) => {
                    let beyond = Beyond { end: at, why, stale: Vec::new() };
                    if self.checkpoint.durable > at && !planted!(DamageTakenForTornTail) {
                        return Err(self.corrupt(&beyond, "the checkpoint or the durable mark"));
                    }
                    self.beyond = Some(beyond);
                }
            }
        }
        let Some(beyond) = &mut self.beyond else { return Ok(ControlFlow::Continue(())) };
        if at.0 > beyond.end.0 + self.ring.window_bytes() {
            return Ok(ControlFlow::Break(()));
        }
        if let Ok((header, _)) = block::open(bytes, self.checkpoint.store, at) {
            beyond.stale.push(at);
            if header.durable > beyond.end
                && let Some(beyond) = &self.beyond
                && !planted!(DamageTakenForTornTail)
            {
                return Err(self.corrupt(beyond, &format!("the block at position {}", at.0)));
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    /// Reads the block after the log's end once more: a block that was misread, from another place or with a
    /// flipped bit, must not pass for a torn tail.
    fn confirm_end(&self, devices: &Devices) -> Result<(), Error> {
        let Some(beyond) = &self.beyond else { return Ok(()) };
        let mut block = Block::new(self.ring.block_bytes as usize)?;
        block.read(devices, Role::Log, self.ring.place(beyond.end))?;
        match follow(block.bytes(), self.checkpoint.store, beyond.end, self.chain) {
            Ok(_) => Err(self.corrupt(beyond, "a second look")),
            Err(_) => Ok(()),
        }
    }

    /// The error for an end before a position that was durable; `source` names the record of its durability.
    fn corrupt(&self, beyond: &Beyond, source: &str) -> Error {
        Error::Corrupt {
            what: format!("the log (position {}; {source} says that it was durable)", beyond.end.0),
            offset_bytes: self.ring.place(beyond.end),
            expected: beyond.why.expected.clone(),
            got: beyond.why.got.clone(),
        }
    }
}

/// The block, if it is the one at `lsn` and follows the one with the checksum `chain`.
fn follow(bytes: &[u8], store: u64, lsn: Lsn, chain: Option<u32>) -> Result<(Header, u32), NotIt> {
    let (header, checksum) = block::open(bytes, store, lsn)?;
    match chain {
        Some(chain) if chain != header.previous && !is_chain_ignored() => Err(NotIt {
            expected: format!("a block after one with checksum {chain:08x}"),
            got: format!("one after {:08x}", header.previous),
        }),
        _ => Ok((header, checksum)),
    }
}

/// Two bugs of erasing show only where the chain, the second line of defence, is missing, too.
fn is_chain_ignored() -> bool {
    [planted!(ChainNotVerified), planted!(ErasedNotFlushed), planted!(LogWindowNotWatched)].contains(&true)
}

/// Samples blocks after the window that may record that the missing part was durable.
fn look_far(devices: &Devices, search: &Search<'_>, beyond: &Beyond, limit: Lsn) -> Result<(), Error> {
    let ring = search.ring;
    let step = ring.block(Lsn(ring.window_bytes() / WINDOW_PARTS)).0.max(ring.block_bytes);
    let mut samples = (search.at.0..limit.0).step_by(step as usize).map(Lsn);
    let places = samples.clone().map(|lsn| (ring.place(lsn), ring.block_bytes as u32));
    read_pieces(devices, Role::Log, places, |_, bytes| {
        let lsn = samples.next().unwrap_or(limit);
        match block::open(bytes, search.checkpoint.store, lsn) {
            Ok((header, _)) if header.durable > beyond.end && !planted!(DamageTakenForTornTail) => {
                Err(search.corrupt(beyond, &format!("the block at position {}", lsn.0)))
            }
            _ => Ok(ControlFlow::<()>::Continue(())),
        }
    })?;
    Ok(())
}

/// Erases valid blocks of up to `window_bytes` after the log's end in a ring that it moves to: a move that a
/// crash interrupted may have copied blocks there that recovery did not find in the log.
pub(super) fn erase_behind(
    devices: &Devices,
    ring: Ring,
    store: u64,
    end: Lsn,
    window_bytes: u64,
) -> Result<(), Error> {
    let (mut at, mut stale) = (end, Vec::new());
    let pieces = pieces(ring, end, Lsn(end.0 + window_bytes)).map(|(lsn, bytes)| (ring.place(lsn), bytes));
    read_pieces(devices, Role::Log, pieces, |_, bytes| {
        for block in bytes.chunks_exact(ring.block_bytes as usize) {
            if block::open(block, store, at).is_ok() {
                stale.push(at);
            }
            at = Lsn(at.0 + ring.block_bytes);
        }
        Ok(ControlFlow::<()>::Continue(()))
    })?;
    erase(devices, ring, &stale)
}

fn erase(devices: &Devices, ring: Ring, stale: &[Lsn]) -> Result<(), Error> {
    if stale.is_empty() || planted!(ChainNotVerified) {
        return Ok(());
    }
    let zeros = Block::new(ring.block_bytes as usize)?;
    for lsn in stale {
        zeros.write(devices, Role::Log, ring.place(*lsn))?;
    }
    if planted!(ErasedNotFlushed) {
        return Ok(());
    }
    flush(devices, Role::Log).map_err(|failed| failed.error("flush the log"))
}

/// Puts the stream of records together.
struct Records<'a> {
    ring: Ring,
    replay: Replay<'a>,
    tail: Lsn,
    /// The beginning of a record that continues in the next block.
    partial: Vec<u8>,
    /// Position and timestamp of that record.
    begun: (Lsn, Timestamp),
    /// Whether the beginning of a record was seen: bytes before it belong to a record from before the tail.
    in_step: bool,
    last: Timestamp,
    count: u64,
}

impl<'a> Records<'a> {
    fn new(ring: Ring, checkpoint: LogCheckpoint, replay: Replay<'a>) -> Self {
        let begun = (Lsn(0), Timestamp(0));
        Self {
            ring,
            replay,
            tail: checkpoint.tail,
            partial: Vec::new(),
            begun,
            in_step: false,
            last: checkpoint.timestamp,
            count: 0,
        }
    }

    /// The records of a block; `header` is of it.
    fn take(&mut self, header: &Header, bytes: &[u8]) -> Result<(), Error> {
        let (from, used) = (header.records_from as usize, header.used as usize);
        if from == HEADER_BYTES {
            // Otherwise void: torn by a crash.
            if !planted!(TornRecordKept) {
                self.partial.clear();
            }
        } else if self.in_step && !self.partial.is_empty() {
            self.partial.extend_from_slice(bytes.get(HEADER_BYTES..from).unwrap_or_default());
            self.finish_partial()?;
        }
        if from == used {
            return Ok(());
        }
        if header.timestamp > Timestamp::MAX.0 {
            return Err(Error::Corrupt {
                what: format!("the log (position {})", header.lsn.0),
                offset_bytes: self.ring.place(header.lsn),
                expected: format!("timestamps up to {}", Timestamp::MAX.0),
                got: format!("{}, under a right checksum", header.timestamp),
            });
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

/// The records of blocks that follow one another, as [`recover`] would replay them.
#[cfg(feature = "testing")]
pub(crate) fn records_of(
    checkpoint: LogCheckpoint,
    blocks: &[(Header, Vec<u8>)],
    replay: Replay<'_>,
) -> Result<(), Error> {
    let ring = Ring { start_bytes: 0, length_bytes: u64::MAX, block_bytes: 512 };
    let mut records = Records::new(ring, checkpoint, replay);
    blocks.iter().try_for_each(|(header, bytes)| records.take(header, bytes))
}

/// A whole record at the front, without its length, and the following bytes.
fn split_record(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let length = u32::from_le_bytes(bytes.get(..PREFIX_BYTES)?.try_into().ok()?);
    bytes.get(PREFIX_BYTES..)?.split_at_checked(length as usize)
}
