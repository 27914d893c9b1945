//! The file format, as `docs/store-format.md` has it: a reader that knows nothing but that document finds
//! everything in a store that was closed.
//!
//! A change of the format turns this red. Then the version of the format goes up, and the document and this
//! reader follow.

use std::collections::BTreeMap;
use std::fs;
use std::thread;

use flashgrain::{DATA_FILE, Db, LsmCompression, NodeBlocks, TreeOptions};

use super::bad_input::{crc32c, folder};

const VERSION: u32 = 13;

fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap())
}

fn half(bytes: &[u8], at: usize) -> usize {
    usize::from(u16::from_le_bytes(bytes[at..at + 2].try_into().unwrap()))
}

fn long(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap())
}

fn varint(bytes: &mut &[u8]) -> u64 {
    let (mut number, mut shift) = (0, 0);
    loop {
        let byte = bytes[0];
        *bytes = &bytes[1..];
        number |= u64::from(byte & 0x7f) << shift;
        shift += 7;
        if byte < 0x80 {
            return number;
        }
    }
}

fn unzigzag(number: u64) -> i64 {
    (number >> 1) as i64 ^ -((number & 1) as i64)
}

/// A sector with a magic, a checksum and the version.
fn sector<'a>(file: &'a [u8], at: usize, magic: &[u8; 8]) -> &'a [u8] {
    let sector = &file[at..at + 512];
    assert_eq!(&sector[..8], magic);
    assert_eq!(word(sector, 8), crc32c(&sector[12..]));
    assert_eq!(word(sector, 12), VERSION);
    sector
}

/// The current superblock: the one of the highest generation, in both copies of its slot.
fn superblock(file: &[u8]) -> &[u8] {
    let slots = [[0, 16 << 10], [64 << 10, 80 << 10]];
    let both = slots.map(|places| {
        let [first, second] = places.map(|at| sector(file, at, b"flshgrn\0"));
        assert_eq!(first, second);
        first
    });
    let [even, odd] = both.map(|superblock| long(superblock, 32));
    assert!(even % 2 == 0 && odd % 2 == 1 && even.abs_diff(odd) == 1);
    both[usize::from(odd > even)]
}

/// The page whose image is at this location, gap included.
fn page(file: &[u8], location: u64, id: u64, kind: u8) -> Vec<u8> {
    let (offset, class, length) = (location >> 19 << 6, location >> 15 & 15, (location & 0x7fff) << 6);
    let image = &file[offset as usize..(offset + length) as usize];
    assert_eq!(word(image, 0), crc32c(&image[4..]));
    assert_eq!((half(image, 4) as u64 * 64, u64::from(image[6]), image[7]), (length, class, kind));
    assert_eq!(long(image, 8), id);
    let (front, back, bytes) = (word(image, 24) as usize, word(image, 28) as usize, 4096_usize << class);
    let mut page = vec![0; bytes];
    page[..front].copy_from_slice(&image[..front]);
    page[back..].copy_from_slice(&image[front..front + bytes - back]);
    assert!(image[front + bytes - back..].iter().all(|byte| *byte == 0));
    page
}

/// Where every page is.
fn map(file: &[u8], superblock: &[u8]) -> BTreeMap<u64, u64> {
    let (last, last_serial, first_serial) =
        (long(superblock, 208), long(superblock, 216), long(superblock, 224));
    let mut chain = vec![(last_serial, last)];
    while chain[chain.len() - 1].0 > first_serial {
        let (serial, location) = chain[chain.len() - 1];
        let newest = page(file, location, (1 << 48) + serial, 3);
        // The nearest prior is enough.
        chain.push((serial - 1, long(&newest, 48)));
    }
    let mut places = BTreeMap::new();
    for (serial, location) in chain.into_iter().rev() {
        let page = page(file, location, (1 << 48) + serial, 3);
        let [priors, pages, segments, length] = [32, 36, 40, 44].map(|at| word(&page, at) as usize);
        let start = 48 + 8 * priors;
        let mut changes = &page[start..start + length];
        let mut id = 0_i64;
        for _ in 0..pages {
            id += unzigzag(varint(&mut changes));
            match varint(&mut changes) {
                0 => places.remove(&(id as u64)),
                location => places.insert(id as u64, location),
            };
        }
        for _ in 0..segments {
            let (_number, _opening) = (varint(&mut changes), varint(&mut changes));
        }
        assert!(changes.is_empty());
    }
    places
}

