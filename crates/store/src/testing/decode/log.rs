//! The log's blocks and records, the values that records refer to, and the catalog's entries.

use crate::btree::overflow;
use crate::catalog::Entry;
use crate::log::block::{self, HEADER_BYTES, Header, PREFIX_BYTES};
use crate::log::recover::records_of;
use crate::log::{LogCheckpoint, Lsn, Timestamp};
use crate::txn::{Operation, Operations, unpack};

const BLOCK_BYTES: usize = 512;

/// A block of the log.
pub fn log_block(bytes: &[u8]) {
    let (store, lsn) = (long(bytes, 16..24), Lsn(long(bytes, 16..24)));
    let _either_way = block::open(bytes, store, lsn);
    let mut block = bytes.to_vec();
    let Some(header) = seal(&mut block, store, lsn, 0) else { return };
    let (opened, _) = block::open(&block, store, lsn).unwrap_or_else(|why| panic!("a whole block: {why:?}"));
    assert_eq!(opened, header, "a block comes back");
}

/// Blocks of the log, one after the other and all of them whole: their records, put together.
pub fn log_stream(bytes: &[u8]) {
    let (store, mut chain, mut blocks) = (7, 0, Vec::new());
    for (index, block) in bytes.chunks(BLOCK_BYTES).enumerate() {
        let (mut block, lsn) = (block.to_vec(), Lsn((index * BLOCK_BYTES) as u64));
        block.resize(BLOCK_BYTES, 0);
        let Some(_) = seal(&mut block, store, lsn, chain) else { continue };
        if let Ok((header, checksum)) = block::open(&block, store, lsn) {
            chain = checksum;
            blocks.push((header, block));
        }
    }
    let checkpoint =
        LogCheckpoint { store, tail: Lsn(0), durable: Lsn(0), timestamp: Timestamp(0), closed: false };
    let mut found_bytes = 0;
    let _either_way = records_of(checkpoint, &blocks, &mut |_, _, record| {
        found_bytes += PREFIX_BYTES + record.len();
        operations(record);
        Ok(())
    });
    assert!(
        found_bytes <= blocks.len() * (BLOCK_BYTES - HEADER_BYTES),
        "no record is longer than its blocks"
    );
}

/// Makes a block of the bytes, whose header describes its records as far as that is possible.
fn seal(block: &mut [u8], store: u64, lsn: Lsn, previous: u32) -> Option<Header> {
    let length = block.len();
    let most = u32::try_from(length).ok().filter(|_| length >= HEADER_BYTES)?;
    let least = HEADER_BYTES as u32;
    let used = (long(block, 40..48) as u32).clamp(least, most);
    let records_from = ((long(block, 40..48) >> 32) as u32).clamp(least, used);
    let (durable, timestamp) = (Lsn(long(block, 24..32)), long(block, 32..40));
    let header = Header { previous, store, lsn, durable, timestamp, used, records_from };
    block::seal(block, &header);
    Some(header)
}

fn long(bytes: &[u8], at: std::ops::Range<usize>) -> u64 {
    bytes.get(at).and_then(|bytes| bytes.try_into().ok()).map_or(0, u64::from_le_bytes)
}

/// A record of the log: a commit.
pub fn log_record(bytes: &[u8]) {
    if let Ok(record) = unpack(bytes) {
        operations(&record);
    }
}

fn operations(record: &[u8]) {
    let decoded: Vec<_> = Operations::of(record).collect();
    let whole: Vec<_> = decoded.iter().filter_map(|operation| operation.ok()).collect();
    assert!(decoded.len() - whole.len() <= 1, "it ends at the first invalid operation");
    let mut again = Vec::new();
    whole.iter().for_each(|operation| operation.encode(&mut again));
    let back: Result<Vec<_>, _> = Operations::of(&again).collect();
    assert_eq!(back.as_ref(), Ok(&whole), "operations come back");
    for operation in whole {
        match operation {
            Operation::PutOverflow { reference: logged, .. } => reference(logged),
            Operation::CreateTree { entry, .. } => catalog_entry(entry),
            Operation::Put { .. }
            | Operation::Remove { .. }
            | Operation::Merge { .. }
            | Operation::RemoveRange { .. }
            | Operation::Load { .. }
            | Operation::DropTree { .. }
            | Operation::RenameTree { .. } => {}
        }
    }
}

/// A reference to an overflow value, as log records and tree records have it.
pub fn reference(bytes: &[u8]) {
    assert!(overflow::kept(bytes).len() <= bytes.len());
    overflow::decode_again(bytes);
    if let Ok((pages, _)) = overflow::written_pages(bytes) {
        assert!(pages.len() * 16 <= bytes.len(), "pages that are named");
    }
}

/// A tree's entry in the catalog.
pub fn catalog_entry(bytes: &[u8]) {
    if let Ok(entry) = Entry::decode("fuzzed", bytes) {
        assert_eq!(entry.encode(), bytes, "an entry comes back");
    }
}
