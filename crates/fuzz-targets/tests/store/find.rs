//! Finds the structures of a store as `docs/store-format.md` describes them, and corrects their checksums.

use std::collections::BTreeMap;
use std::ops::Range;

use super::world::small;

/// Copies of superblocks: even generations, then odd ones.
const SUPERBLOCKS: [usize; 4] = [0, 16 << 10, 64 << 10, 80 << 10];
const LABEL: usize = 8 << 10;
const SECTOR_BYTES: usize = 512;
const GRAIN_BYTES: usize = 64;
/// The log with the durable mark's copies, in the blocks before and behind the ring.
const LOG_START_BYTES: usize = 96 << 10;
const LOG_HEADER_BYTES: usize = 48;

/// Kinds of structures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    Superblock,
    Label,
    DurableMark,
    Node,
    Overflow,
    Map,
    LogBlock,
}

/// A structure and its bytes of the device.
#[derive(Clone, Debug)]
pub struct Structure {
    pub kind: Kind,
    pub bytes: Range<usize>,
}

pub fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap())
}

pub fn long(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap())
}

fn crc32c(bytes: &[u8]) -> u32 {
    crc_fast::crc32_iscsi(bytes)
}

/// All that the store may look at: both superblocks that are current or would be, once each, the newest image
/// of every page, the blocks of the log.
pub fn find(device: &[u8]) -> Vec<Structure> {
    let sector = |kind, at| Structure { kind, bytes: at..at + SECTOR_BYTES };
    let mut found = vec![sector(Kind::Label, LABEL)];
    // A store that was never idle has none.
    found.extend(
        durable_marks()
            .map(|at| sector(Kind::DurableMark, at))
            .into_iter()
            .filter(|copy| device[copy.bytes.start] != 0),
    );
    found.extend([SUPERBLOCKS[0], SUPERBLOCKS[2]].map(|at| sector(Kind::Superblock, at)));
    found.extend(log_blocks(device));
    found.extend(images(device));
    found
}

fn durable_marks() -> [usize; 2] {
    let small = small();
    [LOG_START_BYTES, LOG_START_BYTES + (small.log_bytes - u64::from(small.log_block_bytes)) as usize]
}

fn log_blocks(device: &[u8]) -> impl Iterator<Item = Structure> {
    let (small, store) = (small(), &device[16..24]);
    let block_bytes = small.log_block_bytes as usize;
    let [before, behind] = durable_marks();
    let starts = (before + block_bytes..behind).step_by(block_bytes);
    starts.filter_map(move |at| {
        let block = &device[at..at + block_bytes];
        let used = word(block, 40) as usize;
        let is_one = block[8..16] == *store && (LOG_HEADER_BYTES..=block_bytes).contains(&used);
        is_one.then(|| Structure { kind: Kind::LogBlock, bytes: at..at + block_bytes })
    })
}

fn images(device: &[u8]) -> impl Iterator<Item = Structure> {
    let start = small().bytes(0) as usize;
    let mut newest: BTreeMap<u64, (u64, Structure)> = BTreeMap::new();
    let mut at = start;
    while at + GRAIN_BYTES <= device.len() {
        let length = usize::from(u16::from_le_bytes([device[at + 4], device[at + 5]])) * GRAIN_BYTES;
        let kind = [Kind::Node, Kind::Overflow, Kind::Map].get(usize::from(device[at + 7]).wrapping_sub(1));
        let image = device.get(at..at + length);
        match (kind, image) {
            (Some(kind), Some(image)) if length > 0 && word(image, 0) == crc32c(&image[4..]) => {
                let (page, sequence) = (long(image, 8), long(image, 16));
                if newest.get(&page).is_none_or(|(other, _)| *other <= sequence) {
                    newest.insert(page, (sequence, Structure { kind: *kind, bytes: at..at + length }));
                }
                at += length;
            }
            _ => at += GRAIN_BYTES,
        }
    }
    newest.into_values().map(|(_, structure)| structure)
}

/// Makes the checksum of a structure right, and what hangs upon it: the other copy of a superblock, the chain
/// of the log.
pub fn make_right(device: &mut [u8], structure: &Structure) {
    let bytes = &mut device[structure.bytes.clone()];
    match structure.kind {
        Kind::Superblock | Kind::Label | Kind::DurableMark => {
            let checksum = crc32c(&bytes[12..]);
            bytes[8..12].copy_from_slice(&checksum.to_le_bytes());
            if structure.kind == Kind::Superblock {
                let copy = structure.bytes.start + SUPERBLOCKS[1];
                device.copy_within(structure.bytes.clone(), copy);
            }
        }
        Kind::Node | Kind::Overflow | Kind::Map => {
            let checksum = crc32c(&bytes[4..]);
            bytes[..4].copy_from_slice(&checksum.to_le_bytes());
        }
        Kind::LogBlock => make_log_right(device, structure.bytes.start),
    }
}

/// The block at `at` and those that are chained to it.
fn make_log_right(device: &mut [u8], mut at: usize) {
    let block_bytes = small().log_block_bytes as usize;
    let mut before = word(device, at);
    loop {
        let block = &mut device[at..at + block_bytes];
        let used = (word(block, 40) as usize).clamp(LOG_HEADER_BYTES, block_bytes);
        let checksum = crc32c(&block[4..used]);
        block[..4].copy_from_slice(&checksum.to_le_bytes());
        at += block_bytes;
        let [_, end] = durable_marks();
        if at >= end || before == 0 || word(device, at + 4) != before {
            return;
        }
        before = word(device, at);
        device[at + 4..at + 8].copy_from_slice(&checksum.to_le_bytes());
    }
}

/// Splits a log block into its records: returns the start of each.
pub fn record_starts(block: &[u8]) -> Vec<usize> {
    let used = (word(block, 40) as usize).min(block.len());
    let (mut at, mut starts) = (word(block, 44) as usize, Vec::new());
    while at + 6 <= used {
        starts.push(at);
        at += 4 + word(block, at) as usize;
    }
    starts
}