/// The records of a tree that is one leaf of 4 KiB.
fn leaf(file: &[u8], places: &BTreeMap<u64, u64>, id: u64) -> Vec<(Vec<u8>, Vec<u8>)> {
    let page = page(file, places[&id], id, 1);
    let (count, prefix, level) = (half(&page, 32), half(&page, 34), page[40]);
    assert_eq!((prefix, level, half(&page, 52), half(&page, 54)), (0, 0, 0, 0xffff));
    let record = |index: usize| {
        let slot = &page[56 + 12 * index..][..12];
        let (at, key_length, value_length) = (half(slot, 4) * 4, half(slot, 6), half(slot, 8));
        // The head is the key's first four bytes as a big-endian number, kept in little-endian order.
        let head = word(slot, 0).to_be_bytes();
        let rest = key_length.saturating_sub(4);
        let key = [&head[..key_length.min(4)], &page[at..at + rest]].concat();
        let value_at = at + rest.next_multiple_of(4);
        (key, page[value_at..value_at + value_length].to_vec())
    };
    (0..count).map(record).collect()
}

/// The records of a part of a leaf: of its node header, slots and heap.
fn part_of_leaf(part: &[u8]) -> Vec<(Vec<u8>, Vec<u8>)> {
    let (count, prefix, level) = (half(part, 32), half(part, 34), part[40]);
    assert_eq!(level, 0);
    let lower = word(part, 44) as usize;
    let record = |index: usize| {
        let slot = &part[56 + 12 * index..][..12];
        let (at, key_length, value_length) = (half(slot, 4) * 4, half(slot, 6), half(slot, 8));
        let head = word(slot, 0).to_be_bytes();
        let rest = key_length.saturating_sub(4);
        let key = [&part[lower..lower + prefix], &head[..key_length.min(4)], &part[at..at + rest]].concat();
        let value_at = at + rest.next_multiple_of(4);
        (key, part[value_at..value_at + value_length].to_vec())
    };
    (0..count).map(record).collect()
}

/// The parts of the image in blocks at this location, and the children of its directory.
fn parts(file: &[u8], location: u64, id: u64, block: usize) -> (Vec<Vec<u8>>, Vec<u64>) {
    let (offset, class, length) = (location >> 19 << 6, location >> 15 & 15, (location & 0x7fff) << 6);
    assert_eq!(offset % 4096, 0);
    let image = &file[offset as usize..(offset + length) as usize];
    let kind = 16 + (block / 4096).ilog2() as u8;
    let mut parts = Vec::new();
    for (number, bytes) in image.chunks(block).enumerate() {
        assert_eq!(word(bytes, 0), crc32c(&bytes[4..]));
        assert_eq!((u64::from(bytes[6]), long(bytes, 8)), (class, id));
        match number {
            0 => {
                assert_eq!(
                    (half(bytes, 4) as u64 * 64, bytes[7], word(bytes, 24)),
                    (length, kind | 128, block as u32)
                );
                parts.push(bytes[word(bytes, 28) as usize..].to_vec());
            }
            _ => {
                assert_eq!((half(bytes, 4), bytes[7]), (number, kind | 192));
                parts.push(bytes.to_vec());
            }
        }
    }
    let directory = &image[32..word(image, 28) as usize];
    let children = match directory.is_empty() {
        true => Vec::new(),
        // Behind the hints.
        false => (0..half(directory, 32)).map(|index| long(directory, 120 + 16 * index + 8)).collect(),
    };
    (parts, children)
}

