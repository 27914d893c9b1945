//! The durable mark: a record, next to the ring, of the position up to which an idle log was durable.
//!
//! ```text
//! byte  bytes  field
//!    0      8  magic "flshgrnw"
//!    8      4  CRC-32C of bytes 12 to 512
//!   12      4  version of the format
//!   16      8  the first 8 bytes of the store's id
//!   24      8  the log was durable up to this position
//! ```
//!
//! While the log is written, each group says that those before it are durable. The last group before an idle
//! period has no successor. A block written after it would be adjacent to it, so that one misdirected write
//! could destroy both, which would look like a torn tail. Therefore the mark has two copies, in the blocks
//! before and after the ring, and no single write reaches both.

use super::Lsn;
use super::ring::Ring;
use crate::Error;
use crate::io_context::{Block, Devices, Role, flush};
use crate::sector::{Fields, Found, Reader, SECTOR_BYTES};

const MAGIC: [u8; 8] = *b"flshgrnw";

/// Durably marks everything before `durable` as durable.
///
/// # Errors
/// Of the device.
pub(super) fn write(devices: &Devices, ring: Ring, store: u64, durable: Lsn) -> Result<(), Error> {
    let mut block = Block::new(ring.block_bytes as usize)?;
    block.bytes()[..SECTOR_BYTES].copy_from_slice(&DurableMark { store, durable }.encode());
    for place in ring.durable_marks() {
        block.write(devices, Role::Log, place)?;
    }
    flush(devices, Role::Log).map_err(|failed| failed.error("flush the log's durable mark"))
}

/// Returns the marked position, before which everything was durable once; 0 if no copy is whole.
///
/// # Errors
/// If a copy cannot be read and the other one is not whole.
pub(super) fn read(devices: &Devices, ring: Ring, store: u64) -> Result<Lsn, Error> {
    let mut block = Block::new(ring.block_bytes as usize)?;
    let (mut newest, mut unreadable) = (None, None);
    for place in ring.durable_marks() {
        match block.read(devices, Role::Log, place).map(|()| DurableMark::decode(block.bytes())) {
            Ok(Found::Whole(durable_mark)) if durable_mark.store == store => {
                newest = newest.max(Some(durable_mark.durable))
            }
            Ok(_) => {}
            Err(error) => unreadable = Some(error),
        }
    }
    match (newest, unreadable) {
        (None, Some(error)) => Err(error),
        (newest, _) => Ok(newest.unwrap_or(Lsn(0))),
    }
}

/// Content of a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DurableMark {
    store: u64,
    durable: Lsn,
}

impl DurableMark {
    pub(crate) fn encode(&self) -> [u8; SECTOR_BYTES] {
        let mut fields = Fields::new(MAGIC);
        fields.long(self.store);
        fields.long(self.durable.0);
        fields.seal()
    }

    pub(crate) fn decode(bytes: &[u8]) -> Found<Self> {
        match Reader::open(bytes, MAGIC) {
            Found::Whole(mut fields) => {
                Found::Whole(Self { store: fields.long(), durable: Lsn(fields.long()) })
            }
            Found::Foreign => Found::Foreign,
            Found::Version(version) => Found::Version(version),
            Found::Damaged => Found::Damaged,
        }
    }
}