#[test]
fn a_reader_that_knows_the_document_finds_records_in_blocks() {
    let folder = folder();
    let db = Db::builder().path(folder.path()).cache_bytes(4 << 20).workers(1).create().unwrap();
    let options = TreeOptions::new().node_bytes(4096).node_blocks(NodeBlocks::Of(4));
    let tree = db.tree_with("numbers", &options).unwrap();
    // One leaf of several blocks, which is the root.
    let all: BTreeMap<Vec<u8>, Vec<u8>> =
        (0..60_u8).map(|number| (vec![b'k', number, 7, 7, number], vec![number; 200])).collect();
    all.iter().for_each(|(key, value)| tree.insert(key, value).unwrap());
    db.close().unwrap();
    let file = fs::read(folder.path().join(DATA_FILE)).unwrap();
    let superblock = superblock(&file);
    let places = map(&file, superblock);
    let catalog = leaf(&file, &places, long(superblock, 144));
    let (_, entry) = catalog.iter().find(|(key, _)| key == b"numbers").unwrap();
    assert_eq!((entry.len(), &entry[..4]), (16, &[1, 1, 2, 2][..]));
    let root = long(entry, 8);
    let (parts, children) = parts(&file, places[&root], root, 4096);
    assert!(parts.len() > 2);
    assert_eq!(children[1..], (1..parts.len() as u64).map(|number| number * 4096).collect::<Vec<_>>());
    let found: BTreeMap<_, _> = parts.iter().flat_map(|part| part_of_leaf(part)).collect();
    let found: BTreeMap<_, _> = found.into_iter().map(|(key, value)| (key, value[8..].to_vec())).collect();
    assert_eq!(found, all);
}

/// Where the copies of the log's durable mark are.
fn durable_marks(superblock: &[u8]) -> [usize; 2] {
    let (start, bytes, block_bytes) =
        (long(superblock, 80), long(superblock, 88), u64::from(word(superblock, 96)));
    [start, start + bytes - block_bytes].map(|at| at as usize)
}

/// The operations of all records of the log: kind, tree, key.
fn log(file: &[u8], superblock: &[u8]) -> Vec<(u8, u64, Vec<u8>)> {
    let block_bytes = word(superblock, 96) as usize;
    let start = long(superblock, 80) as usize + block_bytes;
    let (mut stream, mut previous, mut lsn) = (Vec::new(), 0, 0);
    loop {
        let block = &file[start + lsn..][..block_bytes];
        let used = word(block, 40) as usize;
        if long(block, 8) != long(superblock, 16) || long(block, 16) != lsn as u64 {
            break;
        }
        assert_eq!((word(block, 0), word(block, 4)), (crc32c(&block[4..used]), previous));
        stream.extend_from_slice(&block[48..used]);
        (previous, lsn) = (word(block, 0), lsn + block_bytes);
    }
    let mut operations = Vec::new();
    while !stream.is_empty() {
        let rest = stream.split_off(4 + word(&stream, 0) as usize);
        let mut unpacked = stream[4..].to_vec();
        if unpacked[0] == 10 {
            let mut packed = &unpacked[2..];
            let bytes = varint(&mut packed) as usize;
            assert_eq!(unpacked[1], 1);
            unpacked = lz4_flex::block::decompress(packed, bytes).unwrap();
        }
        let mut record = unpacked.as_slice();
        while !record.is_empty() {
            let kind = record[0];
            record = &record[1..];
            let tree = varint(&mut record);
            let mut parts = Vec::new();
            for _ in 0..if kind == 2 || kind == 5 { 1 } else { 2 } {
                let length = varint(&mut record) as usize;
                parts.push(record[..length].to_vec());
                record = &record[length..];
            }
            operations.push((kind, tree, parts.swap_remove(0)));
        }
        stream = rest;
    }
    operations
}

#[test]
fn a_reader_that_knows_the_document_finds_everything() {
    let folder = folder();
    let store = Db::builder().path(folder.path()).cache_bytes(4 << 20).workers(1);
    let store = store.log_compression(LsmCompression::Lz4);
    let db = store.log_bytes(1 << 20).recovery_log_bytes(1 << 20).create().unwrap();
    let large: Vec<u8> = (0..20_000_u32).map(|number| (number % 251) as u8).collect();
    let fruit = db.tree("fruit").unwrap();
    fruit.insert("apple", "red").unwrap();
    fruit.insert("fig", &large).unwrap();
    fruit.insert("apple", "green").unwrap();
    fruit.insert("pear", "").unwrap();
    fruit.remove("pear").unwrap();
    // This one is compressed in the log.
    fruit.insert("yam", [b'y'; 500]).unwrap();
    // When nothing has been committed for a moment, the durable mark says so.
    let path = folder.path().join(DATA_FILE);
    let is_settled = || {
        let file = fs::read(&path).unwrap();
        // The first superblock has an odd generation; there is none in the other slot yet.
        durable_marks(sector(&file, 64 << 10, b"flshgrn\0")).iter().all(|at| file[*at] != 0)
    };
    while !is_settled() {
        thread::yield_now();
    }
    db.close().unwrap();
    let file = fs::read(&path).unwrap();

    let superblock = superblock(&file);
    let label = sector(&file, 8192, b"flshgrnm");
    assert_eq!(label[16..32], superblock[16..32]);
    assert_eq!([32, 36, 40].map(|at| word(label, at)), [1, 1, 0]);
    assert_eq!(superblock[48..52], [1, 1, 3, 0]);
    assert_eq!(long(superblock, 88), 1 << 20);

    let places = map(&file, superblock);
    let catalog = leaf(&file, &places, long(superblock, 144));
    let (_, entry) = catalog.iter().find(|(key, _)| key == b"fruit").unwrap();
    assert_eq!((entry.len(), &entry[..4]), (16, &[1, 1, 0, 0][..]));
    let tree = u64::from(word(entry, 4));

    let records: BTreeMap<_, _> = leaf(&file, &places, long(entry, 8)).into_iter().collect();
    let apple = &records[b"apple".as_slice()];
    assert_eq!((long(apple, 0) & 0xff, &apple[8..]), (0, &b"green"[..]));
    assert!(records.get(b"pear".as_slice()).is_none_or(|pear| long(pear, 0) & 0xff == 1));
    let fig = &records[b"fig".as_slice()];
    assert_eq!((long(fig, 0) & 0xff, long(fig, 8), word(fig, 16), fig[20]), (2, 20_000, crc32c(&large), 0));
    let first = long(fig, 24);
    let mut value = Vec::new();
    for number in 0..usize::from(fig[21]) {
        let id = long(fig, 24 + 8 * number);
        let page = page(&file, places[&id], id, 2);
        assert_eq!(long(&page, 36), first);
        value.extend_from_slice(&page[56..56 + word(&page, 32) as usize]);
    }
    assert_eq!(value, large);

    let [before, behind] = durable_marks(superblock).map(|at| sector(&file, at, b"flshgrnw"));
    assert_eq!((before, &before[16..24]), (behind, &superblock[16..24]));
    let durable = long(before, 24);
    assert!(
        durable > 0 && durable <= long(superblock, 176),
        "closed in what the durable mark says, or later"
    );

    let operations = log(&file, superblock);
    let key = |key: &str| key.as_bytes().to_vec();
    assert_eq!(
        operations,
        [
            (4, tree, key("fruit")),
            (1, tree, key("apple")),
            (3, tree, key("fig")),
            (1, tree, key("apple")),
            (1, tree, key("pear")),
            (2, tree, key("pear")),
            (1, tree, key("yam")),
        ]
    );
}
